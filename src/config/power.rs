//! When the agent spares the machine, and when it stops.

/// When the agent saves power, and when it stops.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// On battery, optional models slow down at this charge in percent and below; 0 never.
    pub battery_low_pct: u8,
    /// On battery, percept stops cleanly at this charge in percent and below; 0 never.
    pub battery_critical_pct: u8,
    /// Optional models slow down at this temperature in degrees Celsius and above.
    pub hot_c: f64,
    /// Having been hot, they go on slowly until it is cooler than this, in degrees Celsius.
    pub cool_c: f64,
    /// Seconds a reason to save power must have been gone before it is over.
    pub hold_s: f64,
    /// Seconds between two looks at the machine.
    pub look_s: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { battery_low_pct: 20, battery_critical_pct: 5, hot_c: 80.0, cool_c: 75.0, hold_s: 60.0, look_s: 10.0 }
    }
}

impl Config {
    /// What is wrong with the values, one sentence each.
    #[must_use]
    pub fn mistakes(&self) -> Vec<String> {
        let mut mistakes = Vec::new();
        let percents = [("battery_low_pct", self.battery_low_pct), ("battery_critical_pct", self.battery_critical_pct)];
        for (key, value) in percents.into_iter().filter(|(_, value)| *value > 100) {
            mistakes.push(format!("{key} = {value} must be a percentage, 0 to 100"));
        }
        if self.battery_low_pct > 0 && self.battery_critical_pct >= self.battery_low_pct {
            let (critical, low) = (self.battery_critical_pct, self.battery_low_pct);
            mistakes.push(format!("battery_critical_pct = {critical} must be below battery_low_pct = {low}"));
        }
        let degrees = [("hot_c", self.hot_c), ("cool_c", self.cool_c)];
        for (key, value) in degrees.into_iter().filter(|(_, value)| !(0.0..=125.0).contains(value)) {
            mistakes.push(format!("{key} = {value} must be degrees Celsius, 0 to 125"));
        }
        if self.cool_c > self.hot_c {
            mistakes.push(format!("cool_c = {} must not be above hot_c = {}", self.cool_c, self.hot_c));
        }
        if !(self.hold_s.is_finite() && self.hold_s >= 0.0) {
            mistakes.push(format!("hold_s = {} must be a number, 0 or above", self.hold_s));
        }
        if !(self.look_s.is_finite() && self.look_s > 0.0) {
            mistakes.push(format!("look_s = {} must be a number above 0", self.look_s));
        }
        mistakes
    }
}
