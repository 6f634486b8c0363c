//! `percept config check|default`.

use crate::cli::Io;
use crate::cli::Shared;

/// What to do with the config.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum Command {
    /// Check a config file and tell every mistake in it at once
    Check,
    /// Print the built-in config file: every key with its unit and default
    Default,
}

/// Runs the command.
///
/// # Errors
/// Every mistake of the file.
pub fn run(command: &Command, shared: &Shared, io: &mut Io<'_>) -> anyhow::Result<u8> {
    match command {
        Command::Check => {
            let loaded = shared.load_config()?;
            let name = loaded.file.map_or_else(|| "built-in config".to_owned(), |file| file.display().to_string());
            writeln!(io.out, "{name}: ok")?;
        }
        Command::Default => write!(io.out, "{}", crate::config::DEFAULT_FILE)?,
    }
    Ok(0)
}
