//! The edge to the hardware: what a webcam driver asks of the system. Tests put faults here.
//!
//! All of it may block for as long as a kernel driver likes: it is called on a reader thread only.

use crate::sensors::camera::node::Node;
use crate::sensors::camera::pixels::Agreed;
use std::borrow::Cow;
use std::io;

/// What is wanted of a camera.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wish {
    /// Width and height in pixels.
    pub size_px: (u32, u32),
    /// Frames a second, above 0.
    pub frames_per_s: f64,
}

/// The system's video nodes.
pub trait Edge: Send + Sync {
    /// All nodes, by number.
    ///
    /// # Errors
    /// The system's error when they cannot be listed; none at all is an empty list.
    fn nodes(&self) -> io::Result<Vec<Node>>;

    /// Opens a node for reading, as near to the wish as it comes.
    ///
    /// # Errors
    /// The system's error, with its number where it has one.
    fn open(&self, node: &Node, wish: Wish) -> io::Result<Box<dyn Frames>>;
}

/// An open stream of frames. Dropping it closes the node.
pub trait Frames {
    /// What the device agreed to.
    fn agreed(&self) -> Agreed;

    /// The next frame; [`None`] when none came for a while.
    ///
    /// # Errors
    /// The system's error; the stream may be asked again.
    fn next(&mut self) -> io::Result<Option<Shot<'_>>>;
}

/// One frame, in the driver's own memory.
#[derive(Debug, Clone)]
pub struct Shot<'a> {
    /// Its bytes; more than the frame's where the driver does not say how many are used.
    pub bytes: Cow<'a, [u8]>,
    /// The driver says that the frame is damaged.
    pub is_damaged: bool,
}
