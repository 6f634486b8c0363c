//! Cameras, live: V4L2 webcams, and any program that writes MJPEG.
//!
//! ```text
//!  /dev/videoN ─► webcam ─┐
//!                         ├─ reader thread ─► handover (newest picture) ─► Feed
//!  rpicam-vid ─► command ─┘
//! ```
//!
//! In: [`Config`]. Out: a [`Driver`] for one camera, and the list of all nodes. Pictures are passed on as the device
//! delivers them, at the configured pace. Never: decoding, and never a wait without a time-out outside a reader thread.

use crate::sensors::live::Driver;
use crate::sensors::live::Failure;
use crate::sensors::live::Found;
use crate::sensors::live::Limits;
use crate::sensors::live::SharedClock;
pub use crate::sensors::settings::Camera as Config;
use std::sync::Arc;

mod command;
mod edge;
mod handover;
mod negotiate;
mod node;
mod pace;
mod pixels;
mod splitter;
mod sysfs;
mod v4l2;
mod webcam;

pub use command::CommandCamera;
pub use edge::Edge;
pub use edge::Frames;
pub use edge::Shot;
pub use edge::Wish;
pub use node::Node;
pub use node::Offer;
pub use node::Sizes;
pub use node::Usb;
pub use pixels::Agreed;
pub use pixels::FourCc;
pub use webcam::Webcam;

/// When a camera that takes at least one picture in three seconds is given up: see [`limits`].
pub const LIMITS: Limits = Limits { stall_ms: 10_000, first_ms: 15_000 };

/// Intervals without a picture after which a slow camera is given up.
const STALL_INTERVALS: i64 = 3;

/// The driver that the config asks for: the command when there is one, else a webcam.
#[must_use]
pub fn driver(config: &Config, clock: SharedClock) -> Box<dyn Driver> {
    if config.command.trim().is_empty() {
        Box::new(Webcam::new(config, Arc::new(v4l2::Video4Linux), clock))
    } else {
        Box::new(CommandCamera::new(config, clock))
    }
}

/// When the camera is given up: [`LIMITS`], and never before three pictures are overdue.
#[must_use]
pub fn limits(config: &Config) -> Limits {
    let patience_ms = STALL_INTERVALS.saturating_mul(pace::interval_ms(config.frames_per_s));
    Limits { stall_ms: LIMITS.stall_ms.max(patience_ms), first_ms: LIMITS.first_ms.max(patience_ms) }
}

/// All video nodes of this machine; those that are no camera say why. Takes a few seconds at most.
///
/// # Errors
/// [`Failure`] when the nodes cannot be listed.
pub fn list() -> Result<Vec<Found>, Failure> {
    webcam::list(Arc::new(v4l2::Video4Linux))
}

#[cfg(test)]
mod tests;
