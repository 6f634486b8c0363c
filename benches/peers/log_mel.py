"""Log-mel of one second of sound by librosa, the peer of benches/log_mel.rs.

pip install librosa==0.11.0 numpy==2.4.6 scipy==1.17.1

Run with one thread: OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benches/peers/log_mel.py
Prints `bench log_mel_per_second_librosa <value> us` (best of 7 runs over 30 s of noise) in the form of
the Rust bench, and what BLAS kernel numpy ran on when threadpoolctl is there.
"""

import time

import librosa
import numpy as np

SECONDS = 30
samples = np.random.default_rng(1).uniform(-1, 1, SECONDS * 16000 + 240).astype(np.float32)
mel = librosa.filters.mel(sr=16000, n_fft=512, n_mels=64, fmin=125, fmax=7500, htk=True, norm=None).astype(np.float32)


def log_mel():
    spectrum = np.abs(librosa.stft(samples, n_fft=512, win_length=400, hop_length=160, window="hann", center=False))
    return np.log(mel @ spectrum + np.float32(0.001))


def melspectrogram():
    return np.log(
        librosa.feature.melspectrogram(
            y=samples, sr=16000, n_fft=512, win_length=400, hop_length=160, window="hann", center=False,
            power=1.0, n_mels=64, fmin=125, fmax=7500, htk=True, norm=None,
        ) + np.float32(0.001)
    )


def best_us_per_second(function):
    function()
    best = float("inf")
    for _ in range(7):
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return best * 1e6 / SECONDS


print(f"bench log_mel_per_second_librosa {best_us_per_second(melspectrogram):.1f} us")
print(f"bench log_mel_per_second_librosa_matrix_reused {best_us_per_second(log_mel):.1f} us")
