"""What the agent's lab tests share: the real stacks of four sensors, the real program, and a way to say what is wrong.

Debian packages only. The stacks are the scripts beside this folder; the program is PERCEPT_PROGRAM.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

LAB = Path(__file__).resolve().parent.parent
ROOT = LAB.parent.parent
PROGRAM = os.environ.get("PERCEPT_PROGRAM", str(ROOT / "target/debug/percept"))
MEDIA = Path(os.environ.get("PERCEPT_DEMO_MEDIA", ROOT / "var/demo/media"))
ALICE = "C0:FF:EE:00:12:34"
ADAPTER = "00:1A:7D:DA:71:13"
PICTURE = next(iter(sorted((ROOT / "var/demo/session/home/camera").glob("*.jpg"))), None)
STAY_LOG = MEDIA / "gps/ublox-zed-f9p_hpg1.11.log"

CONFIG = f"""
[agent]
runtime_dir = "{{run}}"
[models]
dir = "{ROOT}/var/models"
[clip]
model = ""
[camera]
command = "/usr/bin/python3 {LAB}/camera/fake_rpicam.py {{picture}} --rate 5 --cut-every 7 --garbage-every 11"
frames_per_s = 2.0
[gps]
address = "127.0.0.1:{{gps_port}}"
[place]
stay_s_min = 15.0
[[people]]
name = "Alice"
addresses = ["{ALICE}"]
"""


class Failed(Exception):
    pass


def check(is_so, sentence):
    if not is_so:
        raise Failed(sentence)


def say(sentence):
    print(f"    {sentence}", flush=True)


def until(what, ask, seconds=60):
    """Asks until the answer is truthy; a lab machine may be slow, so the time allowed is generous."""
    end = time.monotonic() + seconds
    while True:
        answer = ask()
        if answer:
            return answer
        if time.monotonic() > end:
            raise Failed(f"never so within {seconds} s: {what}")
        time.sleep(0.2)


def script(path, *args, background=False):
    command = [str(LAB / path), *map(str, args)]
    if background:
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    check(done.returncode == 0, f"{path} {' '.join(map(str, args))}: {done.stdout}")
    return done.stdout


def read_env(file):
    """Lines `export NAME=VALUE` of a stack."""
    lines = [line.removeprefix("export ").strip() for line in Path(file).read_text().splitlines()]
    pairs = [line.split("=", 1) for line in lines if "=" in line and not line.startswith("#")]
    return {name: value.strip("'\"") for name, value in pairs}


class Program:
    """The program with one config and one store."""

    def __init__(self, folder, config, env=None):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.config = self.folder / "percept.toml"
        self.config.write_text(config)
        self.data = self.folder / "data"
        self.log = self.folder / "log"
        self.env = {**os.environ, **(env or {}), "PERCEPT_LOG": "info"}
        self.process = None

    def command(self, *args, data=None):
        return [PROGRAM, "--config", str(self.config), "--data-dir", str(data or self.data), *map(str, args)]

    def percept(self, *args, data=None, code=0, timeout=120):
        done = subprocess.run(self.command(*args, data=data), env=self.env, capture_output=True, text=True, timeout=timeout)
        check(code is None or done.returncode == code, f"percept {' '.join(map(str, args))}: {done.returncode}: {done.stderr}{done.stdout}")
        return done

    def rows(self, *args, data=None):
        return [json.loads(line) for line in self.percept(*args, "--format", "jsonl", data=data).stdout.splitlines()]

    def start(self, *args):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command("run", *args), env=self.env, stdout=log, stderr=log)
        return self

    def status(self):
        """The agent's status, or None while it does not answer."""
        done = self.percept("status", "--format", "jsonl", code=None)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def states(self):
        status = self.status()
        if not status:
            return {}
        return {sensor["source"].split(":")[0]: sensor["state"] for sensor in status["sensors"]}

    def running(self, *kinds, seconds=60):
        until(f"{kinds} capture: {self.states()}", lambda: all(self.states().get(kind) == "running" for kind in kinds), seconds)

    def stop(self, within=5.0):
        """SIGTERM; everything captured is committed within five seconds (a machine under load gets twice that)."""
        started = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(within * 2)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise Failed(f"SIGTERM did not end it: {self.tail()}") from None
        check(code == 0, f"ended with {code}: {self.tail()}")
        return time.monotonic() - started

    def kill(self):
        self.process.kill()
        self.process.wait()

    def tail(self):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])

    def coverage(self):
        """(sensor, reason) of every blind or degraded interval."""
        return {tuple(row["which"].rsplit(" ", 1)) for row in self.rows("stats") if row["what"] == "coverage"}


class Stacks:
    """PulseAudio, gpsd, a mocked BlueZ and a camera program, each real but for its hardware."""

    def __init__(self, folder, gps_port):
        self.folder = Path(folder)
        self.gps_port = gps_port
        self.sound, self.gps, self.bluez = (self.folder / name for name in ("sound", "gps", "bluez"))

    def __enter__(self):
        try:
            script("microphone/pulse.sh", "start", self.sound)
            script("gps/gpsd.sh", "start", STAY_LOG, self.gps_port, self.gps, 0.2)
            script("bluetooth/bluez_mock.sh", "start", self.bluez)
            self.adapter("hci0")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for path, args in (("microphone/pulse.sh", ["stop", self.sound]), ("gps/gpsd.sh", ["stop", self.gps]),
                           ("bluetooth/bluez_mock.sh", ["stop", self.bluez])):
            subprocess.run([str(LAB / path), *map(str, args)], capture_output=True)

    def env(self):
        return {**read_env(self.sound / "env"), **read_env(self.bluez / "env")}

    def config(self):
        return CONFIG.format(gps_port=self.gps_port, picture=PICTURE, run=self.folder / "run")

    def play(self, file):
        script("microphone/pulse.sh", "play", self.sound, file)

    def bluez_says(self, *args):
        command = ["/usr/bin/python3", str(LAB / "bluetooth/bluez_mock.py"), *map(str, args)]
        done = subprocess.run(command, env={**os.environ, **read_env(self.bluez / "env")}, capture_output=True, text=True, timeout=30)
        check(done.returncode == 0, f"bluez_mock.py {args}: {done.stderr}")

    def adapter(self, hci):
        """The same adapter under whatever name the kernel gives it, with Alice's telephone near by."""
        self.hci = hci
        self.bluez_says("adapter", hci, ADAPTER)
        self.bluez_says("device", hci, ALICE, "phone")

    def unplug_adapter(self):
        self.bluez_says("remove-adapter", self.hci)

    def alice(self, seconds=10):
        """Her telephone advertises twice a second."""
        for number in range(seconds * 2):
            self.bluez_says("rssi", self.hci, ALICE, -50 - number % 7)
            time.sleep(0.5)


def main(tests):
    """Runs the tests named, or all; the last line counts them."""
    wanted = sys.argv[1:] or [test.__name__ for test in tests]
    passed = failed = 0
    for test in (test for test in tests if test.__name__ in wanted):
        started = time.monotonic()
        try:
            test()
            passed += 1
            print(f"  ok   {test.__name__} ({time.monotonic() - started:.0f} s)", flush=True)
        except (Failed, subprocess.SubprocessError, OSError) as error:
            failed += 1
            print(f"  FAIL {test.__name__}: {error}", flush=True)
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if failed or not passed else 0
