//! One reading for each device and second: two thousand advertisements a second become as many readings as there are
//! devices.
//!
//! In: advertisements as they come. Out, once a second: for each device the latest of what it told, with the strongest
//! signal of that second, in the order of capture. Memory is bounded; devices beyond the bound are counted.

use crate::domain::reading::Advertisement;
use crate::domain::time::Stamp;
use std::collections::BTreeMap;

/// Length of a window.
const WINDOW_MS: i64 = 1_000;

/// Devices of one window, at most.
pub(super) const DEVICES_MAX: usize = 4_096;

/// The second at hand.
#[derive(Default)]
pub(super) struct Window {
    from_ms: Option<i64>,
    heard: BTreeMap<[u8; 6], (Stamp, Advertisement)>,
    dropped: u64,
}

impl Window {
    /// Takes an advertisement of a device.
    pub(super) fn handle(&mut self, device: [u8; 6], at: Stamp, advertisement: Advertisement) {
        self.from_ms.get_or_insert(at.monotonic_ms);
        if let Some((strongest_at, held)) = self.heard.get_mut(&device) {
            let rssi_dbm = held.rssi_dbm;
            *held = advertisement;
            match measured(held.rssi_dbm) > measured(rssi_dbm) {
                true => *strongest_at = at,
                false => held.rssi_dbm = rssi_dbm,
            }
        } else if self.heard.len() < DEVICES_MAX {
            self.heard.insert(device, (at, advertisement));
        } else {
            self.dropped += 1;
        }
    }

    /// When the window closes.
    pub(super) fn poll_timeout(&self) -> Option<i64> {
        self.from_ms.map(|from_ms| from_ms + WINDOW_MS)
    }

    /// Closes the window: its readings, in the order of capture, and how many advertisements were dropped.
    pub(super) fn close(&mut self) -> (Vec<(Stamp, Advertisement)>, u64) {
        self.from_ms = None;
        let mut readings: Vec<_> = std::mem::take(&mut self.heard).into_values().collect();
        readings.sort_by_key(|(at, _)| at.monotonic_ms);
        (readings, std::mem::take(&mut self.dropped))
    }
}

/// A signal strength, unless it stands for "none": 127 and 0 do, and nothing above +20 dBm is ever received.
fn measured(rssi_dbm: Option<i16>) -> Option<i16> {
    rssi_dbm.filter(|rssi_dbm| (-127..=20).contains(rssi_dbm) && *rssi_dbm != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::reading::AddressType;
    use crate::domain::reading::Sender;
    use crate::domain::time::ClockQuality;
    use crate::domain::time::Timestamp;

    fn at(monotonic_ms: i64) -> Stamp {
        Stamp { monotonic_ms, utc: Timestamp::from_millis(monotonic_ms), quality: ClockQuality::Network }
    }

    fn advertisement(device: [u8; 6], rssi_dbm: i16) -> Advertisement {
        Advertisement {
            sender: Sender::Address(device, AddressType::Random),
            rssi_dbm: Some(rssi_dbm),
            name: None,
            service_uuids: Vec::new(),
            manufacturer_data: Vec::new(),
        }
    }

    #[test]
    fn the_strongest_real_signal_of_the_second_is_kept() {
        let mut window = Window::default();
        for (ms, rssi_dbm) in [(0, -60), (100, -62), (200, 127), (300, 0), (400, 79), (500, -61)] {
            window.handle([1; 6], at(ms), advertisement([1; 6], rssi_dbm));
        }

        let (readings, _) = window.close();

        assert_eq!(readings, [(at(0), advertisement([1; 6], -60))]);
    }

    #[test]
    fn a_measurement_replaces_a_sentinel_and_a_sentinel_alone_stays_what_it_is() {
        let mut window = Window::default();
        window.handle([1; 6], at(0), advertisement([1; 6], 127));
        window.handle([1; 6], at(9), advertisement([1; 6], -90));
        window.handle([2; 6], at(5), advertisement([2; 6], 127));

        let (readings, _) = window.close();

        assert_eq!(readings, [(at(5), advertisement([2; 6], 127)), (at(9), advertisement([1; 6], -90))]);
    }

    #[test]
    fn a_window_holds_so_many_devices_and_counts_the_others() {
        let mut window = Window::default();
        for number in 0..50_000_u32 {
            let [_, b, c, d] = number.to_be_bytes();
            let device = [0, 0, 0, b, c, d];
            window.handle(device, at(0), advertisement(device, -50));
        }

        let (readings, dropped) = window.close();

        assert_eq!((readings.len(), dropped), (DEVICES_MAX, (50_000 - DEVICES_MAX) as u64));
        assert_eq!(window.poll_timeout(), None);
    }
}
