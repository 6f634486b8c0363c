//! The tools as the protocol shows them, and their way to the backend.
//!
//! In: tool calls. Out: the backend's object as text and as structured content, or its sentence as the tool's error, which
//! a model can read and mend. Wrong arguments are such an error too, not one of the protocol.
//! At most [`CALLS_MAX`] calls are with the backend at once; the others wait.

use super::Answer;
use super::Backend;
use super::params::CaptureMoment;
use super::params::Context;
use super::params::Facts;
use super::params::IngestEpisode;
use super::params::MeetPerson;
use super::params::Recall;
use super::params::SearchEpisodes;
use rmcp::ServerHandler;

use rmcp::handler::server::common::schema_for_type;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::model::CallToolResult;
use rmcp::model::ContentBlock;
use rmcp::model::Implementation;
use rmcp::model::JsonObject;
use rmcp::model::ServerCapabilities;
use rmcp::model::ServerConfig;
use rmcp::tool;
use rmcp::tool_handler;
use rmcp::tool_router;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::sync::Semaphore;

/// Calls that the backend works on at once: a few readers beside the one writer; more would only wait for the disk.
const CALLS_MAX: usize = 4;

const INSTRUCTIONS: &str = "percept remembers what this device heard, saw, where it was and whom it met, as episodes. Begin \
with `context` for what is going on now. `recall` answers questions by association (who, where, when); `search_episodes` \
finds by words and exact filters; `facts` tells what was true and when. `meet_person`, `capture_moment` and \
`ingest_episode` add to the memory. Times in answers are UTC or carry their offset.";

/// The server of one client.
#[derive(Clone)]
pub struct Server {
    backend: Arc<dyn Backend>,
    calls: Arc<Semaphore>,
    tools: ToolRouter<Self>,
}

impl Server {
    /// A server that answers from `backend`.
    #[must_use]
    pub fn new(backend: Arc<dyn Backend>) -> Self {
        Self { backend, calls: Arc::new(Semaphore::new(CALLS_MAX)), tools: Self::tool_router() }
    }

    /// Serves the client that started this process, on its standard input and output, until it closes the input.
    ///
    /// # Errors
    /// As [`Server::serve`].
    pub async fn serve_stdio(self) -> std::io::Result<()> {
        let (input, output) = rmcp::transport::stdio_pipes();
        self.serve(input, output).await
    }

    /// Serves one client until it closes `input`.
    ///
    /// # Errors
    /// When the client does not speak the protocol, or the connection breaks.
    pub async fn serve(
        self,
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
    ) -> std::io::Result<()> {
        let running = match rmcp::serve_server(self, (input, output)).await {
            Ok(running) => running,
            // A client that goes away before it says a word has not failed.
            Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(std::io::Error::other(error)),
        };
        running.waiting().await.map(drop).map_err(std::io::Error::other)
    }

    /// Parses the arguments and asks the backend on a thread that may block.
    async fn ask<P: DeserializeOwned + Send + 'static>(
        &self,
        arguments: JsonObject,
        call: fn(&dyn Backend, P) -> Answer,
    ) -> CallToolResult {
        let params = match serde_json::from_value::<P>(Value::Object(arguments)) {
            Ok(params) => params,
            Err(error) => return failed(format!("the arguments are not understood: {error}")),
        };
        // Nobody closes the semaphore.
        let _permit = self.calls.acquire().await;
        let backend = Arc::clone(&self.backend);
        match tokio::task::spawn_blocking(move || call(backend.as_ref(), params)).await {
            Ok(Ok(value)) => CallToolResult::structured(value),
            Ok(Err(sentence)) => failed(sentence),
            Err(error) => {
                tracing::error!(%error, "a tool call broke off");
                failed("percept failed inside; its log on standard error says how".to_owned())
            }
        }
    }
}

fn failed(sentence: String) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(sentence)])
}

#[tool_router]
impl Server {
    /// Find remembered episodes by words and exact filters (time, person, place, modality, sound). Returns them best first
    /// with id, time, modality and content. Returned episodes are strengthened unless `peek` is true.
    #[tool(
        input_schema = schema_for_type::<SearchEpisodes>(),
        annotations(title = "Search episodes", read_only_hint = false, destructive_hint = false, idempotent_hint = false, open_world_hint = false)
    )]
    async fn search_episodes(&self, arguments: JsonObject) -> CallToolResult {
        self.ask(arguments, |backend, query: SearchEpisodes| backend.search(query)).await
    }

    /// Recall episodes by association: follows people, places, things and links from what the text names or is close to,
    /// and understands time words. Use it for questions such as "who did I meet yesterday?".
    #[tool(
        input_schema = schema_for_type::<Recall>(),
        annotations(title = "Recall", read_only_hint = true, destructive_hint = false, idempotent_hint = true, open_world_hint = false)
    )]
    async fn recall(&self, arguments: JsonObject) -> CallToolResult {
        self.ask(arguments, |backend, query: Recall| backend.recall(query)).await
    }

    /// List what is known as facts (subject, relation, object) with the time each held; `as_of` asks for one instant.
    #[tool(
        input_schema = schema_for_type::<Facts>(),
        annotations(title = "Facts", read_only_hint = true, destructive_hint = false, idempotent_hint = true, open_world_hint = false)
    )]
    async fn facts(&self, arguments: JsonObject) -> CallToolResult {
        self.ask(arguments, |backend, query: Facts| backend.facts(query)).await
    }

    /// What is worth knowing now, within a token budget: the time, the place, who is here, what was just heard and seen, and
    /// what that brings back.
    #[tool(
        input_schema = schema_for_type::<Context>(),
        annotations(title = "Context", read_only_hint = true, destructive_hint = false, idempotent_hint = true, open_world_hint = false)
    )]
    async fn context(&self, arguments: JsonObject) -> CallToolResult {
        self.ask(arguments, |backend, query: Context| backend.context(query)).await
    }

    /// Remember that a person is met now, together with what the sensors notice at this moment. Kept for good.
    #[tool(
        input_schema = schema_for_type::<MeetPerson>(),
        annotations(title = "Meet a person", read_only_hint = false, destructive_hint = false, idempotent_hint = false, open_world_hint = false)
    )]
    async fn meet_person(&self, arguments: JsonObject) -> CallToolResult {
        self.ask(arguments, |backend, person: MeetPerson| backend.meet(person)).await
    }

    /// Remember this moment: what the sensors notice now, with a note, spoken words or recognised faces if given.
    #[tool(
        input_schema = schema_for_type::<CaptureMoment>(),
        annotations(title = "Capture a moment", read_only_hint = false, destructive_hint = false, idempotent_hint = false, open_world_hint = false)
    )]
    async fn capture_moment(&self, arguments: JsonObject) -> CallToolResult {
        self.ask(arguments, |backend, moment: CaptureMoment| backend.capture(moment)).await
    }

    /// Hand in something that happened, such as a tool's result or a note, to be remembered as an episode. The same id (or
    /// the same content without one) again adds nothing new.
    #[tool(
        input_schema = schema_for_type::<IngestEpisode>(),
        annotations(title = "Ingest an episode", read_only_hint = false, destructive_hint = false, idempotent_hint = true, open_world_hint = false)
    )]
    async fn ingest_episode(&self, arguments: JsonObject) -> CallToolResult {
        self.ask(arguments, |backend, line: JsonObject| backend.ingest(line)).await
    }
}

#[tool_handler(router = self.tools)]
impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let implementation = Implementation::new("percept", env!("CARGO_PKG_VERSION"))
            .with_title("percept")
            .with_description("What this device remembers of its surroundings");
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(implementation)
            .with_instructions(INSTRUCTIONS)
    }
}

#[cfg(test)]
mod tests;
