//! Facts through the writer, whatever order they come in.

use super::*;
use crate::domain::episode::EpisodeRecord;
use crate::domain::fact::Fact;
use crate::memory::fixture;
use crate::memory::fixture::MINUTE_MS;
use crate::memory::reader::Reader;
use crate::recall::facts;
use crate::recall::facts::Statement;

const ONE: &str = "located_at";
const MANY: &str = "knows";

/// Value, from and stated end, in minutes.
type Stated = (&'static str, u32, Option<u32>);

struct Case {
    name: &'static str,
    relation: &'static str,
    stated: &'static [Stated],
    /// Every interval, oldest first.
    ever: &'static [Stated],
    /// What holds in a minute.
    at: &'static [(u32, &'static [&'static str])],
}

const CASES: [Case; 12] = [
    Case {
        name: "a single fact holds from its start without end",
        relation: ONE,
        stated: &[("Kitchen", 10, None)],
        ever: &[("Kitchen", 10, None)],
        at: &[(9, &[]), (10, &["Kitchen"]), (10_000, &["Kitchen"])],
    },
    Case {
        name: "an older value closes at the newer one's start",
        relation: ONE,
        stated: &[("Kitchen", 10, None), ("Garden", 20, None)],
        ever: &[("Kitchen", 10, Some(20)), ("Garden", 20, None)],
        at: &[(19, &["Kitchen"]), (20, &["Garden"]), (30, &["Garden"])],
    },
    Case {
        name: "disjoint intervals stay as they were stated",
        relation: ONE,
        stated: &[("Kitchen", 10, Some(15)), ("Garden", 20, Some(25))],
        ever: &[("Kitchen", 10, Some(15)), ("Garden", 20, Some(25))],
        at: &[(14, &["Kitchen"]), (17, &[]), (20, &["Garden"]), (26, &[])],
    },
    Case {
        name: "an end stated after the newer one's start is cut there",
        relation: ONE,
        stated: &[("Kitchen", 10, Some(30)), ("Garden", 20, Some(40))],
        ever: &[("Kitchen", 10, Some(20)), ("Garden", 20, Some(40))],
        at: &[(19, &["Kitchen"]), (25, &["Garden"]), (39, &["Garden"])],
    },
    Case {
        name: "a recurrence keeps two intervals",
        relation: ONE,
        stated: &[("Kitchen", 10, None), ("Garden", 20, None), ("Kitchen", 30, None)],
        ever: &[("Kitchen", 10, Some(20)), ("Garden", 20, Some(30)), ("Kitchen", 30, None)],
        at: &[(15, &["Kitchen"]), (25, &["Garden"]), (35, &["Kitchen"])],
    },
    Case {
        name: "a value stated again goes on in a second interval that touches the first",
        relation: ONE,
        stated: &[("Kitchen", 10, None), ("Kitchen", 20, None)],
        ever: &[("Kitchen", 10, Some(20)), ("Kitchen", 20, None)],
        at: &[(15, &["Kitchen"]), (20, &["Kitchen"]), (25, &["Kitchen"])],
    },
    Case {
        name: "a multi-valued relation keeps all",
        relation: MANY,
        stated: &[("Bob", 10, None), ("Carol", 20, None), ("Dave", 30, None)],
        ever: &[("Bob", 10, None), ("Carol", 20, None), ("Dave", 30, None)],
        at: &[(9, &[]), (25, &["Bob", "Carol"]), (30, &["Bob", "Carol", "Dave"])],
    },
    Case {
        name: "a multi-valued fact ends only where it was stated to",
        relation: MANY,
        stated: &[("Bob", 10, Some(25)), ("Carol", 20, None)],
        ever: &[("Bob", 10, Some(25)), ("Carol", 20, None)],
        at: &[(24, &["Bob", "Carol"]), (25, &["Carol"])],
    },
    Case {
        name: "a late fact goes in its place between two others",
        relation: ONE,
        stated: &[("Kitchen", 10, None), ("Office", 30, None), ("Garden", 20, None)],
        ever: &[("Kitchen", 10, Some(20)), ("Garden", 20, Some(30)), ("Office", 30, None)],
        at: &[(19, &["Kitchen"]), (20, &["Garden"]), (29, &["Garden"]), (30, &["Office"])],
    },
    Case {
        name: "a late fact before all others ends where they begin",
        relation: ONE,
        stated: &[("Garden", 20, None), ("Office", 30, Some(40)), ("Kitchen", 10, None)],
        ever: &[("Kitchen", 10, Some(20)), ("Garden", 20, Some(30)), ("Office", 30, Some(40))],
        at: &[(9, &[]), (10, &["Kitchen"]), (39, &["Office"]), (40, &[])],
    },
    Case {
        name: "as-of is right at each boundary: the start is in, the end is out",
        relation: ONE,
        stated: &[("Kitchen", 10, Some(20)), ("Garden", 20, Some(30))],
        ever: &[("Kitchen", 10, Some(20)), ("Garden", 20, Some(30))],
        at: &[(9, &[]), (10, &["Kitchen"]), (19, &["Kitchen"]), (20, &["Garden"]), (29, &["Garden"]), (30, &[])],
    },
    Case {
        name: "nothing is ever deleted by a newer fact",
        relation: ONE,
        stated: &[("A", 1, None), ("B", 2, None), ("A", 3, None), ("B", 4, None)],
        ever: &[("A", 1, Some(2)), ("B", 2, Some(3)), ("A", 3, Some(4)), ("B", 4, None)],
        at: &[(1, &["A"]), (2, &["B"]), (3, &["A"]), (4, &["B"])],
    },
];

#[test]
fn twelve_cases_hold_whichever_fact_comes_late() {
    for case in &CASES {
        for order in orders(case.stated.len()) {
            let dir = tempfile::tempdir().unwrap();
            let writer = fixture::writer(dir.path());
            for (arrival, index) in (0..).zip(&order) {
                writer.append(stating(arrival, case.relation, case.stated[*index])).unwrap();
            }
            writer.close().unwrap();
            let reader = Reader::open(dir.path()).unwrap();

            assert_eq!(intervals(&reader, case.relation), case.ever, "{}, arrived as {order:?}", case.name);
            for (minute, expected) in case.at {
                assert_eq!(held(&reader, minutes(*minute)), *expected, "{} in minute {minute}", case.name);
            }
        }
    }
}

#[test]
fn a_stated_end_that_changes_moves_the_end_of_single_and_of_multi_valued_facts() {
    for relation in [ONE, MANY] {
        let dir = tempfile::tempdir().unwrap();
        let writer = fixture::writer(dir.path());

        for end in [None, Some(30), Some(20), None, Some(25)] {
            writer.append(stating(0, relation, ("Kitchen", 10, end))).unwrap();
        }
        writer.close().unwrap();

        assert_eq!(intervals(&Reader::open(dir.path()).unwrap(), relation), [("Kitchen", 10, Some(25))], "{relation}");
    }
}

#[test]
fn a_fact_taken_back_lets_the_one_before_run_on() {
    let dir = tempfile::tempdir().unwrap();
    let writer = fixture::writer(dir.path());
    let later = stating(1, ONE, ("Garden", 20, None));
    writer.append(stating(0, ONE, ("Kitchen", 10, None))).unwrap();
    writer.append(later.clone()).unwrap();

    writer.append(EpisodeRecord { facts: Vec::new(), ..later }).unwrap();
    writer.close().unwrap();

    assert_eq!(intervals(&Reader::open(dir.path()).unwrap(), ONE), [("Kitchen", 10, None)]);
}

/// The store against the pure rule, over random statements in random order.
#[test]
fn the_store_keeps_the_chain_of_the_pure_rule() {
    let mut random = fixture::seeded(4);
    for _ in 0..20 {
        let dir = tempfile::tempdir().unwrap();
        let writer = fixture::writer(dir.path());
        for arrival in 0..25 {
            let from = u32::try_from(random() % 40).unwrap();
            let end = random().is_multiple_of(3).then(|| from + u32::try_from(random() % 20).unwrap());
            let value = ["Kitchen", "Garden", "Office"][usize::try_from(random() % 3).unwrap()];
            // Some arrive again with another start or end.
            writer.append(stating(arrival % 20, ONE, (value, from, end))).unwrap();
        }
        writer.close().unwrap();

        let connection = fixture::connection(dir.path());
        let mut statement = connection
            .prepare("SELECT id, valid_from, stated_to, valid_to FROM kg_edges ORDER BY valid_from, id")
            .unwrap();
        let millis = |value: Option<i64>| value.map(Timestamp::from_millis);
        let rows: Vec<(String, i64, Option<i64>, Option<i64>)> = statement
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        let statements: Vec<_> = rows
            .iter()
            .map(|(id, from, to, _)| Statement {
                id,
                valid_from: Timestamp::from_millis(*from),
                stated_to: millis(*to),
            })
            .collect();
        let expected: Vec<_> = facts::chain_ends(&statements).into_iter().map(|(_, end)| end).collect();
        assert_eq!(rows.iter().map(|row| millis(row.3)).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn what_was_stated_often_is_one_fact_with_its_count_and_its_latest_episode() {
    let dir = tempfile::tempdir().unwrap();
    let writer = fixture::writer(dir.path());
    for (arrival, minute) in (0..).zip([30, 10, 20, 40]) {
        writer.append(stating(arrival, MANY, ("Bob", minute, None))).unwrap();
    }
    writer.close().unwrap();
    let reader = Reader::open(dir.path()).unwrap();

    let found = reader.facts(Some("bob"), Some(minutes(35)), 10).unwrap();

    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!((found[0].times, found[0].valid_from, found[0].last_from), (3, minutes(10), minutes(30)));
    assert_eq!(found[0].source_episode_id, stating(0, MANY, ("Bob", 30, None)).episode.id);
    assert_eq!(reader.facts(Some("bob"), None, 10).unwrap()[0].times, 4);
}

#[test]
fn an_entity_is_found_as_subject_and_as_object_and_the_limit_keeps_the_latest() {
    let dir = tempfile::tempdir().unwrap();
    let writer = fixture::writer(dir.path());
    for (arrival, stated) in (0..).zip([("Kitchen", 10, None), ("Garden", 20, None), ("Office", 30, None)]) {
        writer.append(stating(arrival, ONE, stated)).unwrap();
        writer.append(stating(arrival + 10, MANY, stated)).unwrap();
    }
    writer.close().unwrap();
    let reader = Reader::open(dir.path()).unwrap();
    let ask = |entity: &str, relation: Option<&str>, limit| {
        let query = FactQuery {
            entity: Some(entity.to_owned()),
            relation: relation.map(str::to_owned),
            when: When::Ever,
            limit,
        };
        let found = reader.find_facts(&query).unwrap();
        found.facts.iter().map(|fact| fact.object.text.clone()).collect::<Vec<_>>()
    };

    assert_eq!(ask("GARD", None, 9), ["Garden", "Garden"]);
    assert_eq!(ask("alice", Some(ONE), 2), ["Office", "Garden"]);
    assert_eq!(ask("alice", Some("' OR 1"), 9), Vec::<String>::new());
    let query = FactQuery { entity: Some("Gradne".to_owned()), relation: None, when: When::Ever, limit: 9 };
    let lost = reader.find_facts(&query).unwrap();
    assert_eq!((lost.facts.len(), lost.suggestions), (0, vec!["Garden".to_owned()]));
}

fn minutes(minute: u32) -> Timestamp {
    Timestamp::from_millis(i64::from(minute) * MINUTE_MS)
}

/// Alice's fact, learnt from an episode of its own.
fn stating(arrival: u32, relation: &str, (value, from, to): Stated) -> EpisodeRecord {
    let (subject, object) = (Node::new(NodeKind::Person, "Alice"), Node::new(NodeKind::Location, value));
    let fact = Fact {
        valid_to: to.map(minutes),
        ..Fact::triple(subject, relation, object, format!("Alice {relation} {value}"), minutes(from))
    };
    EpisodeRecord { facts: vec![fact], ..fixture::sound(arrival) }
}

fn intervals(reader: &Reader, relation: &str) -> Vec<Stated> {
    let query = FactQuery { entity: None, relation: Some(relation.to_owned()), when: When::Ever, limit: 100 };
    let minute = |time: Timestamp| u32::try_from(time.as_millis() / MINUTE_MS).unwrap();
    let mut facts = reader.find_facts(&query).unwrap().facts;
    facts.reverse();
    let names = ["Kitchen", "Garden", "Office", "Bob", "Carol", "Dave", "A", "B"];
    let name = |text: &str| names.into_iter().find(|name| *name == text).unwrap();
    facts.iter().map(|fact| (name(&fact.object.text), minute(fact.valid_from), fact.valid_to.map(minute))).collect()
}

fn held(reader: &Reader, at: Timestamp) -> Vec<String> {
    let mut values: Vec<String> =
        reader.facts(Some("Alice"), Some(at), 100).unwrap().into_iter().map(|fact| fact.object.text).collect();
    values.sort();
    values
}

/// As stated, backwards, and each fact last once: a store for every order of four would take its time.
fn orders(count: usize) -> Vec<Vec<usize>> {
    let mut orders = vec![(0..count).collect::<Vec<_>>(), (0..count).rev().collect()];
    for late in 0..count {
        orders.push((0..count).filter(|index| *index != late).chain([late]).collect());
    }
    orders.sort();
    orders.dedup();
    orders
}
