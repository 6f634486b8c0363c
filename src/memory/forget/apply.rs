//! Carries out what was decided for a row, inside the open transaction.
//!
//! In: a hit. Out: counts, files to remove after the commit, moments whose documents are to follow.
//! A row that goes leaves a tombstone for its id, and one for its moment's where that is another; a redacted row is marked
//! as such, so that no record changes it any more. Summaries made of either go with it and can be made again.

use crate::memory::embedding;
use crate::memory::forget::Plan;
use crate::memory::forget::REDACTED;
use crate::memory::forget::Round;
use crate::memory::forget::Subject;
use crate::memory::forget::held;
use crate::memory::forget::scan::Hit;
use crate::memory::forget::verdict::Redaction;
use crate::memory::graph;
use crate::memory::links;
use crate::memory::media;
use crate::memory::mentions;
use crate::memory::removal;
use crate::memory::revision;
use crate::memory::revision::Context;
use crate::memory::rows;
use crate::memory::tombstones;
use crate::memory::tombstones::Grave;
use rusqlite::Connection;

/// What was done so far.
#[derive(Debug, Default)]
pub(super) struct Applied {
    pub(super) round: Round,
    /// Paths of files to remove after the commit.
    pub(super) unused: Vec<String>,
}

impl Applied {
    /// Carries out one verdict.
    pub(super) fn apply(
        &mut self,
        connection: &Connection,
        context: &Context<'_>,
        plan: &Plan<'_>,
        hit: &Hit,
    ) -> rusqlite::Result<()> {
        // A summary that an earlier hit of this step took along.
        if !exists(connection, &hit.id)? {
            return Ok(());
        }
        let is_span = matches!(plan.order.subject, Subject::Span { .. });
        held::note(connection, (&hit.device_id, &hit.session_id), if is_span { held::ALL } else { &hit.modality })?;
        self.remove_gists(connection, context, hit)?;
        // A moment's own id may be a text with the name in it.
        let is_telling = |moment: &String| plan.named.as_ref().is_some_and(|named| named.name.is_in(moment));
        let moment_tells = hit.moment.as_ref().is_some_and(is_telling);
        match &hit.redaction {
            None => self.remove(connection, context, hit, moment_tells),
            Some(redaction) => self.redact(connection, context, (hit, redaction), moment_tells),
        }
    }

    fn remove(
        &mut self,
        connection: &Connection,
        context: &Context<'_>,
        hit: &Hit,
        moment_tells: bool,
    ) -> rusqlite::Result<()> {
        let count = |sql: &str| -> rusqlite::Result<u64> {
            connection.prepare_cached(sql)?.query_row([&hit.id], |row| row.get::<_, i64>(0)).map(i64::unsigned_abs)
        };
        self.round.facts_removed += count("SELECT count(*) FROM kg_edges WHERE source_episode_id = ?1")?;
        self.round.vectors_removed += count("SELECT count(*) FROM embeddings WHERE episode_id = ?1")?;
        self.round.links_removed += count("SELECT count(*) FROM links WHERE a = ?1 OR b = ?1")?;
        let unused = removal::remove(connection, context, &hit.id)?;
        self.round.media_removed += unused.len() as u64;
        self.unused.extend(unused);
        let grave = Grave { id: &hit.id, kind: "episode", reason: "forgotten", device_id: &hit.device_id };
        tombstones::put(connection, context, grave)?;
        if let Some(moment) = &hit.moment {
            if *moment != hit.id && !moment_tells {
                tombstones::put(connection, context, Grave { id: moment, ..grave })?;
            }
            self.round.moments_removed.push(moment.clone());
        }
        self.round.episodes_removed += 1;
        Ok(())
    }

    fn redact(
        &mut self,
        connection: &Connection,
        context: &Context<'_>,
        (hit, redaction): (&Hit, &Redaction),
        moment_tells: bool,
    ) -> rusqlite::Result<()> {
        let id = hit.id.as_str();
        self.round.facts_removed += graph::remove_some(connection, context, id, &redaction.edges)?;
        self.round.links_removed += links::remove_all_but_co_occurrence(connection, context, id)?;
        self.round.vectors_removed += embedding::remove(connection, id)?;
        let unused = media::remove(connection, id)?;
        self.round.media_removed += unused.len() as u64;
        self.unused.extend(unused);
        connection
            .prepare_cached(
                "UPDATE episodes SET source = ?2, external_id = ?3, tool_name = ?4, content = ?5, metadata = ?6, digest = ?7,
                   stored_at = ?8, revision = ?9 WHERE id = ?1",
            )?
            .execute((
                id,
                &redaction.source,
                &redaction.external_id,
                &redaction.tool_name,
                &redaction.content,
                &redaction.metadata,
                REDACTED,
                context.stored_at.as_millis(),
                revision::next(connection)?,
            ))?;
        // The names that its text still has; a trigger took all of them with the old text.
        if let Some(episode) = rows::load(connection, id)? {
            mentions::put(connection, &episode)?;
        }
        let moments = if moment_tells { &mut self.round.moments_removed } else { &mut self.round.moments_redacted };
        moments.extend(hit.moment.clone());
        self.round.episodes_redacted += 1;
        Ok(())
    }

    /// Summaries that are linked with the row were made of it. Their tombstones let them be made again.
    fn remove_gists(&mut self, connection: &Connection, context: &Context<'_>, hit: &Hit) -> rusqlite::Result<()> {
        let gists: Vec<(String, String)> = connection
            .prepare_cached(
                "SELECT g.id, g.device_id FROM links AS l JOIN episodes AS g ON g.id = CASE l.a WHEN ?1 THEN l.b ELSE l.a END
                 WHERE (l.a = ?1 OR l.b = ?1) AND g.modality = 'gist' AND g.tool_name <> 'task_complete'",
            )?
            .query_map([&hit.id], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<_, _>>()?;
        for (id, device_id) in gists {
            self.unused.extend(removal::remove(connection, context, &id)?);
            let grave = Grave { id: &id, kind: "episode", reason: "replaced", device_id: &device_id };
            tombstones::put(connection, context, grave)?;
            self.round.gists_removed += 1;
        }
        Ok(())
    }
}

fn exists(connection: &Connection, id: &str) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT EXISTS (SELECT 1 FROM episodes WHERE id = ?1)")?.query_row([id], |row| row.get(0))
}
