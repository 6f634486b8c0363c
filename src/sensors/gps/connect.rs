//! Connects to gpsd and sends the WATCH command. Returns within [`RESOLVE_WAIT`] and [`ADDRESSES_MAX`] times
//! [`CONNECT_WAIT`], whatever the network and the name server do.

use super::address::Address;
use crate::sensors::live::Failure;
use std::io;
use std::io::Write;
use std::net::IpAddr;
use std::net::SocketAddr;
use std::net::TcpStream;
use std::net::ToSocketAddrs;
use std::sync::mpsc;
use std::time::Duration;

/// What makes gpsd report, sent once for each connection.
pub(super) const WATCH: &str = "?WATCH={\"enable\":true,\"json\":true};\n";

/// Longest wait for a name server.
const RESOLVE_WAIT: Duration = Duration::from_secs(2);
/// Longest wait for each address to accept.
const CONNECT_WAIT: Duration = Duration::from_millis(1_500);
/// Longest wait for gpsd to take the command.
const WRITE_WAIT: Duration = Duration::from_secs(2);
/// Addresses of one name that are tried.
const ADDRESSES_MAX: usize = 2;

type Resolved = io::Result<Vec<SocketAddr>>;

/// Connects, with at most one question to the name server under way.
#[derive(Default)]
pub(super) struct Connector {
    asked: Option<mpsc::Receiver<Resolved>>,
}

impl Connector {
    /// A connection that gpsd was asked to report on.
    pub(super) fn watch(&mut self, address: &Address) -> Result<TcpStream, Failure> {
        let targets = self.resolve(address)?;
        let mut stream = connect(address, &targets)?;
        let sent = stream.set_write_timeout(Some(WRITE_WAIT)).and_then(|()| stream.write_all(WATCH.as_bytes()));
        sent.map_err(|error| Failure::unplugged(format!("gpsd at {address} does not take a command ({error})")))?;
        Ok(stream)
    }

    fn resolve(&mut self, address: &Address) -> Result<Vec<SocketAddr>, Failure> {
        if let Ok(ip) = address.host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(ip, address.port)]);
        }
        let asked = self.asked.take().map_or_else(|| ask(address), Ok);
        let unknown = |error: &dyn std::fmt::Display| {
            Failure::unplugged(format!("the name of gpsd's host, {}, cannot be resolved ({error})", address.host))
        };
        let receiver = asked.map_err(|error| unknown(&error))?;
        match receiver.recv_timeout(RESOLVE_WAIT) {
            Ok(resolved) => resolved.map_err(|error| unknown(&error)),
            Err(mpsc::RecvTimeoutError::Disconnected) => Err(unknown(&"the question was lost")),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                self.asked = Some(receiver);
                Err(unknown(&"the name server does not answer"))
            }
        }
    }
}

/// Asks on a thread of its own: the system's resolver knows no time limit.
fn ask(address: &Address) -> io::Result<mpsc::Receiver<Resolved>> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let target = (address.host.clone(), address.port);
    std::thread::Builder::new().name("gps-resolve".to_owned()).spawn(move || {
        // Nobody is left to hear it after the driver is gone.
        let _ = sender.send(target.to_socket_addrs().map(|found| found.take(ADDRESSES_MAX).collect()));
    })?;
    Ok(receiver)
}

fn connect(address: &Address, targets: &[SocketAddr]) -> Result<TcpStream, Failure> {
    let mut refusal = "it has no address".to_owned();
    for target in targets.iter().take(ADDRESSES_MAX) {
        match TcpStream::connect_timeout(target, CONNECT_WAIT) {
            Ok(stream) => return Ok(stream),
            Err(error) => refusal = error.to_string(),
        }
    }
    Err(Failure::unplugged(format!("gpsd does not answer at {address} ({refusal}); is it installed and running?")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_the_one_that_gpsd_proto_documents() {
        assert_eq!(WATCH.trim_end(), gpsd_proto::ENABLE_WATCH_CMD.trim_end());
        assert!(WATCH.ends_with(";\n"));
    }
}
