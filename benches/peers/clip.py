#!/usr/bin/env python3
"""ONNX Runtime on the graphs of models/random_clip.py, one thread: what benches/clip.rs is compared with.

    python3 benches/peers/clip.py FOLDER

Each tower runs in a process of its own, so that its peak memory is its own, from a file with that tower alone. Prints the median and the peak.
Needs onnx 1.23.2, onnxruntime 1.32.0, numpy 2.4.6.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOWERS = [
    ("tinyclip-vit-8m-16", "image", "model.onnx"),
    ("tinyclip-vit-8m-16", "text", "model.onnx"),
    ("clip-vit-b-32", "image", "vision_model.onnx"),
    ("clip-vit-b-32", "text", "text_model.onnx"),
]


def tower_alone(file, tower, scratch):
    import onnx

    inputs = ["pixel_values"] if tower == "image" else ["input_ids", "attention_mask"]
    offered = [entry.name for entry in onnx.load(file, load_external_data=False).graph.input]
    alone = str(Path(scratch) / "tower.onnx")
    onnx.utils.extract_model(str(file), alone, [name for name in inputs if name in offered], [f"{tower}_embeds"])
    return alone


def measure(file, tower):
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    every = {
        "pixel_values": np.random.default_rng(1).normal(size=(1, 3, 224, 224)).astype(np.float32),
        "input_ids": np.arange(1, 78, dtype=np.int64)[None],
        "attention_mask": np.ones((1, 77), np.int64),
    }
    feed = {entry.name: every[entry.name] for entry in session.get_inputs()}
    times = []
    for _ in range(30):
        start = time.perf_counter()
        session.run([f"{tower}_embeds"], feed)
        times.append((time.perf_counter() - start) * 1000)
    peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 1024
    print(f"{statistics.median(times):.1f} ms, fastest {min(times):.1f} ms, peak {peak:.0f} MiB")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        measure(sys.argv[1], sys.argv[2])
    else:
        for model, tower, name in TOWERS:
            print(model, tower, end=": ", flush=True)
            with tempfile.TemporaryDirectory() as scratch:
                file = tower_alone(Path(sys.argv[1]) / model / name, tower, scratch)
                subprocess.run([sys.executable, __file__, file, tower], check=True)
