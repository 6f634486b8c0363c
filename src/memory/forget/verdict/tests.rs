//! Rows that name somebody: which go, which are redacted, which stay.

use super::*;
use serde_json::json;

fn alice() -> Named {
    Named { name: Name::new("Alice", &[]).unwrap(), is_place: false }
}

fn kitchen() -> Named {
    Named { name: Name::new("Kitchen", &[]).unwrap(), is_place: true }
}

fn row(content: &str, metadata: &Value) -> Row {
    Row { content: content.to_owned(), metadata: metadata.to_string(), ..Row::default() }
}

fn fact(person: &str, place: &str) -> Edge {
    Edge {
        id: format!("{person}-{place}"),
        nodes: [(person.to_owned(), "person".to_owned()), (place.to_owned(), "location".to_owned())],
        relation: "appears_in".to_owned(),
        fact: format!("{person} seen at {place}"),
    }
}

fn kind(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Stays => "stays",
        Verdict::Goes => "goes",
        Verdict::Redacted(_) => "redacted",
    }
}

#[test]
fn a_row_about_the_person_alone_goes_and_one_that_names_others_is_redacted() {
    let known = Roll::new(["Bob".to_owned(), "Carol Jones".to_owned(), "Alice Smith".to_owned()]);
    let cases = [
        ("Met Alice. Location: Kitchen", json!({"person": "Alice", "place": "Kitchen"}), "goes"),
        ("Alice likes tea", json!({}), "goes"),
        ("A talk", json!({"transcript": "hello Alice"}), "goes"),
        ("A talk", json!({"participants": ["Alice"]}), "goes"),
        ("Met Bob. Said: \"Alice is late\"", json!({"person": "Bob"}), "redacted"),
        ("Alice and bob had tea", json!({}), "redacted"),
        ("Alice wrote to Carol Jones", json!({}), "redacted"),
        ("Alice wrote to Carol", json!({}), "goes"),
        ("Alice Smith called", json!({}), "goes"),
        ("Faces: Alice, Dora", json!({"has_face": true}), "redacted"),
        ("Faces: Alice. Objects: table, lamp", json!({"has_face": true}), "goes"),
        ("A picture", json!({"faces": [{"name": "Alice"}, {"name": "Dora"}]}), "redacted"),
        ("Faces: someone, Alice", json!({}), "goes"),
        ("malice and Alicent", json!({"person": "Bob"}), "stays"),
        ("they told alice", json!({}), "redacted"),
        ("Stayed at Alice's house", json!({"place": "Alice's house"}), "redacted"),
        ("Sound", json!({"device": {"label": "alice phone"}}), "redacted"),
    ];

    for (content, metadata, expected) in cases {
        let verdict = judge(&row(content, &metadata), &alice(), &known);
        assert_eq!(kind(&verdict), expected, "{content} {metadata}: {verdict:?}");
    }
}

#[test]
fn a_redacted_row_has_the_name_nowhere_and_the_rest_as_it_was() {
    let metadata = json!({
        "person": "Bob", "faceNames": ["Alice", "Bob"], "note": "for alice's sake", "alice": {"age": 3}, "rms_db": -30.5,
        "escaped": "ALICE"
    });
    let mut row = row("Met Bob. Faces: Alice, Bob", &metadata);
    row.metadata = row.metadata.replace("ALICE", "\\u0041lice");
    row.external_id = Some("note-alice-1".to_owned());
    row.source = "microphone:Alice's phone".to_owned();
    row.edges = vec![fact("Alice", "Kitchen"), fact("Bob", "Kitchen")];

    let verdict = judge(&row, &alice(), &Roll::default());

    let Verdict::Redacted(redaction) = verdict else { panic!("{verdict:?}") };
    assert_eq!(redaction.content, "Met Bob. Faces: someone, Bob");
    assert_eq!(redaction.edges, ["Alice-Kitchen"]);
    assert_eq!((redaction.external_id.as_deref(), redaction.source.as_str()), (None, "microphone:someone's phone"));
    let metadata: Value = serde_json::from_str(&redaction.metadata).unwrap();
    let expected = json!({
        "person": "Bob", "faceNames": ["someone", "Bob"], "note": "for someone's sake", "someone": {"age": 3},
        "rms_db": -30.5, "escaped": "someone"
    });
    assert_eq!(metadata, expected);
}

#[test]
fn the_forgotten_person_of_a_redacted_row_is_nobody() {
    let row = row("Met Alice. Faces: Bob", &json!({"person": "Alice", "place": "Hall"}));

    let Verdict::Redacted(redaction) = judge(&row, &alice(), &Roll::default()) else { panic!("it names Bob") };

    assert_eq!(redaction.content, "Met someone. Faces: Bob");
    assert_eq!(redaction.metadata, r#"{"place":"Hall"}"#);
}

#[test]
fn broken_metadata_is_redacted_as_text() {
    let mut row = row("A sound", &json!({}));
    row.metadata = "{\"person\": \"Alice".to_owned();

    assert_eq!(judge(&row, &alice(), &Roll::default()), Verdict::Goes);
    row.metadata = "{\"person\": \"Bob, alice".to_owned();
    let Verdict::Redacted(redaction) = judge(&row, &alice(), &Roll::default()) else { panic!("not called") };
    assert_eq!(redaction.metadata, "{\"person\": \"Bob, someone");
}

#[test]
fn of_a_place_stays_go_and_everything_else_loses_its_name_and_position() {
    let spatial = |content: &str, metadata: &Value| Row { modality: "spatial".to_owned(), ..row(content, metadata) };
    let stay = spatial("Stayed at Kitchen for 5 min", &json!({"place": "Kitchen", "latitude_deg": 52.5}));
    let trip = spatial(
        "Travelled 1 km from Kitchen to Garden",
        &json!({"from_place": "Kitchen", "to_place": "Garden", "bounds": {"south_deg": 52.5}, "distance_m": 1000}),
    );
    let mut sound = row("Dog", &json!({"rms_db": -20}));
    sound.edges = vec![fact("Bob", "kitchen")];

    let verdicts = [&stay, &trip, &sound].map(|row| judge(row, &kitchen(), &Roll::default()));

    assert_eq!(verdicts.each_ref().map(kind), ["goes", "redacted", "redacted"]);
    let Verdict::Redacted(trip) = &verdicts[1] else { panic!() };
    assert_eq!(trip.content, "Travelled 1 km from somewhere to Garden");
    assert_eq!(trip.metadata, r#"{"from_place":"somewhere","to_place":"Garden","distance_m":1000}"#);
    let Verdict::Redacted(sound) = &verdicts[2] else { panic!() };
    assert_eq!((sound.content.as_str(), sound.edges.len()), ("Dog", 1));
}

#[test]
fn a_row_that_was_redacted_is_redacted_for_good() {
    let row_before = row("Alice and Bob", &json!({"person": "Bob", "alice_was": "Alice"}));
    let Verdict::Redacted(redaction) = judge(&row_before, &alice(), &Roll::default()) else { panic!() };

    let after = Row { content: redaction.content, metadata: redaction.metadata, ..row_before };

    assert_eq!(judge(&after, &alice(), &Roll::default()), Verdict::Stays);
}
