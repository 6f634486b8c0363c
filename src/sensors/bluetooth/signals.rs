//! BlueZ's objects and signals as events. Never: a question to the bus.

use super::adapter::Adapter;
use super::adapter::parse_address;
use super::bus::Event;
use super::facts::Facts;
use std::collections::HashMap;
use zbus::Message;
use zbus::OwnedObjectPath;
use zbus::OwnedVariant;
use zbus::Variant;
use zbus::message::Type;

/// BlueZ's name on the bus.
pub(super) const BLUEZ: &str = "org.bluez";
/// What an adapter's object offers.
pub(super) const ADAPTER: &str = "org.bluez.Adapter1";
/// What a device's object offers.
pub(super) const DEVICE: &str = "org.bluez.Device1";

/// The properties of an interface.
pub(super) type Properties = HashMap<String, OwnedVariant>;

/// Reads a message; `None` when it says nothing that the driver needs.
pub(super) fn read(message: &Message) -> Option<Event> {
    if message.message_type() != Type::Signal {
        return None;
    }
    let header = message.header();
    match (header.interface()?.as_str(), header.member()?.as_str()) {
        ("org.freedesktop.DBus.Properties", "PropertiesChanged") => changed(header.path()?.as_str(), message),
        ("org.freedesktop.DBus.ObjectManager", "InterfacesAdded") => added(message),
        ("org.freedesktop.DBus.ObjectManager", "InterfacesRemoved") => removed(message),
        ("org.freedesktop.DBus", "NameOwnerChanged") => owner_changed(message),
        _ => None,
    }
}

fn changed(path: &str, message: &Message) -> Option<Event> {
    let body = message.body();
    let (interface, properties, _invalidated): (String, Properties, Vec<String>) = body.deserialize().ok()?;
    match interface.as_str() {
        DEVICE => device(path, &properties),
        ADAPTER => Some(Event::Power { adapter: path.to_owned(), is_powered: flag(&properties, "Powered")? }),
        _ => None,
    }
}

fn added(message: &Message) -> Option<Event> {
    let body = message.body();
    let (path, interfaces): (OwnedObjectPath, HashMap<String, Properties>) = body.deserialize().ok()?;
    device(path.as_str(), interfaces.get(DEVICE)?)
}

fn removed(message: &Message) -> Option<Event> {
    let body = message.body();
    let (path, interfaces): (OwnedObjectPath, Vec<String>) = body.deserialize().ok()?;
    let is_adapter = interfaces.iter().any(|interface| interface == ADAPTER);
    is_adapter.then(|| Event::AdapterGone { adapter: path.as_str().to_owned() })
}

fn owner_changed(message: &Message) -> Option<Event> {
    let body = message.body();
    let (name, old_owner, _new_owner): (String, String, String) = body.deserialize().ok()?;
    (name == BLUEZ && !old_owner.is_empty()).then_some(Event::ServiceGone)
}

/// A device's properties, all or those that changed.
pub(super) fn device(path: &str, properties: &Properties) -> Option<Event> {
    let (adapter, device) = split(path)?;
    Some(Event::Device { adapter: adapter.to_owned(), device, facts: Facts::read(properties) })
}

/// An adapter's properties.
pub(super) fn adapter(path: &str, properties: &Properties) -> Option<Adapter> {
    let Variant::Str(address) = &**properties.get("Address")? else { return None };
    Some(Adapter {
        path: path.to_owned(),
        address: parse_address(address.as_str())?,
        is_powered: flag(properties, "Powered").unwrap_or(true),
        is_discovering: flag(properties, "Discovering").unwrap_or(false),
    })
}

fn flag(properties: &Properties, key: &str) -> Option<bool> {
    if let Variant::Bool(flag) = &**properties.get(key)? { Some(*flag) } else { None }
}

/// `/org/bluez/hci0/dev_C0_FF_EE_00_00_01` is a device of `/org/bluez/hci0`.
fn split(path: &str) -> Option<(&str, [u8; 6])> {
    let (adapter, device) = path.rsplit_once('/')?;
    Some((adapter, parse_address(device.strip_prefix("dev_")?)?))
}

/// The other way round.
pub(super) fn device_path(adapter: &str, device: [u8; 6]) -> String {
    format!("{adapter}/dev_{}", device.map(|byte| format!("{byte:02X}")).join("_"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const PATH: &str = "/org/bluez/hci0/dev_C0_FF_EE_00_00_01";

    fn signal<B: serde::Serialize + zbus::DynamicType>(path: &str, interface: &str, member: &str, body: &B) -> Message {
        Message::signal(path, interface, member).build(body).unwrap()
    }

    fn changed(interface: &str, path: &str, key: &str, value: Variant<'static>) -> Option<Event> {
        let properties: BTreeMap<&str, Variant<'static>> = [(key, value)].into();
        let body = (interface, properties, Vec::<&str>::new());
        read(&signal(path, "org.freedesktop.DBus.Properties", "PropertiesChanged", &body))
    }

    #[test]
    fn a_device_path_is_taken_apart_and_put_together() {
        let (adapter, device) = split(PATH).unwrap();

        assert_eq!((adapter, device), ("/org/bluez/hci0", [0xC0, 0xFF, 0xEE, 0, 0, 1]));
        assert_eq!(device_path(adapter, device), PATH);
        assert_eq!(split("/org/bluez/hci0/dev_C0_FF_EE_00_00_01/service0001"), None);
    }

    #[test]
    fn a_change_of_a_device_or_of_an_adapters_power_is_an_event() {
        let device = changed(DEVICE, PATH, "RSSI", Variant::from(-60_i16));
        let power = changed(ADAPTER, "/org/bluez/hci0", "Powered", Variant::from(false));

        let facts = Facts { rssi_dbm: Some(-60), ..Facts::default() };
        let adapter = "/org/bluez/hci0".to_owned();
        let expected = Event::Device { adapter: adapter.clone(), device: [0xC0, 0xFF, 0xEE, 0, 0, 1], facts };
        assert!(device == Some(expected));
        assert!(power == Some(Event::Power { adapter, is_powered: false }));
        assert!(changed("org.bluez.Battery1", PATH, "Percentage", Variant::from(5_u8)).is_none());
    }

    #[test]
    fn objects_that_come_and_go_are_events() {
        let path = zbus::ObjectPath::try_from(PATH).unwrap();
        let properties: BTreeMap<&str, Variant<'static>> = [("RSSI", Variant::from(-60_i16))].into();
        let interfaces: BTreeMap<&str, BTreeMap<&str, Variant<'static>>> = [(DEVICE, properties)].into();
        let manager = "org.freedesktop.DBus.ObjectManager";

        let came = read(&signal("/", manager, "InterfacesAdded", &(path, interfaces)));
        let adapter = zbus::ObjectPath::try_from("/org/bluez/hci0").unwrap();
        let went = read(&signal("/", manager, "InterfacesRemoved", &(adapter, vec![ADAPTER])));

        assert!(matches!(came, Some(Event::Device { .. })));
        assert!(went == Some(Event::AdapterGone { adapter: "/org/bluez/hci0".to_owned() }));
    }

    #[test]
    fn only_the_end_of_bluez_is_one() {
        let told = |body: &(&str, &str, &str)| {
            read(&signal("/org/freedesktop/DBus", "org.freedesktop.DBus", "NameOwnerChanged", body))
        };

        assert!(told(&(BLUEZ, ":1.5", "")) == Some(Event::ServiceGone));
        assert!(told(&(BLUEZ, ":1.5", ":1.9")) == Some(Event::ServiceGone));
        assert!(told(&(BLUEZ, "", ":1.9")).is_none());
        assert!(told(&("org.example", ":1.5", "")).is_none());
    }
}
