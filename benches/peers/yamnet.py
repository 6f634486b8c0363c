"""YAMNet per window by ONNX Runtime and LiteRT, the peers of benches/yamnet.rs, one thread each.

pip install numpy==2.4.6 onnxruntime==1.32.0 ai-edge-litert==2.3.0

ONNX Runtime runs the float32 graph that benches/yamnet.rs leaves in var/bench/yamnet.onnx; LiteRT runs Google's
integer file, its front end included. Prints `bench yamnet_N_a_run_<peer> <value> ms` per window, the best of 300 runs.
"""

import os
import pathlib
import time

import numpy as np
import onnxruntime
from ai_edge_litert.interpreter import Interpreter

RUNS = 300


def best_ms(run):
    for _ in range(20):
        run()
    best = float("inf")
    for _ in range(RUNS):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best * 1e3


options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
session = onnxruntime.InferenceSession("var/bench/yamnet.onnx", options, providers=["CPUExecutionProvider"])
for windows in (1, 2, 4):
    values = np.arange(windows * 96 * 64, dtype=np.int64) * 7919 % 1009
    patches = (values / 130 - 6.5).astype(np.float32).reshape(windows, 96, 64)
    best = best_ms(lambda: session.run(None, {"log_mel": patches}))
    print(f"bench yamnet_{windows}_a_run_onnxruntime {best / windows:.3f} ms")

fetched = pathlib.Path("var/models/yamnet")
models = fetched if fetched.is_dir() else pathlib.Path(os.environ["PERCEPT_MODEL_MIRROR"])
interpreter = Interpreter(str(models / "yamnet.tflite"), num_threads=1)
interpreter.allocate_tensors()
interpreter.set_tensor(0, np.sin(np.arange(15_600) * 0.1).astype(np.float32))
print(f"bench yamnet_1_a_run_litert_with_front_end {best_ms(interpreter.invoke):.3f} ms")
