//! Gists of made-up days and weeks.

use super::*;
use crate::domain::id::BootId;
use crate::domain::id::DeviceId;
use crate::domain::id::ExternalId;
use crate::domain::id::SensorKind;
use crate::domain::id::SessionId;
use crate::domain::id::SourceId;
use crate::domain::time::ClockQuality;
use serde_json::Value;
use serde_json::json;

/// Monday.
const DAY: &str = "2026-11-30";
const HOUR_S: i64 = 3_600;

#[test]
fn a_day_is_told_in_a_few_sentences() {
    let mut builder = builder(Subject::Day, DAY, DAY);
    let day = [
        stay(-2 * HOUR_S, 8 * HOUR_S, "Home"),
        trip(8 * HOUR_S, 9 * HOUR_S, 12_300.0),
        sound(9 * HOUR_S, 60, "Speech"),
        stay(9 * HOUR_S, 17 * HOUR_S, "Office"),
        met(9 * HOUR_S + 300, 900, "Alice", Some("Office"), None),
        scene(10 * HOUR_S, 600, &[("a desk", 0.9), ("a laptop", 0.8)]),
        sound(11 * HOUR_S, 50, "Speech"),
        met(12 * HOUR_S, 60, "Bob", None, Some("See you on Friday")),
        sound(13 * HOUR_S, 2, "Doorbell"),
        note(14 * HOUR_S, "The review moves to Thursday."),
        met(15 * HOUR_S, 1_800, "Alice", Some("Office"), None),
        trip(17 * HOUR_S, 18 * HOUR_S, 12_100.0),
        stay(18 * HOUR_S, 24 * HOUR_S, "Home"),
    ];
    day.iter().for_each(|episode| builder.add(episode));

    let gist = builder.finish().unwrap();

    assert_eq!(
        gist.content,
        "Monday 30 November 2026: at Home until 08:00, at Office from 09:00 to 17:00 and at Home from 18:00 on. \
         Travelled 24.4 km in 2 trips. Met Alice twice (45 min in all, at Office) and Bob at 12:00 (1 min). \
         Heard speech (2 min), and once a doorbell. Saw a desk and a laptop. \
         Said at 12:00: “See you on Friday”. At 14:00: The review moves to Thursday."
    );
    assert_eq!(gist.metadata["episodes"], 13);
    assert_eq!(gist.metadata["people"][0], json!({"person": "Alice", "times": 2, "duration_s": 2_700}));
    assert_eq!((gist.people, gist.places), (vec!["Alice".into(), "Bob".into()], vec!["Home".into(), "Office".into()]));
    assert_eq!(gist.from, at(0), "what began on the day before counts from midnight on");
    assert!(gist.sources.iter().any(|(id, score)| *id == day[9].id && (*score - 1.0).abs() < f64::EPSILON));
}

#[test]
fn a_day_of_many_stays_and_people_names_the_longest_and_counts_the_rest() {
    let mut builder = builder(Subject::Day, DAY, DAY);
    for number in 0..20 {
        let start = number * 1_800;
        builder.add(&stay(start, start + 600 + number, &format!("place-{}", number % 7)));
        builder.add(&met(start, 60 + number, &format!("Person {number}"), None, None));
    }

    let gist = builder.finish().unwrap();

    assert_eq!(
        gist.content,
        "Monday 30 November 2026: mostly at place-5 (31 min), place-4 (31 min) and place-3 (31 min), and at 4 other \
         places. Met Person 19 at 09:30 (1 min), Person 18 at 09:00 (1 min), Person 17 at 08:30 (1 min), Person 16 at \
         08:00 (1 min) and 16 others."
    );
    assert!(gist.sources.len() <= SOURCES_MAX);
}

#[test]
fn a_person_is_told_by_how_often_when_and_where() {
    let mut builder = builder(Subject::Person("Alice".into()), "2026-11-01", "2026-11-30");
    for (day, place) in [(-20, "Office"), (-13, "Office"), (-6, "Kitchen"), (-1, "Office")] {
        builder.add(&met(day * 24 * HOUR_S + 9 * HOUR_S, 1_200, "Alice", Some(place), None));
    }
    builder.add(&met(14 * HOUR_S, 600, "Alice", None, Some("The cake is for you.")));
    builder.add_fact("Alice works at Acme.");

    let gist = builder.finish().unwrap();

    assert_eq!(
        gist.content,
        "Alice in November 2026: met 5 times on 5 days, 1 h 30 min in all, mostly in the morning; 3 times at Office and \
         once at Kitchen. Last met on Monday 30 November at 14:00. Known: Alice works at Acme. Said on Monday 30 November \
         at 14:00: “The cake is for you”."
    );
}

#[test]
fn a_place_is_told_by_its_stays_and_what_happens_there() {
    let mut builder = builder(Subject::Place("Kitchen".into()), "2026-11-24", "2026-11-30");
    for day in -3..1 {
        let start = day * 24 * HOUR_S + 7 * HOUR_S;
        builder.add(&stay(start, start + 2_400, "Kitchen"));
        builder.add(&sound(start + 60, 40, "Dishes, pots, and pans"));
        builder.add(&met(start + 600, 300, "Alice", Some("Kitchen"), None));
    }

    let gist = builder.finish().unwrap();

    assert_eq!(
        gist.content,
        "Kitchen from 24 to 30 November 2026: stayed 4 times on 4 days, 2 h 40 min in all, always in the morning. Met \
         here: Alice 4 times. Heard dishes (3 min)."
    );
    assert_eq!(gist.metadata["place"], "Kitchen");
}

#[test]
fn a_stay_whose_end_was_not_seen_lasts_until_the_device_moves_or_falls_silent() {
    let open = |start: i64, place: &str| {
        let mut stay = stay(start, start + 300, place);
        stay.metadata.insert("is_over".into(), false.into());
        stay
    };
    let told = |episodes: &[Episode]| {
        let mut builder = builder(Subject::Day, DAY, DAY);
        episodes.iter().for_each(|episode| builder.add(episode));
        builder.finish().unwrap().content
    };

    let silent = told(&[open(8 * HOUR_S, "Home"), sound(20 * HOUR_S, 30, "Speech")]);
    let moved = told(&[open(8 * HOUR_S, "Home"), stay(12 * HOUR_S, 13 * HOUR_S, "Office")]);

    assert!(silent.contains("at Home from 08:00 to 20:00"), "{silent}");
    assert!(moved.contains("at Home from 08:00 to 12:00 and at Office from 12:00 to 13:00"), "{moved}");
}

#[test]
fn of_a_hundred_sounds_of_equal_share_a_few_are_told() {
    let mut builder = builder(Subject::Day, DAY, DAY);
    (0..100).for_each(|number| builder.add(&sound(number * 60, 10, &format!("Sound {number:02}"))));

    let content = builder.finish().unwrap().content;

    assert_eq!(
        content,
        "Monday 30 November 2026: heard mostly sound 00 (10 s), sound 01 (10 s), sound 02 (10 s) and sound 03 (10 s)."
    );
}

#[test]
fn nothing_makes_no_gist_and_neither_does_what_says_nothing() {
    assert_eq!(builder(Subject::Day, DAY, DAY).finish(), None);
    let mut quiet = builder(Subject::Day, DAY, DAY);
    quiet.add(&episode(5, 0, Modality::Spatial, "bluetooth_scan", "3 devices near", json!({"kind": "crowd"})));
    let own = episode(9, 0, Modality::Gist, TOOL_NAME, "Sunday: at Home all day.", json!({}));

    quiet.add(&own);

    assert_eq!(quiet.finish(), None);
}

#[test]
fn hostile_names_numbers_and_texts_make_a_short_clean_gist() {
    let mut builder = builder(Subject::Day, DAY, DAY);
    let long = "word ".repeat(200_000);
    builder.add(&met(60, 60, &format!("Mallory\n{}", "x".repeat(5_000)), Some("\t\n"), Some(&long)));
    builder.add(&note(70, &long));
    builder.add(&episode(80, 10, Modality::Audio, "audio_capture", "", json!({"sound_class": 7, "rms_db": "loud"})));
    builder.add(&episode(
        90,
        10,
        Modality::Visual,
        "camera_capture",
        "",
        json!({"labels": [{"label": 1}, {"score": 2}, 3]}),
    ));
    builder.add(&episode(95, -500, Modality::Spatial, "gps_location", "", json!({"kind": "trip", "distance_m": -1.0})));

    let content = builder.finish().unwrap().content;

    assert!(content.len() < 1_200 && !content.contains('\n'), "{} bytes: {content}", content.len());
}

#[test]
fn the_same_episodes_give_the_same_gist() {
    let gist = || {
        let mut builder = builder(Subject::Day, DAY, DAY);
        (0..500).for_each(|number| {
            builder.add(&sound(number * 100, 20, ["Speech", "Music", "Dog"][usize::try_from(number % 3).unwrap()]));
            builder.add(&note(number * 100 + 1, &format!("The parcel number {} arrived at the door.", number % 7)));
        });
        builder.finish().unwrap()
    };

    assert_eq!(gist(), gist());
}

/// Prints a made-up week, to be read by a person: `cargo test a_week_to_be_read -- --ignored --nocapture`.
#[test]
#[ignore = "prints for a reader; asserts only that each gist is short"]
fn a_week_to_be_read() {
    let week = a_week();
    let zone = TimeZone::get("Europe/Berlin").unwrap();
    let tell = |subject: Subject, first: &str, last: &str, is_wanted: &dyn Fn(&Episode) -> bool| {
        let frame = Frame::dates(subject, first.parse().unwrap(), last.parse().unwrap(), &zone).unwrap();
        let mut builder = GistBuilder::new(frame.clone());
        let overlaps = |episode: &&Episode| episode.timestamp < frame.until && episode.ended_at > frame.since;
        week.iter().filter(overlaps).filter(|episode| is_wanted(episode)).for_each(|episode| builder.add(episode));
        let content = builder.finish().unwrap().content;
        println!("{content}\n");
        assert!(content.len() < 1_000);
    };

    for day in 24..=30 {
        let date = format!("2026-11-{day}");
        tell(Subject::Day, &date, &date, &|_| true);
    }
    let names = |episode: &Episode, key: &str, name: &str| episode.metadata.get(key).is_some_and(|value| value == name);
    tell(Subject::Person("Alice".into()), "2026-11-01", "2026-11-30", &|episode| names(episode, "person", "Alice"));
    tell(Subject::Place("Office".into()), "2026-11-24", "2026-11-30", &|episode| {
        names(episode, "place", "Office") || episode.modality == Modality::Audio
    });
}

/// Home, work, sometimes a stop on the way; sounds and scenes at random; who was met and what was said and noted.
fn a_week() -> Vec<Episode> {
    const HEARD: [&str; 7] =
        ["Speech", "Speech", "Music", "Inside, small room", "Typing", "Vehicle", "Dishes, pots, and pans"];
    const SEEN: [&str; 6] = ["a desk", "a laptop", "a street", "a cup of coffee", "a dog", "trees"];
    const SAID: [&str; 3] = ["We ship on Thursday.", "Can you look at the boiler?", "The release slips to Friday."];
    const NOTED: [&str; 3] = [
        "The release is planned for Thursday after the review.",
        "Backup finished without errors on the server.",
        "The weather turns cold at the weekend.",
    ];
    let mut random = lottery();
    let mut week = Vec::new();
    for day in -6..1 {
        let at = |minute: i64| day * 24 * HOUR_S + minute * 60;
        let out = if day >= -1 { "place-3" } else { "Office" };
        week.extend([stay(at(-180), at(492), "Home"), trip(at(492), at(534), 11_800.0), stay(at(534), at(1_026), out)]);
        if random(2) == 0 {
            week.extend([trip(at(1_026), at(1_044), 3_000.0), stay(at(1_044), at(1_098), "place-1")]);
        }
        week.extend([trip(at(1_098), at(1_134), 12_100.0), stay(at(1_134), at(1_440), "Home")]);
        for _ in 0..120 {
            week.push(sound(at(420 + random(960)), 2 + random(58), HEARD[index(random(7))]));
            let labels = [(SEEN[index(random(6))], 0.7), (SEEN[index(random(6))], 0.4)];
            week.push(scene(at(420 + random(960)), 20 + random(600), &labels));
        }
        if random(3) == 0 {
            week.push(sound(at(570), 2, "Doorbell"));
        }
        for who in ["Alice", "Bob", "Carla"].iter().take(index(1 + random(3))) {
            let said = Some(SAID[index(random(3))]).filter(|_| day % 2 == 0);
            week.push(met(at(540 + random(420)), 300 + random(3_000), who, Some(out), said));
        }
        week.push(note(at(600 + random(300)), NOTED[index(random(3))]));
    }
    week.sort_by_key(|episode| (episode.timestamp, episode.id));
    week
}

/// Numbers from 0 to below the one given, the same in every run.
fn lottery() -> impl FnMut(u64) -> i64 {
    let mut state = 7_u64;
    move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i64::try_from((state >> 33) % below).unwrap()
    }
}

fn index(number: i64) -> usize {
    usize::try_from(number).unwrap()
}

fn builder(subject: Subject, first: &str, last: &str) -> GistBuilder {
    let zone = TimeZone::get("Europe/Berlin").unwrap();
    GistBuilder::new(Frame::dates(subject, first.parse().unwrap(), last.parse().unwrap(), &zone).unwrap())
}

/// Seconds after the local midnight of [`DAY`].
fn at(second: i64) -> Timestamp {
    Timestamp::parse("2026-11-30T00:00:00+01:00").unwrap().plus_millis(second * 1_000)
}

fn stay(from: i64, to: i64, place: &str) -> Episode {
    let metadata = json!({"kind": "stay", "place": place, "is_over": true});
    episode(from, to - from, Modality::Spatial, "gps_location", &format!("Stayed at {place}"), metadata)
}

fn trip(from: i64, to: i64, metres: f64) -> Episode {
    let metadata = json!({"kind": "trip", "distance_m": metres});
    episode(from, to - from, Modality::Spatial, "gps_location", "Travelled", metadata)
}

fn sound(from: i64, length: i64, class: &str) -> Episode {
    episode(from, length, Modality::Audio, "audio_capture", &format!("Heard {class}"), json!({"sound_class": class}))
}

fn scene(from: i64, length: i64, labels: &[(&str, f64)]) -> Episode {
    let labels: Vec<Value> = labels.iter().map(|(label, score)| json!({"label": label, "score": score})).collect();
    episode(from, length, Modality::Visual, "camera_capture", "Saw something", json!({"labels": labels}))
}

fn met(from: i64, length: i64, person: &str, place: Option<&str>, said: Option<&str>) -> Episode {
    let mut metadata = json!({"person": person});
    if let Some(place) = place {
        metadata["place"] = place.into();
    }
    let said = said.map(|words| format!(". Said: \"{words}\"")).unwrap_or_default();
    episode(from, length, Modality::Social, "multimodal_memory", &format!("Met {person}{said}"), metadata)
}

fn note(from: i64, text: &str) -> Episode {
    Episode { source: SourceId::new("ingest"), ..episode(from, 0, Modality::Text, "note", text, json!({})) }
}

fn episode(from: i64, length: i64, modality: Modality, tool: &str, content: &str, metadata: Value) -> Episode {
    let device_id = DeviceId::new("d");
    let external = ExternalId::new(format!("{from} {tool} {content}"));
    Episode {
        id: EpisodeId::of_external(&device_id, &external),
        external_id: None,
        device_id,
        session_id: SessionId::new("s"),
        source: SourceId::of(SensorKind::Microphone, "m"),
        timestamp: at(from),
        ended_at: at(from + length),
        boot_id: BootId::new("b"),
        monotonic_ms: 0,
        clock_quality: ClockQuality::Gps,
        modality,
        tool_name: tool.to_owned(),
        content: content.to_owned(),
        importance: modality.default_importance(),
        decay_class: modality.default_decay(),
        metadata: metadata.as_object().cloned().unwrap(),
    }
}
