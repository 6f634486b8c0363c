//! Log-mel per second of sound. Its peer is `benches/peers/log_mel.py` (librosa).

use percept::perception::log_mel::LogMel;
use percept::perception::log_mel::MelMatrix;
use std::hint::black_box;
use std::time::Instant;

/// Length of the sound in seconds.
const SECONDS: u16 = 30;
/// The best of so many runs counts: the others were disturbed.
const RUNS: usize = 25;

#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#[expect(clippy::print_stdout, reason = "a benchmark prints its figure")]
fn main() {
    let samples = noise(usize::from(SECONDS) * 16_000 + 240);
    let mut log_mel = LogMel::new(MelMatrix::yamnet());
    let mut frames = Vec::new();

    let mut best_us = f64::INFINITY;
    for _ in 0..RUNS {
        frames.clear();
        let started = Instant::now();
        black_box(log_mel.extend(black_box(&samples), &mut frames));
        best_us = best_us.min(started.elapsed().as_secs_f64() * 1e6);
    }

    println!("bench log_mel_per_second {:.1} us", best_us / f64::from(SECONDS));
}

fn noise(length: usize) -> Vec<f32> {
    let mut state = 1_u32;
    (0..length)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f32::from((state >> 17) as u16) / 16_384.0 - 1.0
        })
        .collect()
}
