//! What gpsd says about itself: which receivers it has. Not a capture.
//!
//! In: the JSON of a line. Out: what it tells about receivers; `None` for a report that is for the pipeline.

use serde_json::Value;
use std::collections::BTreeSet;

/// Most receivers that are remembered; gpsd itself opens at most a handful.
const RECEIVERS_MAX: usize = 64;

/// A line about gpsd itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Control {
    /// VERSION: the release.
    Version(String),
    /// DEVICES: all receivers.
    Devices(Vec<Receiver>),
    /// DEVICE: one receiver came (`true`) or went.
    Device(Receiver, bool),
    /// WATCH: the answer to our command.
    Watch,
}

/// A receiver as gpsd describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Receiver {
    /// Its device node.
    pub path: String,
    /// gpsd's driver for it, once it knows.
    pub driver: Option<String>,
}

impl Control {
    /// Reads a line; `None` when it is about something else.
    pub(super) fn read(value: &Value) -> Option<Self> {
        match value.get("class")?.as_str()? {
            "VERSION" => Some(Self::Version(text(value, "release").unwrap_or_default())),
            "DEVICES" => {
                let list = value.get("devices").and_then(Value::as_array);
                let receivers = list.into_iter().flatten().take(RECEIVERS_MAX).filter_map(receiver);
                Some(Self::Devices(receivers.collect()))
            }
            "DEVICE" => Some(Self::Device(receiver(value)?, !is_deactivated(value))),
            "WATCH" => Some(Self::Watch),
            _ => None,
        }
    }
}

fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(Value::as_str).map(str::to_owned)
}

fn receiver(value: &Value) -> Option<Receiver> {
    Some(Receiver { path: text(value, "path")?, driver: text(value, "driver").filter(|driver| !driver.is_empty()) })
}

/// gpsd writes the time of activation, and 0 for a receiver that went away.
fn is_deactivated(value: &Value) -> bool {
    value.get("activated").and_then(Value::as_f64) == Some(0.0)
}

/// The receivers gpsd has, as far as it told.
#[derive(Debug, Default)]
pub(super) struct Receivers {
    paths: BTreeSet<String>,
    is_told: bool,
}

impl Receivers {
    /// Takes what gpsd said.
    pub(super) fn handle(&mut self, control: &Control) {
        match control {
            Control::Devices(all) => {
                self.is_told = true;
                self.paths = all.iter().map(|receiver| receiver.path.clone()).collect();
            }
            Control::Device(receiver, true) if self.paths.len() < RECEIVERS_MAX => {
                self.paths.insert(receiver.path.clone());
            }
            Control::Device(receiver, false) => {
                self.is_told = true;
                self.paths.remove(&receiver.path);
            }
            Control::Device(..) | Control::Version(_) | Control::Watch => {}
        }
    }

    /// A report came: there is a receiver, whatever was told.
    pub(super) fn report_came(&mut self) {
        self.is_told = false;
    }

    /// Whether gpsd said that it has none.
    pub(super) fn are_none(&self) -> bool {
        self.is_told && self.paths.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<Control> {
        Control::read(&serde_json::from_str(line).unwrap())
    }

    fn usb(driver: Option<&str>) -> Receiver {
        Receiver { path: "/dev/ttyACM0".to_owned(), driver: driver.map(str::to_owned) }
    }

    #[test]
    fn gpsd_tells_of_itself_and_of_its_receivers() {
        assert_eq!(read(r#"{"class":"VERSION","release":"3.22","rev":"3.22"}"#), Some(Control::Version("3.22".into())));
        assert_eq!(read(r#"{"class":"WATCH","enable":true}"#), Some(Control::Watch));
        assert_eq!(
            read(r#"{"class":"DEVICES","devices":[{"class":"DEVICE","path":"/dev/ttyACM0","driver":"u-blox"},7]}"#),
            Some(Control::Devices(vec![usb(Some("u-blox"))]))
        );
        assert_eq!(read(r#"{"class":"TPV","mode":1}"#), None);
    }

    #[test]
    fn a_receiver_that_goes_and_comes_is_noticed() {
        let mut receivers = Receivers::default();
        assert!(!receivers.are_none());
        let lines = [
            (r#"{"class":"DEVICES","devices":[]}"#, true),
            (r#"{"class":"DEVICE","path":"/dev/ttyACM0","activated":"2026-12-01T00:00:00.000Z"}"#, false),
            (r#"{"class":"DEVICE","path":"/dev/ttyACM0","activated":0}"#, true),
            (r#"{"class":"DEVICE","path":"/dev/ttyACM0","bps":115200}"#, false),
        ];

        for (line, are_none) in lines {
            receivers.handle(&read(line).unwrap());

            assert_eq!(receivers.are_none(), are_none, "{line}");
        }
    }
}
