//! Finds the running agent for the commands that talk to it.

use crate::agent::control;
use crate::agent::control::client::Client;
use crate::config::Loaded;
use std::path::Path;

/// The agent of this config, when one runs.
///
/// # Errors
/// When there is one that this user may not talk to.
pub fn find(loaded: &Loaded) -> anyhow::Result<Option<Client>> {
    let found = Client::find(&control::runtime_dir(&loaded.config.agent.runtime_dir, &loaded.data_dir))?;
    // Whoever may not read the service's config has to be told so by its socket, not by an empty store of their own.
    match found {
        None if loaded.file.is_none() => Client::find(Path::new(control::SERVICE_DIR)),
        found => Ok(found),
    }
}

/// The agent, or a sentence that says how to start one.
///
/// # Errors
/// When none runs, or this user may not talk to it.
pub fn need(loaded: &Loaded) -> anyhow::Result<Client> {
    match find(loaded)? {
        Some(client) => Ok(client),
        None => {
            let dir = control::runtime_dir(&loaded.config.agent.runtime_dir, &loaded.data_dir);
            let socket = dir.join(control::SOCKET);
            anyhow::bail!("no agent is running ({} is not there); start it with `percept run`", socket.display())
        }
    }
}
