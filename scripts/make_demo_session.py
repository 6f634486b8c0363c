#!/usr/bin/env python3
"""Builds the demo sessions out of real recordings.

usage: make_demo_session.py MEDIA OUT

MEDIA is the folder that scripts/demo_media.sh filled. OUT gets
  OUT/home/     a session of eleven minutes with all four sensors (docs/session-format.md)
  OUT/sail.log  a receiver log as it is, a session of one sensor

Real: every sound and photograph, and the receiver's log, played through gpsd at its own times.
Generated: the quiet hiss under the sounds, when each sound and picture comes, and all advertisements.
The session's note says so. The same media give the same bytes. Needs python3 (its standard library
only), sox and gpsd.
"""

import array
import datetime
import glob
import json
import math
import os
import pty
import random
import shutil
import socket
import subprocess
import sys
import time
import tty

SAMPLE_RATE_HZ = 48_000
FILE_S = 120
HISS_PEAK = 8  # of 32,767: a quiet room, about -77 dBFS
ALICE = "C4:A1:1C:E0:00:01"  # config/demo.toml names it

ALSA = "usr/share/sounds/alsa"
ICONS = "usr/share/sounds/sound-icons"
MATE = "usr/share/sounds/mate/default/alerts"
THEME = "usr/share/sounds/freedesktop/stereo"
# (second, folder, files one after the other, pause between them in seconds)
SOUNDS = [
    (12, ALSA, ["Front_Center.wav", "Front_Left.wav", "Front_Right.wav", "Rear_Center.wav"], 0.1),
    (70, MATE, ["bark.ogg"] * 5, 0.35),
    (125, ALSA, ["Side_Left.wav", "Side_Right.wav", "Rear_Left.wav", "Rear_Right.wav"], 0.1),
    (190, THEME, ["phone-incoming-call.oga"] * 3, 0.5),
    (250, ICONS, ["trumpet-12.wav"] * 3, 0.1),
    (310, MATE, ["glass.ogg"] * 3, 0.2),
    (371, THEME, ["camera-shutter.oga"] * 2, 0.6),
    (430, THEME, ["trash-empty.oga"] * 2, 0.1),
    (500, MATE, ["bark.ogg"] * 3, 0.5),
    (560, THEME, ["alarm-clock-elapsed.oga"], 0.0),
    (600, ALSA, ["Front_Center.wav", "Rear_Center.wav"], 0.1),
]

FACES = "usr/share/pixmaps/faces"
SKLEARN = "usr/lib/python3/dist-packages/sklearn/datasets/images"
PHOTOGRAPHS = [
    f"{FACES}/coffee2.jpg",
    f"{FACES}/cat.jpg",
    f"{FACES}/book.jpg",
    f"{SKLEARN}/flower.jpg",
    f"{FACES}/bicycle.jpg",
    f"{SKLEARN}/china.jpg",
    f"{FACES}/tomatoes.jpg",
    f"{FACES}/guitar2.jpg",
    f"{FACES}/tree.jpg",
    f"{FACES}/mountain.jpg",
]
PHOTOGRAPH_S = 60
FRAME_S = 10

RECEIVER_LOG = "ublox-zed-f9p_hpg1.11.log"
SAIL_LOG = "bundg_zeus_9.log"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    media, out = sys.argv[1:]
    root = os.path.join(media, "root")
    shutil.rmtree(out, ignore_errors=True)
    session = os.path.join(out, "home")
    os.makedirs(session)

    print("demo session: playing the receiver log through gpsd", flush=True)
    started_at, length_ms = write_positions(media, os.path.join(session, "gps.jsonl"))
    print("demo session: laying out sounds", flush=True)
    sounds = write_sound(root, os.path.join(session, "microphone"), length_ms)
    print("demo session: laying out photographs", flush=True)
    photographs = write_pictures(root, os.path.join(session, "camera"), length_ms)
    write_advertisements(os.path.join(session, "bluetooth.jsonl"), length_ms)
    write_description(session, started_at)
    shutil.copy(os.path.join(media, "gps", SAIL_LOG), os.path.join(out, "sail.log"))
    print(f"demo session: {length_ms / 60000:.1f} minutes, {sounds} sounds, {photographs} photographs in {session}")


# --- GPS -------------------------------------------------------------------------------------------


def write_positions(media, path):
    """Writes gpsd's reports with their offsets; gives the first fix's time and the length."""
    with open(os.path.join(media, "gps", RECEIVER_LOG), "rb") as log:
        body = b"".join(line for line in log if not line.startswith(b"#"))
    reports = play_through_gpsd(media, body)
    fixes = [report for report in reports if report["class"] == "TPV" and report.get("mode", 0) >= 2 and "time" in report]
    if len(fixes) < 300:
        sys.exit(f"error: gpsd gave {len(fixes)} fixes for {RECEIVER_LOG}; about 650 were expected")
    start = instant(fixes[0]["time"])
    at_ms = 0
    with open(path, "w", encoding="utf-8") as file:
        for report in reports:
            if report["class"] == "TPV" and "time" in report:
                at_ms = max(at_ms, round((instant(report["time"]) - start).total_seconds() * 1000))
            report.pop("device", None)
            file.write(json.dumps({"at_ms": at_ms, "report": report}) + "\n")
    return start, at_ms


def instant(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def play_through_gpsd(media, body):
    """Feeds a real gpsd from a pseudo-terminal and collects its TPV and SKY reports, each once."""
    master, slave = pty.openpty()
    tty.setraw(slave)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    # -b: never write to the device; -n: read it without waiting for a client
    gpsd = subprocess.Popen(
        [gpsd_program(media), "-b", "-N", "-n", "-S", str(port), os.ttyname(slave)],
        env=gpsd_environment(media),
        stderr=subprocess.DEVNULL,
    )
    try:
        client = connect(port, gpsd)
        client.sendall(b'?WATCH={"enable":true,"json":true};\n')
        received = bytearray()
        wait_for_device(client, received)
        for start in range(0, len(body), 512):
            os.write(master, body[start : start + 512])
            time.sleep(0.004)
            drain(client, received)
        for _ in range(20):
            time.sleep(0.05)
            drain(client, received)
    finally:
        gpsd.terminate()
        gpsd.wait()
        os.close(master)
        os.close(slave)
    reports = [json.loads(line) for line in received.decode().splitlines() if line.startswith("{") and line.endswith("}")]
    return [report for report in reports if report["class"] in ("TPV", "SKY")]


def gpsd_program(media):
    installed = "/usr/sbin/gpsd"
    return installed if os.path.exists(installed) else os.path.join(media, "root", "usr/sbin/gpsd")


def gpsd_environment(media):
    libraries = glob.glob(os.path.join(media, "root", "usr/lib/*-linux-*")) + glob.glob(os.path.join(media, "root", "lib/*-linux-*"))
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(os.path.abspath(folder) for folder in libraries)}


def connect(port, gpsd):
    for _ in range(100):
        if gpsd.poll() is not None:
            sys.exit(f"error: gpsd ended at once with code {gpsd.returncode}")
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=1)
        except OSError:
            time.sleep(0.05)
    sys.exit("error: gpsd did not answer")


def wait_for_device(client, received):
    """What is written before gpsd has opened the terminal would be lost."""
    client.setblocking(False)
    for _ in range(200):
        drain(client, received)
        if b'"activated"' in received:
            break
        client.sendall(b"?DEVICES;\n")
        time.sleep(0.05)
    time.sleep(0.5)


def drain(client, received):
    try:
        while chunk := client.recv(65536):
            received += chunk
    except BlockingIOError:
        pass


# --- microphone ------------------------------------------------------------------------------------


def write_sound(root, folder, length_ms):
    os.makedirs(folder)
    track = hiss(length_ms * SAMPLE_RATE_HZ // 1000)
    count = 0
    for second, package, names, pause_s in SOUNDS:
        at = second * SAMPLE_RATE_HZ
        for name in names:
            path = os.path.join(root, package, name)
            if not os.path.exists(path):
                print(f"demo session: no {name}, left out")
                continue
            clip = decode(path)
            mix(track, clip, at)
            at += len(clip) + int(pause_s * SAMPLE_RATE_HZ)
            count += 1
    if count == 0:
        sys.exit("error: no sound was found")
    frames = FILE_S * SAMPLE_RATE_HZ
    for start in range(0, len(track), frames):
        encode(track[start : start + frames], os.path.join(folder, f"{start * 1000 // SAMPLE_RATE_HZ}.flac"))
    return count


def hiss(frames):
    """Quiet noise, ten seconds of it again and again."""
    source = random.Random(1)
    block = array.array("h", (source.randint(-HISS_PEAK, HISS_PEAK) for _ in range(10 * SAMPLE_RATE_HZ)))
    return (block * (frames // len(block) + 1))[:frames]


def decode(path):
    """16-bit mono at the session's rate, peak at -3 dB."""
    raw = sox([path, "-t", "raw", "-e", "signed", "-b", "16", "-c", "1", "-r", str(SAMPLE_RATE_HZ), "-L", "-", "gain", "-n", "-3"])
    clip = array.array("h")
    clip.frombytes(raw[: len(raw) // 2 * 2])
    if sys.byteorder == "big":
        clip.byteswap()
    return clip


def mix(track, clip, at):
    for index in range(max(0, min(len(clip), len(track) - at))):
        track[at + index] = max(-32768, min(32767, track[at + index] + clip[index]))


def encode(samples, path):
    raw = array.array("h", samples)
    if sys.byteorder == "big":
        raw.byteswap()
    sox(["-t", "raw", "-e", "signed", "-b", "16", "-c", "1", "-r", str(SAMPLE_RATE_HZ), "-L", "-", path], raw.tobytes())


def sox(arguments, given=None):
    # -D: no dither and -R: no random seed, so that the same media give the same bytes
    done = subprocess.run(["sox", "-D", "-R", *arguments], input=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        sys.exit(f"error: sox {' '.join(arguments)}: {done.stderr.decode().strip()}")
    return done.stdout


# --- camera ----------------------------------------------------------------------------------------


def write_pictures(root, folder, length_ms):
    os.makedirs(folder)
    found = [path for path in (os.path.join(root, name) for name in PHOTOGRAPHS) if os.path.exists(path)]
    if not found:
        sys.exit("error: no photograph was found")
    for at_s in range(0, length_ms // 1000, FRAME_S):
        photograph = found[at_s // PHOTOGRAPH_S % len(found)]
        shutil.copyfile(photograph, os.path.join(folder, f"{at_s * 1000}.jpg"))
    return len(found)


# --- Bluetooth (generated) -------------------------------------------------------------------------


def write_advertisements(path, length_ms):
    source = random.Random(2)
    lines = []
    # Alice comes at two minutes, is nearest at four, leaves at seven and a half.
    for at_ms in range(120_000, min(450_000, length_ms), 2_000):
        nearness = math.cos((at_ms - 240_000) / 330_000 * math.pi)
        lines.append(advertisement(at_ms, ALICE, "random", round(-70 + 18 * nearness + source.gauss(0, 2)), "Alice's watch"))
    # Four devices that nobody knows pass by or stay.
    for index, (first_s, last_s, every_s, rssi) in enumerate([(0, 650, 10, -80), (40, 200, 5, -72), (300, 420, 4, -88), (380, 640, 7, -76)]):
        for at_ms in range(first_s * 1000 + 137 * index, min(last_s * 1000, length_ms), every_s * 1000):
            lines.append(advertisement(at_ms, f"D0:00:00:00:00:0{index + 1}", "random", round(rssi + source.gauss(0, 3)), None))
    lines.sort(key=lambda line: line["at_ms"])
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def advertisement(at_ms, address, address_type, rssi_dbm, name):
    line = {"at_ms": at_ms, "address": address, "address_type": address_type, "rssi_dbm": rssi_dbm}
    return {**line, "name": name} if name else line


# --- session.toml ----------------------------------------------------------------------------------


def write_description(session, started_at):
    note = (
        "Demo. Real: sounds and photographs from Debian packages, and a u-blox receiver's log from gpsd's source "
        "package, played through gpsd at its own times. Generated: the quiet hiss under the sounds, the moments at "
        "which sounds and photographs come, and every Bluetooth advertisement."
    )
    text = f"""# Made by scripts/make_demo_session.py
format = 1
session_id = "demo-home"
device_id = "demo"
boot_id = "demo-boot"
started_at = "{started_at.isoformat(timespec="milliseconds")}"
clock_quality = "gps"
note = "{note}"

[microphone]
source = "microphone:demo"

[camera]
source = "camera:demo"

[gps]
source = "gps:gpsd"

[bluetooth]
source = "bluetooth:demo"
"""
    with open(os.path.join(session, "session.toml"), "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
