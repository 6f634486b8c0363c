"""Expected log-mel frames, computed in f64 by numpy from the definition of YAMNet's features.

pip install numpy==2.4.6

Writes tests/fixtures/audio/log_mel.json: for each input, what makes it (so that the Rust test builds the
same samples) and the expected frames, rounded to 6 decimals. Run from the repository's root:
python tests/reference/log_mel.py
"""

import json
import pathlib

import numpy as np

RATE = 16000
BANDS, BINS, FFT, FRAME, HOP = 64, 257, 512, 400, 160


def mel(frequency_hz):
    return 1127.0 * np.log(1.0 + frequency_hz / 700.0)


def mel_matrix():
    """tf.signal.linear_to_mel_weight_matrix(64, 257, 16000, 125, 7500) in f64."""
    bins = mel(np.linspace(0, RATE / 2, BINS))[:, None]
    edges = np.linspace(mel(125.0), mel(7500.0), BANDS + 2)
    lower, center, upper = edges[:-2][None], edges[1:-1][None], edges[2:][None]
    weights = np.maximum(0.0, np.minimum((bins - lower) / (center - lower), (upper - bins) / (upper - center)))
    weights[0] = 0.0
    return weights


def samples_of(spec):
    """Sines (Hz, amplitude) plus noise of a linear congruential generator, in f64, stored as f32."""
    n = np.arange(spec["length"])
    samples = np.zeros(spec["length"])
    for frequency_hz, amplitude in spec["sines"]:
        samples += amplitude * np.sin(2 * np.pi * frequency_hz * n / RATE)
    state = 1
    noise = np.empty(spec["length"])
    for i in range(spec["length"]):
        state = (state * 1664525 + 1013904223) % 2**32
        noise[i] = (state >> 8) / 2.0**23 - 1.0
    return (samples + spec["noise"] * noise).astype(np.float32)


def log_mel(samples):
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(FRAME) / FRAME)
    starts = range(0, len(samples) - FRAME + 1, HOP)
    frames = np.stack([samples[s : s + FRAME].astype(np.float64) * window for s in starts])
    return np.log(np.abs(np.fft.rfft(frames, FFT)) @ mel_matrix() + 0.001)


SPECS = {
    "noise": {"length": 1040, "sines": [], "noise": 0.5},
    "quiet noise": {"length": 560, "sines": [], "noise": 0.0005},
    "tones in noise": {"length": 1040, "sines": [[440.0, 0.3], [1234.5, 0.1], [6000.0, 0.05]], "noise": 0.01},
    "silence": {"length": 400, "sines": [], "noise": 0.0},
}

if __name__ == "__main__":
    rows = mel_matrix().T.astype(np.float32)
    cases = [
        {"name": name, **spec, "frames": np.round(log_mel(samples_of(spec)), 6).tolist()}
        for name, spec in SPECS.items()
    ]
    picks = [[int(b), int(k), float(rows[b, k])] for b, k in np.argwhere(rows)[::9]]
    out = {"nonzero_weights": int(np.count_nonzero(rows)), "weights": picks, "cases": cases}
    path = pathlib.Path("tests/fixtures/audio/log_mel.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(out, separators=(",", ":")) + "\n")
