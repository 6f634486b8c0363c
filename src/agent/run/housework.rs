//! Orders that work through the whole store: forgetting, expiry, mending. Each is done a piece at a time.
//!
//! In: an order of the control socket. Out: its answer. What was captured before is committed first.

use super::segment::Segment;
use crate::agent::control::Forget;
use crate::agent::forget;
use crate::agent::forget::Phase;
use crate::agent::forget::Report;
use crate::agent::reconcile;
use crate::domain::time::Clock as _;
use crate::domain::time::ClockQuality;
use crate::domain::time::Stamp;
use crate::memory::forget::Subject;
use crate::memory::removal::PRUNE_ROWS_MAX;
use serde_json::Value;
use serde_json::json;
use std::sync::Arc;

/// How long one request may keep the loop, in milliseconds. Readings wait in their queue meanwhile.
const PIECE_MS: i64 = 1_000;

/// Spans that were forgotten and are remembered, so that what began in them and is still open does not come after all.
pub(super) const SPANS_MAX: usize = 64;

/// Carries out as much of the order as fits into one piece.
pub(super) fn forget(segment: &mut Segment<'_>, wanted: Forget) -> Result<Value, String> {
    let mut order = wanted.order;
    if let Subject::Span { until, .. } = &mut order.subject {
        // What is still to come is nothing to forget.
        *until = (*until).min(segment.resident.clock.utc());
    }
    order.check()?;
    order.known.extend(segment.config.people.iter().map(|person| person.name.clone()));
    settle(segment)?;
    segment.forgotten(&order);
    let order = Arc::new(order);
    let from_ms = segment.resident.clock.monotonic_ms();
    let (mut total, mut next) = (Report::default(), Some(wanted.phase.unwrap_or(Phase::FIRST)));
    while let Some(phase) = next {
        let resident = segment.resident;
        let report = forget::advance(&order, phase, resident.writer, resident.folder).map_err(words)?;
        for moment in &report.store.moments_removed {
            segment.recorder.remove_document(moment);
        }
        next = report.next_phase.clone();
        total.add(report);
        if resident.clock.monotonic_ms() - from_ms >= PIECE_MS {
            break;
        }
    }
    serde_json::to_value(&total).map_err(words)
}

/// Removes expired rows, all that there are.
pub(super) fn prune(segment: &mut Segment<'_>, now: Stamp) -> Result<Value, String> {
    if segment.pipeline.stamp(now).quality == ClockQuality::Unset {
        return Err("the clock is not set, so that nobody knows how old a row is".to_owned());
    }
    settle(segment)?;
    let count = segment.resident.writer.prune_expired(now.utc).map_err(words)?;
    Ok(json!({"removed": count, "is_more": count >= PRUNE_ROWS_MAX}))
}

/// Mends a piece of what documents, rows and media disagree on.
pub(super) fn reconcile(segment: &mut Segment<'_>) -> Result<Value, String> {
    settle(segment)?;
    let resident = segment.resident;
    let mended = reconcile::mend(resident.writer, resident.folder).map_err(words)?;
    serde_json::to_value(&mended).map_err(words)
}

/// Everything captured so far is committed, and no marker waits.
fn settle(segment: &mut Segment<'_>) -> Result<(), String> {
    segment.drain();
    if let Some(trouble) = segment.resident.writer.trouble() {
        return Err(format!("the store cannot take anything at the moment: {trouble}"));
    }
    segment.resident.writer.flush().map_err(words)?;
    segment.recorder.settle();
    Ok(())
}

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}
