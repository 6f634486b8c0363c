//! Log lines of the program.
//!
//! To standard error, at the level of `PERCEPT_LOG` (default `warn`). Positions, device addresses, pictures and
//! recognised speech never stand in a line above DEBUG.

use tracing_subscriber::EnvFilter;

/// Starts logging; a second call changes nothing.
pub fn start(is_terminal: bool) {
    let filter = EnvFilter::try_from_env("PERCEPT_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(is_terminal)
        .with_target(false)
        .try_init();
}
