//! What a machine says about its power and heat, as plain values.
//!
//! In: the texts of single files under /sys and /proc. Out: [`Signs`]. Never: files, verdicts.

/// One look at the machine. What it does not tell is `None` or empty.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize)]
pub struct Signs {
    /// The batteries that the machine itself runs on.
    pub batteries: Vec<Battery>,
    /// Whether a mains or USB supply delivers; `None` when the machine names no such supply.
    pub has_external_power: Option<bool>,
    /// The hottest zone.
    pub heat: Option<Heat>,
    /// The Raspberry Pi's own flags.
    pub throttle: Option<ThrottleFlags>,
    /// The alarm of the Raspberry Pi's supply monitor, where the kernel offers no flags.
    pub under_voltage_alarm: Option<bool>,
    /// Load average over one minute: tasks that run or want to.
    pub load: Option<f64>,
    /// Share of the last minute in which some task waited for memory, in percent.
    pub memory_pressure_pct: Option<f64>,
}

/// A battery.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Battery {
    /// The kernel's name for it.
    pub name: String,
    /// Charge, 0 to 100; `None` when it could not be read this time.
    pub charge_pct: Option<u8>,
    /// What it is doing.
    pub status: BatteryStatus,
}

/// What a battery is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BatteryStatus {
    /// The machine runs on it.
    Discharging,
    /// Charging, full, or held at its charge by an external supply.
    Supplied,
    /// It does not say.
    Unknown,
}

/// A temperature.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Heat {
    /// The kernel's name for the zone, e.g. `cpu-thermal`.
    pub zone: String,
    /// Degrees Celsius.
    pub celsius: f64,
}

impl Signs {
    /// Mean charge of the batteries that tell theirs, in percent: two half-empty ones are one half-empty one.
    #[must_use]
    pub fn charge_pct(&self) -> Option<u8> {
        let charges: Vec<u32> = self.batteries.iter().filter_map(|battery| battery.charge_pct).map(u32::from).collect();
        let count = u32::try_from(charges.len()).unwrap_or(u32::MAX);
        let mean = charges.iter().sum::<u32>().checked_div(count)?;
        u8::try_from(mean).ok()
    }

    /// Whether the machine lives on its battery. A battery that says so is believed before the supply: a weak
    /// charger is online and the battery drains all the same.
    #[must_use]
    pub fn is_on_battery(&self) -> bool {
        let says = |status| self.batteries.iter().any(|battery| battery.status == status);
        if self.batteries.is_empty() {
            return false;
        }
        says(BatteryStatus::Discharging) || (!says(BatteryStatus::Supplied) && self.has_external_power != Some(true))
    }

    /// Whether the supply's voltage is too low at this moment.
    #[must_use]
    pub fn is_under_voltage(&self) -> bool {
        self.throttle.map_or(self.under_voltage_alarm == Some(true), |flags| flags.is_under_voltage())
    }
}

impl BatteryStatus {
    /// From the kernel's `status` file.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text.trim() {
            "Discharging" => Self::Discharging,
            "Charging" | "Full" | "Not charging" => Self::Supplied,
            _ => Self::Unknown,
        }
    }
}

/// A charge in percent from the kernel's `capacity` or, without it, from the words of `capacity_level`.
#[must_use]
pub(super) fn charge_pct(capacity: Option<&str>, level: Option<&str>) -> Option<u8> {
    let exact = capacity.and_then(|text| text.trim().parse::<u8>().ok()).filter(|charge| *charge <= 100);
    exact.or_else(|| match level?.trim() {
        "Critical" => Some(1),
        "Low" => Some(10),
        "Normal" => Some(50),
        "High" => Some(80),
        "Full" => Some(100),
        _ => None,
    })
}

/// Degrees from the millidegrees of a thermal zone, unless no board could live at them: a sensor that is off says
/// things like -274000 or 0x7fff.
#[must_use]
pub(super) fn celsius(text: &str) -> Option<f64> {
    let celsius = text.trim().parse::<i32>().ok().map(|millis| f64::from(millis) / 1000.0)?;
    (-40.0..=150.0).contains(&celsius).then_some(celsius)
}

/// The Raspberry Pi's throttling flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(transparent)]
pub struct ThrottleFlags(u32);

impl ThrottleFlags {
    /// From hexadecimal text, with or without `0x` or vcgencmd's `throttled=` before it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_prefix("throttled=").unwrap_or(text);
        let digits = text.strip_prefix("0x").unwrap_or(text);
        u32::from_str_radix(digits, 16).ok().map(Self)
    }

    /// Bit 0: the supply's voltage is too low at this moment.
    #[must_use]
    pub const fn is_under_voltage(self) -> bool {
        self.0 & 1 != 0
    }

    /// Bits 1 to 3: the processor is slowed down at this moment (frequency capped, throttled, soft temperature limit).
    #[must_use]
    pub const fn is_slowed(self) -> bool {
        self.0 & 0b1110 != 0
    }

    /// What is true at this moment, in words.
    #[must_use]
    pub fn current(self) -> Vec<&'static str> {
        words(self.0)
    }

    /// What happened at least once since boot, in words.
    #[must_use]
    pub fn since_boot(self) -> Vec<&'static str> {
        words(self.0 >> 16)
    }
}

/// The lowest four bits in words.
fn words(bits: u32) -> Vec<&'static str> {
    let names = ["under-voltage", "frequency capped", "throttled", "soft temperature limit"];
    (0..).zip(names).filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, name)| name).collect()
}

/// The first number of `/proc/loadavg`.
#[must_use]
pub(super) fn load(text: &str) -> Option<f64> {
    number(text.split_whitespace().next()?)
}

/// `some avg60` of `/proc/pressure/memory`, in percent.
#[must_use]
pub(super) fn memory_pressure_pct(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    number(line.split_whitespace().find_map(|word| word.strip_prefix("avg60="))?)
}

fn number(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throttled_flags_0x50005_are_under_voltage_and_throttled_at_this_moment_and_before() {
        let flags = ThrottleFlags::parse("0x50005\n").unwrap();

        assert_eq!(flags.current(), ["under-voltage", "throttled"]);
        assert_eq!(flags.since_boot(), ["under-voltage", "throttled"]);
        assert!(flags.is_under_voltage() && flags.is_slowed());
    }

    #[test]
    fn flags_of_the_past_are_not_true_at_this_moment() {
        let flags = ThrottleFlags::parse("50000").unwrap();

        assert!(flags.current().is_empty() && !flags.is_under_voltage() && !flags.is_slowed());
        assert_eq!(flags.since_boot(), ["under-voltage", "throttled"]);
    }

    #[test]
    fn flags_are_read_with_and_without_prefix_and_nonsense_is_nothing() {
        let parse = |text| ThrottleFlags::parse(text).map(|flags| flags.current().len());

        assert_eq!(["0xf", "f", "throttled=0xF\n"].map(parse), [Some(4); 3]);
        assert_eq!(["", "0x", "-1", "yes", "0x1ffffffff"].map(parse), [None; 5]);
    }

    #[test]
    fn a_charge_comes_from_the_number_else_from_the_word() {
        assert_eq!(charge_pct(Some("17\n"), Some("Full")), Some(17));
        assert_eq!(charge_pct(Some("255"), Some("Critical")), Some(1));
        assert_eq!(charge_pct(None, Some("Unknown")), None);
        assert_eq!(charge_pct(Some("-3"), None), None);
    }

    #[test]
    fn a_temperature_no_board_survives_is_no_temperature() {
        assert_eq!(celsius("81234\n"), Some(81.234));
        assert_eq!(["-274000", "32767000", "", "warm"].map(celsius), [None; 4]);
    }

    #[test]
    fn load_and_memory_pressure_are_read_from_their_lines() {
        assert_eq!(load("0.90 1.25 1.56 3/105 397\n"), Some(0.9));
        let text = "some avg10=1.00 avg60=12.50 avg300=0.00 total=7\nfull avg10=0.00 avg60=3.00 avg300=0.00 total=0\n";
        assert_eq!(memory_pressure_pct(text), Some(12.5));
        assert_eq!((load("nan 1"), memory_pressure_pct("full avg60=1")), (None, None));
    }

    #[test]
    fn a_battery_that_drains_is_believed_before_the_charger_that_is_online() {
        let signs = |status, has_external_power| Signs {
            batteries: vec![Battery { name: "BAT0".to_owned(), charge_pct: Some(50), status }],
            has_external_power,
            ..Signs::default()
        };

        assert!(signs(BatteryStatus::Discharging, Some(true)).is_on_battery());
        assert!(signs(BatteryStatus::Unknown, None).is_on_battery());
        assert!(!signs(BatteryStatus::Unknown, Some(true)).is_on_battery());
        assert!(!signs(BatteryStatus::Supplied, None).is_on_battery());
        assert!(!Signs::default().is_on_battery());
    }
}
