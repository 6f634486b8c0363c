"""Writes the expectations of tests/it/yamnet.rs: scores by ONNX Runtime and LiteRT, log-mel by numpy.

pip install numpy==2.4.6 onnxruntime==1.32.0 ai-edge-litert==2.3.0 soundfile==0.14.0 scipy==1.17.1

Usage: yamnet.py YAMNET_TFLITE IMPORTED_ONNX FIXTURES SOUNDS_DIR...

YAMNET_TFLITE is Google's file, IMPORTED_ONNX what percept made of it. Writes FIXTURES/patterns.json (scores and
embeddings for log-mel patterns that the test generates itself) and FIXTURES/clips.json (scores for sounds found by
name under the SOUNDS_DIRs, from the Debian packages alsa-utils and sound-icons but for the first two; the sounds
themselves stay where they are). All values are in millionths. Fails if the two runtimes disagree.
"""

import json
import pathlib
import sys

import numpy as np
import onnxruntime
import soundfile
from ai_edge_litert.interpreter import Interpreter
from scipy.signal import resample_poly

# The class each sound must get among its first three; a canary alone is taken for an alarm, so none is asked of it.
CLIPS = {
    "dog_975ms.wav": "Dog",
    "meow_16k.wav": "Cat",
    "Front_Center.wav": "Speech",
    "Rear_Left.wav": "Speech",
    "Noise.wav": "White noise",
    "canary-long.wav": None,
    "trumpet-12.wav": "Trumpet",
    "guitar-12.wav": "Music",
    "xylofon.wav": "Music",
    "glass-water-1.wav": "Ding",
}
RATE, FRAME, HOP, FFT, BANDS = 16_000, 400, 160, 512, 64


def patterns():
    """Log-mel patches [96, 64] made of integers only, so that any language makes the same ones."""
    frame, band = np.meshgrid(np.arange(96), np.arange(BANDS), indexing="ij")
    noise = (frame * 7919 + band * 104729 + frame * band * 31) % 1009
    yield "noise", noise / np.float32(1009) * np.float32(8) - np.float32(6.5)
    ridge = np.maximum(0, 4 - np.abs(band - (10 + frame // 4)))
    yield "rising tone", ridge * np.float32(1.75) - np.float32(6.5)
    beats = np.where(frame % 24 < 5, 5 - frame % 24, 0) * (64 - band)
    yield "beats", beats * np.float32(0.025) - np.float32(6.5)


def mel_matrix():
    """64 HTK-mel triangles between 125 and 7500 Hz over 257 bins, the lowest bin left out, as the tflite has them."""
    mel = lambda hz: 1127.0 * np.log1p(np.asarray(hz) / 700.0)
    bins = mel(np.linspace(0, RATE / 2, FFT // 2 + 1)[1:])[:, None]
    edges = np.linspace(mel(125.0), mel(7500.0), BANDS + 2)
    lower, centre, upper = edges[:-2], edges[1:-1], edges[2:]
    slopes = np.minimum((bins - lower) / (centre - lower), (upper - bins) / (upper - centre))
    return np.vstack([np.zeros(BANDS), np.maximum(0, slopes)]).T


def log_mel(samples):
    """Frames [n, 64] of float64 log-mel."""
    count = (len(samples) - FRAME) // HOP + 1
    frames = np.lib.stride_tricks.sliding_window_view(samples, FRAME)[::HOP][:count]
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(FRAME) / FRAME)
    magnitude = np.abs(np.fft.rfft(frames * hann, FFT))
    return np.log(magnitude @ mel_matrix().T + 0.001)


def windows(samples):
    """Start samples of the windows: one every 0.48 s, a tail of at least half a window padded with zeros."""
    padded = np.pad(samples, (0, 15_600))
    last = max(0, len(samples) - 7_800)
    return [padded[start:start + 15_600] for start in range(0, last + 1, 7_680)]


def micro(values):
    return [int(round(float(value) * 1e6)) for value in np.asarray(values).ravel()]


class Onnx:
    def __init__(self, path):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.classes = self.session.get_modelmeta().custom_metadata_map["percept.classes"].split("\n")

    def run(self, patches):
        patches = np.asarray(patches, np.float32).reshape(-1, 96, 64)
        return self.session.run(["scores", "embedding"], {"log_mel": patches})


class Litert:
    def __init__(self, path):
        self.interpreter = Interpreter(path, num_threads=1)
        self.interpreter.allocate_tensors()

    def run(self, samples):
        self.interpreter.set_tensor(0, np.asarray(samples, np.float32))
        self.interpreter.invoke()
        return self.interpreter.get_tensor(self.interpreter.get_output_details()[0]["index"])[0]

    def mel_matrix(self):
        return self.interpreter.get_tensor(22)


def find(name, folders):
    for folder in folders:
        for path in sorted(pathlib.Path(folder).rglob(name)):
            return path
    sys.exit(f"{name} is not under {folders}")


def load(path):
    samples, rate = soundfile.read(path, dtype="float32")
    assert samples.ndim == 1, path
    return samples, rate


def to_16k(samples, rate):
    if rate == RATE:
        return samples
    return resample_poly(samples.astype(np.float64), RATE, rate).astype(np.float32)


def write(path, value):
    path.write_text(json.dumps(value, separators=(",", ":")) + "\n")


def main(tflite, onnx_path, fixtures, *folders):
    fixtures = pathlib.Path(fixtures)
    onnx, litert = Onnx(onnx_path), Litert(tflite)
    print("mel matrix difference:", np.abs(mel_matrix() - litert.mel_matrix()).max())

    made = []
    for name, patch in patterns():
        scores, embedding = onnx.run(patch)
        made.append({"name": name, "scores": micro(scores), "embedding": micro(embedding)})
        print(name, onnx.classes[int(scores.argmax())], scores.max())
    write(fixtures / "patterns.json", made)

    clips = []
    for name, expected in CLIPS.items():
        samples, rate = load(find(name, folders))
        cut = windows(to_16k(samples, rate))
        ours = np.mean([onnx.run(log_mel(window))[0][0] for window in cut], axis=0)
        theirs = np.mean([litert.run(window) for window in cut], axis=0)
        difference = float(np.abs(ours - theirs).mean())
        top = [(onnx.classes[index], round(float(ours[index]), 3)) for index in np.argsort(-ours)[:4]]
        print(f"{name}: {len(cut)} windows, mean difference to LiteRT {difference:.5f}, {top}")
        assert difference <= 0.002, name
        clips.append({
            "name": name,
            "class": expected,
            "sample_rate_hz": rate,
            "windows": len(cut),
            "onnxruntime": micro(ours),
            "litert": micro(theirs),
        })
    write(fixtures / "clips.json", clips)


if __name__ == "__main__":
    main(*sys.argv[1:])
