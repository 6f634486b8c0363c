//! YAMNet on real sounds, from samples to classes, beside ONNX Runtime and LiteRT.
//!
//! Expected values are written by `tests/reference/yamnet.py`. The sounds come out of the Debian packages alsa-utils and
//! sound-icons, unpacked under `PERCEPT_DEMO_MEDIA`, and `dog_975ms.wav` and `meow_16k.wav` from the folder
//! `../data/sounds` beside the model mirror. A sound that is not there is named and passed over, but the packages'
//! sounds must be there once `PERCEPT_DEMO_MEDIA` is set, as `make test` does.

use std::path::Path;
use std::path::PathBuf;

use percept::domain::id::SensorKind;
use percept::domain::id::SourceId;
use percept::domain::reading::Samples;
use percept::domain::reading::SoundChunk;
use percept::domain::time::ClockQuality;
use percept::domain::time::Stamp;
use percept::domain::time::Timestamp;
use percept::perception::hearing;
use percept::perception::hearing::SoundPerception;
use percept::perception::log_mel::HOP_SAMPLES;
use percept::perception::log_mel::LogMel;
use percept::perception::log_mel::MelMatrix;
use percept::perception::log_mel::WINDOW_SAMPLES;
use percept::perception::resample::Resampler;
use percept::perception::sound::SoundClassifier;
use serde_json::Value;

use crate::yamnet::assert_close;
use crate::yamnet::fixture;
use crate::yamnet::imported_file;
use crate::yamnet::values;

fn find(name: &str) -> Option<PathBuf> {
    let media = std::env::var_os("PERCEPT_DEMO_MEDIA").map(PathBuf::from);
    let sounds = media.iter().flat_map(|media| {
        let sounds = media.join("root/usr/share/sounds");
        [sounds.join("alsa"), sounds.join("sound-icons")]
    });
    let mirror = std::env::var_os("PERCEPT_MODEL_MIRROR").map(|mirror| Path::new(&mirror).join("../data/sounds"));
    let found = sounds.chain(mirror).map(|folder| folder.join(name)).find(|file| file.exists());
    let is_packaged = !["dog_975ms.wav", "meow_16k.wav"].contains(&name);
    assert!(found.is_some() || media.is_none() || !is_packaged, "{name} is not under PERCEPT_DEMO_MEDIA");
    found
}

fn samples_at_16k(file: &Path) -> Vec<f32> {
    let reader = hound::WavReader::open(file).unwrap();
    let mut resampler = Resampler::new(reader.spec().sample_rate).unwrap();
    let samples: Vec<f32> = reader.into_samples::<i16>().map(|sample| f32::from(sample.unwrap()) / 32_768.0).collect();
    let mut converted = Vec::new();
    resampler.push(&samples, &mut converted);
    resampler.finish(&mut converted);
    converted
}

/// Log-mel windows, one every 0.48 s; a tail of at least half a window is filled up with zeros.
fn windows(samples: &[f32]) -> Vec<Vec<f32>> {
    let last = samples.len().saturating_sub(WINDOW_SAMPLES / 2);
    let mut padded = samples.to_vec();
    padded.resize(samples.len() + WINDOW_SAMPLES, 0.0);
    let window = |start: usize| {
        let mut frames = Vec::new();
        LogMel::new(MelMatrix::yamnet()).extend(&padded[start..start + WINDOW_SAMPLES], &mut frames);
        frames
    };
    (0..=last).step_by(HOP_SAMPLES).map(window).collect()
}

fn mean_scores(classifier: &mut SoundClassifier, windows: &[Vec<f32>]) -> Vec<f32> {
    let views: Vec<&[f32]> = windows.iter().map(Vec::as_slice).collect();
    let answers = classifier.classify(&views).unwrap();
    (0..521)
        .map(|class| answers.iter().map(|answer| answer.scores[class]).sum::<f32>() / windows.len() as f32)
        .collect()
}

/// Mean difference over all classes.
fn mean_difference(left: &[f32], right: &[f32]) -> f32 {
    left.iter().zip(right).map(|(left, right)| (left - right).abs()).sum::<f32>() / left.len() as f32
}

#[track_caller]
fn assert_among_first_three(scores: &[f32], names: &[String], expected: &str) {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|left, right| scores[*right].total_cmp(&scores[*left]));
    let first: Vec<_> = order[..3].iter().map(|class| (&*names[*class], scores[*class])).collect();
    assert!(first.iter().any(|(name, score)| *name == expected && *score > 0.3), "{expected} is not among {first:?}");
}

fn check(classifier: &mut SoundClassifier, clip: &Value) {
    let name = clip["name"].as_str().unwrap();
    let Some(file) = find(name) else {
        println!("{name} is not on this machine: passed over");
        return;
    };
    let windows = windows(&samples_at_16k(&file));

    let scores = mean_scores(classifier, &windows);

    assert_eq!(windows.len() as u64, clip["windows"], "{name}");
    // The reference resamples with another filter, where it has to: then only the whole picture is the same.
    if clip["sample_rate_hz"] == 16_000 {
        assert_close(&scores, &values(&clip["onnxruntime"]), 1e-3);
    }
    let difference = mean_difference(&scores, &values(&clip["litert"]));
    assert!(difference <= 0.002, "{name} differs from LiteRT by {difference}");
    if let Some(expected) = clip["class"].as_str() {
        assert_among_first_three(&scores, classifier.class_names(), expected);
    }
}

#[test]
fn real_sounds_get_their_class_and_the_scores_of_other_runtimes() {
    let mut classifier = SoundClassifier::open(imported_file()).unwrap();

    for clip in fixture("clips.json").as_array().unwrap() {
        check(&mut classifier, clip);
    }
}

#[test]
fn a_clip_in_any_format_and_at_any_rate_gets_the_same_classes() {
    let Some(file) = find("meow_16k.wav") else {
        println!("meow_16k.wav is not on this machine: passed over");
        return;
    };
    let at_16k = samples_at_16k(&file);
    #[expect(clippy::cast_possible_truncation, reason = "samples are within full scale")]
    let formats = [
        Samples::F32(at_16k.clone()),
        Samples::I16(at_16k.iter().map(|value| (value * 32_768.0).round() as i16).collect()),
        Samples::I24(at_16k.iter().map(|value| (value * 8_388_608.0).round() as i32).collect()),
        Samples::I32(at_16k.iter().map(|value| (f64::from(*value) * 2_147_483_648.0) as i32).collect()),
    ];
    let reference = heard(16_000, formats[0].clone());

    for samples in &formats[1..] {
        assert_close(&heard(16_000, samples.clone()), &reference, 1e-3);
    }
    for rate_hz in [44_100, 48_000] {
        let scores = heard(rate_hz, Samples::F32(at_rate(&at_16k, rate_hz)));
        assert_eq!(top(&scores), top(&reference), "{rate_hz} Hz");
        assert_close(&scores, &reference, 0.02);
    }
}

/// Mean scores of a clip through hearing, its gate held open.
fn heard(sample_rate_hz: u32, samples: Samples) -> Vec<f32> {
    let mut config = hearing::Config::default();
    (config.gate.floor_min_dbfs, config.gate.floor_max_dbfs) = (-200.0, -200.0);
    let classifier = SoundClassifier::open(imported_file()).unwrap();
    let mut hearing = SoundPerception::new(config, MelMatrix::yamnet(), Some(Box::new(classifier)));
    let source = SourceId::of(SensorKind::Microphone, "test");
    let start = Stamp { monotonic_ms: 0, utc: Timestamp::default(), quality: ClockQuality::Network };
    hearing.handle_chunk(&source, start, &SoundChunk { sample_rate_hz, channel_count: 1, samples }).unwrap();
    hearing.finish().unwrap();
    let scores: Vec<_> = std::iter::from_fn(|| hearing.poll_observation()).filter_map(|hop| hop.scores).collect();
    assert!(scores.len() > 5);
    (0..521).map(|class| scores.iter().map(|hop| hop.scores[class]).sum::<f32>() / scores.len() as f32).collect()
}

/// A clip at a higher rate, by interpolation with a windowed sinc of 64 samples.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positions in a short clip")]
fn at_rate(samples: &[f32], rate_hz: u32) -> Vec<f32> {
    let step = 16_000.0 / f64::from(rate_hz);
    let count = (samples.len() as f64 / step) as usize;
    (0..count)
        .map(|index| {
            let position = index as f64 * step;
            let first = position as i64 - 31;
            (first..first + 64)
                .filter_map(|at| {
                    let value = f64::from(*samples.get(usize::try_from(at).ok()?)?);
                    let distance = position - at as f64;
                    let angle = std::f64::consts::PI * distance;
                    let sinc = if distance.abs() < 1e-9 { 1.0 } else { angle.sin() / angle };
                    Some(value * sinc * (0.5 + 0.5 * (angle / 32.0).cos()))
                })
                .sum::<f64>() as f32
        })
        .collect()
}

fn top(scores: &[f32]) -> Option<usize> {
    (0..scores.len()).max_by(|left, right| scores[*left].total_cmp(&scores[*right]))
}
