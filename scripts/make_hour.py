#!/usr/bin/env python3
"""Makes one hour of mixed sound, 48 kHz 16-bit mono WAV, out of the demo's real sounds.

usage: make_hour.py MEDIA OUT.wav

Ten minutes of clips in a seeded order with two to twelve seconds of quiet hiss between them, six times over.
"""

import glob
import os
import random
import sys
import wave

import make_demo_session as demo

BLOCK_S = 600
BLOCKS = 6


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    media, out = sys.argv[1:]
    patterns = ("usr/share/sounds/**/*.wav", "usr/share/sounds/**/*.og[ga]")
    paths = sorted(path for pattern in patterns for path in glob.glob(os.path.join(media, "root", pattern), recursive=True))
    # A link to nothing and a theme's empty placeholder are no sounds.
    clips = [demo.decode(path) for path in paths if os.path.exists(path) and os.path.getsize(path) > 1000]
    if not clips:
        sys.exit("error: no sound was found; run scripts/demo_media.sh first")
    source = random.Random(3)
    track = demo.hiss(BLOCK_S * demo.SAMPLE_RATE_HZ)
    at = 0
    while at < len(track):
        clip = source.choice(clips)
        demo.mix(track, clip, at)
        at += len(clip) + int(source.uniform(2, 12) * demo.SAMPLE_RATE_HZ)
    partial = out + ".prog"
    with wave.open(partial, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(demo.SAMPLE_RATE_HZ)
        for _ in range(BLOCKS):
            file.writeframes(track.tobytes())
    os.replace(partial, out)
    print(f"one hour of mixed sound from {len(clips)} recordings in {out}")


if __name__ == "__main__":
    main()
