//! Finds the rows an order is about, some at a time, in the order of their row numbers.
//!
//! In: a connection, a plan, where to go on. Out: hits with what becomes of each, and where to go on next.
//! A name has no index: every row is read once, one at a time, whatever the size of the store.
//! Never: changes anything.

use crate::memory::forget::Plan;
use crate::memory::forget::ROWS_A_STEP;
use crate::memory::forget::Subject;
use crate::memory::forget::verdict;
use crate::memory::forget::verdict::Edge;
use crate::memory::forget::verdict::Redaction;
use crate::memory::forget::verdict::Roll;
use crate::memory::forget::verdict::Verdict;
use rusqlite::Connection;
use rusqlite::types::Value;

/// People of the graph that are known to a scan, at most.
const KNOWN_PEOPLE_MAX: usize = 20_000;

/// A row the order is about.
#[derive(Debug)]
pub(super) struct Hit {
    pub(super) id: String,
    pub(super) device_id: String,
    pub(super) session_id: String,
    pub(super) modality: String,
    /// `metadata.multimodal_episode_id`.
    pub(super) moment: Option<String>,
    pub(super) content: String,
    /// `None`: it goes.
    pub(super) redaction: Option<Box<Redaction>>,
}

/// What a scan found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) hits: Vec<Hit>,
    /// The row number to go on behind; `None` at the end.
    pub(super) next: Option<i64>,
}

/// Looks at the rows behind `after`, [`ROWS_A_STEP`] at most and until `hits_max` are found.
pub(super) fn scan(connection: &Connection, plan: &Plan<'_>, after: i64, hits_max: usize) -> rusqlite::Result<Found> {
    let (condition, mut values) = condition(&plan.order.subject);
    values.extend([Value::from(after), Value::from(i64::try_from(ROWS_A_STEP).unwrap_or(i64::MAX))]);
    let places = values.len();
    let sql = format!(
        "SELECT row_id, id, device_id, session_id, modality, multimodal_episode_id, content, metadata, source, external_id,
           tool_name FROM episodes WHERE {condition} AND row_id > ?{} ORDER BY row_id LIMIT ?{places}",
        places - 1
    );
    let known = if plan.named.is_some() { roll(connection, &plan.order.known)? } else { Roll::default() };
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(rusqlite::params_from_iter(values))?;
    let (mut hits, mut looked_at) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        let row_id: i64 = row.get(0)?;
        looked_at += 1;
        let hit = Hit {
            id: row.get(1)?,
            device_id: row.get(2)?,
            session_id: row.get(3)?,
            modality: row.get(4)?,
            moment: row.get(5)?,
            content: row.get(6)?,
            redaction: None,
        };
        let verdict = match &plan.named {
            None => Verdict::Goes,
            Some(named) => {
                let row = verdict::Row {
                    modality: hit.modality.clone(),
                    content: hit.content.clone(),
                    metadata: row.get(7)?,
                    source: row.get(8)?,
                    external_id: row.get(9)?,
                    tool_name: row.get(10)?,
                    edges: edges_of(connection, &hit.id)?,
                };
                verdict::judge(&row, named, &known)
            }
        };
        match verdict {
            Verdict::Stays => {}
            Verdict::Goes => hits.push(hit),
            Verdict::Redacted(redaction) => hits.push(Hit { redaction: Some(redaction), ..hit }),
        }
        if hits.len() >= hits_max || looked_at >= ROWS_A_STEP {
            return Ok(Found { hits, next: Some(row_id) });
        }
    }
    Ok(Found { hits, next: None })
}

/// The part of the order that an index or the row itself can answer.
fn condition(subject: &Subject) -> (&'static str, Vec<Value>) {
    match subject {
        Subject::Person(_) | Subject::Place(_) => ("TRUE", Vec::new()),
        Subject::Span { since, until } => (
            "timestamp < ?2 AND (ended_at > ?1 OR timestamp >= ?1)",
            vec![Value::from(since.as_millis()), Value::from(until.as_millis())],
        ),
        Subject::Ids(ids) => {
            let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
            let list = serde_json::to_string(&ids).unwrap_or_default();
            ("id IN (SELECT value FROM json_each(?1))", vec![Value::from(list)])
        }
    }
}

/// The people of the graph, and those the caller knows.
fn roll(connection: &Connection, known: &[String]) -> rusqlite::Result<Roll> {
    let mut statement = connection
        .prepare_cached(&format!("SELECT text FROM kg_nodes WHERE node_type = 'person' LIMIT {KNOWN_PEOPLE_MAX}"))?;
    let names: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(Roll::new(names.into_iter().chain(known.iter().cloned())))
}

fn edges_of(connection: &Connection, id: &str) -> rusqlite::Result<Vec<Edge>> {
    connection
        .prepare_cached(
            "SELECT e.id, s.text, s.node_type, d.text, d.node_type, e.relation, e.fact FROM kg_edges AS e
             JOIN kg_nodes AS s ON s.id = e.src_id JOIN kg_nodes AS d ON d.id = e.dst_id
             WHERE e.source_episode_id = ?1 ORDER BY e.id",
        )?
        .query_map([id], |row| {
            Ok(Edge {
                id: row.get(0)?,
                nodes: [(row.get(1)?, row.get(2)?), (row.get(3)?, row.get(4)?)],
                relation: row.get(5)?,
                fact: row.get(6)?,
            })
        })?
        .collect()
}
