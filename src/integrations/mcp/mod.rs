//! The Model Context Protocol, for language model clients: `percept mcp` on standard input and output.
//!
//! ```text
//!  client ─► stdin  ─► [server]: tools, schemas ─► [Backend] (blocking, on a thread of its own) ─► agent or store
//!         ◄─ stdout ◄─
//! ```
//!
//! In: calls of the tools in [`server`], their arguments described in [`params`]. Out: JSON that a model can read, or a
//! sentence that says what is wrong, as the tool's error. Never: a byte on standard output that is not the protocol.

pub mod params;
pub mod server;

use params::CaptureMoment;
use params::Context;
use params::Facts;
use params::MeetPerson;
use params::Recall;
use params::SearchEpisodes;
use serde_json::Map;
use serde_json::Value;

/// A result: an object for the client, or a sentence that says what went wrong and what would help.
pub type Answer = Result<Value, String>;

/// What answers the tools. Calls may come from several threads at once, and may block.
pub trait Backend: Send + Sync + 'static {
    /// Episodes by words and filters; returned ones grow stronger unless the caller only peeks.
    ///
    /// # Errors
    /// A sentence for the client; so for all of them.
    fn search(&self, query: SearchEpisodes) -> Answer;

    /// Episodes by association.
    ///
    /// # Errors
    /// See [`Backend::search`].
    fn recall(&self, query: Recall) -> Answer;

    /// Facts, now or as of an instant.
    ///
    /// # Errors
    /// See [`Backend::search`].
    fn facts(&self, query: Facts) -> Answer;

    /// What is worth knowing now.
    ///
    /// # Errors
    /// See [`Backend::search`].
    fn context(&self, query: Context) -> Answer;

    /// A moment about a person.
    ///
    /// # Errors
    /// See [`Backend::search`].
    fn meet(&self, person: MeetPerson) -> Answer;

    /// A moment of what is noticed now.
    ///
    /// # Errors
    /// See [`Backend::search`].
    fn capture(&self, moment: CaptureMoment) -> Answer;

    /// An episode in the line format of `percept ingest`, unchecked.
    ///
    /// # Errors
    /// See [`Backend::search`].
    fn ingest(&self, line: Map<String, Value>) -> Answer;
}
