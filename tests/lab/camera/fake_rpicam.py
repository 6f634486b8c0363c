#!/usr/bin/python3
"""Stands in for rpicam-vid: writes a JPEG again and again on its standard output, well or badly.

usage: fake_rpicam.py JPEG [--rate FRAMES_PER_S] [--frames COUNT] [--stall] [--cut-every N] [--garbage-every N] [--exit CODE]
  --frames         so many frames, then the end (default: no end)
  --stall          at the end, stay and say nothing instead of ending
  --cut-every      every N-th frame is cut at 40 %
  --garbage-every  random bytes before every N-th frame
  --exit           exit code at the end
"""

import argparse
import os
import sys
import time


def main() -> None:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("jpeg")
    parser.add_argument("--rate", type=float, default=15)
    parser.add_argument("--frames", type=int, default=0)
    parser.add_argument("--stall", action="store_true")
    parser.add_argument("--cut-every", type=int, default=0)
    parser.add_argument("--garbage-every", type=int, default=0)
    parser.add_argument("--exit", type=int, default=0)
    asked = parser.parse_args()
    with open(asked.jpeg, "rb") as file:
        frame = file.read()
    count = 0
    while asked.frames == 0 or count < asked.frames:
        count += 1
        if asked.garbage_every and count % asked.garbage_every == 0:
            sys.stdout.buffer.write(os.urandom(3000))
        is_cut = asked.cut_every and count % asked.cut_every == 0
        sys.stdout.buffer.write(frame[: len(frame) * 2 // 5] if is_cut else frame)
        sys.stdout.buffer.flush()
        time.sleep(1 / asked.rate)
    while asked.stall:
        time.sleep(60)
    print("ERROR: *** the camera went away ***", file=sys.stderr)
    sys.exit(asked.exit)


main()
