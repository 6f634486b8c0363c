//! Progress of long work: a bar where a person looks, a line now and then elsewhere.

use crate::cli::Io;
use crate::cli::when;
use indicatif::ProgressBar;
use indicatif::ProgressDrawTarget;
use indicatif::ProgressStyle;
use std::path::Path;

/// Shows how far into a recording the replay is.
pub struct Bar {
    bar: ProgressBar,
}

impl Bar {
    /// A bar over `length_ms` of recording; without a length it counts up. Hidden where nobody looks.
    #[must_use]
    pub fn new(path: &Path, length_ms: Option<i64>, io: &Io<'_>) -> Self {
        let target = if io.err_is_terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let length = length_ms.and_then(|length_ms| u64::try_from(length_ms).ok());
        let bar = ProgressBar::with_draw_target(length, target);
        let template = "{prefix} {bar:30} {percent:>3}% {msg} [{elapsed_precise}, {eta} left]";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        let name = path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into());
        bar.set_prefix(name);
        Self { bar }
    }

    /// The replay has reached that offset.
    pub fn advance(&mut self, at_ms: i64) {
        self.bar.set_position(u64::try_from(at_ms).unwrap_or(0));
        if !self.bar.is_hidden() {
            self.bar.set_message(when::duration(at_ms));
        }
    }

    /// Takes the bar away.
    pub fn end(self) {
        self.bar.finish_and_clear();
    }
}

/// Shows how far into a file of lines the reading is.
pub struct ByteBar {
    bar: ProgressBar,
}

impl ByteBar {
    /// A bar over `length` bytes; without a length it counts up. Hidden where nobody looks.
    #[must_use]
    pub fn new(name: &str, length: Option<u64>, io: &Io<'_>) -> Self {
        let target = if io.err_is_terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(length, target);
        let template = match length {
            Some(_) => "{prefix} {bar:30} {percent:>3}% {msg} [{elapsed_precise}, {eta} left]",
            None => "{prefix} {binary_bytes} {msg} [{elapsed_precise}]",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_prefix(name.to_owned());
        Self { bar }
    }

    /// So many bytes were read, and so many of the lines were new.
    pub fn advance(&self, read: u64, new: u64) {
        self.bar.set_position(read);
        if !self.bar.is_hidden() {
            self.bar.set_message(format!("{new} new"));
        }
    }

    /// Writes something else to the terminal, without the bar in the way.
    pub fn aside(&self, write: impl FnOnce()) {
        self.bar.suspend(write);
    }

    /// Takes the bar away.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}
