//! Recognises known people by what their devices send.
//!
//! In: the sender of an advertisement, and the addresses and identity resolving keys of known people.
//! Out: a name, or none. Never: an address or a key in a log line, an error or an observation.

use crate::domain::disposition::Disposition;
use crate::domain::reading::Sender;
use aes::Aes128;
use aes::cipher::BlockCipherEncrypt;
use aes::cipher::KeyInit;
use std::collections::BTreeMap;

/// A text that is no address or no key. The text itself is a secret and is not repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// The person's entry is left out until an operator mends it.
    #[error("not a Bluetooth address: six bytes in hex such as C0:FF:EE:00:12:34 are expected")]
    NotAnAddress,
    /// The person's entry is left out until an operator mends it.
    #[error(
        "not an identity resolving key: 32 hex digits, most significant byte first, are expected, or bluez: and the Key of BlueZ's info file"
    )]
    NotAKey,
}

impl IdentityError {
    /// Go on without this person.
    #[must_use]
    pub const fn disposition(&self) -> Disposition {
        match self {
            Self::NotAnAddress | Self::NotAKey => Disposition::Degrade,
        }
    }
}

/// A device address, most significant byte first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address([u8; 6]);

impl Address {
    /// Reads `C0:FF:EE:00:12:34`; dashes and no separators will do.
    ///
    /// # Errors
    /// [`IdentityError::NotAnAddress`] for anything else.
    pub fn parse(text: &str) -> Result<Self, IdentityError> {
        let digits: String = text.chars().filter(|letter| *letter != ':' && *letter != '-').collect();
        hex_bytes(&digits).map(Self).ok_or(IdentityError::NotAnAddress)
    }
}

impl std::fmt::Debug for Address {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Address(***)")
    }
}

/// An identity resolving key: tells which resolvable addresses a device makes.
#[derive(Clone)]
pub struct IdentityKey(Aes128);

impl IdentityKey {
    /// Takes the 16 bytes, most significant first.
    #[must_use]
    pub fn new(key: [u8; 16]) -> Self {
        Self(Aes128::new(&key.into()))
    }

    /// Reads 32 hex digits, most significant byte first as the specification prints them, or
    /// `bluez:` and 32 hex digits in the order of BlueZ's `info` files, which is the reverse.
    ///
    /// # Errors
    /// [`IdentityError::NotAKey`] for anything else.
    pub fn parse(text: &str) -> Result<Self, IdentityError> {
        let text = text.trim();
        let (digits, is_reversed) = text.strip_prefix("bluez:").map_or((text, false), |digits| (digits, true));
        let mut key: [u8; 16] = hex_bytes(digits).ok_or(IdentityError::NotAKey)?;
        if is_reversed {
            key.reverse();
        }
        Ok(Self::new(key))
    }

    /// Whether a device with this key made the address. One in 2^24 foreign addresses looks so by chance.
    #[must_use]
    pub fn resolves(&self, address: [u8; 6]) -> bool {
        let [p0, p1, p2, h0, h1, h2] = address;
        // Only addresses with the two highest bits 01 are resolvable (Core Specification, Vol 6 Part B 1.3.2.2).
        p0 >> 6 == 0b01 && self.hash([p0, p1, p2]) == [h0, h1, h2]
    }

    /// The random address hash function `ah` (Bluetooth Core Specification, Vol 3 Part H 2.2.2):
    /// the low 24 bits of AES-128 of the 24-bit `part`, padded with zeros above.
    fn hash(&self, part: [u8; 3]) -> [u8; 3] {
        let mut block = [0; 16];
        block[13..].copy_from_slice(&part);
        let mut block = block.into();
        self.0.encrypt_block(&mut block);
        [block[13], block[14], block[15]]
    }
}

impl std::fmt::Debug for IdentityKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("IdentityKey(***)")
    }
}

/// The people to be recognised.
#[derive(Debug, Clone, Default)]
pub struct KnownPeople {
    by_address: BTreeMap<Address, String>,
    keys: Vec<(IdentityKey, String)>,
}

impl KnownPeople {
    /// Adds a device that keeps its address.
    pub fn add_address(&mut self, person: &str, address: Address) {
        self.by_address.insert(address, person.to_owned());
    }

    /// Adds a device that changes its address.
    pub fn add_key(&mut self, person: &str, key: IdentityKey) {
        self.keys.push((key, person.to_owned()));
    }

    /// Who sent this; `None` for everybody else.
    #[must_use]
    pub fn recognise<'a>(&'a self, sender: &'a Sender) -> Option<&'a str> {
        match sender {
            Sender::Person(name) => Some(name.trim()).filter(|name| !name.is_empty()),
            Sender::Token(_) => None,
            Sender::Address(address, _) => {
                let by_key = || self.keys.iter().find(|(key, _)| key.resolves(*address)).map(|(_, name)| name);
                self.by_address.get(&Address(*address)).or_else(by_key).map(String::as_str)
            }
        }
    }
}

/// Exactly `N` bytes of hex digits.
fn hex_bytes<const N: usize>(digits: &str) -> Option<[u8; N]> {
    if digits.len() != 2 * N || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; N];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::reading::AddressType;

    const KEY: &str = "ec0234a357c8ad05341010a60a397d9b";

    /// Bluetooth Core Specification, Vol 3 Part H, Appendix D.7: prand 0x708194 hashes to 0x0dfbaa.
    const ADDRESS: [u8; 6] = [0x70, 0x81, 0x94, 0x0d, 0xfb, 0xaa];

    #[test]
    fn the_hash_is_that_of_the_specification_s_test_vector() {
        let key = IdentityKey::parse(KEY).unwrap();

        assert_eq!(key.hash([0x70, 0x81, 0x94]), [0x0d, 0xfb, 0xaa]);
        assert!(key.resolves(ADDRESS));
    }

    #[test]
    fn a_key_does_not_resolve_other_addresses() {
        let key = IdentityKey::parse(KEY).unwrap();
        let [p0, p1, p2, h0, h1, h2] = ADDRESS;

        assert!(!key.resolves([p0, p1, p2, h0, h1, h2 ^ 1]));
        assert!(!key.resolves([p0, p1, p2 ^ 1, h0, h1, h2]));
        let hash = key.hash([0xC0, p1, p2]);
        assert!(!key.resolves([0xC0, p1, p2, hash[0], hash[1], hash[2]]), "a static address is not resolvable");
        assert!(!IdentityKey::new([0; 16]).resolves(ADDRESS));
    }

    #[test]
    fn a_key_is_taken_in_either_byte_order_and_nothing_else_is() {
        let bluez = "bluez:9b7d390aa610103405adc857a33402ec";

        assert!(IdentityKey::parse(bluez).unwrap().resolves(ADDRESS));
        assert!(IdentityKey::parse(&KEY.to_uppercase()).unwrap().resolves(ADDRESS));
        for text in ["", "ec02", "zz0234a357c8ad05341010a60a397d9b", "ec0234a357c8ad05341010a60a397d9b00", "é"] {
            assert!(matches!(IdentityKey::parse(text), Err(IdentityError::NotAKey)), "{text:?}");
        }
    }

    #[test]
    fn people_are_recognised_by_address_key_or_tag() {
        let mut people = KnownPeople::default();
        people.add_address("Bob", Address::parse("c0-ff-ee-00-12-34").unwrap());
        people.add_key("Alice", IdentityKey::parse(KEY).unwrap());
        let sent = |address| Sender::Address(address, AddressType::Random);

        assert_eq!(people.recognise(&sent([0xC0, 0xFF, 0xEE, 0, 0x12, 0x34])), Some("Bob"));
        assert_eq!(people.recognise(&sent(ADDRESS)), Some("Alice"));
        assert_eq!(people.recognise(&Sender::Person("Carol".to_owned())), Some("Carol"));
        assert_eq!(people.recognise(&sent([0x40, 1, 2, 3, 4, 5])), None);
        assert_eq!(people.recognise(&Sender::Token("Bob".to_owned())), None);
        assert_eq!(people.recognise(&Sender::Person(" ".to_owned())), None);
    }

    #[test]
    fn no_debug_text_shows_an_address_or_a_key() {
        let mut people = KnownPeople::default();
        people.add_address("Bob", Address::parse("C0:FF:EE:00:12:34").unwrap());
        people.add_key("Alice", IdentityKey::parse(KEY).unwrap());

        let text = format!("{people:?}").to_lowercase();

        for secret in ["192", "255", "238", "c0", "ee:", "236", "ec02"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
}
