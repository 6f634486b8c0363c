//! What the loop does about once a second beside its readings: mutes, clock, power, watchdog, status, disk, gists.
//!
//! Each duty says by itself when it is next due.

use super::End;
use super::SegmentEnd;
use super::gist_work::GistWork;
use super::room::Room;
use super::segment::Segment;
use crate::agent::clock_source;
use crate::agent::heartbeat::Heartbeat;
use crate::agent::heartbeat::Watch;
use crate::agent::last_run;
use crate::agent::last_run::LastRun;
use crate::agent::mute::Mutes;
use crate::agent::power;
use crate::agent::power::Level;
use crate::agent::power::PowerJudge;
use crate::agent::queue;
use crate::agent::sensor_thread::SensorThread;
use crate::agent::status::ClockStatus;
use crate::agent::status::QueueStatus;
use crate::agent::status::SensorStatus;
use crate::agent::status::Status;
use crate::agent::status::StoreStatus;
use crate::domain::coverage::Coverage;
use crate::domain::coverage::CoverageReason;
use crate::domain::coverage::CoverageState;
use crate::domain::id::BootId;
use crate::domain::id::SensorKind;
use crate::domain::id::SourceId;
use crate::domain::time::Clock as _;
use crate::domain::time::ClockQuality;
use crate::domain::time::Stamp;
use crate::memory::reader::Reader;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// Between two rounds, in milliseconds.
const ROUND_MS: i64 = 1_000;

/// Between two looks at markers of moments, in milliseconds.
const SETTLE_MS: i64 = 5_000;

/// A thread that shows no progress for this long is stuck: below systemd's `WatchdogSec`, which then restarts percept.
const PATIENCE_MS: i64 = 30_000;

/// From this share of a queue's bound on perception is behind, and optional models rest.
const BEHIND: f64 = 0.5;

/// Below this share it has caught up.
const CAUGHT_UP: f64 = 0.1;

/// How often an unset clock is noted while it lasts, in milliseconds.
const UNSET_EVERY_MS: i64 = 60_000;

/// The state of the duties.
pub(super) struct Housekeeping {
    mutes: Mutes,
    watch: Watch,
    heart: Heartbeat,
    missing_models: Vec<String>,
    round_due_ms: i64,
    settle_due_ms: i64,
    sign_due_ms: i64,
    pub(super) room: Room,
    behind_since: Option<Stamp>,
    power: PowerJudge,
    power_sentences: Vec<String>,
    look_due_ms: i64,
    resting: Option<String>,
    stuck: Vec<String>,
    refusals: u64,
    pub(super) gists: GistWork,
    unset_since: Option<Stamp>,
    unset_due_ms: i64,
}

impl Housekeeping {
    pub(super) fn new(now: Stamp, sensors: &[SensorThread], power: power::Config, missing_models: Vec<String>) -> Self {
        let mut watch = Watch::new(PATIENCE_MS);
        for sensor in sensors {
            watch.add(sensor.kind.as_str(), sensor.heartbeat.clone(), now.monotonic_ms);
        }
        let heart = Heartbeat::new();
        watch.add("perception", heart.clone(), now.monotonic_ms);
        Self {
            mutes: Mutes::default(),
            watch,
            heart,
            missing_models,
            round_due_ms: now.monotonic_ms,
            settle_due_ms: now.monotonic_ms + SETTLE_MS,
            sign_due_ms: now.monotonic_ms,
            room: Room::new(now),
            behind_since: None,
            power: PowerJudge::new(power),
            power_sentences: Vec::new(),
            look_due_ms: now.monotonic_ms,
            resting: None,
            stuck: Vec::new(),
            refusals: 0,
            gists: GistWork::new(now),
            unset_since: None,
            unset_due_ms: now.monotonic_ms,
        }
    }

    pub(super) fn mutes(&mut self) -> &mut Mutes {
        &mut self.mutes
    }

    /// Whether optional models rest.
    pub(super) fn is_resting(&self) -> bool {
        self.resting.is_some()
    }

    pub(super) fn count_refusal(&mut self) {
        self.refusals += 1;
    }
}

impl Segment<'_> {
    /// One round, if it is due.
    pub(super) fn keep_house(&mut self, now: Stamp) -> Option<SegmentEnd> {
        self.housekeeping.heart.beat();
        if now.monotonic_ms < self.housekeeping.round_due_ms {
            return None;
        }
        self.housekeeping.round_due_ms = now.monotonic_ms + ROUND_MS;
        self.resident.clock.set_quality(clock_source::quality(self.resident.clock.wall()));
        self.apply_mutes(now);
        self.note_unset_clock(now);
        self.spare(now);
        self.settle(now);
        self.note_trouble(now);
        self.keep_room(now);
        self.keep_gists(now);
        if now.monotonic_ms >= self.housekeeping.sign_due_ms {
            self.housekeeping.sign_due_ms = now.monotonic_ms + last_run::EVERY_MS;
            self.leave_sign_of_life(now, false);
        }
        self.housekeeping.stuck = self.housekeeping.watch.stuck(now.monotonic_ms);
        self.feed_watchdog();
        let status = self.status(now);
        self.resident.status.set(status);
        (self.housekeeping.power.assessment().level == Level::Critical).then_some(SegmentEnd::Over(End::PowerCritical))
    }

    /// Mutes and unmutes what is due; says what is mute.
    pub(super) fn apply_mutes(&mut self, now: Stamp) -> BTreeSet<SensorKind> {
        let zone = jiff::tz::TimeZone::system();
        let place = self.pipeline.place().map(str::to_owned);
        let mutes = &mut self.housekeeping.mutes;
        let due = mutes.due(&self.config.mute, now.monotonic_ms, now.utc, &zone, place.as_deref());
        for sensor in &mut self.sensors {
            let is_muted = due.contains(&sensor.kind);
            sensor.set_muted(is_muted);
        }
        due
    }

    /// Lets optional models rest while perception is behind or the machine asks for it.
    fn spare(&mut self, now: Stamp) {
        self.look_at_power(now);
        let fullness = self.queue.depth().fullness();
        let house = &mut self.housekeeping;
        if fullness >= BEHIND {
            house.behind_since.get_or_insert(now);
        } else if fullness <= CAUGHT_UP
            && let Some(from) = house.behind_since.take()
        {
            self.note_resting(from, now);
        }
        let house = &mut self.housekeeping;
        let power = house.power.assessment();
        house.resting = if power.level != Level::Normal {
            Some(power.words())
        } else {
            house.behind_since.map(|_| "perception is behind".to_owned())
        };
        self.pipeline.set_resting(house.resting.is_some());
    }

    fn look_at_power(&mut self, now: Stamp) {
        let house = &mut self.housekeeping;
        if now.monotonic_ms < house.look_due_ms {
            return;
        }
        let look_ms = Duration::from_secs_f64(self.config.power.look_s.clamp(0.1, 3_600.0)).as_millis();
        house.look_due_ms = now.monotonic_ms.saturating_add(i64::try_from(look_ms).unwrap_or(i64::MAX));
        let signs = power::look(Path::new("/"));
        let before = house.power.assessment().level;
        let after = house.power.handle_signs(&signs, now).clone();
        if after.level != before {
            tracing::warn!(level = ?after.level, "{}", after.words());
        }
        let findings = power::findings(&signs, &self.config.power);
        house.power_sentences = findings.into_iter().map(|finding| finding.sentence).collect();
        self.note_stretches();
    }

    /// Each stretch in which models were slowed down is coverage of the camera, whose pictures went without them.
    pub(super) fn note_stretches(&mut self) {
        while let Some(stretch) = self.housekeeping.power.poll_stretch() {
            for source in self.cameras() {
                self.pipeline.note_coverage(stretch.coverage(source));
            }
        }
    }

    /// What is captured before anybody set the clock has no certain time: that is coverage of every sensor.
    fn note_unset_clock(&mut self, now: Stamp) {
        let is_unset = self.pipeline.stamp(now).quality == ClockQuality::Unset;
        let house = &mut self.housekeeping;
        if is_unset {
            house.unset_since.get_or_insert(now);
            if now.monotonic_ms < house.unset_due_ms {
                return;
            }
            house.unset_due_ms = now.monotonic_ms + UNSET_EVERY_MS;
        }
        let since = if is_unset { house.unset_since } else { house.unset_since.take() };
        let Some(from) = since.filter(|from| from.monotonic_ms < now.monotonic_ms) else { return };
        // Both ends as the clock showed them: a correction moves the row as it moves episodes of that time.
        let to = from.plus_millis(now.millis_since(from));
        let (state, reason) = (CoverageState::Degraded, CoverageReason::ClockUnset);
        let detail = Some("nobody had set the clock: times were uncertain".to_owned());
        let sources: Vec<SourceId> = self.sensors.iter().map(SensorThread::source).collect();
        for source in sources {
            self.pipeline.note_coverage(Coverage { source, from, to, state, reason, detail: detail.clone() });
        }
    }

    fn note_resting(&mut self, from: Stamp, to: Stamp) {
        for source in self.cameras() {
            let detail = Some("perception was behind: pictures went without labels and vectors".to_owned());
            let (state, reason) = (CoverageState::Degraded, CoverageReason::Overrun);
            self.pipeline.note_coverage(Coverage { source, from, to, state, reason, detail });
        }
    }

    fn cameras(&self) -> Vec<SourceId> {
        let cameras = self.sensors.iter().filter(|sensor| sensor.kind == SensorKind::Camera);
        cameras.map(SensorThread::source).collect()
    }

    /// Ends the stretches that are open: the run stops.
    pub(super) fn end_stretches(&mut self, now: Stamp) {
        self.housekeeping.unset_due_ms = now.monotonic_ms;
        self.note_unset_clock(now);
        self.housekeeping.power.finish(now);
        self.note_stretches();
        if let Some(from) = self.housekeeping.behind_since.take() {
            self.note_resting(from, now);
        }
    }

    /// Markers of moments go once their rows are committed.
    fn settle(&mut self, now: Stamp) {
        if now.monotonic_ms < self.housekeeping.settle_due_ms || self.resident.writer.trouble().is_some() {
            return;
        }
        self.housekeeping.settle_due_ms = now.monotonic_ms + SETTLE_MS;
        if self.recorder.has_unsettled() && self.resident.writer.flush().is_ok() {
            self.recorder.settle();
            self.recorder.forget_certain();
        }
    }

    /// The time since percept was last alive is coverage.
    pub(super) fn note_missed_time(&mut self) {
        let now = self.resident.clock.stamp();
        let Some(last) = LastRun::read(self.resident.data_dir) else { return };
        for coverage in last.missed(&self.resident.boot_id, now) {
            self.pipeline.note_coverage(coverage);
        }
    }

    /// Documents of moments that earlier runs of this boot wrote move with their rows when the clock is corrected.
    pub(super) fn adopt_moments(&mut self) {
        let now = self.resident.clock.stamp();
        if now.quality > ClockQuality::Unset {
            return;
        }
        let boot = BootId::new(self.resident.boot_id.clone());
        let rows = Reader::open(self.resident.data_dir).and_then(|reader| reader.moments_of_boot(&boot));
        let Ok(rows) = rows else { return };
        let stamp = |monotonic_ms: i64| Stamp {
            quality: ClockQuality::Unset,
            ..now.plus_millis(monotonic_ms - now.monotonic_ms)
        };
        self.recorder.adopt(rows.into_iter().map(|row| (row.id, stamp(row.monotonic_ms))));
    }

    pub(super) fn leave_sign_of_life(&self, now: Stamp, ended: bool) {
        let last = LastRun {
            boot_id: self.resident.boot_id.clone(),
            monotonic_ms: now.monotonic_ms,
            utc: now.utc,
            quality: now.quality,
            sources: self.sensors.iter().map(SensorThread::source).collect(),
            ended,
        };
        last.write(self.resident.data_dir);
    }

    /// systemd restarts a percept that feeds it no more: only while every thread makes progress.
    fn feed_watchdog(&self) {
        if self.housekeeping.stuck.is_empty() {
            let running = self.sensors.iter().filter(|sensor| sensor.is_running()).count();
            let words = format!("{running} of {} sensors capture", self.sensors.len());
            let _ = sd_notify::notify(&[
                sd_notify::NotifyState::Ready,
                sd_notify::NotifyState::Watchdog,
                sd_notify::NotifyState::Status(&words),
            ]);
        } else {
            tracing::error!(threads = ?self.housekeeping.stuck, "no progress: the watchdog is not fed");
        }
    }

    fn status(&self, now: Stamp) -> Status {
        let resident = self.resident;
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            device_id: resident.device_id.to_string(),
            session_id: self.session_id.to_string(),
            started_at: now.utc.plus_millis(resident.started_ms - now.monotonic_ms),
            uptime_ms: now.monotonic_ms - resident.started_ms,
            clock: ClockStatus { utc: now.utc, quality: now.quality },
            sensors: self.sensor_status(now),
            queues: self.queue_status(),
            store: self.store_status(),
            last_episode: self.last_episode.clone(),
            resting: self.housekeeping.resting.clone(),
            power: self.housekeeping.power_sentences.clone(),
            missing_models: self.housekeeping.missing_models.clone(),
            stuck: self.housekeeping.stuck.clone(),
        }
    }

    fn sensor_status(&self, now: Stamp) -> Vec<SensorStatus> {
        let complaints = self.pipeline.complaints();
        let of = |sensor: &SensorThread| {
            let mut status = SensorStatus::of(&sensor.health.get(), now.monotonic_ms);
            let complaint = complaints.iter().find(|(source, _)| *source == status.source);
            status.complaint = complaint.map(|(_, words)| words.clone());
            status
        };
        self.sensors.iter().map(of).collect()
    }

    fn queue_status(&self) -> Vec<QueueStatus> {
        let depth = self.queue.depth();
        let of = |(index, kind): (usize, SensorKind)| QueueStatus {
            kind: kind.as_str().to_owned(),
            waiting: depth.waiting[index],
            bound: queue::bound(kind),
            dropped: depth.dropped[index],
        };
        SensorKind::ALL.into_iter().enumerate().map(of).collect()
    }

    fn store_status(&self) -> StoreStatus {
        let counters = self.resident.writer.counters();
        let episodes = self.recorder.episode_counts();
        StoreStatus {
            trouble: self.resident.writer.trouble(),
            episodes: episodes
                .into_iter()
                .map(|(modality, count)| (modality.as_str().to_owned(), count as u64))
                .collect(),
            coverage: self.pipeline.coverage_rows(),
            commits: counters.commits,
            rows_lost: counters.rows_lost + self.housekeeping.refusals,
            waiting: self.backlog.len(),
            dropped: self.backlog.dropped(),
            used_bytes: self.housekeeping.room.used_bytes(),
            budget_bytes: self.config.disk.budget_mib << 20,
        }
    }
}
