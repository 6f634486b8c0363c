//! The identity of sound devices, and which of them is meant.
//!
//! In: what the machine has, and the name from the config. Out: the devices to try, best first. No I/O.

use crate::sensors::live::Failure;
use std::collections::BTreeMap;

/// How a sound device is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Attachment {
    /// A USB device.
    Usb,
    /// Any other card.
    Card,
    /// A name that a sound server or ALSA's configuration stands behind: `default`, `pulse`, `pipewire`.
    Server,
    /// A card that is only software (a loopback): the last choice.
    Software,
}

/// Where a card's capture device is at this moment. Changes from boot to boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CardPcm {
    /// The card's number.
    pub card: u32,
    /// The card's id: `Device`, `sndrpii2s`.
    pub card_id: String,
    /// The device's number on the card.
    pub device: u32,
}

/// A sound device of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Input {
    /// Its identity, without the kind: `usb-0d8c:0014-4F2A`, `card-PCH`, `default`.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// How it is attached.
    pub attachment: Attachment,
    /// Where it is, when it is a card.
    pub pcm: Option<CardPcm>,
    /// The USB port it is plugged into: `1-1.4`.
    pub port: Option<String>,
    /// Why it is never opened.
    pub refused: Option<String>,
}

impl Input {
    /// A name without a card.
    pub(super) fn server(name: &str) -> Self {
        let description = match name {
            "default" => "default of ALSA or the sound server",
            "pulse" => "PulseAudio",
            "pipewire" => "PipeWire",
            other => other,
        };
        Self {
            id: name.to_owned(),
            name: description.to_owned(),
            attachment: Attachment::Server,
            pcm: None,
            port: None,
            refused: None,
        }
    }

    /// Where it is, for people.
    pub(super) fn place(&self) -> String {
        match (&self.pcm, &self.port) {
            (None, _) => "sound server".to_owned(),
            (Some(pcm), None) => format!("card {} [{}] device {}", pcm.card, pcm.card_id, pcm.device),
            (Some(pcm), Some(port)) => {
                format!("card {} [{}] device {}, USB port {port}", pcm.card, pcm.card_id, pcm.device)
            }
        }
    }
}

/// Which device the config asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The first real one; later the one that was open before.
    Any {
        /// The identity of the device that was open before.
        before: Option<String>,
    },
    /// This one.
    Named(String),
}

impl Wanted {
    /// Reads the config's `device`.
    pub(super) fn parse(device: &str) -> Self {
        let name = device.trim();
        let name = name.strip_prefix("microphone:").unwrap_or(name);
        if name.is_empty() { Self::Any { before: None } } else { Self::Named(name.to_owned()) }
    }

    /// The configured name.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Any { .. } => None,
            Self::Named(name) => Some(name),
        }
    }

    /// The devices to try, best first; never empty.
    ///
    /// # Errors
    /// [`Failure`]: the device is not there, or is one that is never opened.
    pub(super) fn candidates(&self, inputs: &[Input]) -> Result<Vec<Input>, Failure> {
        match self {
            Self::Named(name) => named(name, inputs),
            Self::Any { before } => any(before.as_deref(), inputs),
        }
    }
}

fn named(name: &str, inputs: &[Input]) -> Result<Vec<Input>, Failure> {
    let exact = inputs.iter().find(|input| input.id == name);
    let Some(input) = exact.or_else(|| inputs.iter().find(|input| is_meant(name, input))) else {
        return Err(Failure::unplugged(format!("no microphone {name}; there is {}", names(inputs))));
    };
    match &input.refused {
        Some(reason) => Err(Failure::unusable(format!("{name} is never opened: {reason}"))),
        None => Ok(vec![input.clone()]),
    }
}

/// A name without serial number means any serial number; one without a port any port.
fn is_meant(name: &str, input: &Input) -> bool {
    let rest = input.id.strip_prefix(name).unwrap_or_default();
    input.attachment == Attachment::Usb && (rest.starts_with('-') || rest.starts_with('@'))
}

fn any(before: Option<&str>, inputs: &[Input]) -> Result<Vec<Input>, Failure> {
    let usable = || inputs.iter().filter(|input| input.refused.is_none());
    if let Some(input) = usable().find(|input| Some(input.id.as_str()) == before) {
        return Ok(vec![input.clone()]);
    }
    let mut candidates: Vec<Input> = usable().cloned().collect();
    // Another card may stand in for a lost one. A server's name may not: it opens with nothing behind it, and the
    // silence would hide that the microphone is gone.
    if before.is_some_and(|before| before.starts_with("usb-") || before.starts_with("card-")) {
        candidates.retain(|input| input.pcm.is_some());
    }
    candidates.sort_by_key(|input| input.attachment);
    if candidates.is_empty() {
        return Err(Failure::unplugged(format!("no microphone; there is {}", names(inputs))));
    }
    Ok(candidates)
}

fn names(inputs: &[Input]) -> String {
    let names: Vec<&str> = inputs.iter().filter(|i| i.refused.is_none()).map(|i| i.id.as_str()).collect();
    if names.is_empty() { "none at all".to_owned() } else { names.join(", ") }
}

/// Tells devices of one identity (two of a kind without serial number) apart by their USB port.
pub(super) fn separate_twins(inputs: &mut [Input]) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for input in inputs.iter() {
        *seen.entry(input.id.clone()).or_default() += 1;
    }
    for input in inputs {
        if seen.get(&input.id).is_some_and(|count| *count > 1)
            && let Some(port) = &input.port
        {
            input.id = format!("{}@{port}", input.id);
        }
    }
}

/// `usb-VVVV:PPPP` or `usb-VVVV:PPPP-SERIAL`; what a serial number may carry beside letters and digits becomes `_`.
pub(super) fn usb_id(vendor: &str, product: &str, serial: Option<&str>) -> String {
    let plain = |text: &str| -> String {
        let allowed = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '_' };
        text.trim().chars().take(64).map(allowed).collect()
    };
    let model = format!("usb-{}:{}", plain(vendor).to_lowercase(), plain(product).to_lowercase());
    match serial.map(plain).filter(|serial| !serial.is_empty()) {
        Some(serial) => format!("{model}-{serial}"),
        None => model,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usb(id: &str, card: u32, port: &str) -> Input {
        let pcm = CardPcm { card, card_id: "Device".to_owned(), device: 0 };
        let port = Some(port.to_owned());
        Input { pcm: Some(pcm), port, attachment: Attachment::Usb, id: id.to_owned(), ..Input::server("usb") }
    }

    fn ids(candidates: Result<Vec<Input>, Failure>) -> Vec<String> {
        candidates.unwrap().into_iter().map(|input| input.id).collect()
    }

    #[test]
    fn a_configured_name_may_leave_out_the_kind_and_the_serial_number() {
        let inputs = [Input::server("default"), usb("usb-0d8c:0014-A1", 1, "1-1")];

        for device in ["microphone:usb-0d8c:0014-A1", "usb-0d8c:0014-A1", " usb-0d8c:0014 "] {
            assert_eq!(ids(Wanted::parse(device).candidates(&inputs)), ["usb-0d8c:0014-A1"]);
        }
        let other = Wanted::parse("usb-0d8c:001").candidates(&inputs).unwrap_err();
        assert_eq!(other.detail, "no microphone usb-0d8c:001; there is default, usb-0d8c:0014-A1");
    }

    #[test]
    fn without_a_name_cards_come_first_and_the_one_that_was_open_before_all() {
        let loopback = Input { attachment: Attachment::Software, id: "card-Loopback".to_owned(), ..usb("", 0, "") };
        let built_in = Input { attachment: Attachment::Card, id: "card-PCH".to_owned(), ..usb("", 2, "") };
        let inputs = [loopback, Input::server("default"), built_in, usb("usb-1:2", 1, "1-1")];

        let first = Wanted::parse("").candidates(&inputs);
        let again = Wanted::Any { before: Some("card-PCH".to_owned()) }.candidates(&inputs);

        assert_eq!(ids(first), ["usb-1:2", "card-PCH", "default", "card-Loopback"]);
        assert_eq!(ids(again), ["card-PCH"]);
    }

    #[test]
    fn no_server_name_stands_in_for_a_card_that_is_gone() {
        let lost = Wanted::Any { before: Some("usb-1:2".to_owned()) };

        let failure = lost.candidates(&[Input::server("default")]).unwrap_err();

        assert_eq!(failure, Failure::unplugged("no microphone; there is default"));
    }

    #[test]
    fn two_of_a_kind_are_told_apart_by_their_port() {
        let mut inputs = [usb("usb-1:2", 1, "1-1.1"), usb("usb-1:2", 2, "1-1.2"), usb("usb-3:4", 3, "1-1.3")];

        separate_twins(&mut inputs);

        assert_eq!(inputs.each_ref().map(|input| input.id.as_str()), ["usb-1:2@1-1.1", "usb-1:2@1-1.2", "usb-3:4"]);
        assert_eq!(ids(Wanted::parse("usb-1:2@1-1.2").candidates(&inputs)), ["usb-1:2@1-1.2"]);
        assert_eq!(ids(Wanted::parse("usb-1:2").candidates(&inputs)), ["usb-1:2@1-1.1"]);
    }

    #[test]
    fn a_serial_number_is_made_plain() {
        assert_eq!(usb_id("0D8C", "0014\n", Some(" A b/7\n")), "usb-0d8c:0014-A_b_7");
        assert_eq!(usb_id("0d8c", "0014", Some("  ")), "usb-0d8c:0014");
    }
}
