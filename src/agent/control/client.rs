//! Talks to the running agent, when there is one.

use super::SOCKET;
use anyhow::Context as _;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::Path;
use std::time::Duration;

/// Longest wait for an answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(12);

/// A running agent.
#[derive(Debug)]
pub struct Client {
    http: reqwest::blocking::Client,
}

impl Client {
    /// The agent whose socket stands in `runtime_dir`; `None` when none runs.
    ///
    /// # Errors
    /// When there is a socket that this user may not use, or no client can be made.
    pub fn find(runtime_dir: &Path) -> anyhow::Result<Option<Self>> {
        let socket = runtime_dir.join(SOCKET);
        match std::os::unix::net::UnixStream::connect(&socket) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                let hint = "members of the group percept may talk to the agent: sudo usermod -aG percept $USER";
                return Err(error).with_context(|| format!("{}: {hint}", socket.display()));
            }
            Err(_) => return Ok(None),
        }
        // reqwest wants to know its cryptography before it makes any client; a second call changes nothing.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // Plain HTTP on a local socket: whatever proxy the environment names is not meant for it.
        let http = reqwest::blocking::Client::builder()
            .unix_socket(socket)
            .no_proxy()
            .timeout(ANSWER_WITHIN)
            .build()
            .context("prepare to talk to the agent")?;
        Ok(Some(Self { http }))
    }

    /// `GET path`.
    ///
    /// # Errors
    /// What the agent says, or why it could not be asked.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        answer(self.http.get(url(path)).send())
    }

    /// `POST path` with a JSON body.
    ///
    /// # Errors
    /// What the agent says, or why it could not be asked.
    pub fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> anyhow::Result<T> {
        self.post_bytes(path, "application/json", serde_json::to_vec(body).context("word the order")?)
    }

    /// `POST path` with JSON lines.
    ///
    /// # Errors
    /// What the agent says, or why it could not be asked.
    pub fn post_lines<T: DeserializeOwned>(&self, path: &str, lines: Vec<u8>) -> anyhow::Result<T> {
        self.post_bytes(path, "application/jsonl", lines)
    }

    fn post_bytes<T: DeserializeOwned>(&self, path: &str, content_type: &str, body: Vec<u8>) -> anyhow::Result<T> {
        answer(self.http.post(url(path)).header(reqwest::header::CONTENT_TYPE, content_type).body(body).send())
    }
}

fn url(path: &str) -> String {
    format!("http://percept{path}")
}

fn answer<T: DeserializeOwned>(sent: reqwest::Result<reqwest::blocking::Response>) -> anyhow::Result<T> {
    let response = sent.context("the agent did not answer")?;
    let is_success = response.status().is_success();
    let body = response.bytes().context("the agent's answer broke off")?;
    if is_success {
        return serde_json::from_slice(&body).context("the agent's answer is not understood");
    }
    let problem: serde_json::Value = serde_json::from_slice(&body).context("the agent's answer is not understood")?;
    let text = |key: &str| problem.get(key).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
    anyhow::bail!("{}: {}", text("title"), text("detail"))
}
