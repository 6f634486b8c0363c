//! The sound cards by their identity, from sysfs.
//!
//! In: `/sys/class/sound` (a hardened service does not see `/proc/asound`). Out: one input for each capture device, and
//! one that says why for each card without. Opens no device.

use super::input::Attachment;
use super::input::CardPcm;
use super::input::Input;
use super::input::separate_twins;
use super::input::usb_id;
use std::collections::BTreeSet;
use std::path::Path;
use std::path::PathBuf;

/// Cards that are only software: snd-aloop and snd-dummy.
const SOFTWARE: [&str; 2] = ["Loopback", "Dummy"];

/// How far above a card its USB device may be.
const USB_LEVELS_MAX: usize = 4;

/// The cards below `class`, in the order of their numbers.
pub(super) fn inputs(class: &Path) -> Vec<Input> {
    let mut inputs: Vec<Input> = Vec::new();
    for number in numbers(class) {
        if let Ok(folder) = class.join(format!("card{number}")).canonicalize() {
            inputs.extend(inputs_of(number, &folder));
        }
    }
    separate_twins(&mut inputs);
    inputs
}

fn numbers(class: &Path) -> BTreeSet<u32> {
    names(class).iter().filter_map(|name| name.strip_prefix("card")?.parse().ok()).collect()
}

fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

fn inputs_of(card: u32, folder: &Path) -> Vec<Input> {
    let card_id = text(&folder.join("id")).unwrap_or_else(|| card.to_string());
    let base = identify(&card_id, folder);
    let devices = capture_devices(card, folder);
    if devices.is_empty() {
        let refused = Some("an output; percept opens inputs only".to_owned());
        let pcm = Some(CardPcm { card, card_id, device: 0 });
        return vec![Input { refused, pcm, ..base }];
    }
    let is_hdmi = card_id.to_lowercase().contains("hdmi");
    let refused = is_hdmi.then(|| "HDMI carries no microphone".to_owned());
    let input = |(index, device): (usize, u32)| Input {
        // The first capture device of a card is the microphone; further ones are told apart by their number.
        id: if index == 0 { base.id.clone() } else { format!("{}.{device}", base.id) },
        pcm: Some(CardPcm { card, card_id: card_id.clone(), device }),
        refused: refused.clone(),
        ..base.clone()
    };
    devices.into_iter().enumerate().map(input).collect()
}

/// What a card is, without its devices.
fn identify(card_id: &str, folder: &Path) -> Input {
    let base = Input::server(card_id);
    let Some(usb) = usb_folder(folder) else {
        let is_software = SOFTWARE.iter().any(|name| card_id.starts_with(name));
        let attachment = if is_software { Attachment::Software } else { Attachment::Card };
        return Input { id: format!("card-{card_id}"), attachment, ..base };
    };
    let read = |name: &str| text(&usb.join(name));
    let (vendor, product) = (read("idVendor").unwrap_or_default(), read("idProduct").unwrap_or_default());
    Input {
        id: usb_id(&vendor, &product, read("serial").as_deref()),
        name: read("product").unwrap_or_else(|| card_id.to_owned()),
        attachment: Attachment::Usb,
        port: usb.file_name().map(|name| name.to_string_lossy().into_owned()),
        ..base
    }
}

/// The USB device that a card belongs to: its interface's parent.
fn usb_folder(folder: &Path) -> Option<PathBuf> {
    let interface = folder.join("device").canonicalize().ok()?;
    let is_device = |folder: &&Path| folder.join("idVendor").is_file() && folder.join("idProduct").is_file();
    interface.ancestors().take(USB_LEVELS_MAX).find(is_device).map(Path::to_path_buf)
}

/// The numbers of a card's capture devices: `pcmC1D0c`.
fn capture_devices(card: u32, folder: &Path) -> BTreeSet<u32> {
    let prefix = format!("pcmC{card}D");
    names(folder).iter().filter_map(|name| name.strip_prefix(&prefix)?.strip_suffix('c')?.parse().ok()).collect()
}

fn text(file: &Path) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let text = text.trim();
    if text.is_empty() { None } else { Some(text.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A sysfs with cards as the kernel lays them out.
    struct Sysfs(tempfile::TempDir);

    impl Sysfs {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            fs::create_dir_all(folder.path().join("class")).unwrap();
            Self(folder)
        }

        fn class(&self) -> PathBuf {
            self.0.path().join("class")
        }

        fn card(&self, number: u32, id: &str, pcms: &[&str], device: &str) {
            let device = self.0.path().join("devices").join(device);
            let folder = device.join(format!("sound/card{number}"));
            for pcm in pcms {
                fs::create_dir_all(folder.join(format!("pcmC{number}{pcm}"))).unwrap();
            }
            fs::write(folder.join("id"), format!("{id}\n")).unwrap();
            std::os::unix::fs::symlink(&device, folder.join("device")).unwrap();
            std::os::unix::fs::symlink(&folder, self.class().join(format!("card{number}"))).unwrap();
        }

        fn usb(&self, device: &str, facts: &[(&str, &str)]) {
            let folder = self.0.path().join("devices").join(device);
            fs::create_dir_all(&folder).unwrap();
            for (name, value) in facts {
                fs::write(folder.join(name), format!("{value}\n")).unwrap();
            }
        }
    }

    const FACTS: [(&str, &str); 4] =
        [("idVendor", "0d8c"), ("idProduct", "0014"), ("serial", "A1"), ("product", "USB Audio Device")];

    #[test]
    fn a_usb_microphone_has_one_identity_whatever_its_card_number_and_hdmi_is_refused() {
        let first = Sysfs::new();
        first.card(0, "vc4hdmi", &["D0p"], "soc/hdmi");
        first.usb("usb1/1-1", &FACTS);
        first.card(1, "Device", &["D0p", "D0c"], "usb1/1-1/1-1:1.0");
        let second = Sysfs::new();
        second.card(1, "vc4hdmi", &["D0p"], "soc/hdmi");
        second.usb("usb1/1-2", &FACTS);
        second.card(2, "Device", &["D0p", "D0c"], "usb1/1-2/1-2:1.0");

        for (sysfs, card) in [(first, 1), (second, 2)] {
            let inputs = inputs(&sysfs.class());
            assert_eq!(inputs[0].refused.as_deref(), Some("an output; percept opens inputs only"));
            assert_eq!(inputs[1].id, "usb-0d8c:0014-A1");
            assert_eq!(inputs[1].name, "USB Audio Device");
            assert_eq!(inputs[1].pcm, Some(CardPcm { card, card_id: "Device".to_owned(), device: 0 }));
            assert_eq!(inputs[1].refused, None);
        }
    }

    #[test]
    fn other_cards_go_by_their_id_and_further_devices_by_their_number() {
        let sysfs = Sysfs::new();
        sysfs.card(10, "PCH", &["D0p", "D0c", "D2c"], "pci/1f.3");
        sysfs.card(2, "Loopback", &["D0c"], "aloop");
        sysfs.card(3, "tchdmi", &["D0c"], "csi");

        let found = inputs(&sysfs.class());
        let short: Vec<_> = found.iter().map(|i| (i.id.as_str(), i.attachment, i.refused.is_some())).collect();

        assert_eq!(
            short,
            [
                ("card-Loopback", Attachment::Software, false),
                ("card-tchdmi", Attachment::Card, true),
                ("card-PCH", Attachment::Card, false),
                ("card-PCH.2", Attachment::Card, false),
            ]
        );
    }

    #[test]
    fn a_machine_without_sound_has_no_inputs() {
        assert_eq!(inputs(Path::new("/nonexistent")), []);
    }
}
