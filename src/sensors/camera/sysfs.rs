//! Which video nodes there are, and which USB device a node belongs to: `/sys/class/video4linux`.
//!
//! In: the folder. Out: node numbers and [`Usb`] identities. Never: a device opened.

use crate::sensors::camera::node::Usb;
use std::io;
use std::path::Path;

/// Where the kernel lists video nodes.
pub(super) const VIDEO_CLASS: &str = "/sys/class/video4linux";

/// The numbers of all `videoN` nodes, ascending; none when the kernel has no such class.
///
/// # Errors
/// The system's error when the folder is there and cannot be read.
pub(super) fn numbers(class: &Path) -> io::Result<Vec<u32>> {
    let entries = match std::fs::read_dir(class) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let number = |entry: io::Result<std::fs::DirEntry>| {
        entry.ok()?.file_name().to_str()?.strip_prefix("video")?.parse::<u32>().ok()
    };
    let mut numbers: Vec<u32> = entries.filter_map(number).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// The USB device of a node; [`None`] when it hangs on another bus.
pub(super) fn usb(class: &Path, number: u32) -> Option<Usb> {
    let interface = class.join(format!("video{number}/device")).canonicalize().ok()?;
    let device = interface.parent()?;
    let read = |name: &str| std::fs::read_to_string(device.join(name)).ok().map(|text| text.trim().to_owned());
    Some(Usb {
        vendor: read("idVendor")?,
        product: read("idProduct")?,
        serial: read("serial").filter(|serial| !serial.is_empty()),
        port: interface.file_name()?.to_string_lossy().into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_node_leads_to_its_usb_device() {
        let root = tempfile::tempdir().unwrap();
        let (class, device) = (root.path().join("class"), root.path().join("usb1/1-1.2"));
        fs::create_dir_all(device.join("1-1.2:1.0")).unwrap();
        for (name, text) in [("idVendor", "046d\n"), ("idProduct", "0825\n"), ("serial", "A1B2C3\n")] {
            fs::write(device.join(name), text).unwrap();
        }
        for name in ["video10", "video2", "v4l-subdev0"] {
            fs::create_dir_all(class.join(name)).unwrap();
        }
        std::os::unix::fs::symlink(device.join("1-1.2:1.0"), class.join("video2/device")).unwrap();

        assert_eq!(numbers(&class).unwrap(), [2, 10]);
        let usb_device = usb(&class, 2).unwrap();
        assert_eq!((usb_device.vendor.as_str(), usb_device.product.as_str()), ("046d", "0825"));
        assert_eq!((usb_device.serial.as_deref(), usb_device.port.as_str()), (Some("A1B2C3"), "1-1.2:1.0"));
        assert_eq!(usb(&class, 10), None);
        assert!(numbers(&root.path().join("nothing")).unwrap().is_empty());
    }
}
