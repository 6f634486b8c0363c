//! Lines as other programs write them, right and wrong.

use super::*;
use crate::domain::episode::EmbeddingKind;
use crate::domain::fact::Node;
use crate::domain::fact::NodeKind;
use proptest::prelude::*;
use serde_json::json;

const AT_MS: i64 = 1_796_000_000_000;

/// A right line with these fields more, or instead.
fn line(more: &Value) -> Vec<u8> {
    let mut line = json!({"id": "n1", "tool_name": "note", "content": "The door is open", "timestamp": AT_MS});
    for (key, value) in more.as_object().unwrap() {
        line[key] = value.clone();
    }
    serde_json::to_vec(&line).unwrap()
}

#[track_caller]
fn parsed(more: &Value) -> HandedIn {
    HandedIn::parse(&line(more)).unwrap()
}

#[track_caller]
fn refused(more: &Value) -> String {
    HandedIn::parse(&line(more)).unwrap_err().to_string()
}

fn record(handed_in: HandedIn) -> EpisodeRecord {
    handed_in.record(&DeviceId::new("device"))
}

#[test]
fn every_tool_gets_the_modality_importance_and_decay_of_the_tables() {
    let cases: [(&[&str], Modality, u8, DecayClass); 7] = [
        (
            &[
                "vision",
                "camera_capture",
                "image_read",
                "screenshot",
                "ocr",
                "ocr_image_advanced",
                "visual_memory",
                "desktop_describe",
            ],
            Modality::Visual,
            7,
            DecayClass::Procedural,
        ),
        (
            &["audio_capture", "audio_analyze", "asr_listen", "transcribe_file", "transcribe_url", "audio_playback"],
            Modality::Audio,
            6,
            DecayClass::Daily,
        ),
        (&["multimodal_memory", "send_message", "jibberlink"], Modality::Social, 9, DecayClass::Permanent),
        (&["gps_location", "bluetooth_scan", "wifi_control", "sdr_scan"], Modality::Spatial, 5, DecayClass::Procedural),
        (
            &["file_write", "file_edit", "file_patch", "batch_edit", "code_sandbox", "repl_exec"],
            Modality::Code,
            5,
            DecayClass::Daily,
        ),
        (&["task_complete"], Modality::Gist, 7, DecayClass::Procedural),
        (&["weather", "Vision"], Modality::ToolResult, 5, DecayClass::Daily),
    ];
    let mut named = 0;
    for (tools, modality, importance, decay_class) in cases {
        for tool in tools {
            let episode = record(parsed(&json!({"tool_name": tool}))).episode;
            let found = (episode.modality, episode.importance, episode.decay_class, episode.tool_name.as_str());
            assert_eq!(found, (modality, importance, decay_class, *tool));
            named += 1;
        }
    }
    assert_eq!(named, 30);
}

#[test]
fn an_explicit_value_beats_the_tables_and_the_other_defaults_follow_the_explicit_modality() {
    let explicit = parsed(&json!({
        "tool_name": "vision", "modality": "audio", "importance": 2, "decay_class": "permanent",
    }));
    let modality_only = parsed(&json!({"tool_name": "vision", "modality": "social"}));
    let category = parsed(&json!({"tool_name": "weather", "metadata": {"category": "visual", "modality": "visual"}}));

    assert_eq!(
        (explicit.modality, explicit.importance, explicit.decay_class),
        (Modality::Audio, 2, DecayClass::Permanent)
    );
    assert_eq!((modality_only.importance, modality_only.decay_class), (9, DecayClass::Permanent));
    assert_eq!(category.modality, Modality::ToolResult);
}

#[test]
fn a_record_is_the_devices_and_keeps_the_callers_ids() {
    let record = record(parsed(&json!({"id": 42, "session_id": "s1", "metadata": {"a": [1]}})));

    let episode = &record.episode;
    let external = ExternalId::new("42");
    assert_eq!(episode.id, EpisodeId::of_external(&DeviceId::new("device"), &external));
    assert_eq!(episode.external_id, Some(external));
    assert_eq!((episode.session_id.as_str(), episode.source.as_str()), ("s1", "tool:note"));
    assert_eq!((episode.timestamp.as_millis(), episode.ended_at.as_millis()), (AT_MS, AT_MS));
    assert_eq!(episode.content, "The door is open");
    assert_eq!(Value::Object(episode.metadata.clone()), json!({"a": [1]}));
    assert_eq!(episode.clock_quality, ClockQuality::Network);
}

#[test]
fn without_an_id_the_same_line_is_the_same_episode_and_another_is_not() {
    let id = |more: Value| {
        let mut more = more;
        more["id"] = Value::Null;
        parsed(&more).external_id
    };

    let same = id(json!({}));

    assert_eq!(same, id(json!({"metadata": {"seen": 2}, "importance": 7})));
    let others = [
        json!({"content": "x"}),
        json!({"timestamp": AT_MS + 1}),
        json!({"tool_name": "t"}),
        json!({"session_id": "s"}),
    ];
    for other in others {
        assert_ne!(same, id(other.clone()), "{other}");
    }
}

#[test]
fn whatever_is_wrong_is_named_with_its_field() {
    let vector = |value: Value| json!({"embeddings": [{"model_id": "m", "kind": "text", "vector": value}]});
    let fact = |more: Value| {
        let mut fact = json!({"subject": "Alice", "relation": "located_at", "object": "Kitchen", "valid_from": 5});
        more.as_object().unwrap().iter().for_each(|(key, value)| fact[key] = value.clone());
        json!({"facts": [fact]})
    };
    let cases = [
        (json!({"tool_name": null}), "tool_name is missing"),
        (json!({"tool_name": " "}), "tool_name: it is empty"),
        (json!({"content": null}), "content is missing"),
        (json!({"content": "  "}), "content is missing"),
        (json!({"content": 7}), "content: it must be a text, not a number"),
        (json!({"content": "x".repeat(1 << 20)}), "content: 1048576 bytes are too many; the most is 262144"),
        (json!({"timestamp": null}), "timestamp is missing"),
        (
            json!({"timestamp": "2026-11-30T09:00:00Z"}),
            "timestamp: it must be a number: milliseconds since 1970, not a text",
        ),
        (json!({"timestamp": -1}), "timestamp: -1 is before 1970"),
        (json!({"timestamp": AT_MS / 1_000}), "looks like seconds"),
        (json!({"timestamp": AT_MS * 1_000}), "not micro- or nanoseconds"),
        (json!({"timestamp": 1e300}), "is no time in milliseconds"),
        (json!({"timestamp": u64::MAX}), "is no time in milliseconds"),
        (json!({"modality": "sound"}), "modality: \"sound\" is not known; known are visual, audio,"),
        (json!({"decay_class": "weekly"}), "decay_class: \"weekly\" is not known; known are session, daily"),
        (json!({"importance": 11}), "importance: 11 is not a whole number within 0 to 10"),
        (json!({"importance": -1}), "importance: -1 is not"),
        (json!({"importance": 7.5}), "importance: 7.5 is not"),
        (json!({"importance": "high"}), "importance: it must be a number, not a text"),
        (json!({"importnce": 5}), "importnce: unknown key; did you mean \"importance\"?"),
        (json!({"zzz": 5}), "zzz: unknown key; known are id, tool_name"),
        (json!({"metadata": [1]}), "metadata: it must be a JSON object, not a list"),
        (json!({"metadata": {"a": "x".repeat(300_000)}}), "metadata: 300008 bytes are too many"),
        (json!({"id": true}), "id: it must be a text, not true or false"),
        (json!({"id": "x".repeat(600)}), "id: 600 bytes are too many"),
        (json!({"faces": "Alice"}), "faces: it must be a list, not a text"),
        (json!({"faces": ["Alice", ""]}), "faces[1]: a face is a name"),
        (vector(json!([])), "embeddings[0].vector: it has no values"),
        (vector(json!([0.0, 0.0])), "embeddings[0].vector: all its values are zero"),
        (vector(json!([1.0, null])), "embeddings[0].vector[1]: it must be a finite number, not null"),
        (vector(json!([1e39])), "embeddings[0].vector[0]: 1e+39 does not fit"),
        (vector(json!(vec![1; 8_193])), "embeddings[0].vector: 8193 are too many"),
        (json!({"embeddings": [{"model": "m"}]}), "embeddings[0].model: unknown key; did you mean \"model_id\"?"),
        (json!({"embeddings": [{"kind": "text", "vector": [1]}]}), "embeddings[0].model_id: it is missing"),
        (json!({"embeddings": [{"model_id": "m", "kind": "video", "vector": [1]}]}), "kind: \"video\" is not known"),
        (
            json!({"embeddings": [{"model_id": "m", "kind": "text", "vector": [1]}, {"model_id": "m", "kind": "text", "vector": [1]}]}),
            "embeddings[1]: a second text vector of m",
        ),
        (fact(json!({"subject": ""})), "facts[0].subject: it is empty"),
        (fact(json!({"object": null})), "facts[0].object: it is missing"),
        (fact(json!({"valid_to": 4})), "facts[0].valid_to: it ends at 1970-01-01T00:00:00.004Z, before it begins"),
        (fact(json!({"valid_from": 1e15})), "facts[0].valid_from: 1000000000000000 is outside"),
        (json!({"facts": ["Alice"]}), "facts[0] must be a JSON object, not a text"),
    ];
    for (more, expected) in cases {
        let found = refused(&more);
        assert!(found.contains(expected), "{found:?} does not say {expected:?}");
    }
}

#[test]
fn broken_lines_are_refused_in_words() {
    let cases: [(&[u8], &str); 8] = [
        (b"", "it is no JSON object"),
        (b"{\"tool_name\": \"a\"", "it is no JSON object: EOF while parsing an object at column 17"),
        (b"[1]", "a line must be a JSON object, not a list"),
        (b"{} {}", "it is no JSON object: trailing characters"),
        (b"\xff\xfe", "it is no UTF-8 text: byte 1 is wrong"),
        (br#"{"timestamp": NaN}"#, "NaN and Infinity are no JSON numbers"),
        (br#"{"embeddings": [{"vector": [0.1, NaN]}]}"#, "NaN and Infinity are no JSON numbers"),
        (br#"{"embeddings": [{"vector": [-Infinity]}]}"#, "NaN and Infinity are no JSON numbers"),
    ];
    for (line, expected) in cases {
        let found = HandedIn::parse(line).unwrap_err().to_string();
        assert!(found.contains(expected), "{found:?} does not say {expected:?}");
    }
    let endless = vec![b' '; LINE_BYTES_MAX + 1];
    assert!(HandedIn::parse(&endless).unwrap_err().to_string().contains("the most is 4194304"));
}

#[test]
fn a_vector_of_unit_length_stays_bit_for_bit_and_another_is_scaled() {
    let given: Vec<f32> = (0_u8..=255).cycle().take(768).map(|value| f32::from(value) - 100.0).collect();
    let unit = crate::domain::episode::unit_length(&given).unwrap();
    let embeddings = json!({"embeddings": [
        {"model_id": "nomic", "kind": "text", "vector": unit.as_ref()},
        {"model_id": "other", "kind": "image", "vector": [3, 4]},
    ]});

    let embeddings = parsed(&embeddings).embeddings;

    assert_eq!(embeddings[0].vector, unit);
    assert_eq!((embeddings[0].model_id.as_str(), embeddings[0].kind), ("nomic", EmbeddingKind::Text));
    assert_eq!(embeddings[1].vector.as_ref(), [0.6, 0.8]);
}

#[test]
fn facts_become_edges_with_types_times_and_a_sentence() {
    let facts = json!({"facts": [
        {"subject": "Alice", "subject_type": "person", "relation": "located_at", "object": "Kitchen",
         "object_type": "location", "valid_from": -5, "valid_to": 10},
        {"subject": "Ada Lovelace", "relation": "wrote", "object": "notes", "fact": "Ada wrote the notes."},
    ]});

    let facts = parsed(&facts).facts;

    assert_eq!(facts[0].subject, Node::new(NodeKind::Person, "Alice"));
    assert_eq!(facts[0].object.kind, NodeKind::Location);
    assert_eq!(facts[0].fact, "Alice located at Kitchen");
    assert_eq!((facts[0].valid_from.as_millis(), facts[0].valid_to.map(Timestamp::as_millis)), (-5, Some(10)));
    assert_eq!(facts[1].subject.kind, NodeKind::Other("entity".to_owned()));
    assert_eq!((facts[1].fact.as_str(), facts[1].valid_from.as_millis()), ("Ada wrote the notes.", AT_MS));
}

#[test]
fn an_audio_tools_output_is_read_and_kept_as_it_is() {
    let content = "Two people talk. {\"rmsDb\": -21.5, \"classes\": [{\"label\": \"Speech\", \"confidence\": 0.8}]}";

    let audio = parsed(&json!({"tool_name": "audio_analyze", "content": content}));
    let other = parsed(&json!({"tool_name": "weather", "content": content}));

    assert_eq!(Value::Object(audio.metadata), json!({"rms_db": -21.5, "sound_class": "Speech"}));
    assert_eq!(audio.content, content);
    assert!(other.metadata.is_empty());
}

#[test]
fn transcript_and_faces_are_found_by_words_in_the_metadata_and_in_the_graph() {
    let told = parsed(&json!({
        "tool_name": "vision", "content": "Two people at a table.", "transcript": "pass the salt",
        "faces": ["Alice", {"name": "Bob", "score": 0.9}, "Alice"], "metadata": {"place": "Kitchen"},
    }));
    let named = parsed(&json!({"content": "Alice said hello", "transcript": "hello", "faces": ["Alice"]}));
    let wordless = parsed(&json!({"tool_name": "asr_listen", "content": null, "transcript": "good morning"}));

    assert_eq!(told.content, "Two people at a table. Said: \"pass the salt\". Faces: Alice, Bob");
    assert_eq!(
        Value::Object(told.metadata),
        json!({"place": "Kitchen", "transcript": "pass the salt", "faces": ["Alice", "Bob"], "has_face": true})
    );
    let edges: Vec<_> = told.facts.iter().map(|fact| (fact.fact.as_str(), &fact.subject.kind)).collect();
    assert_eq!(edges, [("Alice seen at Kitchen", &NodeKind::Person), ("Bob seen at Kitchen", &NodeKind::Person)]);
    assert_eq!(named.content, "Alice said hello");
    assert_eq!(
        (named.facts[0].fact.as_str(), named.facts[0].relation.as_str()),
        ("Alice recognised by note", "discovered_during")
    );
    assert_eq!((wordless.content.as_str(), wordless.modality), ("Said: \"good morning\"", Modality::Audio));
}

#[test]
fn the_modality_of_a_moment_follows_what_it_binds() {
    let cases = [
        (json!({"content": "Met Alice. Sound: Speech. Location: Kitchen"}), Modality::Social, 9),
        (json!({"content": "Met somebody new at the market"}), Modality::Social, 9),
        (json!({"content": "Faces: Bob. Location: Kitchen"}), Modality::Visual, 7),
        (json!({"content": "Sound: Dog. Location: Garden"}), Modality::Audio, 6),
        (json!({"content": "Location: Garden"}), Modality::Spatial, 5),
        (json!({"content": "What happened", "metadata": {"has_audio": true, "has_gps": true}}), Modality::Audio, 6),
        (json!({"content": "x", "metadata": {"visual": {"objects": ["cup"]}}}), Modality::Visual, 7),
        (json!({"content": "x", "metadata": {"social": {"personName": "Eve"}}}), Modality::Social, 9),
        (
            json!({"content": "x", "metadata": {"spatial": {"gps": {"latitude": 1, "longitude": 2}}}}),
            Modality::Spatial,
            5,
        ),
        (json!({"content": null, "transcript": "hello"}), Modality::Audio, 6),
        (json!({"content": "Met Alice", "modality": "gist"}), Modality::Gist, 7),
        // Says nothing of what it binds: the table decides.
        (json!({"content": "What happened"}), Modality::Social, 9),
    ];
    for (more, modality, importance) in cases {
        let mut more = more;
        more["tool_name"] = moment::TOOL_NAME.into();
        let handed_in = parsed(&more);
        assert_eq!((handed_in.modality, handed_in.importance), (modality, importance), "{more}");
    }
}

#[test]
fn a_moment_binds_person_place_and_words_in_the_graph_and_its_document() {
    let handed_in = parsed(&json!({
        "tool_name": "multimodal_memory", "content": null, "transcript": "see you. soon", "faces": ["Bob"],
        "metadata": {"person": "Alice", "audio": {"soundClass": "Speech"}, "spatial": {"locationLabel": "Kitchen"}},
    }));
    let by_words = parsed(&json!({
        "tool_name": "multimodal_memory",
        "content": "Met Dr. Eve Li. Said: \"see you. soon\". Faces: Bob, Carl. Location: Kitchen",
    }));
    let vague = parsed(&json!({"tool_name": "multimodal_memory", "content": "Met Alice at the market"}));

    let expected = "Met Alice. Said: \"see you. soon\". Sound: Speech. Faces: Bob. Location: Kitchen";
    assert_eq!(handed_in.content, expected);
    let edges: Vec<&str> = handed_in.facts.iter().map(|fact| fact.fact.as_str()).collect();
    assert_eq!(edges, ["Met Alice via multimodal capture", "Alice seen at Kitchen", "Bob seen at Kitchen"]);
    let row = record(handed_in.clone());
    assert_eq!(row.episode.metadata["multimodal_episode_id"], json!(row.episode.id.to_string()));
    assert_eq!((&row.episode.metadata["has_face"], &row.episode.metadata["has_gps"]), (&json!(true), &json!(false)));

    let moment = by_words.moment.unwrap();
    assert_eq!((moment.person.as_deref(), moment.transcript.as_deref()), (Some("Dr. Eve Li"), Some("see you. soon")));
    assert_eq!(moment.faces, ["Bob", "Carl"]);
    assert_eq!(by_words.metadata["person"], json!("Dr. Eve Li"));
    assert_eq!(vague.moment.unwrap().person, None);
    assert!(vague.facts.is_empty());
}

#[test]
fn a_moment_known_elsewhere_keeps_its_own_id() {
    let record =
        record(parsed(&json!({"tool_name": "multimodal_memory", "metadata": {"multimodal_episode_id": "theirs"}})));

    assert_eq!(record.episode.metadata["multimodal_episode_id"], json!("theirs"));
}

#[test]
fn signs_of_sql_full_text_and_shells_are_plain_data() {
    let content = "'); DROP TABLE episodes; -- \" OR * NEAR(a b) ^x {col}: $(rm -rf /) \u{0} 🦀";

    let handed_in = parsed(&json!({"content": content, "id": content, "faces": [content]}));

    assert_eq!(handed_in.content, content);
    assert_eq!(handed_in.external_id.as_str(), content);
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes: Vec<u8>) {
        let _ = HandedIn::parse(&bytes);
    }

    #[test]
    fn no_words_make_it_panic_and_what_it_accepts_the_store_accepts(content: String, transcript: String, face: String) {
        let tools = ["multimodal_memory", "audio_analyze", "note"];
        for tool in tools {
            let more = json!({"tool_name": tool, "content": content, "transcript": transcript, "faces": [face]});
            if let Ok(handed_in) = HandedIn::parse(&line(&more)) {
                let episode = record(handed_in).episode;
                prop_assert!(!episode.content.is_empty() && episode.importance <= 10);
            }
        }
    }
}
