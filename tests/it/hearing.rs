//! What a microphone may deliver, and what is heard and remembered of it (the microphone table of the
//! scenarios, as far as recorded sound can express it).

#![expect(clippy::cast_possible_truncation, reason = "generated sound and the times of its pieces")]
#![expect(clippy::cast_sign_loss, reason = "lengths are not negative")]

use percept::domain::coverage::Coverage;
use percept::domain::coverage::CoverageReason;
use percept::domain::disposition::Disposition;
use percept::domain::episode::Draft;
use percept::domain::id::ModelId;
use percept::domain::id::SensorKind;
use percept::domain::id::SourceId;
use percept::domain::observation::sound::Signal;
use percept::domain::observation::sound::SoundObservation;
use percept::domain::observation::sound::SoundScores;
use percept::domain::observation::sound::dbfs_of_mean_square;
use percept::domain::reading::Samples;
use percept::domain::reading::SoundChunk;
use percept::domain::time::ClockQuality;
use percept::domain::time::Stamp;
use percept::domain::time::Timestamp;
use percept::episodes::audio::AudioBuilder;
use percept::episodes::audio::Classes;
use percept::perception::hearing::ClassifierFailure;
use percept::perception::hearing::Config;
use percept::perception::hearing::HearingCounts;
use percept::perception::hearing::SoundPerception;
use percept::perception::hearing::WindowClassifier;
use percept::perception::log_mel::MelMatrix;
use percept::perception::log_mel::WINDOW_VALUES;
use percept::perception::pcm::ChannelMap;
use proptest::prelude::*;
use std::f64::consts::TAU;

#[test]
fn a_1_khz_tone_peaks_at_1_khz_at_any_rate() {
    for rate_hz in [8_000, 11_025, 16_000, 22_050, 44_100, 48_000, 96_000, 192_000] {
        let heard = hear(Config::default(), rate_hz, &tone(rate_hz, 1_000.0, 0.5, 3.0));

        assert_eq!(heard.len(), 7, "{rate_hz} Hz: six hops of 0.48 s and one of 0.12 s");
        for observation in &heard[1..6] {
            let peak = observation.peaks[0];
            assert!((peak.frequency_hz - 1_000.0).abs() < 1.0, "{rate_hz} Hz: {peak:?}");
            assert!((peak.level_dbfs + 9.03).abs() < 0.1, "{rate_hz} Hz: {peak:?}");
        }
    }
}

#[test]
fn a_9_khz_tone_leaves_nothing_at_7_khz() {
    let heard = hear(Config::default(), 48_000, &tone(48_000, 9_000.0, 1.0, 3.0));

    for observation in &heard[1..6] {
        assert_eq!(observation.peaks, []);
        assert!(observation.band_mean_square.iter().all(|band| dbfs_of_mean_square(*band) < -80.0), "{observation:?}");
    }
    // The sudden start of a tone is a click, which opens the gate for itself and the hop after it.
    assert!(heard[2..6].iter().all(|observation| !observation.is_active));
}

#[test]
fn full_and_half_scale_sines_of_24_bits_read_their_level() {
    for (scale, wanted) in [(8_388_607.0, -3.01), (4_194_304.0, -9.03)] {
        let values = tone(48_000, 1_000.0, scale, 4.0).iter().map(|value| value.round() as i32).collect();

        let heard = hear_chunk(Config::default(), 48_000, Samples::I24(values));

        for observation in &heard {
            assert!((dbfs_of_mean_square(observation.mean_square) - wanted).abs() < 0.01, "{observation:?}");
        }
        let draft = &remember(heard, None).0[0];
        assert!((draft.metadata["rms_db"].as_f64().unwrap() - wanted).abs() < 0.011, "{:?}", draft.metadata);
        assert!((draft.metadata["peak_db"].as_f64().unwrap() - wanted - 3.01).abs() < 0.03, "{:?}", draft.metadata);
    }
}

#[test]
fn one_clip_in_four_formats_is_heard_alike() {
    let clip: Vec<f32> = tone(16_000, 700.0, 0.4, 2.0).iter().zip(noise(32_000, 0.1)).map(|(a, b)| a + b).collect();
    let quantised: Vec<i16> = clip.iter().map(|value| (value * 32_767.0).round() as i16).collect();
    let wide = |shift: u32| quantised.iter().map(|value| i32::from(*value) << shift).collect::<Vec<i32>>();
    let floats = quantised.iter().map(|value| f32::from(*value) / 32_768.0).collect();

    let reference = hear_chunk(Config::default(), 16_000, Samples::I16(quantised.clone()));

    for samples in [Samples::I24(wide(8)), Samples::I32(wide(16)), Samples::F32(floats)] {
        assert_eq!(hear_chunk(Config::default(), 16_000, samples), reference);
    }
}

#[test]
fn the_channel_map_leaves_the_loopback_out() {
    let speech = noise(48_000, 0.2);
    let loopback = tone(16_000, 1_000.0, 1.0, 3.0);
    let frames = speech.iter().zip(&loopback);
    let eight: Vec<f32> = frames.flat_map(|(speech, tone)| [*speech; 6].into_iter().chain([*tone; 2])).collect();
    let chunk = SoundChunk { sample_rate_hz: 16_000, channel_count: 8, samples: Samples::F32(eight) };
    let config = Config { channel_map: ChannelMap::of((0..6).collect()), ..Config::default() };

    let heard = hear_chunks(config, [(at(0), chunk)]);

    let level = dbfs_of_mean_square(heard[1].mean_square);
    let alone = dbfs_of_mean_square(hear(Config::default(), 16_000, &speech)[1].mean_square);
    assert!((level - alone).abs() < 0.01, "{level} instead of {alone}");
}

#[test]
fn a_device_with_too_few_channels_is_refused_with_what_it_offers() {
    let config = Config { channel_map: ChannelMap::of((0..8).collect()), ..Config::default() };
    let mut perception = SoundPerception::new(config, MelMatrix::yamnet(), None);

    let error = perception.handle_chunk(&source(), at(0), &chunk(16_000, vec![0.1; 100])).unwrap_err();

    assert_eq!(error.disposition(), Disposition::Degrade);
    assert!(error.to_string().contains("the device offers 1"), "{error}");
    assert_eq!(perception.counts().chunks_refused, 1);
}

#[test]
fn floats_scaled_by_32768_are_refused_by_name_and_hearing_goes_on() {
    let mut perception = SoundPerception::new(Config::default(), MelMatrix::yamnet(), None);

    let error =
        perception.handle_chunk(&source(), at(0), &chunk(16_000, tone(16_000, 440.0, 20_000.0, 1.0))).unwrap_err();
    perception.handle_chunk(&source(), at(1_000), &chunk(16_000, tone(16_000, 440.0, 0.5, 1.0))).unwrap();

    assert!(error.to_string().contains("scaled by 32768"), "{error}");
    assert_eq!(error.disposition(), Disposition::SetAside);
    assert_eq!(perception.poll_observation().map(|heard| heard.start), Some(at(1_000)));
}

#[test]
fn a_minute_without_signal_is_coverage_and_no_episode() {
    for value in [0.0, 0.2, -1.0] {
        for rate_hz in [16_000, 48_000] {
            let heard = hear(Config::default(), rate_hz, &vec![value; rate_hz as usize * 60]);

            assert!(heard.iter().all(|hop| hop.signal == Signal::Absent && !hop.is_active), "{value} at {rate_hz}");
            let (drafts, coverage) = remember(heard, None);
            assert_eq!(drafts, []);
            assert_eq!(coverage.len(), 1);
            assert_eq!((coverage[0].from, coverage[0].to), (at(0), at(60_000)));
            assert_eq!(coverage[0].reason, CoverageReason::NoSignal);
        }
    }
}

#[test]
fn zeros_between_two_noises_are_quiet_in_the_middle_only() {
    let mut sound = noise(48_000, 0.3);
    sound.extend(vec![0.0; 48_000]);
    sound.extend(noise(48_000, 0.3));

    let heard = hear(Config::default(), 16_000, &sound);
    let active: Vec<bool> = heard.iter().map(|hop| hop.is_active).collect();
    let (drafts, coverage) = remember(heard.clone(), None);

    assert!(heard.iter().all(is_finite));
    assert!(active[..7].iter().all(|active| *active), "{active:?}");
    assert!(active[7..12].iter().all(|active| !active), "{active:?}");
    assert!(active[12..].iter().all(|active| *active), "{active:?}");
    let spans: Vec<(i64, i64)> =
        drafts.iter().map(|draft| (draft.start.monotonic_ms, draft.end.monotonic_ms)).collect();
    assert_eq!(spans, [(0, 3_360), (5_760, 9_000)]);
    for draft in &drafts {
        let text = serde_json::to_string(&draft.metadata).unwrap();
        assert!(!text.contains("null") && !text.contains("NaN"), "{text}");
        assert!(draft.content.starts_with("Heard a sound for 3 seconds"), "{}", draft.content);
        assert!(!draft.metadata.contains_key("sound_class"));
    }
    assert_eq!(coverage, [], "three seconds of zeros are no lost microphone");
}

#[test]
fn nan_and_infinity_are_left_out_counted_and_told() {
    let mut sound = noise(160_000, 0.3);
    sound[40_000] = f32::NAN;
    sound[40_001] = f32::INFINITY;
    let mut perception = SoundPerception::new(Config::default(), MelMatrix::yamnet(), None);

    perception.handle_chunk(&source(), at(0), &chunk(16_000, sound)).unwrap();
    perception.finish().unwrap();
    let heard = observations(&mut perception);

    assert_eq!(perception.counts().frames_invalid, 2);
    assert!(heard.iter().all(is_finite));
    let invalid: Vec<usize> = (0..heard.len()).filter(|hop| heard[*hop].signal == Signal::Invalid).collect();
    assert_eq!(invalid, [5]);
    let (drafts, coverage) = remember(heard, None);
    assert_eq!(drafts.len(), 1, "the sound goes on");
    assert_eq!(coverage[0].reason, CoverageReason::Invalid);
    assert_eq!((coverage[0].from, coverage[0].to), (at(2_400), at(2_880)));
}

#[test]
fn the_times_of_hops_do_not_drift() {
    let mut perception = SoundPerception::new(Config::default(), MelMatrix::yamnet(), None);
    let mut frames = 0_i64;
    let mut ends = Vec::new();
    while frames < 44_100 * 300 {
        let started = at(1_000_003 + (frames * 1_000 + 22_050) / 44_100);
        perception.handle_chunk(&source(), started, &chunk(44_100, vec![0.0; 1_021])).unwrap();
        frames += 1_021;
        ends.extend(observations(&mut perception).into_iter().map(|hop| (hop.start, hop.end)));
    }

    assert_eq!(perception.counts().runs, 1);
    assert!(ends.len() >= 623, "{}", ends.len());
    for (index, (start, end)) in (0..).zip(&ends) {
        assert_eq!((*start, *end), (at(1_000_003 + index * 480), at(1_000_003 + (index + 1) * 480)));
    }
}

#[test]
fn a_gap_starts_another_run_and_a_clock_step_does_not() {
    let second = |start: Stamp| (start, chunk(16_000, noise(16_000, 0.1)));
    let runs = |chunks: &[(Stamp, SoundChunk)]| {
        let mut perception = SoundPerception::new(Config::default(), MelMatrix::yamnet(), None);
        for (start, chunk) in chunks {
            perception.handle_chunk(&source(), *start, chunk).unwrap();
        }
        perception.finish().unwrap();
        (perception.counts().runs, observations(&mut perception))
    };
    let stepped = Stamp { utc: Timestamp::from_millis(5_000_000), quality: ClockQuality::Gps, ..at(1_000) };

    let (whole, _) = runs(&[second(at(0)), second(at(1_049))]);
    let (torn, heard_torn) = runs(&[second(at(0)), second(at(1_051))]);
    let (kept, heard) = runs(&[second(at(0)), second(stepped)]);

    assert_eq!((whole, torn, kept), (1, 2, 1));
    assert_eq!(
        heard_torn.iter().map(|hop| hop.start.monotonic_ms).collect::<Vec<_>>(),
        [0, 480, 960, 1_051, 1_531, 2_011]
    );
    let walls: Vec<i64> = heard.iter().map(|hop| hop.start.utc.as_millis()).collect();
    assert_eq!(walls, [1_000_000, 1_000_480, 1_000_960, 5_000_440, 5_000_920]);
    assert_eq!(heard[3].start.monotonic_ms, 1_440);
    assert_eq!(heard[3].start.quality, ClockQuality::Gps);
}

#[test]
fn a_loss_ends_the_run_and_nothing_of_before_is_lost() {
    let mut perception = SoundPerception::new(Config::default(), MelMatrix::yamnet(), None);

    perception.handle_chunk(&source(), at(0), &chunk(48_000, vec![0.1; 48_000])).unwrap();
    perception.handle_loss().unwrap();

    let heard = observations(&mut perception);
    assert_eq!(heard.last().map(|hop| hop.end), Some(at(1_000)));
}

#[test]
fn a_tail_of_at_least_half_a_window_is_filled_up() {
    for (samples, windows) in [(7_799, 0), (7_800, 1), (15_600, 2), (15_479, 1), (15_480, 2)] {
        let (_, counts) = hear_with(Config::default(), &noise(samples, 0.3), samples);

        assert_eq!(counts.windows_classified, windows, "{samples} samples");
    }
}

#[test]
fn the_number_of_windows_at_once_changes_nothing() {
    let mut sound = noise(100_000, 0.3);
    sound[30_000..60_000].fill(0.0001);
    let config = |windows_max| Config { windows_max, ..Config::default() };
    let (reference, counts) = hear_with(config(1), &sound, 5_000);
    assert!(counts.windows_classified > 5 && counts.windows_spared > 1, "{counts:?}");

    for windows_max in 2..=4 {
        assert_eq!(hear_with(config(windows_max), &sound, 5_000), (reference.clone(), counts));
    }
}

#[test]
fn a_classifier_that_fails_costs_the_scores_alone() {
    struct Broken;
    impl WindowClassifier for Broken {
        fn classify(&mut self, _: &[&[f32]]) -> Result<Vec<SoundScores>, ClassifierFailure> {
            Err("out of memory".into())
        }
    }
    let mut perception = SoundPerception::new(Config::default(), MelMatrix::yamnet(), Some(Box::new(Broken)));

    let error = perception.handle_chunk(&source(), at(0), &chunk(16_000, noise(64_000, 0.3))).unwrap_err();
    let _ = perception.finish();

    assert!(error.to_string().contains("out of memory"), "{error}");
    assert_eq!(error.disposition(), Disposition::Degrade);
    let heard = observations(&mut perception);
    assert_eq!(heard.len(), 9);
    assert!(heard.iter().all(|hop| hop.scores.is_none() && hop.is_active));
}

#[test]
fn a_named_sound_becomes_an_episode_with_its_classes_and_vector() {
    let (heard, _) = hear_with(Config::default(), &noise(80_000, 0.3), 1_600);

    let (drafts, _) = remember(heard, Some(classes()));

    assert_eq!(drafts.len(), 1);
    let draft = &drafts[0];
    assert_eq!(draft.content, "Heard Noise for 5 seconds");
    assert_eq!(draft.metadata["sound_class"], "Noise");
    assert_eq!(draft.metadata["classifications"][0]["class"], "Noise");
    assert_eq!(draft.metadata["band_energy"].as_array().map(Vec::len), Some(5));
    assert_eq!(draft.embeddings[0].model_id, ModelId::new("yamnet"));
    let length: f32 = draft.embeddings[0].vector.iter().map(|value| value * value).sum();
    assert!((length - 1.0).abs() < 1e-5);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_chunking_gives_the_same_observations(
        sizes in prop::collection::vec(1_usize..9_000, 1..40),
        rate_hz in prop::sample::select(vec![16_000_u32, 8_000, 44_100, 48_000]),
    ) {
        let mut sound = noise(120_000, 0.2);
        sound[20_000..60_000].fill(0.0);
        let whole = hear_with_sizes(rate_hz, &sound, &[usize::MAX]);

        prop_assert_eq!(hear_with_sizes(rate_hz, &sound, &sizes), whole);
    }
}

/// A classifier whose answer depends on the window alone: how loud it is, and that it is noise.
struct Fake;

impl WindowClassifier for Fake {
    fn classify(&mut self, windows: &[&[f32]]) -> Result<Vec<SoundScores>, ClassifierFailure> {
        assert!(!windows.is_empty() && windows.len() <= 4);
        let answer = |window: &&[f32]| {
            assert_eq!(window.len(), WINDOW_VALUES);
            let mean = window.iter().sum::<f32>() / WINDOW_VALUES as f32;
            SoundScores {
                scores: [0.05, 0.9, 0.01].into(),
                embedding: [mean, window[0], window[WINDOW_VALUES - 1]].into(),
            }
        };
        Ok(windows.iter().map(answer).collect())
    }
}

fn classes() -> Classes {
    let names = ["Speech", "Noise", "Silence"].map(str::to_owned);
    Classes { model_id: ModelId::new("yamnet"), names: names.to_vec().into() }
}

fn hear(config: Config, rate_hz: u32, sound: &[f32]) -> Vec<SoundObservation> {
    hear_chunk(config, rate_hz, Samples::F32(sound.to_vec()))
}

fn hear_chunk(config: Config, sample_rate_hz: u32, samples: Samples) -> Vec<SoundObservation> {
    hear_chunks(config, [(at(0), SoundChunk { sample_rate_hz, channel_count: 1, samples })])
}

fn hear_chunks(config: Config, chunks: impl IntoIterator<Item = (Stamp, SoundChunk)>) -> Vec<SoundObservation> {
    let mut perception = SoundPerception::new(config, MelMatrix::yamnet(), None);
    for (start, chunk) in chunks {
        perception.handle_chunk(&source(), start, &chunk).unwrap();
    }
    perception.finish().unwrap();
    observations(&mut perception)
}

/// With the fake classifier, at 16 kHz, in chunks of one size.
fn hear_with(config: Config, sound: &[f32], size: usize) -> (Vec<SoundObservation>, HearingCounts) {
    let mut perception = SoundPerception::new(config, MelMatrix::yamnet(), Some(Box::new(Fake)));
    for (index, piece) in sound.chunks(size).enumerate() {
        let start = at((index * size / 16) as i64);
        perception.handle_chunk(&source(), start, &chunk(16_000, piece.to_vec())).unwrap();
    }
    perception.finish().unwrap();
    let counts = perception.counts();
    (observations(&mut perception), counts)
}

fn hear_with_sizes(rate_hz: u32, sound: &[f32], sizes: &[usize]) -> Vec<SoundObservation> {
    let mut perception = SoundPerception::new(Config::default(), MelMatrix::yamnet(), Some(Box::new(Fake)));
    let (mut done, mut sizes) = (0, sizes.iter().cycle());
    while done < sound.len() {
        let end = sound.len().min(done.saturating_add(*sizes.next().unwrap()));
        let start = at((done as f64 * 1_000.0 / f64::from(rate_hz)).round() as i64);
        perception.handle_chunk(&source(), start, &chunk(rate_hz, sound[done..end].to_vec())).unwrap();
        done = end;
    }
    perception.finish().unwrap();
    observations(&mut perception)
}

fn observations(perception: &mut SoundPerception) -> Vec<SoundObservation> {
    std::iter::from_fn(|| perception.poll_observation()).collect()
}

fn remember(heard: Vec<SoundObservation>, classes: Option<Classes>) -> (Vec<Draft>, Vec<Coverage>) {
    let mut builder = AudioBuilder::new(percept::episodes::audio::Config::default(), classes);
    for observation in heard {
        builder.handle_observation(observation);
    }
    builder.finish();
    let drafts = std::iter::from_fn(|| builder.poll_draft()).collect();
    (drafts, std::iter::from_fn(|| builder.poll_coverage()).collect())
}

fn is_finite(hop: &SoundObservation) -> bool {
    hop.mean_square.is_finite()
        && hop.peak.is_finite()
        && hop.band_mean_square.iter().all(|band| band.is_finite())
        && hop.peaks.iter().all(|peak| peak.frequency_hz.is_finite() && peak.level_dbfs.is_finite())
}

fn source() -> SourceId {
    SourceId::of(SensorKind::Microphone, "test")
}

fn at(monotonic_ms: i64) -> Stamp {
    Stamp { monotonic_ms, utc: Timestamp::from_millis(1_000_000 + monotonic_ms), quality: ClockQuality::Network }
}

fn chunk(sample_rate_hz: u32, samples: Vec<f32>) -> SoundChunk {
    SoundChunk { sample_rate_hz, channel_count: 1, samples: Samples::F32(samples) }
}

fn tone(rate_hz: u32, frequency_hz: f64, amplitude: f64, seconds: f64) -> Vec<f32> {
    let length = (f64::from(rate_hz) * seconds) as u32;
    let step = TAU * frequency_hz / f64::from(rate_hz);
    (0..length).map(|n| (amplitude * (step * f64::from(n)).sin()) as f32).collect()
}

fn noise(length: usize, amplitude: f32) -> Vec<f32> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / 8_388_608.0 - 1.0
    };
    (0..length).map(|_| amplitude * next()).collect()
}
