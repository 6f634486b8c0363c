//! What BlueZ tells of a device: its D-Bus properties as plain values.
//!
//! In: the properties of `org.bluez.Device1`, all or only those that changed. Out: [`Facts`], bounded in length.
//! Values of a type that nobody expects are left out.

use super::adapter::parse_address;
use crate::domain::reading::AddressType;
use std::collections::HashMap;
use zbus::OwnedVariant;
use zbus::Variant;

/// Longest name: what a device may have.
const NAME_CHARS_MAX: usize = 248;
/// Most services and companies.
const LIST_MAX: usize = 64;
/// Longest data of one company: what an extended advertisement carries.
const DATA_BYTES_MAX: usize = 255;
/// Deepest nesting that is followed.
const DEPTH_MAX: usize = 4;

/// The properties of a device, as far as they were told.
#[derive(Clone, PartialEq, Eq, Default)]
pub(super) struct Facts {
    /// Its address, when it is not the one that names the object.
    pub address: Option<[u8; 6]>,
    /// How the address was chosen.
    pub address_type: Option<AddressType>,
    /// Signal strength as reported.
    pub rssi_dbm: Option<i16>,
    /// The advertised name.
    pub name: Option<String>,
    /// Advertised services.
    pub service_uuids: Option<Vec<String>>,
    /// Data by company.
    pub manufacturer_data: Option<Vec<(u16, Vec<u8>)>>,
    /// Whether other advertised data came (of a service, or raw).
    pub has_other_data: bool,
}

impl Facts {
    /// Whether this was told because an advertisement came: the rest BlueZ also tells of devices it only remembers.
    pub(super) fn is_heard(&self) -> bool {
        self.rssi_dbm.is_some() || self.manufacturer_data.is_some() || self.has_other_data
    }

    /// Reads properties.
    pub(super) fn read(properties: &HashMap<String, OwnedVariant>) -> Self {
        let text = |key: &str| properties.get(key).and_then(|value| text(value));
        let is_filled = |key: &str| properties.get(key).is_some_and(|value| !is_empty(value));
        Self {
            address: text("Address").and_then(parse_address),
            address_type: text("AddressType").and_then(address_type),
            rssi_dbm: properties.get("RSSI").and_then(|value| strength(value)),
            name: text("Name").map(|name| name.chars().take(NAME_CHARS_MAX).collect()),
            service_uuids: properties.get("UUIDs").map(|value| texts(value)),
            manufacturer_data: Some("ManufacturerData")
                .filter(|key| is_filled(key))
                .and_then(|key| properties.get(key))
                .map(|value| manufacturer_data(value)),
            has_other_data: is_filled("ServiceData") || is_filled("AdvertisingData"),
        }
    }
}

/// The value within any number of wrappers.
fn bare<'a, 'v>(value: &'a Variant<'v>) -> &'a Variant<'v> {
    let mut value = value;
    while let Variant::Variant(inner) = value {
        value = inner;
    }
    value
}

fn text<'a>(value: &'a Variant<'_>) -> Option<&'a str> {
    if let Variant::Str(text) = bare(value) { Some(text.as_str()) } else { None }
}

fn address_type(text: &str) -> Option<AddressType> {
    match text {
        "public" => Some(AddressType::Public),
        "random" => Some(AddressType::Random),
        _ => None,
    }
}

fn strength(value: &Variant<'_>) -> Option<i16> {
    if let Variant::I16(rssi_dbm) = bare(value) { Some(*rssi_dbm) } else { None }
}

fn is_empty(value: &Variant<'_>) -> bool {
    if let Variant::Array(array) = bare(value) {
        return array.is_empty();
    }
    if let Variant::Dict(dict) = bare(value) {
        return dict.iter().next().is_none();
    }
    true
}

fn texts(value: &Variant<'_>) -> Vec<String> {
    let Variant::Array(array) = bare(value) else { return Vec::new() };
    array.inner().iter().take(LIST_MAX).filter_map(|value| text(value)).map(str::to_owned).collect()
}

/// `{company: data}` as BlueZ writes it, or a list of such; sorted by company.
fn manufacturer_data(value: &Variant<'_>) -> Vec<(u16, Vec<u8>)> {
    let mut pairs = Vec::new();
    collect(value, &mut pairs, DEPTH_MAX);
    pairs.sort();
    pairs
}

fn collect(value: &Variant<'_>, pairs: &mut Vec<(u16, Vec<u8>)>, depth: usize) {
    let Some(depth) = depth.checked_sub(1) else { return };
    if let Variant::Array(array) = bare(value) {
        array.inner().iter().take(LIST_MAX).for_each(|value| collect(value, pairs, depth));
    }
    if let Variant::Dict(dict) = bare(value) {
        for (company, data) in dict.iter() {
            if let (Variant::U16(company), Some(data)) = (bare(company), bytes(data))
                && pairs.len() < LIST_MAX
            {
                pairs.push((*company, data));
            }
        }
    }
}

fn bytes(value: &Variant<'_>) -> Option<Vec<u8>> {
    let Variant::Array(array) = bare(value) else { return None };
    let bytes = array.inner().iter().take(DATA_BYTES_MAX);
    bytes.map(|value| if let Variant::U8(byte) = bare(value) { Some(*byte) } else { None }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn properties<const N: usize>(pairs: [(&str, Variant<'static>); N]) -> HashMap<String, OwnedVariant> {
        pairs.into_iter().map(|(key, value)| (key.to_owned(), OwnedVariant::try_from(value).unwrap())).collect()
    }

    #[test]
    fn a_device_is_read_whole() {
        let data: BTreeMap<u16, Variant<'static>> =
            [(0x4C, Variant::from(vec![2_u8, 0x15])), (6, Variant::from(vec![1_u8]))].into();
        let facts = Facts::read(&properties([
            ("Address", Variant::from("C0:FF:EE:00:00:01")),
            ("AddressType", Variant::from("random")),
            ("RSSI", Variant::from(-61_i16)),
            ("Name", Variant::from("Watch")),
            ("UUIDs", Variant::from(vec!["180d"])),
            ("ManufacturerData", Variant::from(data)),
        ]));

        let expected = Facts {
            address: Some([0xC0, 0xFF, 0xEE, 0, 0, 1]),
            address_type: Some(AddressType::Random),
            rssi_dbm: Some(-61),
            name: Some("Watch".to_owned()),
            service_uuids: Some(vec!["180d".to_owned()]),
            manufacturer_data: Some(vec![(6, vec![1]), (0x4C, vec![2, 0x15])]),
            has_other_data: false,
        };
        assert!(facts == expected && facts.is_heard());
    }

    #[test]
    fn manufacturer_data_is_read_with_and_without_a_wrapper_and_as_a_list() {
        let plain: BTreeMap<u16, Vec<u8>> = [(0x4C, vec![2_u8, 0x15])].into();
        let wrapped: BTreeMap<u16, Variant<'static>> = [(0x4C, Variant::from(vec![2_u8, 0x15]))].into();

        for value in [Variant::from(plain.clone()), Variant::from(wrapped), Variant::from(vec![plain])] {
            let facts = Facts::read(&properties([("ManufacturerData", value)]));
            assert!(facts.manufacturer_data == Some(vec![(0x4C, vec![2, 0x15])]));
        }
    }

    #[test]
    fn a_remembered_device_was_not_heard() {
        let facts = Facts::read(&properties([
            ("AddressType", Variant::from("public")),
            ("Name", Variant::from("Old")),
            ("Connected", Variant::from(false)),
            ("ManufacturerData", Variant::from(BTreeMap::<u16, Vec<u8>>::new())),
        ]));

        assert!(!facts.is_heard());
    }

    #[test]
    fn values_of_another_type_are_left_out() {
        let facts = Facts::read(&properties([
            ("Address", Variant::from(5_u8)),
            ("AddressType", Variant::from("odd")),
            ("RSSI", Variant::from("loud")),
            ("ManufacturerData", Variant::from("none")),
        ]));

        assert!(facts == Facts::default());
    }
}
