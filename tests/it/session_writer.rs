//! Recording a session and reading it back: nothing is lost, doubled or told to strangers.

use percept::domain::coverage::CoverageReason;
use percept::domain::id::BootId;
use percept::domain::id::DeviceId;
use percept::domain::id::SensorKind;
use percept::domain::id::SessionId;
use percept::domain::id::SourceId;
use percept::domain::reading::AddressType;
use percept::domain::reading::Advertisement;
use percept::domain::reading::GpsReport;
use percept::domain::reading::Loss;
use percept::domain::reading::Payload;
use percept::domain::reading::Picture;
use percept::domain::reading::PixelFormat;
use percept::domain::reading::PositionReport;
use percept::domain::reading::Reading;
use percept::domain::reading::Samples;
use percept::domain::reading::Sender;
use percept::domain::reading::SoundChunk;
use percept::domain::time::ClockQuality;
use percept::domain::time::Stamp;
use percept::domain::time::Timestamp;
use percept::sensors::session::ClockStep;
use percept::sensors::session::OpenOptions;
use percept::sensors::session::RecordOptions;
use percept::sensors::session::Session;
use percept::sensors::session::SessionHeader;
use percept::sensors::session::SessionWriter;
use percept::sensors::session::merge;
use proptest::prelude::*;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

const STARTED: Stamp =
    Stamp { monotonic_ms: 7_000, utc: Timestamp::from_millis(1_777_600_000_000), quality: ClockQuality::Network };

fn header() -> SessionHeader {
    SessionHeader {
        session_id: SessionId::new("recorded \"here\""),
        device_id: Some(DeviceId::new("d")),
        boot_id: BootId::new("b"),
        started: STARTED,
        start_is_known: true,
        note: Some("a note; with $() and 'quotes'".to_owned()),
        clock_steps: Vec::new(),
        streams: Vec::new(),
    }
}

fn record_options(raw: bool) -> RecordOptions {
    RecordOptions { raw, tokenise: Box::new(|address, _| format!("token-{}", address[5])), segment_ms: 1_000 }
}

fn write(path: &Path, raw: bool, readings: &[Reading]) {
    let mut writer = SessionWriter::create(path, header(), record_options(raw)).unwrap();
    readings.iter().for_each(|reading| writer.write(reading).unwrap());
    writer.close().unwrap();
}

fn read(path: &Path) -> (Session, Vec<Reading>) {
    let options = OpenOptions { started_at: None, assumed_now: Timestamp::from_millis(1_800_000_000_000) };
    let session = Session::open(path, &options).unwrap();
    let readings = merge(session.sensors()).collect();
    (session, readings)
}

fn reading(kind: SensorKind, offset_ms: i64, payload: Payload) -> Reading {
    Reading { source: SourceId::of(kind, "x"), captured_at: STARTED.plus_millis(offset_ms), payload }
}

fn advertisement(sender: Sender) -> Advertisement {
    Advertisement {
        sender,
        rssi_dbm: Some(-60),
        name: Some("Alice's watch".to_owned()),
        service_uuids: vec!["180d".to_owned()],
        manufacturer_data: vec![(0x4C, vec![0xC0, 0xFF])],
    }
}

/// What a reading holds, comparable, addresses in plain sight.
fn content(payload: &Payload) -> String {
    match payload {
        Payload::Advertisement(advertisement) => {
            let sender = match &advertisement.sender {
                Sender::Address(address, kind) => format!("{address:?} {kind:?}"),
                Sender::Token(token) => format!("token {token}"),
                Sender::Person(person) => format!("person {person}"),
            };
            format!("{sender} {advertisement:?}")
        }
        other => format!("{other:?}"),
    }
}

/// Everything but sound, with its offset.
fn events(readings: &[Reading], origin_ms: i64) -> Vec<(i64, String)> {
    let is_sound = |reading: &&Reading| reading.source.kind() == Some(SensorKind::Microphone);
    let event = |reading: &Reading| (reading.captured_at.monotonic_ms - origin_ms, content(&reading.payload));
    readings.iter().filter(|reading| !is_sound(reading)).map(event).collect()
}

/// Sound joined wherever format and channels are the same.
fn sound(readings: &[Reading]) -> Vec<(u32, u16, String)> {
    let mut runs: Vec<(u32, u16, &str, Vec<String>)> = Vec::new();
    for reading in readings {
        let Payload::Sound(chunk) = &reading.payload else { continue };
        let (format, values): (_, Vec<String>) = match &chunk.samples {
            Samples::I16(values) => ("i16", values.iter().map(ToString::to_string).collect()),
            Samples::I24(values) => ("i24", values.iter().map(ToString::to_string).collect()),
            Samples::I32(values) => ("i32", values.iter().map(ToString::to_string).collect()),
            Samples::F32(values) => ("f32", values.iter().map(|value| value.to_bits().to_string()).collect()),
        };
        match runs.last_mut() {
            Some((rate, channels, last, all))
                if *rate == chunk.sample_rate_hz && *channels == chunk.channel_count && *last == format =>
            {
                all.extend(values);
            }
            _ => runs.push((chunk.sample_rate_hz, chunk.channel_count, format, values)),
        }
    }
    runs.into_iter()
        .map(|(rate, channels, format, all)| (rate, channels, format!("{format} {}", all.join(" "))))
        .collect()
}

fn any_chunk() -> impl Strategy<Value = SoundChunk> {
    let samples = prop_oneof![
        proptest::collection::vec(any::<i16>(), 2..600).prop_map(Samples::I16),
        proptest::collection::vec(-8_388_608..8_388_608_i32, 2..600).prop_map(Samples::I24),
        proptest::collection::vec(any::<i32>(), 2..600).prop_map(Samples::I32),
        proptest::collection::vec(any::<f32>(), 2..600).prop_map(Samples::F32),
    ];
    (prop_oneof![Just(8_000_u32), Just(44_100)], 1..=2_u16, samples).prop_map(|(rate, channels, mut samples)| {
        match &mut samples {
            Samples::I16(values) => values.truncate(values.len() / 2 * 2),
            Samples::I24(values) | Samples::I32(values) => values.truncate(values.len() / 2 * 2),
            Samples::F32(values) => values.truncate(values.len() / 2 * 2),
        }
        SoundChunk { sample_rate_hz: rate, channel_count: channels, samples }
    })
}

fn any_event() -> impl Strategy<Value = (SensorKind, Payload)> {
    let degrees = |limit: i64| {
        (-limit * 10_000_000..=limit * 10_000_000).prop_map(|tenth| {
            #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
            let degrees = tenth as f64 / 1e7;
            degrees
        })
    };
    let position = (0..=3_u8, degrees(90), degrees(180), proptest::option::of(0..2_000_000_000_000_i64)).prop_map(
        |(mode, latitude, longitude, time)| {
            let report = PositionReport {
                mode,
                time: time.map(Timestamp::from_millis),
                latitude_deg: Some(latitude),
                longitude_deg: Some(longitude),
                speed_mps: Some(1.25),
                ..PositionReport::default()
            };
            (SensorKind::Gps, Payload::Position(GpsReport::Position(report)))
        },
    );
    let satellites = (0..20_u32, 0..20_u32).prop_map(|(used, more)| {
        (SensorKind::Gps, Payload::Position(GpsReport::Satellites { used, seen: used + more }))
    });
    let sender = prop_oneof![
        any::<([u8; 6], bool)>().prop_map(|(address, public)| {
            Sender::Address(address, if public { AddressType::Public } else { AddressType::Random })
        }),
        "[a-z0-9]{1,20}".prop_map(Sender::Token),
        "\\PC{0,10}x".prop_map(Sender::Person),
    ];
    let advertised = (sender, proptest::option::of(any::<i16>()), proptest::option::of("\\PC{0,20}")).prop_map(
        |(sender, rssi_dbm, name)| {
            (SensorKind::Bluetooth, Payload::Advertisement(Advertisement { rssi_dbm, name, ..advertisement(sender) }))
        },
    );
    let picture = proptest::collection::vec(any::<u8>(), 0..50).prop_map(|rest| {
        let bytes = [&b"\xFF\xD8\xFF"[..], &rest].concat().into();
        (SensorKind::Camera, Payload::Picture(Picture { format: PixelFormat::Jpeg, size_px: None, bytes }))
    });
    prop_oneof![position, satellites, advertised, picture]
}

/// Readings in order, each a few milliseconds behind the one before.
fn any_recording() -> impl Strategy<Value = Vec<Reading>> {
    let one = prop_oneof![any_event(), any_chunk().prop_map(|chunk| (SensorKind::Microphone, Payload::Sound(chunk))),];
    proptest::collection::vec((1..2_000_i64, one), 0..30).prop_map(|list| {
        let (mut offset_ms, mut sound_end_ms) = (0, 0);
        let place = |(step, (kind, payload))| {
            offset_ms += step;
            if let Payload::Sound(chunk) = &payload {
                offset_ms = offset_ms.max(sound_end_ms + 1);
                let length = chunk.frame_count() as i64 * 1_000 / i64::from(chunk.sample_rate_hz);
                sound_end_ms = offset_ms + length + 1;
            }
            reading(kind, offset_ms, payload)
        };
        list.into_iter().map(place).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn what_is_recorded_raw_reads_back_the_same(readings in any_recording()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("session");

        write(&path, true, &readings);
        let (session, found) = read(&path);

        prop_assert_eq!(events(&found, 0), events(&readings, STARTED.monotonic_ms));
        prop_assert_eq!(sound(&found), sound(&readings));
        prop_assert_eq!(session.header().started, Stamp { monotonic_ms: 0, ..STARTED });
        prop_assert_eq!(&session.header().note, &header().note);
    }
}

#[test]
fn a_recorded_session_says_what_it_was_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session");
    let step = ClockStep { at_ms: 500, step_ms: -3, quality: ClockQuality::Gps };
    let loss = |length_ms, reason, detail: &str| Payload::Loss(Loss { length_ms, reason, detail: detail.to_owned() });
    let chunk = SoundChunk { sample_rate_hz: 8_000, channel_count: 1, samples: Samples::I16(vec![1; 800]) };

    let mut writer = SessionWriter::create(&path, header(), record_options(false)).unwrap();
    for reading in [
        reading(SensorKind::Microphone, 0, Payload::Sound(chunk.clone())),
        reading(SensorKind::Microphone, 100, loss(None, CoverageReason::Unplugged, "the microphone is gone")),
        reading(SensorKind::Camera, 200, loss(Some(50), CoverageReason::Muted, "muted")),
        reading(SensorKind::Microphone, 900, Payload::Sound(chunk)),
    ] {
        writer.write(&reading).unwrap();
    }
    writer.clock_was_set(step);
    writer.close().unwrap();
    let (session, found) = read(&path);

    assert_eq!(session.clock_steps(), [step]);
    let told: Vec<_> = found
        .iter()
        .filter_map(|reading| {
            let Payload::Loss(loss) = &reading.payload else { return None };
            Some((reading.captured_at.monotonic_ms, loss.length_ms, loss.reason, loss.detail.as_str()))
        })
        .filter(|(.., detail)| !detail.contains("folder camera/"))
        .collect();
    let expected = [
        (100, Some(800), CoverageReason::Unplugged, "the microphone is gone"),
        (200, Some(50), CoverageReason::Muted, "muted"),
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_recording_that_is_killed_opens_with_everything_up_to_the_last_sync() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session");
    let chunk = SoundChunk { sample_rate_hz: 8_000, channel_count: 1, samples: Samples::I16(vec![1; 2_000]) };
    let mut writer = SessionWriter::create(&path, header(), record_options(false)).unwrap();
    let opened_at_once = read(&path).1.len();
    for index in 0..10 {
        writer.write(&reading(SensorKind::Microphone, index * 250, Payload::Sound(chunk.clone()))).unwrap();
        let report = GpsReport::Position(PositionReport { mode: 1, ..PositionReport::default() });
        writer.write(&reading(SensorKind::Gps, index * 250, Payload::Position(report))).unwrap();
    }
    writer.sync().unwrap();
    std::mem::forget(writer);

    let (_, found) = read(&path);

    assert_eq!(opened_at_once, 0);
    let frames = |reading: &Reading| if let Payload::Sound(chunk) = &reading.payload { chunk.frame_count() } else { 0 };
    assert_eq!(found.iter().map(frames).sum::<usize>(), 20_000);
    assert_eq!(found.iter().filter(|reading| matches!(reading.payload, Payload::Position(_))).count(), 10);
    let names = |folder: &str| {
        let mut names: Vec<_> = std::fs::read_dir(path.join(folder))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names("microphone"), ["0.wav", "1000.wav", "2000.wav.prog"]);
    assert!(path.join("gps.jsonl.prog").exists());
}

#[test]
fn addresses_are_written_only_raw_and_then_for_the_owner_alone() {
    let folder = tempfile::tempdir().unwrap();
    let heard = [reading(
        SensorKind::Bluetooth,
        0,
        Payload::Advertisement(advertisement(Sender::Address([0xC0, 0xFF, 0xEE, 0, 0, 1], AddressType::Random))),
    )];
    let (veiled, raw) = (folder.path().join("veiled"), folder.path().join("raw"));

    write(&veiled, false, &heard);
    write(&raw, true, &heard);

    let text = |path: &Path| std::fs::read_to_string(path.join("bluetooth.jsonl")).unwrap().to_lowercase();
    assert!(text(&veiled).contains("\"token\":\"token-1\""));
    assert!(["c0:ff", "c0ff", "alice"].iter().all(|secret| !text(&veiled).contains(secret)), "{}", text(&veiled));
    assert!(text(&raw).contains("c0:ff:ee:00:00:01"));
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&raw), 0o700);
    assert_eq!(mode(&raw.join("bluetooth.jsonl")), 0o600);
    assert_eq!(mode(&raw.join("session.toml")), 0o600);
}

#[test]
fn what_the_format_cannot_hold_is_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session");
    let mut writer = SessionWriter::create(&path, header(), record_options(false)).unwrap();
    let position = || Payload::Position(GpsReport::Other("VERSION".to_owned()));
    let yuyv = Picture { format: PixelFormat::Yuyv, size_px: Some((1, 1)), bytes: vec![0; 2].into() };
    writer.write(&reading(SensorKind::Gps, 0, position())).unwrap();
    let mut second = reading(SensorKind::Gps, 0, position());
    second.source = SourceId::of(SensorKind::Gps, "y");

    let refused = [
        writer.write(&second),
        writer.write(&reading(SensorKind::Gps, -1, position())),
        writer.write(&reading(SensorKind::Camera, 0, Payload::Picture(yuyv))),
        SessionWriter::create(&path, header(), record_options(false)).map(|_| ()),
    ];

    let told = refused.map(|result| result.unwrap_err().to_string());
    for (sentence, cause) in
        told.iter().zip(["a session has one gps", "-1 ms from the start", "uncompressed Yuyv", "File exists"])
    {
        assert!(sentence.contains(cause) && sentence.contains("session"), "{sentence}");
    }
}
