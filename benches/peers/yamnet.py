"""Times YAMNet per window in ONNX Runtime and LiteRT, one thread each.

Packages: numpy 2.4.6, onnxruntime 1.32.0, ai-edge-litert 2.3.0 (all from PyPI, Python 3.11)

Usage: yamnet.py YAMNET_TFLITE IMPORTED_ONNX

LiteRT runs the published integer graph with its front end from samples; ONNX Runtime the same float32 graph as percept.
"""

import sys
import time

import numpy as np
import onnxruntime
from ai_edge_litert.interpreter import Interpreter


def best(run, windows, rounds=200):
    """Fastest and median milliseconds per window."""
    for _ in range(20):
        run()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1000 / windows)
    return f"fastest {min(times):.3f} ms, median {np.median(times):.3f} ms per window"


def main(tflite, onnx):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(onnx, options, providers=["CPUExecutionProvider"])
    for windows in (1, 2, 4):
        values = np.arange(windows * 96 * 64, dtype=np.int64) * 7919 % 1009
        patch = (values / 130 - 6.5).astype(np.float32).reshape(windows, 96, 64)
        print(f"onnxruntime, {windows} windows a run:", best(lambda: session.run(None, {"log_mel": patch}), windows))

    interpreter = Interpreter(tflite, num_threads=1)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.sin(np.arange(15_600) * 0.1).astype(np.float32))
    print("litert, int8, with its front end:", best(interpreter.invoke, 1))


if __name__ == "__main__":
    main(*sys.argv[1:])
