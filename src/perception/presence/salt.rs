//! Turns senders into tokens that mean nothing tomorrow.
//!
//! In: senders. Out: [`Token`]s under a salt that is replaced every day. Never: a way back to the address.
//!
//! The next salt is a hash of the last one, which is then forgotten: with it goes the only way to
//! tell which token an address had the day before. For as long as a device may still be
//! near, the last salt is kept to recognise it across the change.

use crate::domain::reading::Sender;

/// How long a salt is used, in milliseconds: a day.
const SALT_MS: i64 = 86_400_000;

/// A secret of this run. Its bytes never leave memory.
#[derive(Clone)]
pub struct Salt([u8; 32]);

impl Salt {
    /// Takes 32 bytes nobody can guess.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The salt of a recorded session: the same recording counts the same way.
    #[must_use]
    pub fn of_session(session_id: &str) -> Self {
        Self(blake3::derive_key("percept recorded session salt v1", session_id.as_bytes()))
    }

    fn next(&self) -> Self {
        Self(blake3::derive_key("percept next day's salt v1", &self.0))
    }

    fn token(&self, sender: &Sender) -> Token {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        match sender {
            Sender::Address(address, _) => hasher.update(b"address").update(address),
            Sender::Token(token) => hasher.update(b"token").update(token.as_bytes()),
            Sender::Person(name) => hasher.update(b"person").update(name.as_bytes()),
        };
        let mut bytes = [0; 8];
        hasher.finalize_xof().fill(&mut bytes);
        Token(u64::from_le_bytes(bytes))
    }
}

impl std::fmt::Debug for Salt {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Salt(***)")
    }
}

/// What stands for a sender until the salt expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Token(u64);

/// A sender's token under today's salt and, shortly after the change, under yesterday's.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tokens {
    pub(super) current: Token,
    pub(super) previous: Option<Token>,
}

#[derive(Debug)]
pub(super) struct Salter {
    salt: Salt,
    previous: Option<Salt>,
    since_ms: Option<i64>,
    overlap_ms: i64,
}

impl Salter {
    /// `overlap_ms`: for how long a device counts as near after its last advertisement.
    pub(super) fn new(salt: Salt, overlap_ms: i64) -> Self {
        Self { salt, previous: None, since_ms: None, overlap_ms: overlap_ms.min(SALT_MS) }
    }

    pub(super) fn tokens(&mut self, sender: &Sender, now_ms: i64) -> Tokens {
        let since_ms = *self.since_ms.get_or_insert(now_ms);
        let age_ms = now_ms.saturating_sub(since_ms);
        if age_ms >= SALT_MS {
            let next = self.salt.next();
            self.previous = Some(std::mem::replace(&mut self.salt, next));
            self.since_ms = Some(now_ms);
        } else if age_ms > self.overlap_ms {
            self.previous = None;
        }
        Tokens {
            current: self.salt.token(sender),
            previous: self.previous.as_ref().map(|previous| previous.token(sender)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::reading::AddressType;

    #[test]
    fn a_token_lasts_a_day_and_is_known_shortly_across_the_change() {
        let sender = Sender::Address([1, 2, 3, 4, 5, 6], AddressType::Public);
        let mut salter = Salter::new(Salt::new([7; 32]), 120_000);

        let first = salter.tokens(&sender, 0);
        let same_day = salter.tokens(&sender, SALT_MS - 1);
        let next_day = salter.tokens(&sender, SALT_MS);
        let later = salter.tokens(&sender, SALT_MS + 120_001);

        assert_eq!(first.current, same_day.current);
        assert_eq!(same_day.previous, None);
        assert_ne!(next_day.current, first.current);
        assert_eq!(next_day.previous, Some(first.current));
        assert_eq!((later.current, later.previous), (next_day.current, None));
    }

    #[test]
    fn another_salt_gives_other_tokens() {
        let sender = Sender::Token("x".to_owned());

        let [a, b] = [1, 2].map(|byte| Salt::new([byte; 32]).token(&sender));

        assert_ne!(a, b);
    }
}
