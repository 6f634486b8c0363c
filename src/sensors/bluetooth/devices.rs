//! What each device told so far: BlueZ tells only what changed, and a reading says the whole.
//!
//! Bounded: the device that was heard longest ago is forgotten first, and counted.

use super::facts::Facts;
use crate::domain::reading::AddressType;
use crate::domain::reading::Advertisement;
use crate::domain::reading::Sender;
use std::collections::BTreeMap;

/// Devices that are remembered.
pub(super) const DEVICES_MAX: usize = 4_096;

/// The devices.
#[derive(Default)]
pub(super) struct Devices {
    known: BTreeMap<[u8; 6], Known>,
    /// By the turn in which each was last heard.
    order: BTreeMap<u64, [u8; 6]>,
    turn: u64,
    forgotten: u64,
}

struct Known {
    turn: u64,
    address: [u8; 6],
    address_type: AddressType,
    name: Option<String>,
    service_uuids: Vec<String>,
    manufacturer_data: Vec<(u16, Vec<u8>)>,
}

impl Devices {
    /// Takes what was told of a device; the advertisement as a whole, when it was one. `None` for a device of which not
    /// even the kind of address is known: BlueZ has to be asked for it.
    pub(super) fn handle(&mut self, device: [u8; 6], facts: Facts) -> Option<Advertisement> {
        let turn = self.turn;
        self.turn += 1;
        if let Some(known) = self.known.get_mut(&device) {
            self.order.remove(&known.turn);
        } else {
            let known = Known {
                turn,
                address: facts.address.unwrap_or(device),
                address_type: facts.address_type?,
                name: None,
                service_uuids: Vec::new(),
                manufacturer_data: Vec::new(),
            };
            self.make_room();
            self.known.insert(device, known);
        }
        self.order.insert(turn, device);
        let known = self.known.get_mut(&device)?;
        known.turn = turn;
        known.learn(facts)
    }

    fn make_room(&mut self) {
        if self.known.len() < DEVICES_MAX {
            return;
        }
        if let Some((_, oldest)) = self.order.pop_first() {
            self.known.remove(&oldest);
            self.forgotten += 1;
            // One line for each doubling: a crowd of thousands fills no log.
            if self.forgotten.is_power_of_two() {
                tracing::info!(forgotten = self.forgotten, "more Bluetooth devices than are remembered at once");
            }
        }
    }
}

impl Known {
    fn learn(&mut self, facts: Facts) -> Option<Advertisement> {
        let rssi_dbm = facts.rssi_dbm;
        let is_heard = facts.is_heard();
        self.address = facts.address.unwrap_or(self.address);
        self.address_type = facts.address_type.unwrap_or(self.address_type);
        self.name = facts.name.or_else(|| self.name.take());
        self.service_uuids = facts.service_uuids.unwrap_or_else(|| std::mem::take(&mut self.service_uuids));
        self.manufacturer_data = facts.manufacturer_data.unwrap_or_else(|| std::mem::take(&mut self.manufacturer_data));
        is_heard.then(|| Advertisement {
            sender: Sender::Address(self.address, self.address_type),
            rssi_dbm,
            name: self.name.clone(),
            service_uuids: self.service_uuids.clone(),
            manufacturer_data: self.manufacturer_data.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first() -> Facts {
        Facts {
            address_type: Some(AddressType::Random),
            name: Some("Watch".to_owned()),
            rssi_dbm: Some(-60),
            manufacturer_data: Some(vec![(0x4C, vec![2])]),
            ..Facts::default()
        }
    }

    #[test]
    fn a_change_is_told_with_all_that_was_known_before() {
        let mut devices = Devices::default();
        devices.handle([1; 6], first());

        let told = devices.handle([1; 6], Facts { rssi_dbm: Some(-61), ..Facts::default() }).unwrap();

        assert_eq!((told.rssi_dbm, told.name.as_deref()), (Some(-61), Some("Watch")));
        assert_eq!(told.manufacturer_data, [(0x4C, vec![2])]);
        assert_eq!(told.sender, Sender::Address([1; 6], AddressType::Random));
    }

    #[test]
    fn what_is_no_advertisement_is_only_remembered() {
        let mut devices = Devices::default();

        assert_eq!(devices.handle([1; 6], Facts { rssi_dbm: None, manufacturer_data: None, ..first() }), None);

        let told = devices.handle([1; 6], Facts { rssi_dbm: Some(-61), ..Facts::default() }).unwrap();
        assert_eq!(told.name.as_deref(), Some("Watch"));
    }

    #[test]
    fn a_device_nobody_told_of_is_not_guessed() {
        let mut devices = Devices::default();

        assert_eq!(devices.handle([1; 6], Facts { rssi_dbm: Some(-61), ..Facts::default() }), None);
        assert!(devices.known.is_empty() && devices.order.is_empty());
    }

    #[test]
    fn the_device_heard_longest_ago_makes_room() {
        let mut devices = Devices::default();
        let device = |number: usize| {
            let [high, low] = u16::try_from(number).unwrap().to_be_bytes();
            [0, 0, 0, 0, high, low]
        };
        for number in 0..DEVICES_MAX {
            devices.handle(device(number), first());
        }
        devices.handle(device(0), first());

        devices.handle([9; 6], first());

        assert!(devices.known.contains_key(&device(0)) && !devices.known.contains_key(&device(1)));
        assert_eq!((devices.known.len(), devices.order.len(), devices.forgotten), (DEVICES_MAX, DEVICES_MAX, 1));
    }
}
