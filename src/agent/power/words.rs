//! What the signs mean for a person: the lines of `percept doctor` and `percept status`.
//!
//! In: [`Signs`] and the settings. Out: [`Finding`]s, one sentence each. Never: a decision of the agent; that is the
//! judge's, and the sentences use its marks.

use crate::agent::power::Config;
use crate::agent::power::signs::Signs;

/// How much a finding weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// As it should be.
    Fine,
    /// Worth knowing; percept works as configured.
    Notice,
    /// percept does less than configured, or will soon.
    Problem,
}

/// One sentence about the machine.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// How much it weighs.
    pub weight: Weight,
    /// The sentence.
    pub sentence: String,
}

/// What the signs say, a sentence each; never empty.
#[must_use]
pub fn findings(signs: &Signs, config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(charge(signs, config));
    findings.extend(heat(signs, config));
    findings.extend(throttling(signs));
    findings.extend(memory(signs));
    if findings.is_empty() {
        findings.push(fine("this machine reports no battery, no temperature and no throttling".to_owned()));
    }
    findings
}

fn charge(signs: &Signs, config: &Config) -> Option<Finding> {
    if signs.batteries.is_empty() {
        return None;
    }
    let Some(charge_pct) = signs.charge_pct() else {
        return Some(notice("the battery does not tell its charge: percept cannot stop before it is empty".to_owned()));
    };
    if !signs.is_on_battery() {
        return Some(fine(format!("battery at {charge_pct} %, on external power")));
    }
    let sentence = format!("battery at {charge_pct} % and draining");
    Some(if charge_pct <= config.battery_critical_pct {
        problem(format!("{sentence}: percept stops at {} %", config.battery_critical_pct))
    } else if charge_pct <= config.battery_low_pct {
        problem(format!("{sentence}: optional models are slowed down from {} % on", config.battery_low_pct))
    } else {
        fine(sentence)
    })
}

fn heat(signs: &Signs, config: &Config) -> Option<Finding> {
    let heat = signs.heat.as_ref()?;
    let sentence = format!("{:.0} °C in {}", heat.celsius, heat.zone);
    Some(if heat.celsius >= config.hot_c {
        problem(format!("{sentence}: optional models are slowed down from {} °C on; cool the board", config.hot_c))
    } else {
        fine(sentence)
    })
}

fn throttling(signs: &Signs) -> Vec<Finding> {
    let current = signs.throttle.map(|flags| flags.current()).unwrap_or_default();
    let past = signs.throttle.map(|flags| flags.since_boot()).unwrap_or_default();
    let mut findings = Vec::new();
    if !current.is_empty() {
        findings.push(problem(format!("the Raspberry Pi reports now: {}", current.join(", "))));
    } else if signs.is_under_voltage() {
        findings.push(problem("the Raspberry Pi's supply monitor reports now: under-voltage".to_owned()));
    } else if signs.throttle.is_some() || signs.under_voltage_alarm.is_some() {
        findings.push(fine("the Raspberry Pi reports no throttling".to_owned()));
    }
    let only_past: Vec<&str> = past.into_iter().filter(|name| !current.contains(name)).collect();
    if !only_past.is_empty() {
        findings.push(notice(format!("since boot the Raspberry Pi has reported: {}", only_past.join(", "))));
    }
    if signs.is_under_voltage() || only_past.contains(&"under-voltage") {
        findings.push(notice("under-voltage: use a stronger power supply and a short cable".to_owned()));
    }
    findings
}

/// From this share of time waited for memory on, in percent, a board is thrashing.
const PRESSURE_NOTICE_PCT: f64 = 10.0;

fn memory(signs: &Signs) -> Option<Finding> {
    let pressure_pct = signs.memory_pressure_pct.filter(|pressure_pct| *pressure_pct >= PRESSURE_NOTICE_PCT)?;
    Some(notice(format!("tasks waited for memory in {pressure_pct:.0} % of the last minute: too little for this load")))
}

fn fine(sentence: String) -> Finding {
    Finding { weight: Weight::Fine, sentence }
}

fn notice(sentence: String) -> Finding {
    Finding { weight: Weight::Notice, sentence }
}

fn problem(sentence: String) -> Finding {
    Finding { weight: Weight::Problem, sentence }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::power::signs::Battery;
    use crate::agent::power::signs::BatteryStatus;
    use crate::agent::power::signs::Heat;
    use crate::agent::power::signs::ThrottleFlags;

    #[test]
    fn a_machine_without_any_signs_says_so_in_one_sentence() {
        let findings = findings(&Signs::default(), &Config::default());

        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].weight, Weight::Fine);
    }

    #[test]
    fn throttled_flags_0x50005_are_a_problem_in_words() {
        let signs = Signs { throttle: ThrottleFlags::parse("0x50005"), ..Signs::default() };

        let text = told(&signs);

        assert_eq!(text[0], (Weight::Problem, "the Raspberry Pi reports now: under-voltage, throttled".to_owned()));
        assert!(text[1].1.contains("stronger power supply"));
        assert_eq!(text.len(), 2);
    }

    #[test]
    fn flags_of_the_past_are_worth_knowing_and_no_problem() {
        let signs = Signs { throttle: ThrottleFlags::parse("0x40000"), ..Signs::default() };

        assert_eq!(
            told(&signs),
            [
                (Weight::Fine, "the Raspberry Pi reports no throttling".to_owned()),
                (Weight::Notice, "since boot the Raspberry Pi has reported: throttled".to_owned()),
            ]
        );
    }

    #[test]
    fn the_charge_is_a_problem_only_on_battery() {
        let signs = |charge_pct, status| Signs {
            batteries: vec![Battery { name: "BAT0".to_owned(), charge_pct, status }],
            ..Signs::default()
        };
        let weight = |charge, status| told(&signs(charge, status))[0].0;

        assert_eq!(weight(Some(17), BatteryStatus::Discharging), Weight::Problem);
        assert_eq!(weight(Some(17), BatteryStatus::Supplied), Weight::Fine);
        assert_eq!(weight(Some(90), BatteryStatus::Discharging), Weight::Fine);
        assert_eq!(weight(None, BatteryStatus::Discharging), Weight::Notice);
        assert_eq!(
            told(&signs(Some(4), BatteryStatus::Discharging))[0].1,
            "battery at 4 % and draining: percept stops at 5 %"
        );
    }

    #[test]
    fn heat_and_waiting_for_memory_are_told_with_their_numbers() {
        let heat = Some(Heat { zone: "cpu-thermal".to_owned(), celsius: 81.2 });
        let signs = Signs { heat, memory_pressure_pct: Some(42.0), ..Signs::default() };

        let text = told(&signs);

        assert!(text[0].1.starts_with("81 °C in cpu-thermal: optional models are slowed down from 80 °C"));
        assert!(text[1].1.contains("42 % of the last minute"));
    }

    fn told(signs: &Signs) -> Vec<(Weight, String)> {
        findings(signs, &Config::default()).into_iter().map(|finding| (finding.weight, finding.sentence)).collect()
    }
}
