#!/usr/bin/python3
"""Feeds a v4l2loopback node with frames: a JPEG, padded with zeros as webcams do, or plain grey pixels in a format.

usage: guest_feed.py NODE JPEG|GREY|YUYV|NV12|RGB3 WIDTH HEIGHT SECONDS [FRAMES_PER_S]
"""

import fcntl
import os
import struct
import sys
import time

VIDIOC_S_FMT = 0xC0D05605
VIDEO_OUTPUT = 2
FIELD_NONE = 1
# Bits a pixel of the plain formats.
BITS = {"GREY": 8, "YUYV": 16, "NV12": 12, "RGB3": 24}


def set_format(node: int, fourcc: str, width: int, height: int, size: int) -> None:
    """The format of the frames that are written."""
    pixels = struct.pack("<8I", width, height, int.from_bytes(fourcc.encode(), "little"), FIELD_NONE, 0, size, 0, 0)
    request = bytearray(struct.pack("<I4x", VIDEO_OUTPUT) + pixels).ljust(208, b"\0")
    fcntl.ioctl(node, VIDIOC_S_FMT, request)


def main() -> None:
    path, what, width_text, height_text, seconds = sys.argv[1:6]
    rate = float(sys.argv[6]) if len(sys.argv) > 6 else 15.0
    width, height = int(width_text), int(height_text)
    node = os.open(path, os.O_RDWR)
    if what in BITS:
        frame = b"\x80" * (width * height * BITS[what] // 8)
        set_format(node, what, width, height, len(frame))
    else:
        with open(what, "rb") as file:
            frame = file.read() + bytes(1024)
        set_format(node, "MJPG", width, height, width * height * 2)
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        os.write(node, frame)
        time.sleep(1 / rate)
    os.close(node)


main()
