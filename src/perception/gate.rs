//! Decides which hops are loud enough to be worth understanding.
//!
//! In: the levels of a hop's blocks, in order. Out: whether the gate is open. It opens when a block stands
//! clear of the noise floor, stays open until the sound has come down to it, and a while longer.
//!
//! The floor falls at once to the quietest block of a hop and rises slowly, so that pauses in speech keep
//! it low while the start of a fan is forgotten within half a minute. It is kept within bounds: what is
//! louder than its upper bound and a margin is never "quiet", however long it lasts.
//! Never: classes, time stamps, I/O.

/// Settings of the level gate.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// How far above the noise floor a sound opens the gate, in dB.
    pub open_db: f64,
    /// How far above the noise floor a sound keeps the gate open, in dB.
    pub close_db: f64,
    /// Hops (0.48 s) the gate stays open after the sound.
    pub hold_hops: u32,
    /// The noise floor is never below this, in dBFS.
    pub floor_min_dbfs: f64,
    /// The noise floor is never above this, in dBFS; it starts there.
    pub floor_max_dbfs: f64,
    /// How fast the noise floor rises, in dB per hop (0.48 s).
    pub floor_rise_db: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            open_db: 8.0,
            close_db: 5.0,
            hold_hops: 1,
            floor_min_dbfs: -75.0,
            floor_max_dbfs: -55.0,
            floor_rise_db: 0.3,
        }
    }
}

/// The level gate of one microphone.
#[derive(Debug, Clone)]
pub struct Gate {
    config: Config,
    floor_dbfs: f64,
    hops_left: u32,
    is_open: bool,
}

impl Gate {
    /// A closed gate.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self { config, floor_dbfs: config.floor_max_dbfs, hops_left: 0, is_open: false }
    }

    /// Takes the levels of one hop's blocks, in dBFS, and says whether the gate is open for it.
    pub fn handle_hop(&mut self, blocks_dbfs: &[f64]) -> bool {
        let loudest = blocks_dbfs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let quietest = blocks_dbfs.iter().copied().fold(f64::INFINITY, f64::min);
        if quietest.is_finite() {
            let risen = self.floor_dbfs + self.config.floor_rise_db;
            self.floor_dbfs = quietest.min(risen).clamp(self.config.floor_min_dbfs, self.config.floor_max_dbfs);
        }
        let margin_db = if self.is_open { self.config.close_db } else { self.config.open_db };
        if loudest >= self.floor_dbfs + margin_db {
            self.is_open = true;
            self.hops_left = self.config.hold_hops;
        } else if self.hops_left > 0 {
            self.hops_left -= 1;
        } else {
            self.is_open = false;
        }
        self.is_open
    }

    /// Takes a hop without signal: the gate closes, the floor stays.
    pub fn handle_no_signal(&mut self) {
        self.is_open = false;
        self.hops_left = 0;
    }

    /// The noise floor in dBFS.
    #[must_use]
    pub const fn floor_dbfs(&self) -> f64 {
        self.floor_dbfs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loud_sound_opens_the_gate_from_the_first_hop_and_as_long_as_it_lasts() {
        let mut gate = Gate::new(Config::default());

        assert!((0..1_000).all(|_| gate.handle_hop(&[-20.0; 4])));
    }

    #[test]
    fn quiet_noise_keeps_it_closed_and_a_click_opens_it() {
        let mut gate = Gate::new(Config::default());
        let opened = (0..100).filter(|_| gate.handle_hop(&[-66.0, -65.0, -67.0, -66.0])).count();
        assert_eq!(opened, 0);

        assert!(gate.handle_hop(&[-66.0, -50.0, -66.0, -66.0]));
    }

    #[test]
    fn it_stays_open_one_hop_after_the_sound() {
        let mut gate = Gate::new(Config::default());

        let open = [-70.0, -30.0, -70.0, -70.0, -70.0].map(|level| gate.handle_hop(&[level; 4]));

        assert_eq!(open, [false, true, true, false, false]);
    }

    #[test]
    fn between_the_two_margins_it_keeps_its_state() {
        let mut gate = Gate::new(Config { hold_hops: 0, floor_rise_db: 0.0, ..Config::default() });

        let open = [-70.0, -63.5, -61.0, -63.5, -66.0].map(|level| gate.handle_hop(&[-70.0, level]));

        assert_eq!(open, [false, false, true, true, false]);
    }

    #[test]
    fn a_steady_hum_is_background_after_a_while_and_speech_over_it_is_not() {
        let mut gate = Gate::new(Config::default());
        gate.handle_hop(&[-75.0; 4]);
        assert!(gate.handle_hop(&[-60.0; 4]));

        let hops_open = (0..200).filter(|_| gate.handle_hop(&[-60.0; 4])).count();

        assert!((20..60).contains(&hops_open), "{hops_open}");
        assert!(gate.handle_hop(&[-60.0, -45.0, -60.0, -60.0]));
    }

    #[test]
    fn pauses_keep_long_quiet_speech_open() {
        let mut gate = Gate::new(Config::default());

        let closed = (0..500).filter(|_| !gate.handle_hop(&[-55.0, -72.0, -54.0, -56.0])).count();

        assert_eq!(closed, 0);
    }

    #[test]
    fn digital_silence_does_not_make_it_hear_ordinary_noise() {
        let mut gate = Gate::new(Config::default());
        for _ in 0..100 {
            gate.handle_no_signal();
        }
        gate.handle_hop(&[-120.0; 4]);

        assert!(!gate.handle_hop(&[-70.0; 4]));
    }
}
