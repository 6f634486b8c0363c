//! Asking the graph: what holds at an instant, or ever.
//!
//! In: a [`FactQuery`]. Out: facts, latest first.
//!
//! ```text
//! stated      Speech heard_at Kitchen  |->   |->      |->         asked as of T:
//!             Alice located_at Kitchen |-----|                    Speech heard at Kitchen, since the first, 2 times
//!             Alice located_at Garden        |-----T--------->    Alice located at Garden
//! ```
//!
//! As of an instant, statements of one subject, relation and object are one fact, with how often it was stated. Cost: the
//! statements of the entities asked for, or all of them when none is, are counted once in the database; only facts
//! within the limit are read. Never: changes anything.

use crate::domain::fact::Node;
use crate::domain::fact::NodeKind;
use crate::domain::id::EpisodeId;
use crate::domain::time::Timestamp;
use crate::memory::rows;
use crate::recall::entity::Finder;
use rusqlite::Connection;
use rusqlite::Row;
use rusqlite::types::Value;

/// When the facts asked for are to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// At that instant. One later than every statement gives what was last known.
    At(Timestamp),
    /// At any time: each statement by itself, with its interval.
    Ever,
}

/// What facts are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactQuery {
    /// About whom or what, as subject or object; any when `None`. See [`crate::recall::entity`] for what fits.
    pub entity: Option<String>,
    /// Only this relation, letter by letter.
    pub relation: Option<String>,
    /// When they hold.
    pub when: When,
    /// At most so many, the latest.
    pub limit: usize,
}

/// A fact with when it holds.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct StoredFact {
    /// Where the edge starts.
    pub subject: Node,
    /// What it says.
    pub relation: String,
    /// Where it ends; the subject itself for a self edge.
    pub object: Node,
    /// The sentence, as last stated.
    pub fact: String,
    /// From when it holds: the earliest start of the statements that make it hold.
    pub valid_from: Timestamp,
    /// Until when; `None` while it holds without end.
    pub valid_to: Option<Timestamp>,
    /// The latest start of those statements.
    pub last_from: Timestamp,
    /// How many statements make it hold; 1 when each stands for itself.
    pub times: u64,
    /// The episode of the latest statement.
    pub source_episode_id: EpisodeId,
}

/// What a question about facts found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Found {
    /// The facts, latest first.
    pub facts: Vec<StoredFact>,
    /// The entities that fit; empty when none was asked for.
    pub entities: Vec<Node>,
    /// How many entities fit; more than are named when the word is too short.
    pub entities_total: usize,
    /// What may have been meant, when no entity fits.
    pub suggestions: Vec<String>,
}

/// Answers the question.
pub(crate) fn find(connection: &Connection, query: &FactQuery) -> rusqlite::Result<Found> {
    let Some(entity) = &query.entity else {
        return Ok(Found { facts: load(connection, query, None)?, ..Found::default() });
    };
    let finder = entities(connection, entity)?;
    let ids: Vec<i64> = finder.fitting().iter().map(|(id, _)| *id).collect();
    let facts = if ids.is_empty() { Vec::new() } else { load(connection, query, Some(&ids))? };
    Ok(Found {
        facts,
        entities: finder.fitting().iter().map(|(_, node)| node.clone()).collect(),
        entities_total: finder.fitting_total(),
        suggestions: finder.suggestions(),
    })
}

/// The nodes a word fits: every name is looked at, because letters of either case are equal beyond ASCII too.
fn entities(connection: &Connection, wanted: &str) -> rusqlite::Result<Finder<(i64, Node)>> {
    let mut finder = Finder::new(wanted);
    let mut statement = connection.prepare_cached("SELECT id, text, node_type FROM kg_nodes ORDER BY id")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let node = node(row, 1)?;
        let text = node.text.clone();
        finder.look_at(&text, (row.get(0)?, node));
    }
    Ok(finder)
}

fn load(connection: &Connection, query: &FactQuery, nodes: Option<&[i64]>) -> rusqlite::Result<Vec<StoredFact>> {
    let mut values = vec![Value::from(i64::try_from(query.limit).unwrap_or(i64::MAX))];
    let mut conditions = Vec::new();
    if let Some(nodes) = nodes {
        let ids = nodes.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
        conditions.push(format!("(e.src_id IN ({ids}) OR e.dst_id IN ({ids}))"));
    }
    if let Some(relation) = &query.relation {
        values.push(Value::from(relation.clone()));
        conditions.push(format!("e.relation = ?{}", values.len()));
    }
    if let When::At(at) = query.when {
        values.push(Value::from(at.as_millis()));
        let at = values.len();
        conditions.push(format!("e.valid_from <= ?{at} AND (e.valid_to IS NULL OR e.valid_to > ?{at})"));
    }
    let conditions = if conditions.is_empty() { String::new() } else { format!("WHERE {}", conditions.join(" AND ")) };
    let sql = match query.when {
        When::Ever => each(&conditions),
        When::At(_) => grouped(&conditions),
    };
    connection.prepare(&sql)?.query_map(rusqlite::params_from_iter(values), read)?.collect()
}

/// Every statement by itself.
fn each(conditions: &str) -> String {
    format!(
        "SELECT s.text, s.node_type, e.relation, d.text, d.node_type, e.fact, e.valid_from, e.valid_to, e.valid_from, 1,
           e.source_episode_id
         FROM (SELECT * FROM kg_edges AS e {conditions} ORDER BY e.valid_from DESC, e.id DESC LIMIT ?1) AS e
         JOIN kg_nodes AS s ON s.id = e.src_id JOIN kg_nodes AS d ON d.id = e.dst_id
         ORDER BY e.valid_from DESC, e.id DESC"
    )
}

/// One row for each subject, relation and object. The sentence is that of the latest statement, the one with the greatest
/// id when several begin at once: SQLite takes bare columns from the row of the one `max`.
fn grouped(conditions: &str) -> String {
    format!(
        "SELECT s.text, s.node_type, g.relation, d.text, d.node_type, e.fact, g.first, g.end, g.last, g.times,
           e.source_episode_id, max(e.id)
         FROM (SELECT e.src_id, e.relation, e.dst_id, min(e.valid_from) AS first, max(e.valid_from) AS last,
                 count(*) AS times, CASE WHEN count(e.valid_to) = count(*) THEN max(e.valid_to) END AS end
               FROM kg_edges AS e {conditions} GROUP BY e.src_id, e.relation, e.dst_id
               ORDER BY last DESC, e.src_id, e.relation, e.dst_id LIMIT ?1) AS g
         JOIN kg_edges AS e ON e.src_id = g.src_id AND e.relation = g.relation AND e.valid_from = g.last
           AND e.dst_id = g.dst_id
         JOIN kg_nodes AS s ON s.id = g.src_id JOIN kg_nodes AS d ON d.id = g.dst_id
         GROUP BY g.src_id, g.relation, g.dst_id ORDER BY g.last DESC, s.text, g.relation, d.text"
    )
}

fn read(row: &Row<'_>) -> rusqlite::Result<StoredFact> {
    Ok(StoredFact {
        subject: node(row, 0)?,
        relation: row.get(2)?,
        object: node(row, 3)?,
        fact: row.get(5)?,
        valid_from: Timestamp::from_millis(row.get(6)?),
        valid_to: row.get::<_, Option<i64>>(7)?.map(Timestamp::from_millis),
        last_from: Timestamp::from_millis(row.get(8)?),
        times: row.get::<_, i64>(9)?.unsigned_abs(),
        source_episode_id: rows::named(row, 10, |id| EpisodeId::parse(id).ok())?,
    })
}

/// A node whose text and type stand in this column and the next.
fn node(row: &Row<'_>, column: usize) -> rusqlite::Result<Node> {
    let kind: String = row.get(column + 1)?;
    Ok(Node { text: row.get(column)?, kind: NodeKind::parse(&kind) })
}

#[cfg(test)]
#[path = "tests/facts.rs"]
mod tests;
