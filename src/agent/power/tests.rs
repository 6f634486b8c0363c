//! How the judge behaves over time.

use super::*;
use crate::domain::coverage::CoverageReason;
use crate::domain::id::SourceId;
use crate::domain::time::ClockQuality;
use crate::domain::time::Stamp;
use crate::domain::time::Timestamp;

#[test]
fn throttled_flags_0x50005_save_power_for_two_reasons_and_both_become_coverage() {
    let mut judge = judge();

    let assessment = judge.handle_signs(&flags("0x50005"), at(0)).clone();
    for second in (10..=70).step_by(10) {
        judge.handle_signs(&flags("0x50000"), at(second));
    }

    assert_eq!(assessment.level, Level::Saving);
    assert_eq!(assessment.causes, [Cause::Throttled, Cause::UnderVoltage]);
    assert_eq!(judge.assessment().level, Level::Normal);
    let rows: Vec<_> = stretches(&mut judge).iter().map(|row| row.coverage(SourceId::new("camera:x"))).collect();
    let told: Vec<_> = rows.iter().map(|row| (row.reason, row.detail.as_deref().unwrap())).collect();
    assert_eq!(
        told,
        [
            (CoverageReason::Throttled, "the board slows its processor down"),
            (CoverageReason::LowPower, "the supply's voltage is too low"),
        ]
    );
    assert!(rows.iter().all(|row| (row.from, row.to) == (at(0), at(60))));
}

#[test]
fn flags_that_are_only_of_the_past_change_nothing() {
    let mut judge = judge();

    judge.handle_signs(&flags("0x50000"), at(0));

    assert_eq!(judge.assessment(), &Assessment::default());
}

#[test]
fn a_flag_that_comes_and_goes_is_one_stretch() {
    let mut judge = judge();

    for second in 0..300 {
        let assessment = judge.handle_signs(&flags(if second % 20 == 0 { "4" } else { "0" }), at(second));
        assert_eq!(assessment.level, Level::Saving, "second {second}");
    }
    judge.finish(at(300));

    let rows = stretches(&mut judge);
    assert_eq!(rows.iter().map(|row| (row.from, row.to)).collect::<Vec<_>>(), [(at(0), at(300))]);
}

#[test]
fn heat_is_over_only_when_it_is_cool_and_has_been_for_a_while() {
    let mut judge = judge();
    let mut level = |celsius, second| judge.handle_signs(&heat(celsius), at(second)).level;

    assert_eq!(level(79.9, 0), Level::Normal);
    assert_eq!(level(80.0, 10), Level::Saving);
    assert_eq!(level(76.0, 200), Level::Saving);
    assert_eq!(level(74.0, 230), Level::Saving);
    assert_eq!(level(74.0, 260), Level::Normal);
    assert_eq!(level(76.0, 270), Level::Normal);
}

#[test]
fn a_low_battery_saves_power_until_it_is_charged_well_above_the_mark() {
    let mut judge = judge();
    let mut level = |charge, second| judge.handle_signs(&battery(charge), at(second)).level;

    assert_eq!(level(Some(21), 0), Level::Normal);
    assert_eq!(level(Some(20), 10), Level::Saving);
    assert_eq!(level(Some(24), 500), Level::Saving);
    assert_eq!(level(Some(25), 510), Level::Saving);
    assert_eq!(level(Some(25), 570), Level::Normal);
}

#[test]
fn a_low_battery_does_not_matter_on_external_power() {
    let mut judge = judge();
    let mut signs = battery(Some(3));
    signs.batteries[0].status = BatteryStatus::Supplied;

    judge.handle_signs(&signs, at(0));
    judge.handle_signs(&signs, at(10));

    assert_eq!(judge.assessment().level, Level::Normal);
}

#[test]
fn a_critical_battery_stops_the_agent_when_two_looks_see_it() {
    let mut judge = judge();

    assert_eq!(judge.handle_signs(&battery(Some(5)), at(0)).level, Level::Saving);
    assert_eq!(judge.handle_signs(&battery(Some(5)), at(10)).level, Level::Critical);
    judge.finish(at(11));

    let rows = stretches(&mut judge);
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].from, rows[0].to, rows[0].reason), (at(0), at(11), CoverageReason::LowPower));
    assert_eq!(rows[0].detail, "the battery is low; the battery is nearly empty");
}

#[test]
fn one_misread_charge_stops_nothing() {
    let mut judge = judge();

    for (second, charge) in [(0, 60), (10, 0), (20, 60), (30, 0), (40, 60)] {
        assert!(judge.handle_signs(&battery(Some(charge)), at(second)).level < Level::Critical);
    }
}

#[test]
fn a_critical_battery_is_well_again_once_external_power_holds() {
    let mut judge = judge();
    judge.handle_signs(&battery(Some(4)), at(0));
    judge.handle_signs(&battery(Some(4)), at(10));
    let mut charging = battery(Some(4));
    charging.batteries[0].status = BatteryStatus::Supplied;

    assert_eq!(judge.handle_signs(&charging, at(20)).level, Level::Critical);
    assert_eq!(judge.handle_signs(&charging, at(70)).level, Level::Normal);
}

#[test]
fn a_gauge_that_falls_silent_leaves_the_verdict_as_it_was() {
    let mut judge = judge();
    judge.handle_signs(&battery(Some(15)), at(0));

    assert_eq!(judge.handle_signs(&battery(None), at(500)).level, Level::Saving);
    assert_eq!(judge.handle_signs(&Signs::default(), at(510)).level, Level::Normal);
}

#[test]
fn marks_at_zero_never_slow_or_stop() {
    let config = Config { battery_low_pct: 0, battery_critical_pct: 0, ..Config::default() };
    let mut judge = PowerJudge::new(config);

    judge.handle_signs(&battery(Some(0)), at(0));
    judge.handle_signs(&battery(Some(0)), at(10));

    assert_eq!(judge.assessment().level, Level::Normal);
}

#[test]
fn a_day_of_heat_is_a_row_an_hour_without_holes() {
    let mut judge = judge();

    for second in (0..86_400).step_by(60) {
        judge.handle_signs(&heat(85.0), at(second));
    }
    judge.finish(at(86_400));

    let rows = stretches(&mut judge);
    assert_eq!(rows.len(), 24);
    assert!(rows.windows(2).all(|pair| pair[0].to == pair[1].from));
    assert_eq!((rows[0].from, rows[23].to), (at(0), at(86_400)));
}

#[test]
fn rows_that_nobody_fetches_are_bounded() {
    let mut judge = judge();

    for hour in 0..1000 {
        judge.handle_signs(&heat(85.0), at(hour * 3600));
    }

    assert_eq!(stretches(&mut judge).len(), 64);
}

#[test]
fn wrong_settings_are_told_each_in_a_sentence() {
    let config = Config {
        battery_low_pct: 101,
        battery_critical_pct: 102,
        hot_c: f64::NAN,
        cool_c: -1.0,
        hold_s: -1.0,
        look_s: 0.0,
    };

    let mistakes = config.mistakes();

    for key in ["battery_low_pct", "battery_critical_pct", "hot_c", "cool_c", "hold_s", "look_s"] {
        assert!(mistakes.iter().any(|mistake| mistake.starts_with(key)), "{key}: {mistakes:?}");
    }
    assert!(Config::default().mistakes().is_empty());
    let crossed = Config { cool_c: 81.0, battery_critical_pct: 20, ..Config::default() };
    assert_eq!(crossed.mistakes().len(), 2);
}

fn judge() -> PowerJudge {
    PowerJudge::new(Config::default())
}

fn at(second: i64) -> Stamp {
    let utc = Timestamp::from_millis(1_796_000_000_000 + second * 1000);
    Stamp { monotonic_ms: second * 1000, utc, quality: ClockQuality::Network }
}

fn flags(text: &str) -> Signs {
    Signs { throttle: ThrottleFlags::parse(text), ..Signs::default() }
}

fn heat(celsius: f64) -> Signs {
    Signs { heat: Some(Heat { zone: "cpu-thermal".to_owned(), celsius }), ..Signs::default() }
}

fn battery(charge_pct: Option<u8>) -> Signs {
    let battery = Battery { name: "BAT0".to_owned(), charge_pct, status: BatteryStatus::Discharging };
    Signs { batteries: vec![battery], ..Signs::default() }
}

fn stretches(judge: &mut PowerJudge) -> Vec<Stretch> {
    std::iter::from_fn(|| judge.poll_stretch()).collect()
}
