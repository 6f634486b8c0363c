//! The thread that finds, opens, holds and closes a stream, so that a sound system that hangs hangs nobody else.
//!
//! In: a [`Job`]. Out: what was opened, within the time allowed. A thread that does not end in time is left to itself;
//! it closes its stream when the sound system lets go of it, and until then no other is started.

use super::Waits;
use super::input::Input;
use super::input::Wanted;
use super::offer::Choice;
use super::offer::Wish;
use super::offer::choose;
use super::queue::Sink;
use super::system::SoundSystem;
use crate::sensors::live::Failure;
use std::any::Any;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::mpsc::Sender;
use std::sync::mpsc::SyncSender;
use std::sync::mpsc::channel;
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use std::time::Duration;

/// What to open, and where to.
pub(super) struct Job {
    pub system: Arc<dyn SoundSystem>,
    pub wanted: Wanted,
    pub wish: Wish,
    pub sink: Sink,
}

/// What was opened.
#[derive(Debug)]
pub(super) struct Opened {
    /// The input's identity.
    pub input: String,
    /// What people call it.
    pub name: String,
    /// How it was opened.
    pub choice: Choice,
}

impl Job {
    fn open(&self) -> Result<(Opened, Box<dyn Any>), Failure> {
        let inputs = self.system.inputs()?;
        let mut first = None;
        for input in self.wanted.candidates(&inputs)? {
            match self.open_input(&input) {
                Ok(opened) => return Ok(opened),
                // The best candidate's reason is the one to act on.
                Err(failure) => first = first.or(Some(failure)),
            }
        }
        Err(first.unwrap_or_else(|| Failure::unplugged("no microphone")))
    }

    fn open_input(&self, input: &Input) -> Result<(Opened, Box<dyn Any>), Failure> {
        let named = |failure: Failure| Failure { detail: format!("{}: {}", input.id, failure.detail), ..failure };
        let offers = self.system.offers(input).map_err(named)?;
        let choice = choose(&offers, self.wish).map_err(named)?;
        let stream = self.system.open(&choice, self.sink.clone()).map_err(named)?;
        Ok((Opened { input: input.id.clone(), name: input.name.clone(), choice }, stream))
    }
}

/// The thread behind an open stream.
pub(super) struct Worker {
    /// Dropped to end the thread.
    stop: Option<Sender<Infallible>>,
    /// Disconnected when the thread has closed its stream.
    closed: Receiver<Infallible>,
    thread: Option<JoinHandle<()>>,
    wait: Duration,
}

impl Worker {
    /// Opens on a new thread that holds `alive` for as long as it lives.
    ///
    /// # Errors
    /// [`Failure`]: why the device cannot be opened, or that the sound system hangs.
    pub(super) fn start(job: Job, alive: Arc<()>, waits: Waits) -> Result<(Self, Opened), Failure> {
        let (stop, stopped) = channel();
        let (closing, closed) = channel();
        let (answer, answered) = sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("microphone".to_owned())
            .spawn(move || {
                run(&job, &answer, &stopped);
                drop((job, alive));
                drop(closing);
            })
            .map_err(|error| Failure::unusable(format!("no thread for the microphone: {error}")))?;
        let worker = Self { stop: Some(stop), closed, thread: Some(thread), wait: waits.close };
        match answered.recv_timeout(waits.open) {
            Ok(Ok(opened)) => Ok((worker, opened)),
            Ok(Err(failure)) => Err(failure),
            Err(RecvTimeoutError::Disconnected) => Err(Failure::unusable("the sound system broke down while opening")),
            Err(RecvTimeoutError::Timeout) => {
                worker.abandon();
                Err(Failure::stalled(format!("the sound system did not answer within {:?}", waits.open)))
            }
        }
    }

    /// Leaves the thread to itself without waiting again.
    fn abandon(mut self) {
        self.stop = None;
        self.thread = None;
    }
}

fn run(job: &Job, answer: &SyncSender<Result<Opened, Failure>>, stopped: &Receiver<Infallible>) {
    match job.open() {
        // The answer has room for one; when nobody waits for it any more, the stream closes here.
        Ok((opened, stream)) => {
            if answer.send(Ok(opened)).is_ok() {
                let _ = stopped.recv();
            }
            drop(stream);
        }
        Err(failure) => {
            let _ = answer.send(Err(failure));
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop = None;
        let Some(thread) = self.thread.take() else { return };
        match self.closed.recv_timeout(self.wait) {
            Err(RecvTimeoutError::Timeout) => {
                tracing::warn!("the sound system hangs while closing a microphone; left to itself");
            }
            Ok(_) | Err(RecvTimeoutError::Disconnected) => {
                let _ = thread.join();
            }
        }
    }
}
