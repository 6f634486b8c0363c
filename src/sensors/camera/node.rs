//! The video nodes of a machine: which of them is a camera, what it is called, and which one is meant.
//!
//! In: what a node says about itself ([`Node`]). Out: stable names, refusals in words, the node to open.
//! `/dev/videoN` is handed out in the order of discovery and is never a name here. Never: a system call.

use crate::domain::id::SensorKind;
use crate::domain::id::SourceId;
use crate::sensors::camera::pixels;
use crate::sensors::camera::pixels::FourCc;
use crate::sensors::live::Failure;
use crate::sensors::live::Found;

/// What rpicam-apps need to hand over pictures of a CSI camera.
pub(super) const BRIDGE: &str =
    "camera.command = \"rpicam-vid --codec mjpeg -o -\" (with -t 0 as well, or it ends after 5 s)";

const VIDEO_CAPTURE: u32 = 0x0000_0001;
const VIDEO_OUTPUT: u32 = 0x0000_0002;
const VIDEO_CAPTURE_MPLANE: u32 = 0x0000_1000;
const VIDEO_M2M_MPLANE: u32 = 0x0000_4000;
const VIDEO_M2M: u32 = 0x0000_8000;
const META_CAPTURE: u32 = 0x0080_0000;
const STREAMING: u32 = 0x0400_0000;

/// A video node as its driver and sysfs describe it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Node {
    /// The number in `/dev/videoN`.
    pub index: u32,
    /// The driver, for example `uvcvideo`.
    pub driver: String,
    /// What people call it.
    pub card: String,
    /// Where it is attached, in the driver's words, for example `usb-0000:01:00.0-1.2`.
    pub bus: String,
    /// What this node (not its whole device) can do: V4L2's `device_caps`.
    pub device_caps: u32,
    /// Its USB device, when it is one.
    pub usb: Option<Usb>,
    /// The formats it offers.
    pub formats: Vec<Offer>,
    /// Why it could not be asked: an error of opening it.
    pub unreadable: Option<String>,
}

/// A USB device, from sysfs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Usb {
    /// Four hexadecimal digits.
    pub vendor: String,
    /// Four hexadecimal digits.
    pub product: String,
    /// The serial number, when it has one.
    pub serial: Option<String>,
    /// Port and interface, for example `1-1.2:1.0`.
    pub port: String,
}

/// A format and the sizes it comes in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Offer {
    /// The pixel format's four characters.
    pub fourcc: FourCc,
    /// Sizes in pixels.
    pub sizes: Sizes,
}

/// The sizes of one format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sizes {
    /// These.
    Listed(Vec<(u32, u32)>),
    /// Any within bounds: smallest and largest.
    Range((u32, u32), (u32, u32)),
}

impl Default for Sizes {
    fn default() -> Self {
        Self::Listed(Vec::new())
    }
}

impl Node {
    /// Why percept does not open this node, in words; [`None`] for a camera.
    pub(super) fn refusal(&self) -> Option<String> {
        let path = self.path();
        if let Some(error) = &self.unreadable {
            return Some(format!("{path} cannot be asked what it is: {error}"));
        }
        let has = |caps: u32| self.device_caps & caps != 0;
        if has(VIDEO_M2M | VIDEO_M2M_MPLANE) {
            return Some(format!("{path} converts pictures of other nodes (a codec), it takes none"));
        }
        if !has(VIDEO_CAPTURE) {
            return Some(self.what_else());
        }
        if !has(STREAMING) {
            return Some(format!("{path} cannot stream, and percept reads streams only"));
        }
        self.format_refusal()
    }

    fn what_else(&self) -> String {
        let path = self.path();
        let has = |caps: u32| self.device_caps & caps != 0;
        if has(META_CAPTURE) {
            return format!(
                "{path} delivers only data about the pictures of its neighbour (metadata), whatever its device as a whole can do: it is no camera"
            );
        }
        if has(VIDEO_CAPTURE_MPLANE) {
            return format!("{path} captures in several planes, which needs the libcamera bridge: set {BRIDGE}");
        }
        if has(VIDEO_OUTPUT) {
            return format!("{path} takes pictures in and gives none out: it is no camera, or nothing feeds it yet");
        }
        format!("{path} captures no video")
    }

    fn format_refusal(&self) -> Option<String> {
        if self.formats.iter().any(|offer| pixels::layout(offer.fourcc).is_some()) {
            return None;
        }
        let (path, names) = (self.path(), self.format_names());
        if self.formats.is_empty() {
            return Some(format!("{path} offers no picture format at this moment: nothing feeds it"));
        }
        if self.formats.iter().all(|offer| pixels::is_bayer(offer.fourcc)) {
            return Some(format!(
                "{path} offers only what the sensor sees, undeveloped (Bayer {names}): it needs the libcamera bridge, set {BRIDGE}"
            ));
        }
        Some(format!("{path} offers only {names}, which percept does not read (it reads {})", pixels::readable()))
    }

    fn format_names(&self) -> String {
        self.formats.iter().map(|offer| offer.fourcc.to_string()).collect::<Vec<_>>().join(", ")
    }

    /// `/dev/videoN`.
    pub(super) fn path(&self) -> String {
        format!("/dev/video{}", self.index)
    }

    /// The name without its port: the same on every port and after every boot.
    fn base(&self) -> String {
        if let Some(usb) = &self.usb {
            let serial = usb.serial.as_deref().map(word).filter(|serial| !serial.is_empty());
            return match serial {
                Some(serial) => format!("usb-{}:{}-{serial}", usb.vendor, usb.product),
                None => format!("usb-{}:{}", usb.vendor, usb.product),
            };
        }
        let bus = if self.bus.is_empty() { format!("{}-{}", self.driver, self.card) } else { self.bus.clone() };
        word(&bus)
    }

    /// What tells it from its like: USB port and interface, else the card's name.
    fn port(&self) -> String {
        self.usb.as_ref().map_or_else(|| word(&self.card), |usb| usb.port.clone())
    }

    fn is_called(&self, name: &str) -> bool {
        name == self.path() || name == self.base() || name == format!("{}@{}", self.base(), self.port())
    }
}

/// The stable name of a node among all nodes; with its port only where two cameras would share a name.
pub(super) fn source(node: &Node, all: &[Node]) -> SourceId {
    let base = node.base();
    let is_camera = |other: &&Node| other.refusal().is_none();
    let is_shared = all.iter().filter(is_camera).any(|other| other.index != node.index && other.base() == base);
    let name = if is_shared || node.refusal().is_some() { format!("{base}@{}", node.port()) } else { base };
    SourceId::of(SensorKind::Camera, &name)
}

/// The camera that is meant: the named one; without a name the one opened last, else the first of all.
///
/// # Errors
/// [`Failure`]: it is not there, or it is there and no camera.
pub(super) fn choose<'a>(nodes: &'a [Node], wanted: &str, last: Option<&SourceId>) -> Result<&'a Node, Failure> {
    let wanted = wanted.strip_prefix("camera:").unwrap_or(wanted);
    let mut cameras = nodes.iter().filter(|node| node.refusal().is_none());
    if !wanted.is_empty() {
        if let Some(node) = cameras.find(|node| node.is_called(wanted)) {
            return Ok(node);
        }
        return Err(match nodes.iter().find(|node| node.is_called(wanted)) {
            Some(node) => Failure::unusable(node.refusal().unwrap_or_default()),
            None => Failure::unplugged(format!("the camera {wanted} is not there")),
        });
    }
    let known = last.and_then(|last| cameras.clone().find(|node| source(node, nodes) == *last));
    known.or_else(|| cameras.next()).ok_or_else(|| no_camera(nodes))
}

/// Which nodes there are instead of a camera.
fn no_camera(nodes: &[Node]) -> Failure {
    let bridge = nodes.iter().filter_map(Node::refusal).find(|refusal| refusal.contains(BRIDGE));
    let locked = nodes.iter().find(|node| node.unreadable.is_some()).and_then(Node::refusal);
    bridge.or(locked).map_or_else(|| Failure::unplugged("there is no camera"), Failure::unusable)
}

/// The list that `percept devices` prints.
pub(super) fn found(nodes: &[Node]) -> Vec<Found> {
    let describe = |node: &Node| Found {
        source: source(node, nodes),
        name: node.card.clone(),
        detail: format!("{} ({}) {}", node.path(), node.driver, node.format_names()).trim_end().to_owned(),
        refused: node.refusal(),
    };
    nodes.iter().map(describe).collect()
}

/// A text as one word of a name: letters, digits and `.:_-`.
fn word(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || ".:_-".contains(letter);
    let word: String = text.trim().chars().map(|letter| if is_plain(letter) { letter } else { '-' }).collect();
    word.replacen("platform:", "platform-", 1)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A webcam as uvcvideo shows it.
    pub(in crate::sensors::camera) fn webcam(index: u32) -> Node {
        Node {
            index,
            driver: "uvcvideo".into(),
            card: "UVC Camera (046d:0825)".into(),
            bus: "usb-0000:01:00.0-1.2".into(),
            device_caps: 0x0420_0001,
            usb: Some(Usb {
                vendor: "046d".into(),
                product: "0825".into(),
                serial: Some("A1B2C3".into()),
                port: "1-1.2:1.0".into(),
            }),
            formats: vec![Offer { fourcc: FourCc(*b"YUYV"), sizes: Sizes::Listed(vec![(640, 480)]) }],
            unreadable: None,
        }
    }

    fn csi(index: u32) -> Node {
        Node {
            index,
            driver: "unicam".into(),
            card: "unicam".into(),
            bus: "platform:fe801000.csi".into(),
            device_caps: 0x0520_0001,
            formats: vec![Offer { fourcc: FourCc(*b"pBAA"), sizes: Sizes::Range((16, 16), (16_376, 16_376)) }],
            ..Node::default()
        }
    }

    #[test]
    fn a_metadata_node_is_no_camera_whatever_its_device_claims() {
        // uvcvideo: `capabilities` is 0x84a00001 on both nodes; only `device_caps` tells them apart.
        let metadata = Node { index: 1, device_caps: 0x04a0_0000, formats: Vec::new(), ..webcam(0) };
        let nodes = [webcam(0), metadata];

        let listed = found(&nodes);

        assert_eq!(listed[0].source.as_str(), "camera:usb-046d:0825-A1B2C3");
        assert_eq!(listed[0].refused, None);
        let refused = listed[1].refused.as_deref().unwrap();
        assert!(refused.contains("/dev/video1") && refused.contains("metadata"), "{refused}");
        assert_eq!(choose(&nodes, "", None).unwrap().index, 0);
        assert!(choose(&nodes[1..], "", None).is_err());
    }

    #[test]
    fn a_camera_with_undeveloped_pictures_only_is_told_the_libcamera_bridge() {
        let failure = choose(&[csi(0)], "", None).unwrap_err();

        assert_eq!(failure.reason, crate::domain::coverage::CoverageReason::Unusable);
        assert!(failure.detail.contains("libcamera bridge"), "{failure}");
        assert!(failure.detail.contains("camera.command = \"rpicam-vid --codec mjpeg -o -\""), "{failure}");
    }

    #[test]
    fn a_camera_that_comes_back_under_another_number_is_found() {
        let other =
            Node { usb: Some(Usb { vendor: "1bcf".into(), product: "2cd1".into(), ..Usb::default() }), ..webcam(0) };
        let known = source(&webcam(0), &[webcam(0)]);

        let nodes = [other, webcam(2)];

        assert_eq!(choose(&nodes, known.as_str(), None).unwrap().index, 2, "by the name in the config");
        assert_eq!(choose(&nodes, "", Some(&known)).unwrap().index, 2, "by the name it had");
        assert_eq!(choose(&nodes, "", None).unwrap().index, 0, "the first of all");
        assert_eq!(choose(&nodes, "/dev/video2", None).unwrap().index, 2, "by its node");
        assert!(choose(&nodes[..1], known.as_str(), None).unwrap_err().detail.contains("not there"));
    }

    #[test]
    fn two_cameras_of_one_kind_without_serial_numbers_are_told_apart_by_their_ports() {
        let at = |index: u32, port: &str| Node {
            usb: Some(Usb { serial: None, port: port.into(), ..webcam(index).usb.unwrap() }),
            ..webcam(index)
        };
        let nodes = [at(0, "1-1.1:1.0"), at(2, "1-1.2:1.0")];

        let names = nodes.each_ref().map(|node| source(node, &nodes).to_string());

        assert_eq!(names, ["camera:usb-046d:0825@1-1.1:1.0", "camera:usb-046d:0825@1-1.2:1.0"]);
        assert_eq!(choose(&nodes, &names[1], None).unwrap().index, 2);
        assert_eq!(choose(&nodes[1..], &names[1], None).unwrap().index, 2, "alone, it keeps the name it was given");
    }

    #[test]
    fn a_node_without_usb_is_named_by_its_bus() {
        let vivid = Node { bus: "platform:vivid-000".into(), usb: None, ..webcam(0) };

        assert_eq!(source(&vivid, std::slice::from_ref(&vivid)).as_str(), "camera:platform-vivid-000");
    }

    #[test]
    fn every_other_kind_of_node_is_refused_in_words() {
        let with = |device_caps: u32, fourcc: &[u8; 4]| Node {
            device_caps,
            formats: vec![Offer { fourcc: FourCc(*fourcc), sizes: Sizes::default() }],
            ..webcam(7)
        };
        let cases = [
            (with(0x0420_4000, b"YUYV"), "codec"),
            (with(0x0420_1000, b"NV12"), "planes"),
            (with(0x0420_0002, b"YUYV"), "no camera"),
            (with(0x0120_0001, b"YUYV"), "cannot stream"),
            (with(0x0420_0001, b"H264"), "offers only H264"),
            (Node { formats: Vec::new(), ..webcam(7) }, "nothing feeds it"),
            (Node { unreadable: Some("Permission denied".into()), ..webcam(7) }, "Permission denied"),
        ];

        for (node, words) in cases {
            let refusal = node.refusal().unwrap_or_default();
            assert!(refusal.contains(words) && refusal.contains("/dev/video7"), "{refusal:?} lacks {words:?}");
        }
    }
}
