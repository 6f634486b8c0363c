//! Names are where they should be, whatever comes first and whatever goes again.

use super::*;
use crate::domain::episode::EpisodeRecord;
use crate::domain::fact::Fact;
use crate::domain::fact::Node;
use crate::domain::fact::NodeKind;
use crate::domain::modality::Modality;
use crate::domain::time::Timestamp;
use crate::memory::append;
use crate::memory::fixture;
use crate::memory::removal;
use crate::memory::revision::Context;
use crate::memory::schema;
use crate::memory::similarity::companion::Companion;
use crate::recall::links::Cuts;
use proptest::prelude::*;
use std::cell::RefCell;
use std::path::Path;

const RELATIONS: [String; 0] = [];

#[test]
fn a_text_is_tied_to_the_names_it_has_whichever_came_first() {
    let fact = record(1, "A meeting", &[("Ann Lee", "met", "Bob")]);
    let text = record(2, "later ann lee called bob's office about bobsleighs", &[]);
    let expected =
        [("A meeting", "ann lee", true), ("A meeting", "bob", true), (TEXT, "ann lee", false), (TEXT, "bob", false)];

    for order in [[&fact, &text], [&text, &fact]] {
        let store = fresh();
        order.iter().for_each(|record| put(&store, record));

        assert_eq!(
            mentions(&store),
            expected.map(|(content, key, is_fact)| (content.to_owned(), key.to_owned(), is_fact))
        );
    }
    const TEXT: &str = "later ann lee called bob's office about bobsleighs";
}

#[test]
fn nodes_that_differ_in_spelling_or_type_have_one_name() {
    let store = fresh();
    put(&store, &record(1, "One", &[("The Café", "is", "cafe")]));

    assert_eq!(keys(&store), ["cafe"]);
    assert_eq!(ties(&store), []);
}

#[test]
fn a_name_is_the_most_that_any_of_its_nodes_was() {
    let store = fresh();
    let sort = |key: &str| -> i64 {
        store.query_row("SELECT sort FROM names WHERE key = ?1", [names::key(key)], |row| row.get(0)).unwrap()
    };
    put(&store, &record(1, "One", &[("speech", "of", "1930"), ("Ann", "gave", "speech")]));
    assert_eq!((sort("speech"), sort("1930"), sort("Ann")), (0, 1, 2));

    register(&store, node(&store, "Speech", "sound"), "Speech", "sound").unwrap();
    assert_eq!(sort("speech"), 3);
    register(&store, node(&store, "speech", "word"), "speech", "word").unwrap();
    assert_eq!(sort("speech"), 3);
}

#[test]
fn common_nouns_are_noted_where_stated_and_not_sought_in_texts() {
    let store = fresh();
    put(&store, &record(1, "One", &[("Ann", "saw", "airport")]));
    put(&store, &record(2, "The airport was closed, and so was an", &[]));

    assert_eq!(
        mentions(&store),
        [("One".to_owned(), "airport".to_owned(), true), ("One".to_owned(), "ann".to_owned(), true)]
    );
}

#[test]
fn what_changes_or_goes_takes_its_mentions_along() {
    let store = fresh();
    let stated = record(1, "Who was there", &[("Ann", "met", "Bob"), ("Ann", "met", "Carl")]);
    put(&store, &stated);
    put(&store, &record(2, "Bob and Carl", &[]));
    assert_eq!(ties(&store), [("ann".to_owned(), "bob".to_owned(), 1), ("ann".to_owned(), "carl".to_owned(), 1)]);

    put(&store, &record(2, "Carl alone", &[]));
    assert_eq!(mentions(&store).iter().filter(|(_, key, _)| key == "bob").count(), 1, "the text lost the name");

    put(&store, &record(1, "Who was there", &[("Ann", "met", "Carl")]));
    assert_eq!(keys(&store), ["ann", "carl"], "nothing states Bob any more");
    assert_eq!(ties(&store), [("ann".to_owned(), "carl".to_owned(), 1)]);

    store.execute("UPDATE episodes SET content = 'nobody' WHERE content = 'Carl alone'", []).unwrap();
    assert_eq!(mentions(&store).len(), 2, "another program changed the text");

    removal::remove(&store, &context(), &stated.episode.id.to_string()).unwrap();
    assert_eq!((mentions(&store), keys(&store), ties(&store)), (vec![], vec![], vec![]));
}

#[test]
fn an_edge_that_goes_alone_takes_the_mention_only_when_it_was_the_last() {
    let store = fresh();
    put(&store, &record(1, "x", &[("Ann", "met", "Bob"), ("Ann", "saw", "Bob"), ("Bob", "is", "Bob")]));

    let delete = |relation: &str| store.execute("DELETE FROM kg_edges WHERE relation = ?1", [relation]).unwrap();
    delete("met");
    assert_eq!((mentions(&store).len(), ties(&store)), (2, vec![("ann".to_owned(), "bob".to_owned(), 1)]));
    delete("saw");
    assert_eq!((mentions(&store).len(), ties(&store)), (1, vec![]));
}

#[test]
fn a_corrected_time_is_corrected_in_mentions_too() {
    let store = fresh();
    put(&store, &record(1, "x", &[("Ann", "met", "Bob")]));

    store.execute("UPDATE episodes SET timestamp = 77, ended_at = 77", []).unwrap();

    let times: i64 =
        store.query_row("SELECT count(*) FROM mentions WHERE timestamp = 77", [], |row| row.get(0)).unwrap();
    assert_eq!(times, 2);
}

#[test]
fn odd_names_and_texts_do_no_harm() {
    let store = fresh();
    let long = "Word ".repeat(200_000);
    put(
        &store,
        &record(
            1,
            &long,
            &[("\"; DROP TABLE names; --", "AND OR NOT", "*"), ("", "x", "\u{0}"), ("日本 語", "x", "Ä")],
        ),
    );
    put(&store, &record(2, "NEAR(\"日本 語\")", &[]));

    assert!(mentions(&store).iter().any(|(content, key, _)| content.starts_with("NEAR") && key == "日本 語"));
}

proptest! {
    #[test]
    fn made_anew_it_is_what_it_was(
        steps in prop::collection::vec((0_u32..6, prop::sample::subsequence(vec!["Ann", "Bob", "Carl Gray", "Gray"], 0..3), 0_usize..4, prop::bool::ANY), 1..14),
    ) {
        let store = fresh();
        for (minute, said, stated, is_removed) in steps {
            let facts: &[(&str, &str, &str)] = match stated {
                0 => &[],
                1 => &[("Ann", "met", "Bob")],
                2 => &[("Carl Gray", "met", "Ann"), ("The Bob", "is", "Ann")],
                _ => &[("Gray", "knows", "Gray")],
            };
            let record = record(minute, &format!("{minute} {}", said.join(" and ")), facts);
            if is_removed {
                removal::remove(&store, &context(), &record.episode.id.to_string()).unwrap();
            } else {
                put(&store, &record);
            }
        }
        let before = (mentions(&store), keys(&store), ties(&store));

        rebuild(&store).unwrap();

        prop_assert_eq!((mentions(&store), keys(&store), ties(&store)), before);
    }
}

fn context() -> Context<'static> {
    // A test's process is short.
    let companion = Box::leak(Box::new(RefCell::new(Companion::new(Path::new("/nowhere"), "s", Cuts::default()))));
    Context { store_id: "s", stored_at: Timestamp::from_millis(0), single_valued: &RELATIONS, companion }
}

fn fresh() -> Connection {
    let mut connection = Connection::open_in_memory().unwrap();
    schema::stamp(&connection).unwrap();
    connection.pragma_update(None, "foreign_keys", true).unwrap();
    schema::migrate(&mut connection).unwrap();
    connection.execute("INSERT INTO store VALUES (1, 'd', 's', 1)", []).unwrap();
    connection
}

fn put(connection: &Connection, record: &EpisodeRecord) {
    append::append(connection, &context(), record, &[]).unwrap();
}

fn record(minute: u32, content: &str, facts: &[(&str, &str, &str)]) -> EpisodeRecord {
    let mut record = fixture::episode(minute, Modality::Text);
    record.episode.content = content.to_owned();
    let node = |text: &str| Node::new(NodeKind::Other("thing".to_owned()), text);
    record.facts = facts
        .iter()
        .map(|(subject, relation, object)| {
            Fact::triple(node(subject), relation, node(object), String::new(), record.episode.timestamp)
        })
        .collect();
    record
}

fn mentions(connection: &Connection) -> Vec<(String, String, bool)> {
    connection
        .prepare(
            "SELECT e.content, n.key, m.is_fact FROM mentions AS m JOIN episodes AS e ON e.id = m.episode_id
             JOIN names AS n ON n.name_id = m.name_id ORDER BY 1, 2",
        )
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap()
}

fn node(store: &Connection, text: &str, kind: &str) -> i64 {
    store.execute("INSERT INTO kg_nodes (text, node_type) VALUES (?1, ?2)", [text, kind]).unwrap();
    store.last_insert_rowid()
}

fn keys(connection: &Connection) -> Vec<String> {
    let mut statement = connection.prepare("SELECT key FROM names ORDER BY 1").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
}

fn ties(connection: &Connection) -> Vec<(String, String, i64)> {
    connection
        .prepare(
            "SELECT min(a.key, b.key), max(a.key, b.key), t.facts FROM ties AS t JOIN names AS a ON a.name_id = t.a
             JOIN names AS b ON b.name_id = t.b ORDER BY 1, 2",
        )
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap()
}
