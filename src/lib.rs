//! percept: a sensor-capture agent for wearables and Raspberry Pi class boards.
//!
//! ```text
//!  sensors        perception            episodes            memory                sync             central
//!  microphone ─┐  level, 5 bands,   ─┐  one builder per  ─┐ SQLite: episodes,  ─┐ plan, backoff, ─┐ HTTP ingest + query,
//!  camera     ─┤  peaks, YAMNet      ├─ modality; gaps;   ├─ embeddings, graph, ├─ uploader        ├─ SQLite or PostgreSQL,
//!  gps        ─┤  scene, CLIP        │  moments that      │  links, coverage,   │                  │  web timeline
//!  bluetooth  ─┘  stay/trip, presence┘  bind modalities  ─┘  search, recall    ─┘                 ─┘
//! ```
//!
//! Reading → Observation → Episode. Data goes left to right and so do the modules; a module imports
//! only what stands to its left, by the rule that `tests/it/architecture.rs` holds as data:
//!
//! - [`domain`]: the nouns. Imports nothing of ours.
//! - [`sensors`]: where readings come from. Imports `domain`.
//! - [`perception`]: what is in the readings. Imports `domain`.
//! - [`episodes`]: what is worth remembering. Imports `domain`.
//! - [`recall`]: rules of remembering together and finding again. Imports `domain`.
//! - [`memory`]: the store. Imports `domain` and `recall`.
//! - [`integrations`]: protocols of other programs. Imports `domain`, `memory`, `recall`.
//! - [`agent`]: joins them; sees everything. [`config`] puts the stages' settings together.
//! - [`cli`]: one file per command; sees everything.

pub mod agent;
pub mod cli;
pub mod config;
pub mod domain;
pub mod episodes;
pub mod integrations;
pub mod memory;
pub mod perception;
pub mod recall;
pub mod sensors;
pub mod telemetry;
