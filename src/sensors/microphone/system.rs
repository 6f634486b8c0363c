//! The edge to the sound system: what is there, what it offers, one stream.
//!
//! Real behind it: cpal ([`super::linux`]). Tests put a sound system of their own there, so that every fault is injected
//! below the code under test. Calls may hang: all but [`super::list`] come from the driver's own thread.

use super::input::Input;
use super::offer::Choice;
use super::offer::Offer;
use super::queue::Sink;
use crate::sensors::live::Failure;
use std::any::Any;

/// A sound system.
pub(super) trait SoundSystem: Send + Sync {
    /// What is there, the devices that are no microphone included. Opens nothing.
    fn inputs(&self) -> Result<Vec<Input>, Failure>;

    /// What an input offers. Opens it for a moment.
    fn offers(&self, input: &Input) -> Result<Vec<Offer>, Failure>;

    /// Starts a stream into `sink`. Dropping what comes back stops and closes it.
    fn open(&self, choice: &Choice, sink: Sink) -> Result<Box<dyn Any>, Failure>;
}
