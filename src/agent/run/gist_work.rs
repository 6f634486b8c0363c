//! Gists of the running agent: read and made on a thread of their own, written by the loop.
//!
//! In: the time, and gists that are asked for. Out: rows, answers. One piece of work at a time; asked ones go first.
//! A day of 20,000 episodes takes a second or more on a small board, which capture must not wait for.

use super::segment::Segment;
use crate::agent::gists;
use crate::agent::gists::AskedGist;
use crate::agent::gists::DailyDuty;
use crate::agent::gists::Made;
use crate::domain::time::Stamp;
use crate::memory::error::StoreError;
use crate::memory::reader::Reader;
use crate::recall::gist::Frame;
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::mpsc;
use tokio::sync::oneshot;

/// Gists that are asked for and wait, at most.
const ASKED_MAX: usize = 4;

type Reply = oneshot::Sender<Result<Value, String>>;

/// The state of the work.
pub(super) struct GistWork {
    duty: DailyDuty,
    asked: VecDeque<(Frame, Reply)>,
    job: Option<Job>,
}

/// Work on its thread; for an asked one with where the answer goes.
struct Job {
    made: mpsc::Receiver<Result<Vec<Made>, StoreError>>,
    reply: Option<Reply>,
}

impl GistWork {
    pub(super) fn new(now: Stamp) -> Self {
        Self { duty: DailyDuty::new(now), asked: VecDeque::new(), job: None }
    }

    /// Takes a gist that is asked for; the answer comes once it is committed.
    pub(super) fn ask(&mut self, asked: &AskedGist, reply: Reply) {
        let frame = asked.frame(&jiff::tz::TimeZone::system()).map_err(|error| format!("{error:#}"));
        // An asker that has gone away needs no answer.
        match frame {
            Err(cause) => drop(reply.send(Err(cause))),
            Ok(_) if self.asked.len() >= ASKED_MAX => {
                drop(reply.send(Err("other gists are being made; try again in a minute".to_owned())));
            }
            Ok(frame) => self.asked.push_back((frame, reply)),
        }
    }
}

impl Segment<'_> {
    /// Writes what is made and begins what is next.
    pub(super) fn keep_gists(&mut self, now: Stamp) {
        if self.resident.writer.trouble().is_some() {
            return;
        }
        if let Some(job) = self.housekeeping.gists.job.take() {
            match job.made.try_recv() {
                Err(mpsc::TryRecvError::Empty) => self.housekeeping.gists.job = Some(job),
                Err(mpsc::TryRecvError::Disconnected) => self.fail(job.reply, "the thread ended"),
                Ok(Err(error)) => self.fail(job.reply, &error.to_string()),
                Ok(Ok(made)) => self.write_gists(made, job.reply),
            }
        }
        if self.housekeeping.gists.job.is_none() {
            self.begin(now);
        }
    }

    fn begin(&mut self, now: Stamp) {
        let data_dir = self.resident.data_dir.to_owned();
        let zone = jiff::tz::TimeZone::system();
        let is_resting = self.housekeeping.is_resting();
        let now = self.pipeline.stamp(now);
        let work = &mut self.housekeeping.gists;
        if let Some((frame, reply)) = work.asked.pop_front() {
            // What was noticed up to now belongs to it.
            let flushed = self.resident.writer.flush();
            let make = move || Reader::open(&data_dir).and_then(|reader| Ok(vec![gists::make(&reader, &frame)?]));
            match flushed {
                Ok(_) => self.spawn(Some(reply), make),
                Err(error) => self.fail(Some(reply), &error.to_string()),
            }
        } else if !is_resting && let Some(today) = work.duty.handle_timeout(now, &zone) {
            self.spawn(None, move || gists::daily(&data_dir, today, &zone));
        }
    }

    fn spawn(&mut self, reply: Option<Reply>, make: impl FnOnce() -> Result<Vec<Made>, StoreError> + Send + 'static) {
        let (sender, made) = mpsc::sync_channel(1);
        let work = move || drop(sender.send(make()));
        match std::thread::Builder::new().name("gist".to_owned()).spawn(work) {
            Ok(_) => self.housekeeping.gists.job = Some(Job { made, reply }),
            Err(error) => self.fail(reply, &error.to_string()),
        }
    }

    fn write_gists(&mut self, made: Vec<Made>, reply: Option<Reply>) {
        let count = made.len();
        let answer = made.first().map_or(Value::Null, Made::answer);
        let written = made.into_iter().try_for_each(|made| self.recorder.write_gist(made));
        let written =
            written.and_then(|()| if reply.is_some() { self.resident.writer.flush().map(drop) } else { Ok(()) });
        match (written, reply) {
            (Err(error), reply) => self.fail(reply, &error.to_string()),
            (Ok(()), Some(reply)) => drop(reply.send(Ok(answer))),
            (Ok(()), None) => tracing::debug!(count, "gists of the days before are written"),
        }
    }

    fn fail(&mut self, reply: Option<Reply>, cause: &str) {
        match reply {
            Some(reply) => drop(reply.send(Err(format!("the gist could not be made: {cause}")))),
            None => {
                tracing::warn!("the gists of the days before could not be made: {cause}");
                self.housekeeping.gists.duty.undone();
            }
        }
    }
}
