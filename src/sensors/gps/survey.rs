//! What `percept devices` says about GPS: whether gpsd answers, its release, and the receivers it has.

use super::Config;
use super::address::Address;
use super::connect::Connector;
use super::control::Control;
use super::control::Receiver;
use super::lines::Line;
use super::lines::Lines;
use crate::sensors::live::Failure;
use crate::sensors::live::Found;
use serde_json::Value;
use std::time::Duration;

/// Longest wait for each piece of gpsd's answer.
const ANSWER_WAIT: Duration = Duration::from_secs(2);
/// Lines and pieces after which an answer without a list of receivers is none.
const ANSWER_PARTS_MAX: usize = 32;

/// gpsd and its receivers: one entry for each receiver, or one that says there is none.
///
/// Takes some seconds when nobody answers.
///
/// # Errors
/// [`Failure`] when gpsd does not answer, or what answers is no gpsd.
pub fn list(config: &Config) -> Result<Vec<Found>, Failure> {
    let address = Address::parse(&config.address).map_err(|what| Failure::unusable(format!("gps.address {what}")))?;
    let (release, receivers) = ask(&address)?;
    let name = format!("gpsd {release} at {address}");
    let found = |detail: String, refused: Option<String>| Found {
        source: config.source(),
        name: name.clone(),
        detail,
        refused,
    };
    if receivers.is_empty() {
        let refused = "gpsd has no receiver: plug it in, or name it in DEVICES of /etc/default/gpsd";
        return Ok(vec![found(String::new(), Some(refused.to_owned()))]);
    }
    Ok(receivers.into_iter().map(|receiver| found(describe(&receiver), None)).collect())
}

fn describe(receiver: &Receiver) -> String {
    match &receiver.driver {
        Some(driver) => format!("{}, driver {driver}", receiver.path),
        None => format!("{}, not recognised yet", receiver.path),
    }
}

fn ask(address: &Address) -> Result<(String, Vec<Receiver>), Failure> {
    let mut stream = Connector::default().watch(address)?;
    let broke =
        |what: &dyn std::fmt::Display| Failure::unplugged(format!("gpsd at {address} does not answer ({what})"));
    stream.set_read_timeout(Some(ANSWER_WAIT)).map_err(|error| broke(&error))?;
    let mut lines = Lines::default();
    let mut release = None;
    for _ in 0..ANSWER_PARTS_MAX {
        if let Some(line) = lines.pop() {
            match control(&line) {
                Some(Control::Version(text)) => release = Some(text),
                Some(Control::Devices(receivers)) => return Ok((release.unwrap_or_default(), receivers)),
                Some(Control::Device(..) | Control::Watch) | None => {}
            }
        } else if lines.fill(&mut stream).map_err(|error| broke(&error))? == 0 {
            return Err(broke(&"it closed the connection"));
        }
    }
    Err(Failure::unusable(format!("what answers at {address} is no gpsd")))
}

fn control(line: &Line) -> Option<Control> {
    let Line::Whole(bytes) = line else { return None };
    Control::read(&serde_json::from_slice::<Value>(bytes).ok()?)
}
