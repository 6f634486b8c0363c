#!/usr/bin/python3
"""What a run costs: share of one core, resident memory, threads and descriptors, and whether they stay flat.

usage: budget.py quiet|sound [MINUTES]      PERCEPT_PROGRAM names the program, a release build
Prints `bench NAME VALUE UNIT` lines. Sound is the demo's voice and telephone again and again.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

from lab import Program, Stacks, say, until
from live import FOUR, scratch, speech_and_telephone

TICKS = os.sysconf("SC_CLK_TCK")


def look(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
    memory = int(status["VmRSS"].split()[0]) / 1024
    peak = int(status["VmHWM"].split()[0]) / 1024
    return (int(fields[11]) + int(fields[12])) / TICKS, memory, peak, int(status["Threads"]), len(os.listdir(f"/proc/{pid}/fd"))


def main(kind, minutes):
    port = 29900 + os.getpid() % 90
    with scratch() as folder, Stacks(folder, port) as stacks:
        played = speech_and_telephone(folder)
        config = stacks.config().replace("frames_per_s = 2.0", "frames_per_s = 1.0")
        agent = Program(Path(folder) / "agent", config, stacks.env()).start()
        stacks.alice(4)
        agent.running(*FOUR)
        noise = None
        if kind == "sound":
            # A player without a wish makes the sound server wake its listeners hundreds of times a second.
            noise = subprocess.Popen(["bash", "-c", f". {stacks.sound}/env; while true; do paplay --latency-msec=200 -d mic {played}; done"])
        # The first minute loads and warms; what is measured begins after it.
        time.sleep(60)
        cpu, memory, _, threads, files = first = look(agent.process.pid)
        started = time.monotonic()
        for minute in range(minutes):
            time.sleep(60)
            now = look(agent.process.pid)
            elapsed = time.monotonic() - started
            say(f"{minute + 1} min: {(now[0] - cpu) / elapsed * 100:.1f} % of a core, {now[1]:.0f} MiB, {now[3]} threads, {now[4]} files")
        last = look(agent.process.pid)
        elapsed = time.monotonic() - started
        if noise:
            noise.kill()
        agent.stop(within=10)
        print(f"bench run_{kind}_cpu {(last[0] - first[0]) / elapsed * 100:.2f} %")
        print(f"bench run_{kind}_memory {last[1]:.1f} MiB")
        print(f"bench run_{kind}_peak_memory {last[2]:.1f} MiB")
        print(f"bench run_{kind}_memory_growth {last[1] - memory:.1f} MiB")
        print(f"bench run_{kind}_threads_growth {last[3] - threads} count")
        print(f"bench run_{kind}_files_growth {last[4] - files} count")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 30)
