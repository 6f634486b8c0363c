//! Settings of the resident agent: where it is reached, how much room it takes on the disk.

/// How the running agent is reached.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Agent {
    /// Folder of the socket `percept.sock`; empty: `$RUNTIME_DIRECTORY`, else `$XDG_RUNTIME_DIR/percept`, else the data
    /// directory.
    pub runtime_dir: String,
    /// Loopback address and port of Prometheus metrics and health; empty: none.
    pub metrics: String,
}

impl Agent {
    /// Values that cannot be meant, in sentences.
    #[must_use]
    pub fn mistakes(&self) -> Vec<String> {
        let address = self.metrics.parse::<std::net::SocketAddr>();
        match address {
            _ if self.metrics.is_empty() => Vec::new(),
            Ok(address) if address.ip().is_loopback() => Vec::new(),
            Ok(_) => vec![format!("metrics = {:?}: only a loopback address, as 127.0.0.1:9464", self.metrics)],
            Err(_) => vec![format!("metrics = {:?}: an address and a port, as 127.0.0.1:9464", self.metrics)],
        }
    }
}

/// How much room the memory takes.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Disk {
    /// Most bytes of used database pages and media together, in MiB; 0: no limit.
    pub budget_mib: u64,
    /// Room that is left free on the file system, in MiB.
    pub keep_free_mib: u64,
}

impl Default for Disk {
    fn default() -> Self {
        Self { budget_mib: 4_096, keep_free_mib: 200 }
    }
}
