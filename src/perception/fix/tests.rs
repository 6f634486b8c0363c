//! What a receiver's reports come to, named by what the receiver does.

use super::*;
use crate::domain::coverage::CoverageReason;
use crate::domain::observation::place::ReceiverTime;
use crate::domain::reading::Loss;
use crate::domain::time::ClockQuality;

const BUILD: &str = "2026-01-01T00:00:00Z";
/// What the device's clock shows at the start of each test.
const START: &str = "2026-05-01T09:00:00Z";

#[test]
fn a_fix_without_time_and_error_estimates_is_kept_with_its_receive_time() {
    let mut tracker = tracker();

    tracker.handle_reading(&report(7, PositionReport { time: None, ..fix_at(0) }));

    let fix = tracker.poll_fix().unwrap();
    assert_eq!((fix.at, fix.accuracy_m, fix.receiver_time), (at(7), None, None));
    assert_eq!(tracker.poll_clock(), None);
}

#[test]
fn a_repeated_receiver_time_is_no_new_fix_and_a_mode_without_fix_no_fix_at_all() {
    let mut tracker = tracker();
    for second in 0..5 {
        tracker.handle_reading(&report(second, fix_at(second)));
    }
    for second in 5..605 {
        tracker.handle_reading(&report(second, fix_at(4)));
    }
    for second in 605..665 {
        tracker.handle_reading(&report(second, PositionReport { mode: 1, ..fix_at(second) }));
    }

    assert!(tracker.current_fix(at(14)).is_some());
    assert!(tracker.current_fix(at(15)).is_none(), "stale after 10 s");
    tracker.finish(at(665));

    assert_eq!(fixes(&mut tracker).len(), 5);
    assert_eq!(rows(&mut tracker), [(4, 665, CoverageReason::NoFix)]);
    let counts = tracker.counts();
    assert_eq!((counts.fixes, counts.repeated, counts.without_fix), (5, 600, 60));
}

#[test]
fn ten_minutes_without_fix_end_at_the_first_one() {
    let mut tracker = tracker();
    for second in 0..600 {
        tracker.handle_reading(&report(second, PositionReport { mode: 1, time: None, ..PositionReport::default() }));
    }
    tracker.handle_reading(&report(600, fix_at(600)));
    tracker.finish(at(601));

    assert_eq!(fixes(&mut tracker).iter().map(|fix| fix.at).collect::<Vec<_>>(), [at(600)]);
    assert_eq!(rows(&mut tracker), [(0, 600, CoverageReason::NoFix)]);
}

#[test]
fn the_mode_alone_decides() {
    for (mode, fix_count) in [(0, 0), (1, 0), (2, 1), (3, 1), (4, 0), (255, 0)] {
        let mut tracker = tracker();
        tracker.handle_reading(&report(0, PositionReport { mode, ..fix_at(0) }));
        assert_eq!(fixes(&mut tracker).len(), fix_count, "mode {mode}");
    }
}

#[test]
fn a_position_that_cannot_be_is_invalid_and_counted() {
    let mut tracker = tracker();
    let nonsense = [
        (f64::NAN, 13.4),
        (52.5, f64::NAN),
        (90.01, 13.4),
        (-91.0, 13.4),
        (52.5, 180.5),
        (f64::INFINITY, 0.0),
        (0.0, 0.0),
    ];
    for (second, (latitude_deg, longitude_deg)) in (0..).zip(nonsense.into_iter().cycle().take(28)) {
        let position =
            PositionReport { latitude_deg: Some(latitude_deg), longitude_deg: Some(longitude_deg), ..fix_at(second) };
        tracker.handle_reading(&report(second, position));
    }
    tracker.finish(at(28));

    assert_eq!(fixes(&mut tracker), []);
    assert_eq!(tracker.counts().invalid, 28);
    assert_eq!(rows(&mut tracker), [(0, 28, CoverageReason::Invalid)]);
}

#[test]
fn error_estimates_that_are_no_numbers_are_left_out() {
    let mut tracker = tracker();
    let wild = PositionReport {
        accuracy_m: Some(f64::NAN),
        speed_mps: Some(-1.0),
        altitude_m: Some(f64::INFINITY),
        course_deg: Some(f64::NAN),
        ..fix_at(0)
    };
    tracker.handle_reading(&report(0, wild));

    let fix = tracker.poll_fix().unwrap();
    assert_eq!((fix.accuracy_m, fix.speed_mps, fix.altitude_m, fix.course_deg), (None, None, None, None));
}

#[test]
fn a_jump_is_refused_and_the_way_back_is_not() {
    let mut tracker = tracker();
    for second in 0..60 {
        let away_deg = if (20..25).contains(&second) { 0.5 } else { 0.0 };
        tracker.handle_reading(&report(second, moved(fix_at(second), away_deg)));
    }

    assert_eq!(fixes(&mut tracker).len(), 55);
    assert_eq!(tracker.counts().jumps, 5);
}

#[test]
fn a_relocation_is_believed_after_a_while_and_scattered_jumps_are_not() {
    let mut relocated = tracker();
    let mut scattered = tracker();
    for second in 0..200 {
        let away_deg = if second >= 20 { 8.0 } else { 0.0 };
        relocated.handle_reading(&report(second, moved(fix_at(second), away_deg)));
        let scatter_deg = if second >= 20 { 1.0 + f64::from(u8::try_from(second % 7).unwrap()) } else { 0.0 };
        scattered.handle_reading(&report(second, moved(fix_at(second), scatter_deg)));
    }

    assert_eq!(relocated.counts().jumps, 60, "one minute of agreement");
    assert_eq!(relocated.counts().fixes, 140);
    assert_eq!(scattered.counts().jumps, 180);
}

#[test]
fn an_airliner_that_reports_its_speed_is_believed() {
    let mut tracker = tracker();
    for second in 0..60 {
        let away_deg = 0.00225 * f64::from(u8::try_from(second).unwrap());
        tracker.handle_reading(&report(
            second,
            moved(PositionReport { speed_mps: Some(250.0), ..fix_at(second) }, away_deg),
        ));
    }

    assert_eq!(tracker.counts().fixes, 60);
}

#[test]
fn a_silent_receiver_is_stalled_and_a_loss_told_elsewhere_is_not_told_twice() {
    let mut silent = tracker();
    silent.handle_reading(&report(0, fix_at(0)));
    silent.handle_reading(&report(60, fix_at(60)));
    silent.finish(at(61));

    let mut lost = tracker();
    lost.handle_reading(&report(0, fix_at(0)));
    let loss = Loss { length_ms: None, reason: CoverageReason::Unplugged, detail: String::new() };
    lost.handle_reading(&Reading { payload: Payload::Loss(loss), ..report(1, fix_at(0)) });
    lost.handle_reading(&report(60, fix_at(60)));
    lost.finish(at(61));

    assert_eq!(rows(&mut silent), [(0, 60, CoverageReason::Stalled)]);
    assert_eq!(rows(&mut lost), []);
}

#[test]
fn a_long_blindness_is_told_every_hour_so_that_a_power_cut_loses_no_more() {
    let mut tracker = tracker();
    tracker.handle_reading(&report(0, fix_at(0)));
    while let Some(due_ms) = tracker.poll_timeout().filter(|due_ms| *due_ms < 9_000_000) {
        tracker.handle_timeout(at(0).plus_millis(due_ms));
    }
    tracker.finish(at(9_000));

    let expected = [(0, 3_600), (3_600, 7_200), (7_200, 9_000)].map(|(from, to)| (from, to, CoverageReason::Stalled));
    assert_eq!(rows(&mut tracker), expected);
}

#[test]
fn other_classes_and_broken_lines_are_counted_and_change_nothing() {
    let mut tracker = tracker();
    for class in ["PPS", "GST", "TOFF", "ERROR", "ZZZ"] {
        tracker.handle_reading(&of(1, GpsReport::Other(class.to_owned())));
    }
    tracker.handle_reading(&of(2, GpsReport::Malformed("{".to_owned())));
    tracker.handle_reading(&of(2, GpsReport::Satellites { used: 0, seen: 9 }));
    tracker.handle_reading(&report(3, fix_at(3)));
    tracker.finish(at(4));

    let counts = tracker.counts();
    assert_eq!((counts.other, counts.malformed, counts.fixes), (5, 1, 1));
    assert_eq!(rows(&mut tracker), []);
}

#[test]
fn only_a_believable_receiver_time_may_set_the_clock() {
    let cases = [
        ("2026-05-01T09:00:00Z", ReceiverTime::Plausible),
        (BUILD, ReceiverTime::Plausible),
        ("2025-12-31T23:59:59Z", ReceiverTime::TooEarly),
        // 1,024 and 2,048 weeks before what the clock shows.
        ("2006-09-15T09:00:00Z", ReceiverTime::Rollover),
        ("1987-01-30T09:00:00Z", ReceiverTime::Rollover),
        ("2019-04-06T23:59:59Z", ReceiverTime::TooEarly),
        ("1970-01-01T00:00:10Z", ReceiverTime::TooEarly),
        ("2060-01-01T00:00:00Z", ReceiverTime::TooLate),
    ];
    for (time, verdict) in cases {
        let mut tracker = tracker();
        tracker.handle_reading(&report(0, PositionReport { time: Some(Timestamp::parse(time).unwrap()), ..fix_at(0) }));

        let observation = tracker.poll_clock().unwrap();
        assert_eq!(observation.verdict, verdict, "{time}");
    }
}

#[test]
fn a_rollover_is_seen_without_a_clock_too() {
    let mut tracker = tracker();
    let mut reading =
        report(0, PositionReport { time: Some(Timestamp::parse("2006-09-15T09:00:00Z").unwrap()), ..fix_at(0) });
    reading.captured_at = Stamp { monotonic_ms: 0, utc: Timestamp::from_millis(0), quality: ClockQuality::Unset };

    tracker.handle_reading(&reading);

    assert_eq!(tracker.poll_clock().map(|clock| clock.verdict), Some(ReceiverTime::Rollover));
}

#[test]
fn the_receiver_s_time_is_told_once_a_minute_and_never_without_a_fix() {
    let mut tracker = tracker();
    for second in 0..121 {
        tracker.handle_reading(&report(second, fix_at(second)));
    }
    for second in 121..300 {
        tracker.handle_reading(&report(second, PositionReport { mode: 1, ..fix_at(second) }));
    }

    let told: Vec<_> = std::iter::from_fn(|| tracker.poll_clock()).map(|clock| clock.at).collect();
    assert_eq!(told, [at(0), at(60), at(120)]);
}

fn tracker() -> FixTracker {
    FixTracker::new(Config::default(), SourceId::new("gps:test"), Timestamp::parse(BUILD).unwrap())
}

fn at(second: i64) -> Stamp {
    let start = Timestamp::parse(START).unwrap();
    Stamp { monotonic_ms: second * 1000, utc: start.plus_millis(second * 1000), quality: ClockQuality::Network }
}

/// A good report whose receiver time is that of `second`.
fn fix_at(second: i64) -> PositionReport {
    PositionReport {
        mode: 3,
        time: Some(at(second).utc),
        latitude_deg: Some(52.5),
        longitude_deg: Some(13.4),
        ..PositionReport::default()
    }
}

fn moved(report: PositionReport, north_deg: f64) -> PositionReport {
    PositionReport { latitude_deg: report.latitude_deg.map(|latitude_deg| latitude_deg + north_deg), ..report }
}

fn report(second: i64, report: PositionReport) -> Reading {
    of(second, GpsReport::Position(report))
}

fn of(second: i64, report: GpsReport) -> Reading {
    Reading { source: SourceId::new("gps:test"), captured_at: at(second), payload: Payload::Position(report) }
}

fn fixes(tracker: &mut FixTracker) -> Vec<Fix> {
    std::iter::from_fn(|| tracker.poll_fix()).collect()
}

/// Start and end in seconds, and reason.
fn rows(tracker: &mut FixTracker) -> Vec<(i64, i64, CoverageReason)> {
    std::iter::from_fn(|| tracker.poll_coverage())
        .map(|row| (row.from.monotonic_ms / 1000, row.to.monotonic_ms / 1000, row.reason))
        .collect()
}
