//! Recorded sessions: what is read from folders and bare files, right and wrong.

use percept::domain::coverage::CoverageReason;
use percept::domain::disposition::Disposition;
use percept::domain::id::SensorKind;
use percept::domain::reading::GpsReport;
use percept::domain::reading::Loss;
use percept::domain::reading::Payload;
use percept::domain::reading::PixelFormat;
use percept::domain::reading::Reading;
use percept::domain::reading::Samples;
use percept::domain::reading::Sender;
use percept::domain::time::ClockQuality;
use percept::domain::time::Timestamp;
use percept::sensors::session::OpenOptions;
use percept::sensors::session::ProblemKind;
use percept::sensors::session::Session;
use percept::sensors::session::SessionError;
use percept::sensors::session::merge;
use proptest::prelude::*;
use std::path::Path;
use std::path::PathBuf;
use tempfile::TempDir;

const MANIFEST: &str =
    "format = 1\nsession_id = \"s1\"\nstarted_at = \"2026-05-01T09:30:00Z\"\nclock_quality = \"network\"\n";

struct Folder(TempDir);

impl Folder {
    fn new(manifest: &str) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.put("session.toml", manifest.as_bytes());
        folder
    }

    fn put(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn open(&self) -> Session {
        open(self.0.path()).unwrap()
    }

    fn readings(&self) -> Vec<Reading> {
        merge(self.open().sensors()).collect()
    }
}

fn options() -> OpenOptions {
    OpenOptions { started_at: None, assumed_now: Timestamp::parse("2026-12-01T00:00:00Z").unwrap() }
}

fn open(path: &Path) -> Result<Session, SessionError> {
    Session::open(path, &options())
}

fn frames(count: u32) -> Vec<i16> {
    (0..count).map(|frame| i16::try_from(frame % 30_000).unwrap()).collect()
}

fn wav(rate: u32, values: &[i16]) -> Vec<u8> {
    let spec =
        hound::WavSpec { channels: 1, sample_rate: rate, bits_per_sample: 16, sample_format: hound::SampleFormat::Int };
    let mut bytes = std::io::Cursor::new(Vec::new());
    let mut writer = hound::WavWriter::new(&mut bytes, spec).unwrap();
    values.iter().for_each(|&value| writer.write_sample(value).unwrap());
    writer.finalize().unwrap();
    bytes.into_inner()
}

/// Everything that was heard, as f64 at full scale 1, and the losses.
fn sound(readings: &[Reading]) -> (Vec<f64>, Vec<Loss>) {
    let (mut values, mut losses) = (Vec::new(), Vec::new());
    for reading in readings {
        match &reading.payload {
            Payload::Sound(chunk) => match &chunk.samples {
                Samples::I16(samples) => values.extend(samples.iter().map(|&v| f64::from(v) / 32_768.0)),
                Samples::I24(samples) => values.extend(samples.iter().map(|&v| f64::from(v) / 8_388_608.0)),
                Samples::I32(samples) => values.extend(samples.iter().map(|&v| f64::from(v) / 2_147_483_648.0)),
                Samples::F32(samples) => values.extend(samples.iter().map(|&v| f64::from(v))),
            },
            Payload::Loss(loss) => losses.push(loss.clone()),
            other => panic!("{other:?}"),
        }
    }
    (values, losses)
}

fn losses(readings: &[Reading]) -> Vec<(i64, Loss)> {
    readings
        .iter()
        .filter_map(|reading| {
            let Payload::Loss(loss) = &reading.payload else { return None };
            Some((reading.captured_at.monotonic_ms, loss.clone()))
        })
        .collect()
}

fn in_order(readings: &[Reading]) -> bool {
    readings.is_sorted_by_key(|reading| reading.captured_at.monotonic_ms)
}

#[test]
fn four_streams_come_as_one_in_order_of_capture() {
    let folder = Folder::new(MANIFEST);
    folder.put("microphone/0.wav", &wav(8_000, &frames(8_000)));
    folder.put("camera/500.jpg", b"\xFF\xD8\xFF\xE0 picture");
    folder.put("gps.jsonl", b"{\"at_ms\":250,\"report\":{\"class\":\"TPV\",\"mode\":1}}\n");
    folder.put("bluetooth.jsonl", b"{\"at_ms\":250,\"person\":\"Alice\",\"rssi_dbm\":-60}\n");

    let session = folder.open();
    let readings: Vec<_> = merge(session.sensors()).collect();

    let order: Vec<_> =
        readings.iter().map(|reading| (reading.captured_at.monotonic_ms, reading.source.kind().unwrap())).collect();
    let expected = [
        (0, SensorKind::Microphone),
        (250, SensorKind::Microphone),
        (250, SensorKind::Gps),
        (250, SensorKind::Bluetooth),
        (500, SensorKind::Microphone),
        (500, SensorKind::Camera),
        (750, SensorKind::Microphone),
    ];
    assert_eq!(order, expected);
    assert_eq!(session.length_ms(), Some(1_000));
    assert_eq!(readings[1].captured_at.utc.to_string(), "2026-05-01T09:30:00.250Z");
    assert_eq!(readings[1].captured_at.quality, ClockQuality::Network);
    assert_eq!(session.problems().list(), []);
}

#[test]
fn a_sound_header_that_was_never_finalised_costs_nothing() {
    let folder = Folder::new(MANIFEST);
    for (riff, data) in [(0_u32, 0_u32), (u32::MAX, u32::MAX), (36, 0)] {
        let mut bytes = wav(8_000, &frames(4_000));
        bytes[4..8].copy_from_slice(&riff.to_le_bytes());
        bytes[40..44].copy_from_slice(&data.to_le_bytes());
        folder.put("microphone/0.wav.prog", &bytes);

        let session = folder.open();
        let (values, losses) = sound(&merge(session.sensors()).collect::<Vec<_>>());

        assert_eq!((values.len(), losses), (4_000, vec![]), "{riff} {data}");
        assert_eq!(session.problems().count_of(ProblemKind::RebuiltHeader), 1);
    }
}

#[test]
fn one_clip_is_the_same_in_every_format() {
    let write = |bits, format, write: &dyn Fn(&mut hound::WavWriter<&mut std::io::Cursor<Vec<u8>>>)| {
        let spec = hound::WavSpec { channels: 1, sample_rate: 16_000, bits_per_sample: bits, sample_format: format };
        let mut bytes = std::io::Cursor::new(Vec::new());
        let mut writer = hound::WavWriter::new(&mut bytes, spec).unwrap();
        write(&mut writer);
        writer.finalize().unwrap();
        let folder = Folder::new(MANIFEST);
        folder.put("microphone/0.wav", &bytes.into_inner());
        sound(&folder.readings())
    };
    // Multiples of 256, so that 8 bits hold them too.
    let clip: Vec<i32> = (0..1_000).map(|frame| (frame % 256 - 128) * 256).collect();
    let expected: Vec<f64> = clip.iter().map(|&value| f64::from(value) / 32_768.0).collect();
    use hound::SampleFormat::Float;
    use hound::SampleFormat::Int;

    let u8 = write(8, Int, &|w| clip.iter().for_each(|&v| w.write_sample(v >> 8).unwrap()));
    let i16 = write(16, Int, &|w| clip.iter().for_each(|&v| w.write_sample(v).unwrap()));
    let i24 = write(24, Int, &|w| clip.iter().for_each(|&v| w.write_sample(v << 8).unwrap()));
    let i32 = write(32, Int, &|w| clip.iter().for_each(|&v| w.write_sample(v << 16).unwrap()));
    let f32 = write(32, Float, &|w| {
        clip.iter().for_each(|&v| w.write_sample(f32::from(i16::try_from(v).unwrap()) / 32_768.0).unwrap());
    });

    for (values, losses) in [u8, i16, i24, i32, f32] {
        assert_eq!((values, losses), (expected.clone(), vec![]));
    }
}

#[test]
fn flac_gives_exactly_the_values_that_were_encoded() {
    for (name, channels, frame_count, peak) in
        [("saw_16k_mono_16", 1_i32, 8_000_i32, 1_i32 << 14), ("saw_48k_stereo_24", 2, 6_000, 1 << 22)]
    {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/session/{name}.flac"));
        let session = open(&path).unwrap();
        let full_scale = f64::from(peak) * 2.0;
        let expected: Vec<f64> = (0..frame_count)
            .flat_map(|frame| (0..channels).map(move |channel| ((frame + 50 * channel) % 200 - 100) * (peak / 100)))
            .map(|value| f64::from(value) / full_scale)
            .collect();

        let readings: Vec<_> = merge(session.sensors()).collect();

        assert_eq!(sound(&readings), (expected, vec![]), "{name}");
        assert_eq!(session.length_ms(), Some(if channels == 1 { 500 } else { 125 }));
        assert!(readings.iter().all(|reading| matches!(&reading.payload, Payload::Sound(chunk)
            if chunk.frame_count() <= usize::try_from(chunk.sample_rate_hz / 4).unwrap())));
    }
}

#[test]
fn a_flac_file_cut_short_gives_what_is_there_and_says_what_is_not() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/session/saw_16k_mono_16.flac");
    let bytes = std::fs::read(path).unwrap();
    let folder = Folder::new(MANIFEST);
    folder.put("microphone/0.flac", &bytes[..bytes.len() * 7 / 10]);
    folder.put("microphone/500.wav", &wav(16_000, &frames(160)));

    let (values, losses) = sound(&folder.readings());

    let lost = losses[0].length_ms.unwrap();
    assert_eq!(losses.len(), 1);
    assert_eq!(values.len(), 8_000 - usize::try_from(lost * 16).unwrap() + 160);
    assert!(losses[0].detail.contains("microphone/0.flac"), "{}", losses[0].detail);
}

#[test]
fn bad_files_become_losses_and_the_good_ones_are_kept() {
    let folder = Folder::new(MANIFEST);
    let cut = wav(8_000, &frames(8_000));
    folder.put("microphone/0.wav", &cut[..44 + 8_000]);
    folder.put("microphone/1000.wav", b"");
    folder.put("microphone/2000.wav", b"\xFF\xD8\xFF\xE0 this is a picture");
    folder.put("microphone/3000.flac", b"fLaC\0\0\0\x22 cut");
    folder.put("microphone/abc.wav", b"RIFF");
    folder.put("microphone/notes.txt", b"hello");
    folder.put("microphone/4000.wav", &wav(8_000, &frames(800)));
    folder.put("lidar/0.bin", b"?");

    let session = folder.open();
    let readings: Vec<_> = merge(session.sensors()).collect();

    let told: Vec<_> =
        losses(&readings).into_iter().map(|(at_ms, loss)| (at_ms, loss.length_ms, loss.detail)).collect();
    let expected = [
        (0, Some(0), "microphone/abc.wav"),
        (0, Some(0), "microphone/notes.txt"),
        (500, Some(500), "microphone/0.wav is cut short"),
        (1_000, Some(1_000), "microphone/1000.wav is left out: it is empty"),
        (2_000, Some(1_000), "microphone/2000.wav is left out: it is neither WAV nor FLAC"),
        (3_000, Some(1_000), "microphone/3000.flac is left out"),
    ];
    assert_eq!(told.len(), expected.len(), "{told:?}");
    for ((at_ms, length_ms, detail), expected) in told.iter().zip(expected) {
        assert_eq!((*at_ms, *length_ms), (expected.0, expected.1), "{detail}");
        assert!(detail.starts_with(expected.2), "{detail}");
    }
    let heard: usize = readings
        .iter()
        .map(|reading| if let Payload::Sound(chunk) = &reading.payload { chunk.frame_count() } else { 0 })
        .sum();
    assert_eq!(heard, 4_000 + 800);
    assert!(in_order(&readings));
    assert_eq!(session.problems().count_of(ProblemKind::UnreadableFile), 3);
    assert_eq!(session.problems().count_of(ProblemKind::MisnamedFile), 2);
    assert_eq!(session.problems().count_of(ProblemKind::UnknownEntry), 1);
}

#[test]
fn overlapping_files_never_go_back_in_time() {
    let folder = Folder::new(MANIFEST);
    folder.put("microphone/0.wav", &wav(8_000, &frames(16_000)));
    folder.put("microphone/500.wav", &wav(8_000, &frames(800)));
    folder.put("microphone/1000.wav", &wav(8_000, &frames(16_000)));

    let readings = folder.readings();

    assert!(in_order(&readings));
    let (values, losses) = sound(&readings);
    assert_eq!(values.len(), 24_000);
    assert_eq!(values[16_000], 8_000.0 / 32_768.0);
    assert!(losses[0].detail.contains("microphone/500.wav begins 1500 ms before"), "{}", losses[0].detail);
    assert!(losses.iter().all(|loss| loss.reason == CoverageReason::Invalid));
}

#[test]
fn a_hole_is_told_once_whether_listed_or_not() {
    let listed = format!("{MANIFEST}[[microphone.gaps]]\nfrom_ms = 1000\nto_ms = 3000\nreason = \"muted\"\n");
    let told = |manifest: &str| {
        let folder = Folder::new(manifest);
        folder.put("microphone/0.wav", &wav(8_000, &frames(8_000)));
        folder.put("microphone/3000.wav", &wav(8_000, &frames(8_000)));
        losses(&folder.readings()).into_iter().map(|(at, loss)| (at, loss.length_ms, loss.reason)).collect::<Vec<_>>()
    };

    assert_eq!(told(MANIFEST), [(1_000, Some(2_000), CoverageReason::Recorded)]);
    assert_eq!(told(&listed), [(1_000, Some(2_000), CoverageReason::Muted)]);
}

#[test]
fn files_that_drift_by_milliseconds_join_without_a_word() {
    let folder = Folder::new(MANIFEST);
    folder.put("microphone/0.wav", &wav(8_000, &frames(8_048)));
    folder.put("microphone/1000.wav", &wav(8_000, &frames(7_900)));
    folder.put("microphone/2000.wav", &wav(8_000, &frames(800)));

    let readings = folder.readings();

    let (values, losses) = sound(&readings);
    assert_eq!((values.len(), losses), (8_048 + 7_900 + 800, vec![]));
    assert!(in_order(&readings));
}

#[test]
fn a_channel_map_that_the_file_cannot_serve_says_what_it_offers() {
    let folder = Folder::new(&format!("{MANIFEST}[microphone]\nchannel_map = [0, 1, 2, 3, 4, 5]\n"));
    folder.put("microphone/0.wav", &wav(8_000, &frames(8_000)));

    let session = folder.open();
    let (values, losses) = sound(&merge(session.sensors()).collect::<Vec<_>>());

    assert_eq!(values.len(), 0);
    assert_eq!(
        losses[0].detail,
        "microphone/0.wav is left out: the channel map in session.toml names channel 5, and the file offers only channel 0"
    );
    assert_eq!(session.problems().count_of(ProblemKind::ChannelMap), 1);
}

#[test]
fn a_declared_stream_without_files_is_one_loss() {
    let folder = Folder::new(&format!("{MANIFEST}[camera]\n[bluetooth]\n"));

    let told = losses(&folder.readings());

    assert_eq!(told.len(), 2);
    assert!(told[0].1.detail.contains("no folder camera/"), "{}", told[0].1.detail);
    assert!(told[1].1.detail.contains("no bluetooth.jsonl"), "{}", told[1].1.detail);
}

#[test]
fn pictures_come_as_they_are_and_what_is_none_is_told() {
    let folder = Folder::new(MANIFEST);
    folder.put("camera/0.jpg", b"\xFF\xD8\xFF\xE0 cut at 40 %");
    folder.put("camera/1000.jpg", b"\x89PNG\r\n\x1a\n named wrongly");
    folder.put("camera/2000.jpg", b"random");
    folder.put("camera/3000.png", b"");
    let huge = folder.put("camera/4000.jpg", b"\xFF\xD8\xFF");
    std::fs::File::options().write(true).open(huge).unwrap().set_len(33 * 1024 * 1024).unwrap();

    let readings = folder.readings();

    let kinds: Vec<_> = readings
        .iter()
        .map(|reading| match &reading.payload {
            Payload::Picture(picture) => Ok(picture.format),
            Payload::Loss(loss) => Err(loss.detail.split(": ").last().unwrap().to_owned()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(kinds[..2], [Ok(PixelFormat::Jpeg), Ok(PixelFormat::Png)]);
    assert_eq!(kinds[2], Err("it is neither JPEG nor PNG".to_owned()));
    assert_eq!(kinds[3], Err("it is empty".to_owned()));
    assert!(kinds[4].as_ref().unwrap_err().contains("34603008 bytes"));
}

#[test]
fn a_pipe_in_place_of_a_file_does_not_hang() {
    let folder = Folder::new(MANIFEST);
    let gps = folder.0.path().join("gps.jsonl");
    assert!(std::process::Command::new("mkfifo").arg(gps).status().unwrap().success());

    let told = losses(&folder.readings());

    assert!(told[0].1.detail.contains("gps.jsonl is left out: it is no regular file"), "{}", told[0].1.detail);
}

#[test]
fn a_clock_that_was_wrong_at_boot_is_stepped_and_nothing_runs_backward() {
    let manifest = "format = 1\nsession_id = \"s\"\nstarted_at = \"1970-01-01T00:00:10Z\"\n\
        [[clock_steps]]\nat_ms = 600\nstep_ms = 1777600000000\nquality = \"gps\"\n";
    let folder = Folder::new(manifest);
    folder.put("microphone/0.wav", &wav(8_000, &frames(8_000)));

    let readings = folder.readings();

    let last = readings.last().unwrap().captured_at;
    assert_eq!(readings[0].captured_at.quality, ClockQuality::Unset);
    assert_eq!((last.quality, last.monotonic_ms), (ClockQuality::Gps, 750));
    assert_eq!(last.utc, Timestamp::from_millis(1_777_600_010_750));
    assert_eq!(folder.open().clock().corrected(0), Timestamp::from_millis(1_777_600_010_000));
    assert!(in_order(&readings));
}

#[test]
fn gps_lines_that_are_none_are_told_by_number_and_the_rest_is_kept() {
    let folder = Folder::new(MANIFEST);
    folder.put(
        "gps.jsonl",
        b"{\"at_ms\":0,\"report\":{\"class\":\"TPV\",\"mode\":3,\"lat\":46.5,\"lon\":7.5}}\n\
          not json\n\
          {\"at_ms\":1000}\n\
          {\"at_ms\":900000,\"report\":{\"class\":\"TPV\",\"mode\":3,\"lat\":0.0,\"lon\":0.0}}\n\
          {\"at_ms\":2000,\"report\":{\"class\":\"ZZZ\"}}\n\
          \xFF\xFE\n\
          {\"at_ms\":3000,\"report\":{\"class\":\"TPV\",\"mode\":3,\"lat\":46.6,\"lon\":7.6}}",
    );

    let session = folder.open();
    let reports: Vec<_> = merge(session.sensors())
        .map(|reading| match reading.payload {
            Payload::Position(GpsReport::Position(position)) => {
                format!("{} {:?}", reading.captured_at.monotonic_ms, position.latitude_deg)
            }
            Payload::Position(GpsReport::Other(class)) => class,
            Payload::Position(GpsReport::Malformed(what)) => what.chars().take(17).collect(),
            other => panic!("{other:?}"),
        })
        .collect();

    let expected = [
        "0 Some(46.5)",
        "gps.jsonl: line 2",
        "gps.jsonl: line 3",
        "gps.jsonl: line 4",
        "ZZZ",
        "gps.jsonl: line 6",
        "3000 Some(46.6)",
    ];
    assert_eq!(reports, expected);
    assert_eq!(session.problems().count_of(ProblemKind::BadLine), 3);
    assert_eq!(session.problems().count_of(ProblemKind::LateLine), 1);
}

#[test]
fn bluetooth_lines_that_are_none_are_one_loss_a_run_without_their_content() {
    let folder = Folder::new(MANIFEST);
    folder.put(
        "bluetooth.jsonl",
        b"{\"at_ms\":0,\"address\":\"C0:FF:EE:00:00:01\",\"address_type\":\"random\",\"rssi_dbm\":127}\n\
          {\"at_ms\":1000,\"address\":\"C0:FF:EE:00:00\"}\n\
          {\"at_ms\":1100,\"address\":\"C0:FF:EE:00:00:01\",\"token\":\"t\"}\n\
          garbage C0:FF:EE:00:00:01\n\
          {\"at_ms\":2000,\"token\":\"t\",\"rssi_dbm\":-700000}\n",
    );

    let session = folder.open();
    let readings: Vec<_> = merge(session.sensors()).collect();

    assert_eq!(readings.len(), 3);
    let Payload::Advertisement(first) = &readings[0].payload else { panic!("{:?}", readings[0]) };
    assert!(matches!(first.sender, Sender::Address([0xC0, 0xFF, 0xEE, 0, 0, 1], _)));
    assert_eq!(first.rssi_dbm, Some(127));
    let (_, loss) = &losses(&readings)[0];
    assert!(loss.detail.starts_with("bluetooth.jsonl: line 2 is left out"), "{}", loss.detail);
    assert!(loss.detail.ends_with("and 2 more lines behind it") && !loss.detail.contains("C0:FF"), "{}", loss.detail);
    let Payload::Advertisement(last) = &readings[2].payload else { panic!("{:?}", readings[2]) };
    assert_eq!(last.rssi_dbm, None);
    assert_eq!(session.problems().count_of(ProblemKind::ImpossibleValue), 1);
}

#[test]
fn a_bare_sound_is_named_by_its_bytes_and_starts_when_it_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clip");
    let bytes = wav(8_000, &frames(4_000));
    std::fs::write(&path, &bytes).unwrap();
    let written = std::time::UNIX_EPOCH + std::time::Duration::from_millis(1_700_000_000_123);
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(written).unwrap();

    let session = open(&path).unwrap();
    let header = session.header();

    assert_eq!(header.session_id.as_str(), blake3::hash(&bytes).to_hex().as_str());
    assert_eq!((header.device_id.as_ref(), header.start_is_known), (None, false));
    assert_eq!(header.started.utc, Timestamp::from_millis(1_700_000_000_123));
    assert_eq!(header.started.quality, ClockQuality::Unset);
    assert_eq!((session.length_ms(), session.bytes()), (Some(500), u64::try_from(bytes.len()).unwrap()));
    assert_eq!(sound(&merge(session.sensors()).collect::<Vec<_>>()).0.len(), 4_000);
}

#[test]
fn a_start_that_is_given_wins_for_a_bare_file_and_is_refused_for_a_folder() {
    let folder = Folder::new(MANIFEST);
    let clip = folder.put("clip.wav", &wav(8_000, &frames(8)));
    let given = OpenOptions { started_at: Some(Timestamp::from_millis(5_000)), ..options() };

    let session = Session::open(&clip, &given).unwrap();
    let refused = Session::open(folder.0.path(), &given).unwrap_err();

    assert_eq!(session.header().started.utc, Timestamp::from_millis(5_000));
    assert!(session.header().start_is_known);
    assert!(refused.to_string().contains("its own started_at"), "{refused}");
}

#[test]
fn a_picture_tells_its_time_only_with_an_offset() {
    let exif = |offset: bool| {
        let date = b"2026:05:01 09:30:00\0";
        let mut tiff = b"II*\0\x08\0\0\0\x01\0\x69\x87\x04\0\x01\0\0\0\x1A\0\0\0\0\0\0\0".to_vec();
        let count: u8 = if offset { 2 } else { 1 };
        let data = 26 + 2 + 12 * count + 4;
        tiff.extend([count, 0, 0x03, 0x90, 2, 0, 20, 0, 0, 0, data, 0, 0, 0]);
        if offset {
            tiff.extend([0x11, 0x90, 2, 0, 7, 0, 0, 0, data + 20, 0, 0, 0]);
        }
        tiff.extend([0; 4]);
        tiff.extend(date);
        tiff.extend(b"+02:00\0");
        let length = u16::try_from(tiff.len() + 8).unwrap().to_be_bytes();
        [&b"\xFF\xD8\xFF\xE1"[..], &length, b"Exif\0\0", &tiff, b"\xFF\xD9"].concat()
    };
    let folder = tempfile::tempdir().unwrap();
    let header = |bytes: &[u8]| {
        let path = folder.path().join("picture.jpg");
        std::fs::write(&path, bytes).unwrap();
        open(&path).unwrap().header().clone()
    };

    let (with, without) = (header(&exif(true)), header(&exif(false)));

    assert_eq!(with.started.utc.to_string(), "2026-05-01T07:30:00.000Z");
    assert_eq!((with.started.quality, with.start_is_known), (ClockQuality::Rtc, true));
    assert_eq!((without.started.quality, without.start_is_known), (ClockQuality::Unset, false));
}

#[test]
fn what_cannot_be_opened_is_one_sentence_with_file_and_cause() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let mut f64 = wav(8_000, &frames(8));
    (f64[20], f64[34]) = (3, 64);
    std::fs::create_dir(folder.path().join("bare-folder")).unwrap();
    file("newer/session.toml", b"format = 7\nlidar = 1\n");
    file("wrong/session.toml", b"format = 1\nsesion_id = \"s\"\nstarted_at = \"yesterday\"\n");
    file("binary/session.toml", b"\xFF\xFE\0");
    let cases = [
        (folder.path().join("nowhere"), "there is nothing at"),
        (folder.path().join("bare-folder"), "a folder without session.toml"),
        (folder.path().join("newer"), "has format 7 and this percept reads format 1: a newer percept is needed"),
        (folder.path().join("wrong"), "did you mean `session_id`?"),
        (folder.path().join("binary"), "no UTF-8 text"),
        (file("empty.wav", b""), "it is empty"),
        (file("f64.wav", &f64), "64-bit floating point"),
        (file("short.wav", b"RIFF"), "too short for a WAV header"),
        (file("notes.txt", b"hello\n"), "a text without a single valid NMEA sentence"),
        (file("archive.zip", b"PK\x03\x04"), "a zip archive"),
        (PathBuf::from("/dev/null"), "neither a folder nor a regular file"),
    ];

    for (path, cause) in cases {
        let error = open(&path).unwrap_err();

        let sentence = error.to_string();
        assert!(sentence.contains(cause), "{sentence}");
        assert!(sentence.contains(&path.display().to_string()), "{sentence}");
        assert_eq!(sentence.lines().count(), 1, "{sentence}");
        assert_eq!(error.disposition(), Disposition::SetAside);
    }
}

#[test]
fn an_hour_of_sound_needs_no_more_memory_than_a_minute() {
    let peak_kib = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    let folder = Folder::new(MANIFEST);
    let mut header = wav(48_000, &[]);
    (header[22], header[32]) = (2, 4);
    header[28..32].copy_from_slice(&192_000_u32.to_le_bytes());
    let path = folder.put("microphone/0.wav", &header);
    // Never finalised, and its data a hole in the file system: an hour of silence.
    std::fs::File::options().write(true).open(path).unwrap().set_len(44 + 3_600 * 192_000).unwrap();
    let before = peak_kib();

    let frames: usize = merge(folder.open().sensors())
        .map(|reading| if let Payload::Sound(chunk) = reading.payload { chunk.frame_count() } else { 0 })
        .sum();

    assert_eq!(frames, 3_600 * 48_000);
    // The hour is 675 MiB; what is allowed is code that is touched for the first time, and buffers.
    assert!(peak_kib() - before < 16_384, "{} KiB more", peak_kib() - before);
}

/// Files that are nearly right: what a program is most likely to trip over.
fn nearly(bytes: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let length = bytes.len();
    let edits = proptest::collection::vec((0..length, any::<u8>()), 0..8);
    (edits, 0..=length).prop_map(move |(edits, end)| {
        let mut bytes = bytes.clone();
        edits.into_iter().for_each(|(at, value)| bytes[at] = value);
        bytes.truncate(end);
        bytes
    })
}

fn any_file() -> impl Strategy<Value = Vec<u8>> {
    let fixture = |name: &str| {
        std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/session").join(name)).unwrap()
    };
    let magics = proptest::sample::select(vec![
        &b"RIFF\xFF\xFF\xFF\xFFWAVEfmt \x10\0\0\0"[..],
        b"RF64",
        b"fLaC\0\0\0\x22",
        b"\xFF\xD8\xFF\xE1\0\x20Exif\0\0II*\0",
        b"\x89PNG\r\n\x1a\n\xFF\xFF\xFF\xFFeXIf",
        b"$GPRMC,,V,,,,,,,,,,N*53\n",
        b"{\"class\":\"TPV\",\"mode\":3}\n",
        b"{\"at_ms\":0,\"token\":\"t\"}\n",
        b"",
    ]);
    prop_oneof![
        (magics, proptest::collection::vec(any::<u8>(), 0..2_000)).prop_map(|(magic, rest)| [magic, &rest].concat()),
        nearly(fixture("saw_16k_mono_16.flac")),
        nearly(wav(8_000, &frames(200))),
        nearly(b"$GPGGA,202640.000,4404.1306,N,12118.8515,W,2,10,0.98,1127.7,M,-19.6,M,0000,0000*6C\n".repeat(3)),
        nearly(b"{\"class\":\"TPV\",\"mode\":3,\"time\":\"2026-05-01T00:00:00Z\",\"lat\":1.5,\"lon\":2.5}\n".repeat(3)),
        nearly(b"{\"at_ms\":5,\"address\":\"C0:FF:EE:00:00:01\",\"manufacturer_data\":{\"76\":\"00ff\"}}\n".repeat(3)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_content_of_any_file_makes_the_reader_panic_or_grow(bytes in any_file()) {
        let folder = Folder::new(MANIFEST);
        let names = ["microphone/0.wav", "microphone/1.flac", "camera/0.jpg", "gps.jsonl", "bluetooth.jsonl"];
        names.iter().for_each(|name| { folder.put(name, &bytes); });
        let bare = folder.put("bare", &bytes);

        let readings = folder.readings();

        prop_assert!(in_order(&readings));
        // 16-bit frames at least: nothing is longer than its file, decompression aside.
        prop_assert!(readings.len() <= 10_000);
        if let Ok(session) = open(&bare) {
            let readings: Vec<_> = merge(session.sensors()).collect();
            prop_assert!(in_order(&readings));
        }
        if let Err(error) = Session::open(folder.put("x/session.toml", &bytes).parent().unwrap(), &options()) {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}
