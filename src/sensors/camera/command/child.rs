//! The program itself: started, read, and always reaped.
//!
//! In: its words, and a pipe whose other end is closed when the program is not wanted any more. Out: what it writes, and
//! at its end a sentence. Waits are for all of its pipes at once, so that nothing it does or leaves undone keeps us.

use crate::sensors::live::Failure;
use rustix::event::PollFd;
use rustix::event::PollFlags;
use rustix::event::Timespec;
use rustix::event::poll;
use rustix::process::Pid;
use rustix::process::Signal;
use rustix::process::kill_process_group;
use std::io::ErrorKind;
use std::io::PipeReader;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::ChildStderr;
use std::process::ChildStdout;
use std::process::Command;
use std::process::ExitStatus;
use std::process::Stdio;

/// Bytes read at once.
const PIECE_BYTES: usize = 64 * 1024;

/// Longest last line of the program's errors that is kept, in bytes.
const LINE_BYTES_MAX: usize = 200;

/// Pieces of its errors that are still read after it ended.
const LAST_PIECES: usize = 64;

/// How long its last words and its exit are waited for, once it closed its output.
const LAST_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
const LAST_WAITS: usize = 25;

/// A running program.
pub(super) struct Child {
    process: std::process::Child,
    name: String,
    output: ChildStdout,
    errors: Option<ChildStderr>,
    stop: PipeReader,
    last: LastLine,
    piece: Vec<u8>,
    is_reaped: bool,
}

/// What poll found.
struct Ready {
    output: bool,
    errors: bool,
    stop: bool,
}

impl Child {
    /// Starts the program in a process group of its own.
    pub(super) fn start(words: &[String], stop: PipeReader) -> Result<Self, Failure> {
        let [program, arguments @ ..] = words else {
            return Err(Failure::unusable("camera.command names no program"));
        };
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut process = command
            .spawn()
            .map_err(|error| Failure::unusable(format!("the camera program {program} cannot be started: {error}")))?;
        let (output, errors) = (process.stdout.take(), process.stderr.take());
        let output = output.ok_or_else(|| Failure::unusable("the camera program has no output"))?;
        let name = super::short(program).to_owned();
        Ok(Self {
            process,
            name,
            output,
            errors,
            stop,
            last: LastLine::default(),
            piece: vec![0; PIECE_BYTES],
            is_reaped: false,
        })
    }

    /// What it writes next; [`None`] when it closed its output or is not wanted any more.
    pub(super) fn read(&mut self) -> Option<&[u8]> {
        loop {
            let ready = self.wait(None)?;
            if ready.errors {
                self.read_errors();
            }
            if ready.stop {
                return None;
            }
            if !ready.output {
                continue;
            }
            match self.output.read(&mut self.piece) {
                Ok(0) => return None,
                Ok(length) => return Some(&self.piece[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }

    /// Ends it, and says how it ended and what it said last.
    pub(super) fn end(mut self) -> String {
        let status = self.status();
        self.kill();
        for _ in 0..LAST_PIECES {
            if !self.errors_are_ready() || !self.read_errors() {
                break;
            }
        }
        let how =
            status.map_or_else(|| "closed its output and was ended".to_owned(), |status| format!("ended ({status})"));
        let last = self.last.text();
        let said = if last.is_empty() { String::new() } else { format!("; it said: {last}") };
        format!("the camera program {} {how}{said}", self.name)
    }

    /// How it exited by itself, if it does within half a second.
    fn status(&mut self) -> Option<ExitStatus> {
        for _ in 0..LAST_WAITS {
            if let Ok(Some(status)) = self.process.try_wait() {
                return Some(status);
            }
            let mut stop = [PollFd::new(&self.stop, PollFlags::IN)];
            if poll(&mut stop, Some(&LAST_WAIT)).is_ok_and(|count| count > 0) {
                break;
            }
        }
        None
    }

    /// Kills its whole group and reaps it. The group goes first: until the program is reaped, its number is no other's.
    fn kill(&mut self) {
        if self.is_reaped {
            return;
        }
        self.is_reaped = true;
        if let Some(group) = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw) {
            // Nobody left to kill is as good.
            let _ = kill_process_group(group, Signal::KILL);
        }
        if let Err(error) = self.process.wait() {
            tracing::debug!("the camera program cannot be waited for: {error}");
        }
    }

    fn wait(&self, timeout: Option<&Timespec>) -> Option<Ready> {
        let mut waited = vec![PollFd::new(&self.output, PollFlags::IN), PollFd::new(&self.stop, PollFlags::IN)];
        if let Some(errors) = &self.errors {
            waited.push(PollFd::new(errors, PollFlags::IN));
        }
        match poll(&mut waited, timeout) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
        let is_ready = |index: usize| waited.get(index).is_some_and(|entry| !entry.revents().is_empty());
        Some(Ready { output: is_ready(0), stop: is_ready(1), errors: is_ready(2) })
    }

    fn errors_are_ready(&self) -> bool {
        let Some(errors) = &self.errors else { return false };
        let mut waited = [PollFd::new(errors, PollFlags::IN)];
        poll(&mut waited, Some(&LAST_WAIT)).is_ok_and(|count| count > 0)
    }

    /// Reads a piece of its errors; whether there may be more.
    fn read_errors(&mut self) -> bool {
        let Some(errors) = &mut self.errors else { return false };
        let mut piece = [0; 4096];
        match errors.read(&mut piece) {
            Ok(length) if length > 0 => {
                self.last.push(&piece[..length]);
                true
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => true,
            _ => {
                self.errors = None;
                false
            }
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The last line that is not blank, of whatever length the program's lines have.
#[derive(Debug, Default)]
struct LastLine {
    line: Vec<u8>,
    open: Vec<u8>,
}

impl LastLine {
    fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if *byte == b'\n' {
                self.close();
            } else if self.open.len() < LINE_BYTES_MAX {
                self.open.push(*byte);
            }
        }
    }

    fn close(&mut self) {
        if !self.open.trim_ascii().is_empty() {
            self.line = std::mem::take(&mut self.open);
        }
        self.open.clear();
    }

    fn text(&mut self) -> String {
        self.close();
        String::from_utf8_lossy(self.line.trim_ascii()).chars().filter(|letter| !letter.is_control()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_that_says_something_is_kept_and_bounded() {
        let mut last = LastLine::default();
        last.push(b"one\ntw");
        last.push(b"o \x1b[31mred\n\n  \n");
        assert_eq!(last.text(), "two [31mred");

        last.push(&[b'x'; 100_000]);

        assert_eq!(last.text().len(), LINE_BYTES_MAX);
    }
}
