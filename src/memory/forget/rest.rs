//! Takes a name out of what stands beside rows: coverage, sessions' own names, nodes without edges.
//!
//! In: a name. Out: counts, and where the name has to stay. Inside the open transaction; small tables, one step.
//!
//! A session that is called by the name gets a number in its place, derived from what it was called, so that replaying it
//! again is known for what it is (see [`renamed`]).

use crate::domain::id::derive_uuid;
use crate::memory::forget::Round;
use crate::memory::forget::verdict::Named;
use crate::memory::revision;
use crate::memory::revision::Context;
use rusqlite::Connection;

/// What a session is called once its own name was forgotten.
pub(crate) fn renamed(device_id: &str, session_id: &str) -> String {
    derive_uuid(&["forgotten session", device_id, session_id]).to_string()
}

/// Carries it out.
pub(super) fn redact(connection: &Connection, context: &Context<'_>, named: &Named) -> rusqlite::Result<Round> {
    let mut round = Round {
        coverage_redacted: coverage(connection, context, named)?,
        sessions_renamed: sessions(connection, named)?,
        ..Round::default()
    };
    nodes(connection, named)?;
    let device: String = connection.query_row("SELECT device_id FROM store", [], |row| row.get(0))?;
    if named.name.is_in(&device) {
        round
            .left
            .push("the device id of the store, which every row is known by: use another data directory".to_owned());
    }
    Ok(round)
}

fn coverage(connection: &Connection, context: &Context<'_>, named: &Named) -> rusqlite::Result<u64> {
    let mut statement = connection.prepare("SELECT id, sensor, detail FROM coverage")?;
    let mut rows = statement.query([])?;
    let mut changes = Vec::new();
    while let Some(row) = rows.next()? {
        let (sensor, detail): (String, Option<String>) = (row.get(1)?, row.get(2)?);
        let new_detail = detail.as_deref().and_then(|detail| named.redacted(detail));
        let new_sensor = named.redacted(&sensor);
        if new_sensor.is_some() || new_detail.is_some() {
            changes.push((row.get::<_, String>(0)?, new_sensor.unwrap_or(sensor), new_detail.or(detail)));
        }
    }
    for (id, sensor, detail) in &changes {
        connection
            .prepare_cached(
                "UPDATE coverage SET sensor = ?2, detail = ?3, stored_at = ?4, revision = ?5 WHERE id = ?1",
            )?
            .execute((id, sensor, detail, context.stored_at.as_millis(), revision::next(connection)?))?;
    }
    Ok(changes.len() as u64)
}

fn sessions(connection: &Connection, named: &Named) -> rusqlite::Result<u64> {
    let all: Vec<(String, String)> = connection
        .prepare(
            "SELECT device_id, session_id FROM sessions UNION SELECT device_id, session_id FROM episodes
             UNION SELECT device_id, session_id FROM coverage",
        )?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    let telling: Vec<(String, String)> = all.into_iter().filter(|(_, session)| named.name.is_in(session)).collect();
    for (device, session) in &telling {
        let number = renamed(device, session);
        connection.execute(
            "UPDATE sessions SET session_id = ?3 WHERE device_id = ?1 AND session_id = ?2",
            (device, session, &number),
        )?;
        for table in ["episodes", "coverage"] {
            rename_rows(connection, table, (device, session), &number)?;
        }
        connection.execute(
            "UPDATE clock_corrections SET scope_id = ?3 WHERE device_id = ?1 AND scope = 'session' AND scope_id = ?2",
            (device, session, &number),
        )?;
    }
    Ok(telling.len() as u64)
}

/// Each row is a change that central has to hear of.
fn rename_rows(
    connection: &Connection,
    table: &str,
    (device, session): (&str, &str),
    number: &str,
) -> rusqlite::Result<()> {
    let ids: Vec<String> = connection
        .prepare(&format!("SELECT id FROM {table} WHERE device_id = ?1 AND session_id = ?2"))?
        .query_map((device, session), |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let mut rename = connection.prepare(&format!("UPDATE {table} SET session_id = ?2, revision = ?3 WHERE id = ?1"))?;
    for id in &ids {
        rename.execute((id, number, revision::next(connection)?))?;
    }
    Ok(())
}

/// Nodes go with their last edge; one that another program left behind goes here.
fn nodes(connection: &Connection, named: &Named) -> rusqlite::Result<()> {
    let mut statement = connection.prepare("SELECT id, text, node_type FROM kg_nodes")?;
    let mut rows = statement.query([])?;
    let mut telling = Vec::new();
    while let Some(row) = rows.next()? {
        let (text, kind): (String, String) = (row.get(1)?, row.get(2)?);
        if named.name.is_in(&text) || named.name.is_in(&kind) {
            telling.push(row.get::<_, i64>(0)?);
        }
    }
    for id in telling {
        connection
            .prepare_cached(
                "DELETE FROM kg_nodes WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM kg_edges WHERE src_id = ?1)
                   AND NOT EXISTS (SELECT 1 FROM kg_edges WHERE dst_id = ?1)",
            )?
            .execute([id])?;
    }
    Ok(())
}
