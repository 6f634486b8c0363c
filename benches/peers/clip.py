#!/usr/bin/env python3
"""ONNX Runtime on the graphs of models/random_clip.py, one thread: what benches/clip.rs is compared with.

    python3 benches/peers/clip.py

The graphs are those of benches/clip.rs: the fetched models, or the folder that PERCEPT_BENCH_CLIP names. Each tower runs in
a process of its own, so that its peak memory is its own, from a file with that tower alone. The best of the runs counts.
"""

import os
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


def measure(file, tower, model):
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
    print(f"bench clip_{tower}_{model}_onnxruntime {min(times):.1f} ms")
    print(f"bench clip_{tower}_peak_memory_{model}_onnxruntime {peak:.0f} MiB")


if __name__ == "__main__":
    if len(sys.argv) == 4:
        measure(*sys.argv[1:])
        sys.exit()
    folder = Path(os.environ.get("PERCEPT_BENCH_CLIP", "var/models"))
    for model, tower, name in TOWERS:
        source = folder / model / name
        if not source.exists():
            print(f"{source} is not there: not measured")
            continue
        with tempfile.TemporaryDirectory() as scratch:
            file = tower_alone(source, tower, scratch)
            subprocess.run([sys.executable, __file__, file, tower, model], check=True)
