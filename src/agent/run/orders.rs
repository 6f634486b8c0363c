//! Orders of the control socket and of signals, as the loop carries them out.

use super::SegmentEnd;
use super::housework;
use super::segment::Segment;
use crate::agent::control::Action;
use crate::agent::control::Capture;
use crate::agent::ingest;
use crate::agent::ingest::Intake;
use crate::agent::ingest::LineReport;
use crate::domain::id::SensorKind;
use crate::domain::time::Stamp;
use crate::episodes::moment::Moment;
use serde_json::Value;
use serde_json::json;

/// Orders carried out in one turn.
const ORDERS_A_TURN: usize = 4;

/// Carries out what waits. A reload that succeeds ends the segment.
pub(super) fn take(segment: &mut Segment<'_>, now: Stamp) -> Option<SegmentEnd> {
    for _ in 0..ORDERS_A_TURN {
        let Ok(order) = segment.resident.orders.try_recv() else { break };
        let (answer, end) = match order.action {
            Action::Mute(mute) => (Ok(set_muted(segment, &mute.kinds(), true, mute.for_ms, now)), None),
            Action::Unmute(mute) => (Ok(set_muted(segment, &mute.kinds(), false, None, now)), None),
            Action::Capture(capture) => (self::capture(segment, capture, now), None),
            Action::Ingest(body) => (take_in(segment, &body), None),
            Action::Gist(asked) => {
                segment.housekeeping.gists.ask(&asked, order.reply);
                continue;
            }
            Action::Forget(wanted) => (housework::forget(segment, *wanted), None),
            Action::Prune => (housework::prune(segment, now), None),
            Action::Reconcile => (housework::reconcile(segment), None),
            Action::Reload => reload(segment),
        };
        // An asker that has gone away needs no answer.
        let _ = order.reply.send(answer);
        if end.is_some() {
            return end;
        }
    }
    if segment.resident.signals.take_reload() {
        return reload(segment).1;
    }
    None
}

fn set_muted(
    segment: &mut Segment<'_>,
    kinds: &[SensorKind],
    is_muted: bool,
    for_ms: Option<i64>,
    now: Stamp,
) -> Value {
    let mutes = segment.housekeeping.mutes();
    if is_muted {
        mutes.mute(kinds, for_ms.map(|for_ms| now.monotonic_ms.saturating_add(for_ms)));
    } else {
        mutes.unmute(kinds);
    }
    let due = segment.apply_mutes(now);
    json!({ "muted": due })
}

/// The moment is committed before the answer.
fn capture(segment: &mut Segment<'_>, capture: Capture, now: Stamp) -> Result<Value, String> {
    let added = Moment {
        person: capture.person,
        transcript: capture.transcript,
        faces: capture.faces,
        text: capture.text,
        ..Moment::default()
    };
    segment.pipeline.capture(now, added);
    segment.drain();
    if let Some(trouble) = segment.resident.writer.trouble() {
        return Err(format!("the moment waits, because the store cannot take it: {trouble}"));
    }
    segment.resident.writer.flush().map_err(|error| error.to_string())?;
    segment.recorder.settle();
    let last = segment.last_episode.as_ref();
    Ok(json!({
        "modality": last.map(|episode| episode.modality.clone()),
        "content": last.map(|episode| episode.content.clone()),
        "id": segment.recorder.last_moment().map(|id| id.to_string()),
    }))
}

/// The lines are committed before the answer: one report for each.
fn take_in(segment: &mut Segment<'_>, body: &[u8]) -> Result<Value, String> {
    let resident = segment.resident;
    if let Some(trouble) = resident.writer.trouble() {
        return Err(format!("the store cannot take it: {trouble}"));
    }
    let recorder = &mut segment.recorder;
    let note = |id, sentence| {
        recorder.note_sentence(id, sentence);
        Ok(())
    };
    let mut intake =
        Intake::new(resident.writer, resident.folder, resident.data_dir, note).map_err(|error| error.to_string())?;
    let mut reports: Vec<LineReport> = Vec::new();
    let mut tell = |report: &LineReport, _: u64| reports.push(report.clone());
    ingest::feed(body, &mut intake, &mut tell).map_err(|error| format!("{error:#}"))?;
    Ok(json!({ "lines": reports }))
}

/// The new config counts only when it is right as a whole; else the old one stays and the cause is told.
fn reload(segment: &Segment<'_>) -> (Result<Value, String>, Option<SegmentEnd>) {
    let loaded = match (segment.resident.options.reload)() {
        Ok(loaded) => loaded,
        Err(error) => return keep_old(format!("{error:#}")),
    };
    if loaded.data_dir != segment.resident.data_dir {
        let other = loaded.data_dir.display();
        return keep_old(format!("store.data_dir is now {other}: another store needs a restart"));
    }
    (Ok(json!({"reloaded": true})), Some(SegmentEnd::Reload(Box::new(loaded))))
}

fn keep_old(cause: String) -> (Result<Value, String>, Option<SegmentEnd>) {
    tracing::error!("the config stays as it was: {cause}");
    (Err(cause), None)
}
