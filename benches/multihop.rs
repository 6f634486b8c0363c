//! Multi-hop recall: how much of what answers a question is among the first episodes, for each way to ask.
//!
//! `scripts/bench_recall.sh` makes the store with `percept ingest` and runs this on it. One line per method,
//! `NAME R@2 = x R@5 = y R@10 = z` in per cent over all questions; below, the halves: constants were found on the first one.
//!
//! | method | what |
//! |---|---|
//! | `bm25` | FTS5 as the store has it, any word of the question |
//! | `search` | `percept search` |
//! | `pagerank` | the walk of recall alone, without the fit of words at the end |
//! | `recall` | `percept recall` |

#![expect(clippy::expect_used, reason = "a benchmark that cannot run has nothing to print")]

use jiff::tz::TimeZone;
use percept::domain::time::Timestamp;
use percept::memory::query::EpisodeFilter;
use percept::memory::query::StoredEpisode;
use percept::memory::reader::Reader;
use percept::memory::recall::RecallQuery;
use percept::memory::search::SearchQuery;
use percept::memory::similarity::Similarity;
use percept::recall::pagerank;
use percept::recall::score;
use rusqlite::Connection;
use rusqlite::OpenFlags;
use std::collections::BTreeMap;
use std::path::Path;
use std::path::PathBuf;

/// Places at which found episodes are counted.
const CUTS: [usize; 3] = [2, 5, 10];

/// When the questions are asked: long after the passages, which all have one age then.
const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

/// A question, and the external ids of the passages that answer it.
#[derive(serde::Deserialize)]
struct Question {
    question: String,
    supporting: Vec<String>,
}

/// A name and the ids it finds for a question, the best first.
type Method<'a> = (&'static str, Box<dyn FnMut(&str) -> Vec<String> + 'a>);

#[expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
fn main() {
    let folder = PathBuf::from(std::env::var_os("PERCEPT_BENCH_MULTIHOP").expect("scripts/bench_recall.sh runs this"));
    let store = folder.join("store");
    let lines = std::fs::read_to_string(folder.join("questions.jsonl")).expect("the questions");
    let questions: Vec<Question> = lines.lines().map(|line| serde_json::from_str(line).expect("a question")).collect();
    let mut halves = Vec::new();
    for (name, mut find) in methods(&store) {
        let shares: Vec<[f64; 3]> =
            questions.iter().map(|question| shares(&find(&question.question), &question.supporting)).collect();
        let (first, other) = shares.split_at(shares.len() / 2);
        println!("{name} {}", line(&shares));
        halves.push(format!("  first half: {name} {}", line(first)));
        halves.push(format!("  other half: {name} {}", line(other)));
    }
    halves.sort();
    println!("{}", halves.join("\n"));
}

fn methods(store: &Path) -> Vec<Method<'_>> {
    let recollect = |by_rank: bool| {
        let (reader, mut similarity) = (Reader::open(store).expect("the store"), Similarity::open(store));
        move |text: &str| {
            let mut found = reader.recollect(&mut similarity, &recall_query(text)).expect("a recall").found;
            if by_rank {
                found.sort_by(|one, other| other.rank.total_cmp(&one.rank));
            }
            found.iter().map(|one| id(&one.episode)).collect()
        }
    };
    let (reader, mut similarity) = (Reader::open(store).expect("the store"), Similarity::open(store));
    let search = move |text: &str| -> Vec<String> {
        let hits = reader.search(&mut similarity, &search_query(text)).expect("a search");
        hits.iter().map(|hit| id(&hit.episode)).collect()
    };
    let database =
        Connection::open_with_flags(store.join("memory.db"), OpenFlags::SQLITE_OPEN_READ_ONLY).expect("the database");
    vec![
        ("bm25", Box::new(move |text| by_words(&database, text))),
        ("search", Box::new(search)),
        ("pagerank", Box::new(recollect(true))),
        ("recall", Box::new(recollect(false))),
    ]
}

fn recall_query(text: &str) -> RecallQuery {
    RecallQuery {
        text: text.to_owned(),
        vectors: Vec::new(),
        marks: score::Config::default(),
        filter: EpisodeFilter::default(),
        now: NOW,
        time_zone: TimeZone::UTC,
        limit: percept::memory::recall::LIMIT_MAX,
        damping: pagerank::DAMPING_DEFAULT,
    }
}

fn search_query(text: &str) -> SearchQuery {
    SearchQuery {
        text: Some(text.to_owned()),
        vectors: Vec::new(),
        filter: EpisodeFilter::default(),
        without: None,
        limit: 10,
        now: NOW,
        marks: score::Config::default(),
        raised: BTreeMap::new(),
    }
}

fn by_words(database: &Connection, text: &str) -> Vec<String> {
    let words: Vec<String> = text
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(|word| format!("\"{word}\""))
        .collect();
    database
        .prepare_cached(
            "SELECT e.external_id FROM episodes_fts AS f JOIN episodes AS e ON e.row_id = f.rowid
             WHERE episodes_fts MATCH ?1 ORDER BY bm25(episodes_fts), f.rowid LIMIT 10",
        )
        .expect("the full text")
        .query_map([words.join(" OR ")], |row| row.get(0))
        .expect("a match")
        .collect::<Result<_, _>>()
        .expect("ids")
}

fn id(stored: &StoredEpisode) -> String {
    stored.episode.external_id.as_ref().map(ToString::to_string).unwrap_or_default()
}

/// The share of `wanted` among the first of `found`, at each cut.
#[expect(clippy::cast_precision_loss, reason = "counts of a handful")]
fn shares(found: &[String], wanted: &[String]) -> [f64; 3] {
    CUTS.map(|cut| {
        let hits = wanted.iter().filter(|id| found.iter().take(cut).any(|one| one == *id)).count();
        hits as f64 / wanted.len() as f64
    })
}

/// `R@2 = x R@5 = y R@10 = z`.
#[expect(clippy::cast_precision_loss, reason = "a hundred questions")]
fn line(shares: &[[f64; 3]]) -> String {
    let mean = |place: usize| 100.0 * shares.iter().map(|share| share[place]).sum::<f64>() / shares.len() as f64;
    let parts: Vec<String> =
        CUTS.iter().enumerate().map(|(place, cut)| format!("R@{cut} = {:.1}", mean(place))).collect();
    parts.join(" ")
}
