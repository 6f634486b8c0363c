#!/usr/bin/env python3
"""Whether two lists of episodes, from `percept episodes --format jsonl`, say the same.

usage: same_episodes.py A B

Same means: as many, with the same ids, times, modalities and top sound classes. Scores may differ in their last
digits between processors, so they are not compared.
"""

import json
import sys


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    first, second = (episodes(path) for path in sys.argv[1:])
    different = [(a, b) for a, b in zip(first, second) if a != b]
    for a, b in different:
        print(f"- {a}\n+ {b}")
    if different or len(first) != len(second):
        sys.exit(f"error: {len(different)} episodes differ; {len(first)} and {len(second)} in all")
    if not any(sound_class for *_, sound_class in first):
        sys.exit("error: no episode has a sound class, so nothing was compared")
    print(f"{len(first)} episodes, the same ids, times, modalities and sound classes in both")


def episodes(path):
    with open(path, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    rows.sort(key=lambda row: (row.get("timestamp") or "", row.get("id") or ""))
    return [(row.get("timestamp"), row.get("id"), row.get("modality"), sound_class(row)) for row in rows]


def sound_class(row):
    metadata = row.get("metadata") or {}
    return metadata.get("sound_class") or row.get("sound_class")


if __name__ == "__main__":
    main()
