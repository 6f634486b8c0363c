//! Links between episodes: those that happened together ([`co_occurrence`]) and those that are alike ([`similar`]).
//!
//! In: an episode just stored, changed or about to go. Out: rows of `links`.
//! Both kinds are bounded for each episode and cost a bounded amount of work, however large the store is.

pub mod co_occurrence;
pub mod similar;

use crate::domain::episode::Episode;
use crate::memory::revision::Context;
use rusqlite::Connection;

/// Links an episode that is stored as `episode`, in place of the links it had.
pub(crate) fn relink(connection: &Connection, context: &Context<'_>, episode: &Episode) -> rusqlite::Result<()> {
    co_occurrence::relink(connection, episode)?;
    similar::relink(connection, context, &episode.id.to_string())
}

/// Removes the links that were made of what an episode says or shows. Returns how many there were.
pub(crate) fn remove_all_but_co_occurrence(
    connection: &Connection,
    context: &Context<'_>,
    id: &str,
) -> rusqlite::Result<u64> {
    similar::before_removal(connection, context, id)?;
    let removed = connection
        .prepare_cached("DELETE FROM links WHERE (a = ?1 OR b = ?1) AND reason <> ?2")?
        .execute((id, co_occurrence::CO_OCCURRENCE))?;
    Ok(removed as u64)
}
