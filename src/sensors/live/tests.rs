//! The supervision of a device whose faults are injected below it, on a clock that is moved by hand.

use super::*;
use crate::domain::id::SensorKind;
use crate::domain::reading::PositionReport;
use crate::domain::time::ClockQuality;
use crate::domain::time::Timestamp;
use crate::sensors::live::hand_clock::HandClock;
use std::collections::VecDeque;
use std::sync::Mutex;

/// Polls at each moment: a device that has something delivers it without time passing.
const POLLS: usize = 20;

const LIMITS: Limits = Limits { stall_ms: 2_000, first_ms: 5_000 };

/// What each opening of the device yields.
type Script = Arc<Mutex<VecDeque<Result<VecDeque<Fed>, Failure>>>>;

struct ScriptedDriver {
    source: SourceId,
    script: Script,
    opened: Arc<Mutex<u32>>,
}

struct ScriptedFeed(VecDeque<Fed>);

impl Driver for ScriptedDriver {
    fn source(&self) -> &SourceId {
        &self.source
    }

    fn open(&mut self) -> Result<Box<dyn Feed>, Failure> {
        *self.opened.lock().unwrap() += 1;
        let next = self.script.lock().unwrap().pop_front();
        next.unwrap_or_else(|| Err(Failure::unplugged("no such device")))
            .map(|fed| Box::new(ScriptedFeed(fed)) as Box<dyn Feed>)
    }
}

impl Feed for ScriptedFeed {
    fn next(&mut self, _timeout: Duration) -> Fed {
        self.0.pop_front().unwrap_or(Fed::Nothing)
    }
}

struct Bench {
    clock: HandClock,
    sensor: LiveSensor,
    opened: Arc<Mutex<u32>>,
}

fn bench(script: Vec<Result<Vec<Fed>, Failure>>) -> Bench {
    let clock = HandClock::new();
    let opened = Arc::new(Mutex::new(0));
    let script = script.into_iter().map(|opening| opening.map(VecDeque::from)).collect();
    let driver = ScriptedDriver {
        source: SourceId::of(SensorKind::Gps, "test"),
        script: Arc::new(Mutex::new(script)),
        opened: Arc::clone(&opened),
    };
    let sensor = LiveSensor::new(Box::new(driver), Arc::new(clock.clone()), LIMITS);
    Bench { clock, sensor, opened }
}

fn data() -> Fed {
    let at = Stamp { monotonic_ms: 0, utc: Timestamp::from_millis(0), quality: ClockQuality::Network };
    Fed::Captured(at, Payload::Position(crate::domain::reading::GpsReport::Position(PositionReport::default())))
}

impl Bench {
    /// Polls a few times every 100 ms until `until_ms`; returns the losses told, with when.
    fn run(&mut self, until_ms: i64) -> Vec<(i64, CoverageReason)> {
        let mut losses = Vec::new();
        let mut now_ms = self.clock.monotonic_ms();
        while now_ms < until_ms {
            for _ in 0..POLLS {
                if let Poll::Reading(reading) = self.sensor.poll(Duration::ZERO)
                    && let Payload::Loss(loss) = reading.payload
                {
                    losses.push((reading.captured_at.monotonic_ms, loss.reason));
                }
            }
            now_ms += 100;
            self.clock.pass_ms(100);
        }
        losses
    }
}

#[test]
fn a_device_that_is_not_there_is_looked_for_until_it_is() {
    let absent = || Err(Failure::unplugged("no such device"));
    let mut bench = bench(vec![absent(), absent(), absent(), Ok(vec![data()])]);

    let losses = bench.run(4_000);

    assert_eq!(
        losses,
        [(0, CoverageReason::Unplugged), (500, CoverageReason::Unplugged), (1_500, CoverageReason::Unplugged)]
    );
    let health = bench.sensor.health().get();
    assert_eq!((health.state, health.captures, health.losses), (State::Running, 1, 1));
}

#[test]
fn a_device_that_falls_silent_is_blind_since_its_last_capture_and_comes_back() {
    let mut bench = bench(vec![Ok(vec![data()]), Ok(vec![data()])]);

    let losses = bench.run(3_000);

    assert_eq!(losses, [(0, CoverageReason::Stalled)]);
    assert_eq!(bench.sensor.health().get().state, State::Running);
    assert_eq!(*bench.opened.lock().unwrap(), 2);
}

#[test]
fn errors_without_data_open_the_device_anew_and_errors_with_data_do_not() {
    let mut script: Vec<Fed> = Vec::new();
    for _ in 0..500 {
        script.extend([Fed::Hiccup("harmless".to_owned()), data()]);
    }
    script.extend((0..10_000).map(|_| Fed::Hiccup("EIO".to_owned())));
    let mut bench = bench(vec![Ok(script), Ok(vec![data()])]);

    let losses = bench.run(120_000);

    assert_eq!(losses.first().map(|loss| loss.1), Some(CoverageReason::Stalled));
    let health = bench.sensor.health().get();
    assert_eq!(health.hiccups, 500 + 100);
    assert_eq!(health.captures, 501);
}

#[test]
fn a_muted_device_is_closed_and_resumes_at_once() {
    let mut bench = bench(vec![Ok(vec![data()]), Ok(vec![data()])]);
    bench.run(500);

    bench.sensor.set_muted(true);
    let losses = bench.run(60_500);
    assert_eq!(losses, [(500, CoverageReason::Muted)]);
    assert_eq!(bench.sensor.health().get().state, State::Muted);

    bench.sensor.set_muted(false);
    bench.run(61_000);

    let health = bench.sensor.health().get();
    assert_eq!((health.state, health.captures, *bench.opened.lock().unwrap()), (State::Running, 2, 2));
}

#[test]
fn five_hundred_cycles_leave_nothing_behind() {
    let mut bench = bench((0..500).map(|_| Ok(vec![data(), Fed::Broken(Failure::unplugged("gone"))])).collect());

    let losses = bench.run(500 * 31_000);

    assert!(losses.len() >= 500, "{}", losses.len());
    assert_eq!(bench.sensor.health().get().captures, 500);
    assert!(bench.sensor.pending.is_none());
}
