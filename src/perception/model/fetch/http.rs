//! One request for a file, from a byte on.
//!
//! In: an address, how many bytes are there already, how many it must be. Out: the body positioned right, or why
//! this address will not do. Certificates are always verified; which bytes are right is decided by the hash, not here.

use std::io;
use std::io::Read;
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::StatusCode;
use reqwest::blocking::Client;
use reqwest::blocking::Response;
use reqwest::header::CONTENT_RANGE;
use reqwest::header::RANGE;

/// How long to wait for addresses.
#[derive(Debug, Clone, Copy)]
pub struct Network {
    /// Longest time to reach a host.
    pub connect_timeout: Duration,
    /// Longest time without a single byte.
    pub idle_timeout: Duration,
    /// Whether `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` are obeyed.
    pub uses_proxy: bool,
}

impl Default for Network {
    /// 15 s to connect, 60 s without a byte, proxies obeyed.
    fn default() -> Self {
        Self { connect_timeout: Duration::from_secs(15), idle_timeout: Duration::from_secs(60), uses_proxy: true }
    }
}

/// Sends requests; the connection's machinery is made at the first one, so that none is needed with mirrors alone.
pub(super) struct Http {
    network: Network,
    client: OnceLock<Result<Client, String>>,
}

/// What a server answered.
pub(super) enum Answer {
    /// The body, which starts at byte `from`: where it was asked for, or 0 from a server that knows no ranges.
    Body { from: u64, body: Box<dyn Read> },
    /// The server says that nothing lies behind the byte asked for.
    NothingThere,
}

/// Why a request gave nothing.
pub(super) enum RequestError {
    /// This address will not do, however often it is asked.
    Refused(String),
    /// The connection failed; the same address may do at the next try.
    Interrupted(String),
}

impl Http {
    pub(super) fn new(network: Network) -> Self {
        Self { network, client: OnceLock::new() }
    }

    /// Asks for `address` from byte `from` on; the whole file must have `bytes`.
    pub(super) fn ask(&self, address: &str, from: u64, bytes: u64) -> Result<Answer, RequestError> {
        let client = self.client.get_or_init(|| build(self.network)).as_ref();
        let client = client.map_err(|cause| RequestError::Refused(cause.clone()))?;
        let mut request = client.get(address);
        if from > 0 {
            request = request.header(RANGE, format!("bytes={from}-"));
        }
        let response = request.send().map_err(|error| failure(&error))?;
        read_head(response, from, bytes)
    }
}

fn build(network: Network) -> Result<Client, String> {
    // An error only says that a provider is installed already, which serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .user_agent(concat!("percept/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(network.connect_timeout)
        .timeout(network.idle_timeout);
    if !network.uses_proxy {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| {
        format!("no secure connection is possible on this system ({}); install ca-certificates", cause_of(&error))
    })
}

/// Checks status and length before any of the body is read.
fn read_head(response: Response, asked: u64, bytes: u64) -> Result<Answer, RequestError> {
    let status = response.status();
    let (from, total) = match status {
        StatusCode::OK => (0, response.content_length()),
        StatusCode::PARTIAL_CONTENT => match content_range(&response) {
            Some((from, total)) if from == asked => (from, total),
            _ => return Err(RequestError::Refused("answered with another range than asked for".to_owned())),
        },
        StatusCode::RANGE_NOT_SATISFIABLE if asked > 0 => return Ok(Answer::NothingThere),
        _ => return Err(RequestError::Refused(format!("answered {status}"))),
    };
    match total {
        Some(total) if total != bytes => {
            Err(RequestError::Refused(format!("offers a file of {total} bytes, not {bytes}")))
        }
        _ => Ok(Answer::Body { from, body: Box::new(response) }),
    }
}

/// First byte and total of `Content-Range: bytes 5-9/10`; the total may be `*`.
fn content_range(response: &Response) -> Option<(u64, Option<u64>)> {
    parse_content_range(response.headers().get(CONTENT_RANGE)?.to_str().ok()?)
}

fn parse_content_range(text: &str) -> Option<(u64, Option<u64>)> {
    let (range, total) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (from, _) = range.split_once('-')?;
    let total = if total == "*" { None } else { Some(total.parse().ok()?) };
    Some((from.parse().ok()?, total))
}

/// A host that cannot be reached is not asked again in this fetch; a connection that broke is.
fn failure(error: &reqwest::Error) -> RequestError {
    let cause = cause_of(error);
    match error {
        error if error.is_connect() => RequestError::Refused(format!("cannot be reached ({cause})")),
        error if error.is_builder() || error.is_redirect() => RequestError::Refused(cause),
        _ => RequestError::Interrupted(cause),
    }
}

/// Why a body broke off.
pub(super) fn body_cause(error: &io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<reqwest::Error>());
    inner.map_or_else(|| error.to_string(), cause_of)
}

/// The innermost cause, without the layers and the address around it.
fn cause_of(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "no answer in time".to_owned();
    }
    let mut innermost: &dyn std::error::Error = error;
    while let Some(cause) = innermost.source() {
        innermost = cause;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_range_is_read_strictly() {
        assert_eq!(parse_content_range("bytes 5-9/10"), Some((5, Some(10))));
        assert_eq!(parse_content_range("bytes 5-9/*"), Some((5, None)));
        assert_eq!(parse_content_range("bytes */10"), None);
        assert_eq!(parse_content_range("items 5-9/10"), None);
        assert_eq!(parse_content_range("bytes 5-9/x"), None);
    }
}
