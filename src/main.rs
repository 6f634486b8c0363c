//! The `percept` program: arguments in, exit code out.

use std::io::IsTerminal as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let clock = percept::domain::time::SystemClock::new();
    // Not locked for good: `percept mcp` writes from a thread of its own.
    let (mut out, mut err) = (std::io::stdout(), std::io::stderr());
    let mut io = percept::cli::Io {
        out_is_terminal: std::io::stdout().is_terminal(),
        err_is_terminal: std::io::stderr().is_terminal(),
        out: &mut out,
        err: &mut err,
        clock: &clock,
    };
    ExitCode::from(percept::cli::run(std::env::args_os(), &mut io))
}
