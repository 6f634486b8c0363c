//! A moment that the user asks for while no agent runs: what was given, stored under the exclusive lock.

use crate::agent::clock_source;
use crate::agent::control::Capture;
use crate::agent::identity;
use crate::agent::machine;
use crate::agent::moments;
use crate::agent::moments::MomentFolder;
use crate::agent::pipeline::Product;
use crate::agent::recorder::Recorder;
use crate::config::Loaded;
use crate::domain::episode::Metadata;
use crate::domain::id::BootId;
use crate::domain::id::SessionId;
use crate::domain::id::SourceId;
use crate::domain::time::Clock as _;
use crate::domain::time::LiveClock;
use crate::domain::time::SystemClock;
use crate::episodes::moment::Moment;
use crate::memory::store::Store;
use crate::memory::writer::Writer;

/// Which sensor such a moment is filed under.
const SOURCE: &str = "moment:asked";

/// Stores the moment and says which it is.
///
/// # Errors
/// When the store cannot be had or the row not be committed.
pub fn store(capture: Capture, loaded: &Loaded) -> anyhow::Result<serde_json::Value> {
    let clock = LiveClock::new();
    clock.set_quality(clock_source::quality(clock.wall()));
    let now = clock.stamp();
    let data_dir = loaded.data_dir.as_path();
    let store = Store::open(data_dir, &loaded.open_options("percept capture"))?;
    let owner = identity::Capture {
        device_id: store.identity().device_id.clone(),
        session_id: SessionId::new(uuid::Uuid::new_v4().to_string()),
        boot_id: BootId::new(machine::boot_id()),
        start_is_known: true,
    };
    let writer = Writer::spawn(store, Box::new(SystemClock::new()))?;
    let folder = MomentFolder::new(data_dir);
    moments::reconcile(&folder, &writer)?;
    let moment = Moment {
        person: capture.person,
        transcript: capture.transcript,
        faces: capture.faces,
        text: capture.text,
        ..Moment::default()
    };
    let draft = moment.draft(SourceId::new(SOURCE), now, now, 0, Metadata::new());
    let answer = serde_json::json!({"modality": draft.modality.as_str(), "content": draft.content.clone()});
    let mut recorder = Recorder::new(owner, &writer, &folder);
    recorder.write(Product::Moment(Box::new(draft), Box::new(moment)), |stamp| stamp)?;
    writer.flush()?;
    recorder.settle();
    let id = recorder.last_moment().map(|id| id.to_string());
    writer.close()?;
    let mut answer = answer;
    answer["id"] = id.into();
    Ok(answer)
}
