//! Log-mel frames against the numpy reference (`tests/reference/log_mel.py`).

use percept::perception::log_mel::LogMel;
use percept::perception::log_mel::MEL_BANDS;
use percept::perception::log_mel::MelMatrix;
use percept::perception::log_mel::SPECTRUM_BINS;
use std::f64::consts::PI;

#[derive(serde::Deserialize)]
struct Expected {
    nonzero_weights: usize,
    weights: Vec<(usize, usize, f32)>,
    cases: Vec<Case>,
}

#[derive(serde::Deserialize)]
struct Case {
    name: String,
    length: u32,
    sines: Vec<(f64, f64)>,
    noise: f64,
    frames: Vec<Vec<f32>>,
}

fn expected() -> Expected {
    serde_json::from_str(include_str!("../fixtures/audio/log_mel.json")).unwrap()
}

#[test]
fn log_mel_equals_the_numpy_reference() {
    let mut log_mel = LogMel::new(MelMatrix::yamnet());
    for case in expected().cases {
        let mut values = Vec::new();

        log_mel.extend(&samples_of(&case), &mut values);

        let frames: Vec<&[f32]> = values.chunks(MEL_BANDS).collect();
        assert_eq!(frames.len(), case.frames.len(), "{}", case.name);
        for (frame, wanted) in frames.iter().zip(&case.frames) {
            for (value, wanted) in frame.iter().zip(wanted) {
                assert!((value - wanted).abs() < 1e-4, "{}: {value} instead of {wanted}", case.name);
            }
        }
    }
}

#[test]
fn the_mel_matrix_equals_the_numpy_reference() {
    let rows = MelMatrix::yamnet().to_rows();
    let expected = expected();

    assert_eq!(rows.iter().filter(|weight| **weight != 0.0).count(), expected.nonzero_weights);
    for (band, bin, weight) in expected.weights {
        assert!((rows[band * SPECTRUM_BINS + bin] - weight).abs() < 1e-6, "band {band}, bin {bin}");
    }
}

/// The same samples as the reference script's `samples_of`.
fn samples_of(case: &Case) -> Vec<f32> {
    let mut state = 1_u32;
    (0..case.length)
        .map(|n| {
            let turn = |(frequency_hz, amplitude): &(f64, f64)| {
                amplitude * (2.0 * PI * frequency_hz * f64::from(n) / 16_000.0).sin()
            };
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let noise = f64::from(state >> 8) / 8_388_608.0 - 1.0;
            let sample = case.sines.iter().map(turn).sum::<f64>() + case.noise * noise;
            #[expect(clippy::cast_possible_truncation, reason = "the reference stores f32 as well")]
            let sample = sample as f32;
            sample
        })
        .collect()
}
