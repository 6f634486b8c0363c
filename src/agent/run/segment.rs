//! The loop of a run, with one config from start to end.
//!
//! In: readings from the queue, orders, signals, time. Out: products to the store, answers, a status.

use super::End;
use super::Resident;
use super::SegmentEnd;
use super::housekeeping::Housekeeping;
use super::housework;
use super::orders;
use crate::agent::backlog::Backlog;
use crate::agent::clock_source;
use crate::agent::digest::digest;
use crate::agent::identity::Capture;
use crate::agent::models::Models;
use crate::agent::people;
use crate::agent::pipeline::Pipeline;
use crate::agent::pipeline::Product;
use crate::agent::queue::HOLD_MS;
use crate::agent::queue::ReadingQueue;
use crate::agent::recorder::Recorder;
use crate::agent::recording::Recording;
use crate::agent::senses::Senses;
use crate::agent::sensor_thread::SensorThread;
use crate::agent::status::LastEpisode;
use crate::config::Config;
use crate::config::Loaded;
use crate::domain::disposition::Disposition;
use crate::domain::episode::Metadata;
use crate::domain::id::BootId;
use crate::domain::id::SessionId;
use crate::domain::reading::Reading;
use crate::domain::time::Clock as _;
use crate::domain::time::Stamp;
use crate::memory::forget::Order;
use crate::memory::forget::Subject;
use crate::memory::reader::Reader;
use crate::memory::sessions;
use crate::perception::presence::Salt;
use crate::sensors::live::SharedClock;
use anyhow::Context as _;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Longest sleep of the loop: how late an order or a signal may be noticed.
const TICK: Duration = Duration::from_millis(200);

/// Readings taken in one turn, before time and orders are looked at again.
const READINGS_A_TURN: usize = 64;

/// How long the last sentences may take to get their vectors at the end.
const EMBED_LAST_MS: i64 = 1_500;

/// How long sensors get to close their devices at the end.
const STOP_WITHIN_MS: i64 = 1_500;

/// A run with one config.
pub(super) struct Segment<'a> {
    pub(super) resident: &'a Resident<'a>,
    pub(super) config: Config,
    pub(super) pipeline: Pipeline,
    pub(super) recorder: Recorder<'a>,
    pub(super) backlog: Backlog,
    pub(super) sensors: Vec<SensorThread>,
    pub(super) queue: Arc<ReadingQueue>,
    pub(super) housekeeping: Housekeeping,
    pub(super) last_episode: Option<LastEpisode>,
    pub(super) session_id: SessionId,
    recording: Option<Recording>,
    started: Stamp,
    forgotten_spans: VecDeque<Order>,
}

impl<'a> Segment<'a> {
    /// Loads the models, registers the run and opens the sensors.
    pub(super) fn start(
        loaded: &Loaded,
        resident: &'a Resident<'a>,
        tell: &mut dyn FnMut(&str),
    ) -> anyhow::Result<Self> {
        let config = loaded.config.clone();
        let started = resident.clock.stamp();
        let models = Models::load(&config, &loaded.models_dir(), crate::agent::machine::memory_bytes(), started);
        models.missing().iter().for_each(|sentence| tell(sentence));
        resident.desk.equip(&config, &models);
        let capture = Capture {
            device_id: resident.device_id.clone(),
            session_id: SessionId::new(uuid::Uuid::new_v4().to_string()),
            boot_id: BootId::new(resident.boot_id.clone()),
            start_is_known: true,
        };
        let session_id = capture.session_id.clone();
        let salt = Salt::new(*blake3::hash(uuid::Uuid::new_v4().as_bytes()).as_bytes());
        let mut senses = models.live_senses(&config, &resident.device_id, salt, clock_source::BUILT)?;
        remember_places(resident, &mut senses);
        resident.writer.register_session(sessions::Session {
            session_id: capture.session_id.clone(),
            device_id: capture.device_id.clone(),
            boot_id: capture.boot_id.clone(),
            digest: digest(&config, &models.hashes()),
            started_at: started.utc,
            clock_quality: started.quality,
        })?;
        let record = resident.options.record.as_ref();
        let recording = match record {
            Some(record) => {
                let known = people::known_people(&config.people)?;
                Some(Recording::create(&record.dir, &capture, started, known, record.raw)?)
            }
            None => None,
        };
        let queue = Arc::new(ReadingQueue::new());
        let clock: SharedClock = Arc::clone(&resident.clock) as SharedClock;
        let live = resident.options.sources.sensors(&config, &clock);
        let sensors = live
            .into_iter()
            .map(|(kind, sensor)| SensorThread::start(kind, sensor, Arc::clone(&queue)))
            .collect::<Result<Vec<_>, _>>()
            .context("start the sensors")?;
        let mut segment = Self {
            housekeeping: Housekeeping::new(started, &sensors, config.power.clone(), models.missing().to_vec()),
            pipeline: Pipeline::new(&config, senses, clock_source::BUILT),
            recorder: Recorder::new(capture, resident.writer, resident.folder)
                .of_boot()
                .with_sentences(models.sentences()),
            backlog: Backlog::default(),
            last_episode: None,
            resident,
            config,
            sensors,
            queue,
            session_id,
            recording,
            started,
            forgotten_spans: VecDeque::new(),
        };
        segment.note_missed_time();
        segment.adopt_moments();
        Ok(segment)
    }

    /// Turns until it is over.
    pub(super) fn run(mut self) -> anyhow::Result<SegmentEnd> {
        let end = loop {
            let now = self.resident.clock.stamp();
            let taken = self.take_readings(now);
            self.pipeline.handle_timeout(now.plus_millis(-HOLD_MS));
            self.drain();
            if let Some(end) = orders::take(&mut self, now).or_else(|| self.keep_house(now)) {
                break end;
            }
            if let Some(end) = self.ending(now) {
                break end;
            }
            if taken == 0 && !self.embed_one(now) {
                self.queue.wait(TICK);
            }
        };
        self.finish()?;
        Ok(end)
    }

    /// Idle time gives sentences their vectors, unless the machine is to be spared. Returns whether it did.
    fn embed_one(&mut self, now: Stamp) -> bool {
        if self.housekeeping.is_resting() || self.resident.writer.trouble().is_some() {
            return false;
        }
        self.recorder.embed_next(now).unwrap_or_else(|error| {
            tracing::warn!(%error, "a sentence's vector was not stored");
            false
        })
    }

    fn ending(&self, now: Stamp) -> Option<SegmentEnd> {
        let resident = self.resident;
        let is_over = resident.options.for_ms.is_some_and(|for_ms| now.monotonic_ms - resident.started_ms >= for_ms);
        (is_over || resident.signals.must_stop()).then_some(SegmentEnd::Over(End::Told))
    }

    fn take_readings(&mut self, now: Stamp) -> usize {
        let until_ms = now.monotonic_ms - HOLD_MS;
        let mut taken = 0;
        while taken < READINGS_A_TURN
            && let Some(reading) = self.queue.pop(until_ms)
        {
            taken += 1;
            self.take(reading);
        }
        taken
    }

    fn take(&mut self, reading: Reading) {
        if let Some(recording) = &mut self.recording {
            recording.write(&reading);
        }
        self.pipeline.handle_reading(reading);
        self.drain();
    }

    /// Hands what the pipeline has to the store, or keeps it while the store cannot take it.
    pub(super) fn drain(&mut self) {
        while let Some(product) = self.pipeline.poll_product() {
            self.note_last(&product);
            self.backlog.push(product);
        }
        while self.resident.writer.trouble().is_none()
            && let Some(product) = self.backlog.pop()
        {
            self.write(product);
        }
    }

    /// Something is being forgotten: what is remembered of it outside of the store goes too.
    pub(super) fn forgotten(&mut self, order: &Order) {
        let is_meant = |last: &LastEpisode| order.is_named_in(&last.content) || order.covers(last.at);
        self.last_episode = self.last_episode.take().filter(|last| !is_meant(last));
        if matches!(order.subject, Subject::Span { .. }) && !self.forgotten_spans.contains(order) {
            self.forgotten_spans.push_back(order.clone());
            if self.forgotten_spans.len() > housework::SPANS_MAX {
                self.forgotten_spans.pop_front();
            }
        }
    }

    /// Whether it began in a span that was forgotten while it lasted.
    fn is_forgotten(&self, product: &Product) -> bool {
        let (Product::Episode(draft) | Product::Moment(draft, _)) = product else { return false };
        self.forgotten_spans.iter().any(|order| order.covers(draft.start.utc))
    }

    fn write(&mut self, product: Product) {
        if self.is_forgotten(&product) {
            return;
        }
        let pipeline = &self.pipeline;
        if let Err(error) = self.recorder.write(product, |stamp| pipeline.corrected(stamp)) {
            self.housekeeping.count_refusal();
            match error.disposition() {
                Disposition::SetAside => tracing::warn!(%error, "one row is set aside"),
                Disposition::Retry | Disposition::Degrade | Disposition::Stop => {
                    tracing::error!(%error, "the store took no row");
                }
            }
        }
    }

    fn note_last(&mut self, product: &Product) {
        if let Product::Episode(draft) | Product::Moment(draft, _) = product {
            self.last_episode = Some(LastEpisode {
                at: draft.start.utc,
                modality: draft.modality.as_str().to_owned(),
                content: draft.content.clone(),
            });
        }
    }

    /// Closes the sensors, takes what they delivered, ends what is open and commits it.
    fn finish(mut self) -> anyhow::Result<()> {
        self.sensors.iter().for_each(SensorThread::stop);
        let from_ms = self.resident.clock.monotonic_ms();
        while self.sensors.iter().any(|sensor| !sensor.has_ended())
            && self.resident.clock.monotonic_ms() - from_ms < STOP_WITHIN_MS
        {
            self.take_readings(self.resident.clock.stamp());
            self.queue.wait(Duration::from_millis(20));
        }
        self.queue.close();
        let now = self.resident.clock.stamp();
        while let Some(reading) = self.queue.pop(i64::MAX) {
            self.take(reading);
        }
        self.end_stretches(now);
        self.pipeline.finish(now);
        self.drain();
        let embed_until_ms = self.resident.clock.monotonic_ms() + EMBED_LAST_MS;
        while self.resident.clock.monotonic_ms() < embed_until_ms && self.embed_one(now) {}
        self.leave_sign_of_life(now, true);
        if let Some(recording) = self.recording.take() {
            recording.close()?;
        }
        let mut counts = Metadata::new();
        for (modality, count) in self.recorder.episode_counts() {
            counts.insert(modality.as_str().to_owned(), count.into());
        }
        counts.insert("coverage".to_owned(), self.pipeline.coverage_rows().into());
        counts.insert("length_ms".to_owned(), now.millis_since(self.started).into());
        let device_id = self.resident.device_id.clone();
        self.resident.writer.finish_session(device_id, self.session_id.clone(), counts)?;
        self.recorder.settle();
        Ok(())
    }
}

/// `place-N` stays the same place from run to run. A store that cannot be read yet costs names, not the run.
fn remember_places(resident: &Resident<'_>, senses: &mut Senses) {
    let stays = Reader::open(resident.data_dir).and_then(|reader| reader.learned_stays(&resident.device_id));
    match stays {
        Ok(stays) => senses.places.remember(stays.iter().map(|stay| (stay.name.as_str(), stay.centre, stay.end))),
        Err(error) => tracing::warn!(%error, "places learned in earlier runs get new names"),
    }
}
