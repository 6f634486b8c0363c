//! Video4Linux: the real [`Edge`].
//!
//! nokhwa reads what it can read; what it refuses, or cannot say (`device_caps`, a frame rate that is not settable,
//! `GREY`, padded rows), is done with `v4l`, the crate below nokhwa. A library that panics over one odd node
//! (a name that is not UTF-8) makes that node unreadable and no other.

mod direct;
mod through_nokhwa;

use crate::sensors::camera::edge::Edge;
use crate::sensors::camera::edge::Frames;
use crate::sensors::camera::edge::Wish;
use crate::sensors::camera::negotiate;
use crate::sensors::camera::negotiate::Interval;
use crate::sensors::camera::node::Node;
use crate::sensors::camera::node::Offer;
use crate::sensors::camera::node::Sizes;
use crate::sensors::camera::pixels;
use crate::sensors::camera::pixels::Agreed;
use crate::sensors::camera::pixels::FourCc;
use crate::sensors::camera::sysfs;
use std::io;
use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::path::Path;
use v4l::Device;
use v4l::format::FourCC;
use v4l::frameinterval::FrameIntervalEnum;
use v4l::framesize::FrameSizeEnum;
use v4l::video::Capture;
use v4l::video::capture::Parameters;

/// Most sizes that are asked of one format: a device that never ends its list must not keep us.
const SIZES_MAX: usize = 256;

/// V4L2 on this machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Video4Linux;

/// What a device agreed to.
#[derive(Debug, Clone, Copy)]
struct Terms {
    agreed: Agreed,
    interval: Option<Interval>,
}

impl Edge for Video4Linux {
    fn nodes(&self) -> io::Result<Vec<Node>> {
        let class = Path::new(sysfs::VIDEO_CLASS);
        Ok(sysfs::numbers(class)?.into_iter().map(|number| describe(class, number)).collect())
    }

    fn open(&self, node: &Node, wish: Wish) -> io::Result<Box<dyn Frames>> {
        let terms = {
            let device = Device::with_path(node.path())?;
            agree(&device, node, wish)?
        };
        if let Some((format, rate)) = negotiate::nokhwa_terms(terms.agreed.fourcc, terms.interval, &node.formats) {
            match through_nokhwa::open(node.index, terms.agreed, format, rate) {
                Ok(frames) => return Ok(frames),
                Err(error) => tracing::debug!(node = node.path(), "nokhwa refuses this camera: {error}"),
            }
        }
        let device = Device::with_path(node.path())?;
        let terms = agree(&device, node, wish)?;
        direct::open(device, terms.agreed)
    }
}

/// What a node says about itself; an error becomes a part of the description.
fn describe(class: &Path, number: u32) -> Node {
    let usb = sysfs::usb(class, number);
    let card = std::fs::read_to_string(class.join(format!("video{number}/name"))).unwrap_or_default();
    let blank = Node { index: number, card: card.trim().to_owned(), usb, ..Node::default() };
    let asked = catch_unwind(AssertUnwindSafe(|| ask(&blank)));
    let asked = asked.unwrap_or_else(|_| Err(io::Error::other("it describes itself in a way that cannot be read")));
    asked.unwrap_or_else(|error| Node { unreadable: Some(error.to_string()), ..blank })
}

fn ask(blank: &Node) -> io::Result<Node> {
    let device = Device::with_path(blank.path())?;
    let caps = device.query_caps()?;
    // `v4l` fills its `capabilities` from V4L2's `device_caps`: what this node can do, not its whole device.
    let device_caps = u32::from(caps.capabilities);
    let formats = device.enum_formats()?;
    let offers =
        formats.iter().map(|format| Offer { fourcc: FourCc(format.fourcc.repr), sizes: sizes(&device, format.fourcc) });
    Ok(Node {
        driver: caps.driver,
        card: caps.card,
        bus: caps.bus,
        device_caps,
        formats: offers.collect(),
        ..blank.clone()
    })
}

fn sizes(device: &Device, fourcc: FourCC) -> Sizes {
    let sizes = device.enum_framesizes(fourcc).unwrap_or_default();
    let mut listed = Vec::new();
    for size in sizes.into_iter().take(SIZES_MAX) {
        match size.size {
            FrameSizeEnum::Discrete(size) => listed.push((size.width, size.height)),
            FrameSizeEnum::Stepwise(step) => {
                return Sizes::Range((step.min_width, step.min_height), (step.max_width, step.max_height));
            }
        }
    }
    Sizes::Listed(listed)
}

/// Sets format and size, and a low frame rate where the device lets us: a refusal of that is not fatal.
fn agree(device: &Device, node: &Node, wish: Wish) -> io::Result<Terms> {
    let chosen = pixels::choose(&node.formats, wish.size_px);
    let (fourcc, (width, height)) = chosen.ok_or_else(|| io::Error::other("it offers no format that percept reads"))?;
    let wanted = v4l::Format::new(width, height, FourCC::new(&fourcc.0));
    let set = device.set_format(&wanted).or_else(|error| {
        tracing::debug!(node = node.path(), "the format cannot be set: {error}");
        device.format()
    })?;
    let agreed = Agreed { fourcc: FourCc(set.fourcc.repr), size_px: (set.width, set.height), stride_bytes: set.stride };
    Ok(Terms { agreed, interval: slow_down(device, &agreed, wish.frames_per_s) })
}

fn slow_down(device: &Device, agreed: &Agreed, frames_per_s: f64) -> Option<Interval> {
    let fourcc = FourCC::new(&agreed.fourcc.0);
    let offered = device.enum_frameintervals(fourcc, agreed.size_px.0, agreed.size_px.1).unwrap_or_default();
    let discrete = offered.into_iter().filter_map(|offer| match offer.interval {
        FrameIntervalEnum::Discrete(interval) => Some((interval.numerator, interval.denominator)),
        FrameIntervalEnum::Stepwise(_) => None,
    });
    let (numerator, denominator) = negotiate::interval(&discrete.collect::<Vec<_>>(), frames_per_s);
    let wanted = Parameters::new(v4l::Fraction::new(numerator, denominator));
    if let Err(error) = device.set_params(&wanted) {
        tracing::debug!("the camera's frame rate cannot be set: {error}");
    }
    let told = device.params().ok()?.interval;
    Some((told.numerator, told.denominator))
}
