//! What comes to mind, in small stores.

use super::*;
use crate::domain::episode::EpisodeRecord;
use crate::domain::fact::Fact;
use crate::domain::fact::Node;
use crate::domain::fact::NodeKind;
use crate::memory::fixture;
use crate::memory::reader::Reader;
use crate::recall::pagerank::Edge;
use crate::recall::seeds::Why;
use proptest::prelude::*;

#[test]
fn what_is_two_steps_away_comes_before_what_only_shares_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut bridge = text(10, "The workshop belongs to Ann Lee");
    bridge.facts = vec![fact("Workshop", "belongs to", "Ann Lee")];
    let mut far = text(2_000, "A bicycle was repaired");
    far.facts = vec![fact("Ann Lee", "repaired", "bicycle")];
    let other = text(4_000, "Rain all day");
    fill(dir.path(), &[bridge, far, other]);

    let found = recall(dir.path(), "What happened in the workshop?").found;

    let contents: Vec<&str> = found.iter().map(|one| one.episode.episode.content.as_str()).collect();
    assert_eq!(contents, ["The workshop belongs to Ann Lee", "A bicycle was repaired"]);
    assert!(found[1].rank > 0.0 && found[1].words == 0.0);
}

#[test]
fn who_i_met_yesterday_is_exactly_the_social_episodes_of_the_local_day() {
    // (zone, now, first and last moment of yesterday): an ordinary day in two zones, and both changes of summer time.
    let cases = [
        ("Europe/Berlin", "2026-05-02T10:00:00+02:00", "2026-05-01T00:00:00+02:00", "2026-05-01T23:59:59+02:00"),
        ("America/Los_Angeles", "2026-05-02T23:30:00-07:00", "2026-05-01T00:00:00-07:00", "2026-05-01T23:59:59-07:00"),
        ("Europe/Berlin", "2026-03-30T08:00:00+02:00", "2026-03-29T00:00:00+01:00", "2026-03-29T23:59:59+02:00"),
        ("America/Los_Angeles", "2026-11-02T08:00:00-08:00", "2026-11-01T00:00:00-07:00", "2026-11-01T23:59:59-08:00"),
    ];
    for (zone, now, first, last) in cases {
        let dir = tempfile::tempdir().unwrap();
        let (first, last) = (Timestamp::parse(first).unwrap(), Timestamp::parse(last).unwrap());
        let social = |time: Timestamp, name: &str| at(time, Modality::Social, &format!("Met {name}"));
        fill(
            dir.path(),
            &[
                social(first.plus_millis(-1), "before"),
                social(first, "Ann"),
                social(first.plus_millis(9 * 3_600_000), "Bob"),
                at(first.plus_millis(9 * 3_600_000), Modality::Audio, "Speech, who I met yesterday"),
                at(first.plus_millis(60_000), Modality::Text, "I met nobody yesterday"),
                social(last, "Carl"),
                social(last.plus_millis(1_000), "after"),
            ],
        );
        let query = RecallQuery {
            now: Timestamp::parse(now).unwrap(),
            time_zone: TimeZone::get(zone).unwrap(),
            ..question("Who did I meet yesterday?")
        };

        let recollection = ask(dir.path(), &query);

        let contents: Vec<&str> = recollection.found.iter().map(|one| one.episode.episode.content.as_str()).collect();
        assert_eq!(contents, ["Met Carl", "Met Bob", "Met Ann"], "{zone}, {now}");
        assert_eq!((recollection.modality, recollection.seeds.len()), (Some(Modality::Social), 0));
    }
}

#[test]
fn a_year_in_which_nothing_was_captured_is_part_of_the_question() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), &[text(5, "The treaty of 1648 ended the war"), text(9, "The treaty of 1713")]);

    let recollection = recall(dir.path(), "Which treaty was signed in 1648?");

    assert_eq!(recollection.found[0].episode.episode.content, "The treaty of 1648 ended the war");
    assert!(recollection.spans.is_empty());
}

#[test]
fn filters_come_before_the_limit_and_nothing_known_finds_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut records: Vec<EpisodeRecord> = (0..300)
        .map(|minute| {
            let mut record = text(minute, &format!("Note {minute} about Ann"));
            record.facts = vec![fact("Ann", "wrote", &format!("note {minute}"))];
            record
        })
        .collect();
    records.push(at(Timestamp::from_millis(150 * fixture::MINUTE_MS), Modality::Visual, "A picture of Ann"));
    fill(dir.path(), &records);
    let pictures = EpisodeFilter { modalities: vec![Modality::Visual], ..EpisodeFilter::default() };

    let found = ask(dir.path(), &RecallQuery { filter: pictures, limit: 1, ..question("Ann") }).found;

    assert_eq!(found.iter().map(|one| one.episode.episode.content.as_str()).collect::<Vec<_>>(), ["A picture of Ann"]);
    assert!(recall(dir.path(), "zeppelin").found.is_empty());
    assert_eq!(ask(dir.path(), &RecallQuery { limit: 7, ..question("") }).found.len(), 7, "the newest");
}

#[test]
fn bad_questions_are_answered_or_refused_in_words() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), &[text(1, "Ann")]);
    let reader = Reader::open(dir.path()).unwrap();
    let mut similarity = Similarity::open(dir.path());
    let megabyte = "Ann AND \"NEAR( * ".repeat(70_000);
    for text in
        [megabyte.as_str(), "\"*()^:-", "'; DROP TABLE episodes; --", "\u{0}", "who", "ä".repeat(20_000).as_str()]
    {
        assert!(reader.recall(&mut similarity, &question(text)).is_ok(), "{}", &text[..text.len().min(12)]);
    }

    let refused = reader.recall(&mut similarity, &RecallQuery { damping: 1.0, ..question("Ann") }).unwrap_err();

    assert!(refused.to_string().contains("damping of 1 is outside of 0 to 0.99"), "{refused}");
}

#[test]
fn recall_changes_no_strength() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), &[text(1, "Ann")]);

    for _ in 0..3 {
        assert_eq!(recall(dir.path(), "Ann").found.len(), 1);
    }

    let strength: f64 =
        fixture::connection(dir.path()).query_row("SELECT strength FROM strength", [], |row| row.get(0)).unwrap();
    assert_eq!(strength.to_bits(), 1.0_f64.to_bits());
}

#[test]
fn a_name_under_which_nobody_knows_it_is_found_by_its_part() {
    let dir = tempfile::tempdir().unwrap();
    let mut known = text(10, "Friedrich Hayek studied at the University of Vienna");
    known.facts = vec![fact("Friedrich Hayek", "studied at", "University of Vienna")];
    let mut far = text(2_000, "Its botanical garden was opened by an empress");
    far.facts = vec![fact("University of Vienna", "owns", "botanical garden")];
    fill(dir.path(), &[known, far, text(4_000, "A garden in the rain")]);

    let recollection = recall(dir.path(), "Which garden belongs to the school where Hayek studied?");

    let seeds: Vec<&Why> = recollection.seeds.iter().map(|seed| &seed.why).collect();
    assert_eq!(seeds, [&Why::Named("friedrich hayek".to_owned())]);
    let contents: Vec<&str> = recollection.found.iter().map(|one| one.episode.episode.content.as_str()).collect();
    assert_eq!(contents[1], "Its botanical garden was opened by an empress", "{contents:?}");
}

#[test]
fn what_the_walk_does_not_reach_comes_by_its_words_before_what_is_merely_near() {
    let dir = tempfile::tempdir().unwrap();
    let mut records: Vec<EpisodeRecord> = (0..60)
        .map(|number| {
            let mut record = text(number * 60, &format!("Meeting {number}"));
            record.facts = vec![fact(&format!("Person {number}"), "met", &format!("Person {}", number + 1))];
            record
        })
        .collect();
    records.push(text(9_000, "The spare key hangs behind the blue door"));
    fill(dir.path(), &records);

    let found = recall(dir.path(), "Does Person 1 know where the spare key hangs?").found;

    let place = found.iter().position(|one| one.rank == 0.0).unwrap();
    assert!((1..8).contains(&place), "place {place}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// The walk over rows gives what PageRank gives on the graph that the tables hold.
    #[test]
    fn ranks_are_those_of_the_graph_in_the_store(
        episodes in prop::collection::vec((0_u32..40, 0_usize..5, 0_usize..5), 2..25),
        damping in prop::sample::select(vec![0.1, 0.5, 0.85]),
    ) {
        const NAMES: [&str; 5] = ["Ann", "Bob", "Carl", "Dora", "Emil"];
        let dir = tempfile::tempdir().unwrap();
        let modalities = [Modality::Audio, Modality::Visual, Modality::Social];
        let records: Vec<EpisodeRecord> = episodes
            .iter()
            .enumerate()
            .map(|(number, (second, subject, object))| {
                let time = Timestamp::from_millis(i64::from(*second) * 1_000 + i64::try_from(number).unwrap());
                let mut record = at(time, modalities[number % 3], &format!("{} was here", NAMES[(subject + 1) % 5]));
                record.facts = vec![fact(NAMES[*subject], "met", NAMES[*object])];
                record
            })
            .collect();
        fill(dir.path(), &records);

        let query = RecallQuery { limit: 100, damping, ..question(&format!("{}?", NAMES[episodes[0].1])) };
        let recollection = ask(dir.path(), &query);

        let wanted = by_tables(&fixture::connection(dir.path()), &recollection, damping);
        prop_assert!(recollection.is_whole && !recollection.found.is_empty());
        for one in &recollection.found {
            let wanted = wanted[&one.episode.episode.id.to_string()];
            prop_assert!((one.rank - wanted).abs() < 1e-7, "{} instead of {wanted}", one.rank);
        }
    }
}

/// PageRank on all rows of the three tables. What was not recalled fits nothing.
fn by_tables(connection: &Connection, recollection: &Recollection, damping: f64) -> BTreeMap<String, f64> {
    let rows: Vec<(String, String, f64)> = connection
        .prepare(
            "SELECT a, b, max(0.05, score) FROM links
             UNION ALL SELECT episode_id, 'name ' || name_id, CASE is_fact WHEN 1 THEN 1.0 ELSE 0.25 END FROM mentions
             UNION ALL SELECT 'name ' || a, 'name ' || b, 0.6 * facts FROM ties",
        )
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    let factors: BTreeMap<String, f64> = recollection
        .found
        .iter()
        .map(|one| (one.episode.episode.id.to_string(), 1.0 + 10.0 * one.words * one.words))
        .collect();
    let mut numbers: BTreeMap<String, u32> = BTreeMap::new();
    let mut number = |name: &str| {
        let next = u32::try_from(numbers.len()).unwrap();
        *numbers.entry(name.to_owned()).or_insert(next)
    };
    let edges: Vec<Edge> = rows
        .iter()
        .map(|(one, other, weight)| {
            let both = match (factors.get(one), factors.get(other)) {
                (Some(one), Some(other)) => (one * other).sqrt(),
                (one, other) => one.or(other).copied().unwrap_or(1.0),
            };
            Edge { one: number(one), other: number(other), weight: weight * both }
        })
        .collect();
    let seeds: Vec<(u32, f64)> = recollection
        .seeds
        .iter()
        .map(|seed| match seed.place {
            Place::Name(name_id) => (number(&format!("name {name_id}")), seed.weight),
            Place::Episode(id) => (number(&id.to_string()), seed.weight),
        })
        .collect();
    let ranks = pagerank::rank(&Graph::new(numbers.len(), &edges), &seeds, damping).unwrap();
    numbers.into_iter().map(|(name, number)| (name, ranks[number as usize])).collect()
}

fn fill(dir: &Path, records: &[EpisodeRecord]) {
    let writer = fixture::writer(dir);
    for record in records {
        writer.append(record.clone()).unwrap();
    }
    writer.flush().unwrap();
}

fn recall(dir: &Path, text: &str) -> Recollection {
    ask(dir, &question(text))
}

fn ask(dir: &Path, query: &RecallQuery) -> Recollection {
    Reader::open(dir).unwrap().recollect(&mut Similarity::open(dir), query).unwrap()
}

fn question(text: &str) -> RecallQuery {
    RecallQuery {
        text: text.to_owned(),
        vectors: Vec::new(),
        marks: score::Config::default(),
        filter: EpisodeFilter::default(),
        now: Timestamp::parse("2026-05-02T10:00:00Z").unwrap(),
        time_zone: TimeZone::UTC,
        limit: 10,
        damping: pagerank::DAMPING_DEFAULT,
    }
}

fn text(minute: u32, content: &str) -> EpisodeRecord {
    at(Timestamp::from_millis(i64::from(minute) * fixture::MINUTE_MS), Modality::Text, content)
}

fn at(time: Timestamp, modality: Modality, content: &str) -> EpisodeRecord {
    let mut record = fixture::episode(0, modality);
    let external = crate::domain::id::ExternalId::new(format!("{} {} {content}", time.as_millis(), modality.as_str()));
    record.episode.id = EpisodeId::of_external(&record.episode.device_id, &external);
    record.episode.external_id = Some(external);
    record.episode.timestamp = time;
    record.episode.ended_at = time;
    record.episode.monotonic_ms = time.as_millis();
    record.episode.content = content.to_owned();
    record
}

fn fact(subject: &str, relation: &str, object: &str) -> Fact {
    let node = |text: &str| Node::new(NodeKind::Other("thing".to_owned()), text);
    Fact::triple(node(subject), relation, node(object), String::new(), Timestamp::from_millis(0))
}
