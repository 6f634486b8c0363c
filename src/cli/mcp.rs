//! `percept mcp`: the Model Context Protocol on standard input and output.
//!
//! A client starts the command and talks to it; nothing else may stand on standard output. Log lines go to standard error.

mod backend;

use crate::cli::Shared;
use crate::integrations::mcp::server::Server;
use anyhow::Context as _;
use backend::Memory;
use std::sync::Arc;

/// Serves until the client closes standard input.
///
/// # Errors
/// When the config is wrong or the client does not speak the protocol.
pub fn run(shared: &Shared) -> anyhow::Result<u8> {
    let server = Server::new(Arc::new(Memory::new(shared.load_config()?)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("start the server")?;
    let served = runtime.block_on(server.serve_stdio());
    // A thread that still waits for standard input must not hold up the end.
    runtime.shutdown_background();
    served.context("serve the Model Context Protocol")?;
    Ok(0)
}
