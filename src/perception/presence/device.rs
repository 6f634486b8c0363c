//! What an advertisement tells of its device apart from the address, and whether two can be one device.
//!
//! In: advertisements. Out: [`Traits`], hashed and short. Never: a name or a payload that lasts.

use crate::domain::reading::AddressType;
use crate::domain::reading::Advertisement;
use crate::domain::reading::Sender;

/// Hashes kept of each kind, at most.
const HASHES_MAX: usize = 8;

/// How a device deals with its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Habit {
    /// Keeps it: a public or a static random address.
    Keeps,
    /// Changes a resolvable one, about every 15 minutes.
    Resolvable,
    /// Changes a non-resolvable one, as often as it likes.
    NonResolvable,
    /// A recorder replaced the address by a token; the device may keep or change it.
    Unknown,
}

impl Habit {
    /// By the two highest bits of a random address (Core Specification, Vol 6 Part B 1.3.2).
    pub(super) fn of(sender: &Sender) -> Self {
        match sender {
            Sender::Address(_, AddressType::Public) => Self::Keeps,
            Sender::Address([first, ..], AddressType::Random) => match first >> 6 {
                0b11 => Self::Keeps,
                0b01 => Self::Resolvable,
                0b00 => Self::NonResolvable,
                _ => Self::Unknown,
            },
            Sender::Token(_) | Sender::Person(_) => Self::Unknown,
        }
    }
}

/// What stays the same when the address changes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Traits {
    names: Vec<u64>,
    services: Vec<u64>,
    companies: Vec<u64>,
    /// Company and length of its data: the content changes with the address, its shape does not.
    shapes: Vec<u64>,
}

impl Traits {
    /// Adds what this advertisement shows.
    pub(super) fn count(&mut self, advertisement: &Advertisement) {
        let name = advertisement.name.as_deref().filter(|name| !name.is_empty());
        name.into_iter().for_each(|name| add(&mut self.names, hash(name.as_bytes())));
        for uuid in &advertisement.service_uuids {
            add(&mut self.services, hash(uuid.to_ascii_lowercase().as_bytes()));
        }
        for (company, data) in &advertisement.manufacturer_data {
            add(&mut self.companies, u64::from(*company));
            add(&mut self.shapes, u64::from(*company) << 32 | (data.len() as u64 & 0xFFFF));
        }
    }

    /// Whether both can come from one device that changes its address by this habit. A
    /// non-resolvable sender repeats one payload; others send several kinds in turn, so that only
    /// a contradiction tells them apart.
    pub(super) fn fits(&self, other: &Self, habit: Habit) -> bool {
        match habit {
            Habit::Keeps => false,
            Habit::NonResolvable => self == other,
            Habit::Resolvable | Habit::Unknown => {
                let pairs = [
                    (&self.names, &other.names),
                    (&self.services, &other.services),
                    (&self.companies, &other.companies),
                ];
                pairs.into_iter().all(|(a, b)| a.is_empty() || b.is_empty() || a.iter().any(|hash| b.contains(hash)))
            }
        }
    }
}

/// Keeps the list sorted, so that the order of advertisements does not matter.
fn add(hashes: &mut Vec<u64>, hash: u64) {
    if let Err(index) = hashes.binary_search(&hash)
        && hashes.len() < HASHES_MAX
    {
        hashes.insert(index, hash);
    }
}

/// 64 bits that tell texts apart within this run.
fn hash(bytes: &[u8]) -> u64 {
    let mut hash = [0; 8];
    blake3::Hasher::new().update(bytes).finalize_xof().fill(&mut hash);
    u64::from_le_bytes(hash)
}
