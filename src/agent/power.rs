//! What heat, throttling and charge mean for the agent: carry on, slow down, or stop.
//!
//! ```text
//!  /sys, /proc ──look──► Signs ──PowerJudge──► Assessment (normal, saving, critical), Stretches ──► coverage rows
//!                          └───────findings──► sentences for `percept doctor` and `percept status`
//! ```
//!
//! In: what the kernel says ([`look()`], the only part that reads files), and `now`. Out: an [`Assessment`] that does
//! not flap, one [`Stretch`] for each interval in which it was not normal, and sentences for people.
//! Never: the clock, a thread, a decision which model slows down; that is where the models are.

mod judge;
mod look;
mod signs;
mod words;

pub use crate::config::power::Config;
pub use judge::Assessment;
pub use judge::Cause;
pub use judge::Level;
pub use judge::PowerJudge;
pub use judge::Stretch;
pub use look::look;
pub use signs::Battery;
pub use signs::BatteryStatus;
pub use signs::Heat;
pub use signs::Signs;
pub use signs::ThrottleFlags;
pub use words::Finding;
pub use words::Weight;
pub use words::findings;

#[cfg(test)]
mod tests;
