//! Which adapter: names that stay the same from boot to boot and show no address, and the choice among those there are.

use crate::domain::id::SensorKind;
use crate::domain::id::SourceId;
use crate::sensors::live::Failure;
use crate::sensors::live::Found;
use uuid::Uuid;

/// The namespace of adapter names (random, chosen once).
const NAMESPACE: Uuid = Uuid::from_u128(0x0b54_7b9d_6f0e_4c3a_8f2d_91c7_5e1a_d046);

/// Hexadecimal digits of an adapter's name.
const NAME_CHARS: usize = 8;

/// An adapter as BlueZ shows it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Adapter {
    /// Its D-Bus object (`/org/bluez/hci0`): another one after the next boot.
    pub path: String,
    /// Its address: what identifies it. Never shown.
    pub address: [u8; 6],
    /// Whether it is switched on.
    pub is_powered: bool,
    /// Whether it is scanning, for whomever.
    pub is_discovering: bool,
}

impl Adapter {
    /// `bluetooth:3f2a91c0`.
    pub(super) fn source(&self) -> SourceId {
        SourceId::of(SensorKind::Bluetooth, &name_of(self.address))
    }

    /// The kernel's name of it, `hci0`.
    fn kernel_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// hci2 before hci10.
    fn order(&self) -> (usize, &str) {
        (self.path.len(), &self.path)
    }

    /// As `percept devices` lists it.
    pub(super) fn found(&self) -> Found {
        let scanning = if self.is_discovering { ", scanning" } else { "" };
        Found {
            source: self.source(),
            name: format!("Bluetooth adapter {}", self.kernel_name()),
            detail: format!("switched {}{scanning}", if self.is_powered { "on" } else { "off" }),
            refused: (!self.is_powered).then(|| switched_off().detail),
        }
    }
}

/// The adapter cannot scan because it is off.
pub(super) fn switched_off() -> Failure {
    Failure::unusable(
        "the Bluetooth adapter is switched off: `bluetoothctl power on` (and `rfkill unblock bluetooth` where it is blocked)",
    )
}

/// Eight hexadecimal digits that stand for an address and do not show it.
pub(super) fn name_of(address: [u8; 6]) -> String {
    let mut name = Uuid::new_v5(&NAMESPACE, &address).simple().to_string();
    name.truncate(NAME_CHARS);
    name
}

/// `AA:BB:CC:DD:EE:FF`, with colons, dashes or underscores, in either case.
pub(super) fn parse_address(text: &str) -> Option<[u8; 6]> {
    let mut address = [0; 6];
    let mut parts = text.split([':', '-', '_']);
    for byte in &mut address {
        let part = parts.next().filter(|part| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(address)
}

/// Which adapter the config asks for.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Choice {
    /// Whichever there is.
    Any,
    /// The one of this name.
    Named(String),
}

impl Choice {
    /// Reads the config's text. The error goes behind the key's name and does not quote the value.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(Self::Any);
        }
        if let Some(address) = parse_address(text) {
            return Ok(Self::Named(name_of(address)));
        }
        let name = text.strip_prefix("bluetooth:").unwrap_or(text).to_ascii_lowercase();
        match name.len() == NAME_CHARS && name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            true => Ok(Self::Named(name)),
            false => {
                Err("is no adapter: write its name as `percept devices` prints it (hci0 may be another one after \
                          the next boot), or its address"
                    .to_owned())
            }
        }
    }

    /// The adapter's name, when one is asked for.
    pub(super) fn name(&self) -> Option<String> {
        match self {
            Self::Any => None,
            Self::Named(name) => Some(name.clone()),
        }
    }

    /// The adapter that is meant. Without a name it is the one that was used before (`last`, an address), else one that is
    /// switched on, else any.
    pub(super) fn of<'a>(&self, adapters: &'a [Adapter], last: Option<[u8; 6]>) -> Result<&'a Adapter, Failure> {
        match self {
            Self::Any => adapters
                .iter()
                .find(|adapter| Some(adapter.address) == last)
                .or_else(|| adapters.iter().filter(|adapter| adapter.is_powered).min_by_key(|adapter| adapter.order()))
                .or_else(|| adapters.iter().min_by_key(|adapter| adapter.order()))
                .ok_or_else(|| Failure::unplugged("there is no Bluetooth adapter")),
            Self::Named(name) => adapters
                .iter()
                .find(|adapter| name_of(adapter.address) == *name)
                .ok_or_else(|| Failure::unplugged(format!("the Bluetooth adapter {name} is not there"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adapter(path: &str, last_byte: u8, is_powered: bool) -> Adapter {
        Adapter { path: path.to_owned(), address: [0, 1, 2, 3, 4, last_byte], is_powered, is_discovering: false }
    }

    #[test]
    fn a_name_stays_the_same_and_shows_no_address() {
        let name = name_of([0xC0, 0xFF, 0xEE, 0, 0, 1]);

        assert_eq!(name, name_of(parse_address("c0:ff:ee:00:00:01").unwrap()));
        assert_ne!(name, name_of([0xC0, 0xFF, 0xEE, 0, 0, 2]));
        assert_eq!(name.len(), NAME_CHARS);
        assert!(!name.contains("ffee"));
    }

    #[test]
    fn an_adapter_is_asked_for_by_name_or_address() {
        let name = name_of([0, 1, 2, 3, 4, 5]);
        for text in [name.as_str(), &format!("bluetooth:{name}"), "00:01:02:03:04:05", "00-01-02-03-04-05"] {
            assert_eq!(Choice::parse(text).ok().and_then(|choice| choice.name()).as_ref(), Some(&name), "{text}");
        }
        for text in ["hci0", "00:01:02:03:04", "00:01:02:03:04:0g", "3f2a91c"] {
            let error = Choice::parse(text).err().unwrap();
            assert!(text == "hci0" || !error.contains(text), "{error}");
        }
    }

    #[test]
    fn the_one_asked_for_is_taken_wherever_it_is_now() {
        let adapters = [adapter("/org/bluez/hci0", 9, true), adapter("/org/bluez/hci1", 5, true)];
        let choice = Choice::parse("00:01:02:03:04:05").ok().unwrap();

        assert_eq!(choice.of(&adapters, None).unwrap().path, "/org/bluez/hci1");
        let failure = choice.of(&adapters[..1], None).err().unwrap();
        assert!(!failure.detail.contains("00:01"), "{failure}");
    }

    #[test]
    fn without_a_wish_the_last_one_is_kept_and_a_switched_on_one_goes_first() {
        let adapters = [
            adapter("/org/bluez/hci10", 1, true),
            adapter("/org/bluez/hci2", 2, true),
            adapter("/org/bluez/hci1", 3, false),
        ];
        let path = |last| Choice::Any.of(&adapters, last).unwrap().path.clone();

        assert_eq!(path(None), "/org/bluez/hci2");
        assert_eq!(path(Some(adapters[0].address)), "/org/bluez/hci10");
        assert!(Choice::Any.of(&[], None).is_err());
    }
}
