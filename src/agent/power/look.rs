//! Looks at the machine: the one part of this folder that reads files.
//!
//! In: the root folder (`/`, or a test's own). Out: [`Signs`]. A file that is not there, cannot be read or says
//! nonsense is a sign less, never an error: most machines lack most of them.
//! Never: a verdict. A battery gauge behind a slow bus may take a tenth of a second to answer; this is not for a
//! thread that must not wait.

use crate::agent::power::signs;
use crate::agent::power::signs::Battery;
use crate::agent::power::signs::BatteryStatus;
use crate::agent::power::signs::Heat;
use crate::agent::power::signs::Signs;
use crate::agent::power::signs::ThrottleFlags;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::path::PathBuf;

/// Entries looked at in one folder.
const ENTRIES_MAX: usize = 64;
/// Bytes read of one file.
const FILE_BYTES_MAX: u64 = 512;
/// Where the Raspberry Pi's flags stand on most kernels.
const THROTTLED: &str = "sys/devices/platform/soc/soc:firmware/get_throttled";
/// Where they are found whatever the board calls its firmware node.
const FIRMWARE_NODES: &str = "sys/bus/platform/drivers/raspberrypi-firmware";

/// Everything the machine under `root` says about its power and heat.
#[must_use]
pub fn look(root: &Path) -> Signs {
    let supplies: Vec<Supply> =
        folders(&root.join("sys/class/power_supply")).iter().filter_map(|folder| supply(folder)).collect();
    let online = supplies.iter().filter_map(|supply| match supply {
        Supply::External { is_online } => Some(*is_online),
        Supply::Battery(_) => None,
    });
    let has_external_power = online.reduce(|one, other| one || other);
    let batteries = supplies.into_iter().filter_map(|supply| match supply {
        Supply::Battery(battery) => Some(battery),
        Supply::External { .. } => None,
    });
    Signs {
        batteries: batteries.collect(),
        has_external_power,
        heat: heat(root),
        throttle: throttle(root),
        under_voltage_alarm: under_voltage_alarm(root),
        load: text(&root.join("proc/loadavg")).and_then(|text| signs::load(&text)),
        memory_pressure_pct: text(&root.join("proc/pressure/memory"))
            .and_then(|text| signs::memory_pressure_pct(&text)),
    }
}

enum Supply {
    Battery(Battery),
    External { is_online: bool },
}

/// A supply of the machine itself; `None` for that of a device (a mouse's battery), an empty slot, or a riddle.
fn supply(folder: &Path) -> Option<Supply> {
    let file = |name: &str| text(&folder.join(name));
    let says = |name: &str, value: &str| file(name).is_some_and(|text| text.trim() == value);
    if says("scope", "Device") || says("present", "0") {
        return None;
    }
    match file("type")?.trim() {
        "Battery" | "UPS" => Some(Supply::Battery(Battery {
            name: name(folder),
            charge_pct: signs::charge_pct(file("capacity").as_deref(), file("capacity_level").as_deref()),
            status: file("status").map_or(BatteryStatus::Unknown, |text| BatteryStatus::parse(&text)),
        })),
        _ => {
            let online: u8 = file("online")?.trim().parse().ok()?;
            Some(Supply::External { is_online: online > 0 })
        }
    }
}

fn heat(root: &Path) -> Option<Heat> {
    let zones = folders(&root.join("sys/class/thermal"));
    let zones = zones.iter().filter(|folder| name(folder).starts_with("thermal_zone"));
    let heats = zones.filter_map(|folder| {
        let celsius = text(&folder.join("temp")).and_then(|text| signs::celsius(&text))?;
        let zone = text(&folder.join("type")).map_or_else(|| name(folder), |text| text.trim().to_owned());
        Some(Heat { zone, celsius })
    });
    heats.max_by(|one, other| one.celsius.total_cmp(&other.celsius))
}

fn throttle(root: &Path) -> Option<ThrottleFlags> {
    let usual = text(&root.join(THROTTLED));
    let elsewhere = || folders(&root.join(FIRMWARE_NODES)).iter().find_map(|node| text(&node.join("get_throttled")));
    usual.or_else(elsewhere).and_then(|text| ThrottleFlags::parse(&text))
}

fn under_voltage_alarm(root: &Path) -> Option<bool> {
    let monitors = folders(&root.join("sys/class/hwmon"));
    let is_supply = |folder: &&PathBuf| text(&folder.join("name")).is_some_and(|name| name.trim() == "rpi_volt");
    let alarm = text(&monitors.iter().find(is_supply)?.join("in0_lcrit_alarm"))?;
    Some(alarm.trim() == "1")
}

/// What is in a folder, by name; the kernel's class folders hold links.
fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().take(ENTRIES_MAX);
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
}

fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn text(path: &Path) -> Option<String> {
    let mut text = String::new();
    File::open(path).ok()?.take(FILE_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_says_nothing_gives_no_signs() {
        let root = tempfile::tempdir().unwrap();

        assert_eq!(look(root.path()), Signs::default());
    }

    #[test]
    fn a_raspberry_pi_tells_its_flags_and_its_heat() {
        let root = Machine::new();
        root.file(THROTTLED, "50005\n");
        root.file("sys/class/thermal/thermal_zone0/type", "cpu-thermal\n");
        root.file("sys/class/thermal/thermal_zone0/temp", "81234\n");
        root.file("sys/class/thermal/thermal_zone1/temp", "-274000\n");
        root.file("sys/class/thermal/cooling_device0/temp", "99000\n");

        let signs = look(root.path());

        assert_eq!(signs.throttle, ThrottleFlags::parse("0x50005"));
        assert_eq!(signs.heat, Some(Heat { zone: "cpu-thermal".to_owned(), celsius: 81.234 }));
    }

    #[test]
    fn the_flags_are_found_under_any_name_of_the_firmware_node_and_the_alarm_without_flags() {
        let root = Machine::new();
        root.file(&format!("{FIRMWARE_NODES}/soc@107c000000:firmware/get_throttled"), "1\n");
        root.file("sys/class/hwmon/hwmon0/name", "cpu_thermal\n");
        root.file("sys/class/hwmon/hwmon1/name", "rpi_volt\n");
        root.file("sys/class/hwmon/hwmon1/in0_lcrit_alarm", "1\n");

        let signs = look(root.path());

        assert_eq!(signs.throttle, ThrottleFlags::parse("1"));
        assert_eq!(signs.under_voltage_alarm, Some(true));
    }

    #[test]
    fn the_batteries_of_the_machine_count_and_those_of_its_devices_and_empty_slots_do_not() {
        let root = Machine::new();
        root.supply("BAT0", &[("type", "Battery"), ("capacity", "17"), ("status", "Discharging"), ("present", "1")]);
        root.supply("BAT1", &[("type", "Battery"), ("capacity", "0"), ("present", "0")]);
        root.supply("hidpp_battery_0", &[("type", "Battery"), ("capacity", "2"), ("scope", "Device")]);
        root.supply("AC", &[("type", "Mains"), ("online", "0")]);

        let signs = look(root.path());

        let battery = Battery { name: "BAT0".to_owned(), charge_pct: Some(17), status: BatteryStatus::Discharging };
        assert_eq!(signs.batteries, [battery]);
        assert_eq!(signs.has_external_power, Some(false));
        assert!(signs.is_on_battery());
    }

    #[test]
    fn one_supply_of_several_that_delivers_is_enough() {
        let root = Machine::new();
        root.supply("AC", &[("type", "Mains"), ("online", "0")]);
        root.supply("usb", &[("type", "USB"), ("online", "1")]);
        root.supply("riddle", &[("online", "1")]);

        assert_eq!(look(root.path()).has_external_power, Some(true));
    }

    #[test]
    fn a_gauge_that_gives_only_a_word_or_nothing_readable_still_counts_as_a_battery() {
        let root = Machine::new();
        root.supply("gauge", &[("type", "Battery"), ("capacity_level", "Critical"), ("status", "Discharging")]);
        root.supply("mute", &[("type", "UPS")]);

        let charges: Vec<_> = look(root.path()).batteries.into_iter().map(|battery| battery.charge_pct).collect();

        assert_eq!(charges, [Some(1), None]);
    }

    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn path(&self) -> &Path {
            self.0.path()
        }

        fn file(&self, path: &str, text: &str) {
            let path = self.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        fn supply(&self, name: &str, files: &[(&str, &str)]) {
            for (file, text) in files {
                self.file(&format!("sys/class/power_supply/{name}/{file}"), &format!("{text}\n"));
            }
        }
    }
}
