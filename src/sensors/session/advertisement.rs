//! One advertisement as a line of `bluetooth.jsonl`, both ways.
//!
//! `{"at_ms":…, "address" | "token" | "person", "address_type", "rssi_dbm", "name", "service_uuids",
//! "manufacturer_data"}`. Keys that are not known are passed over: other recorders add their own.

use crate::domain::reading::AddressType;
use crate::domain::reading::Advertisement;
use crate::domain::reading::Sender;
use serde_json::Map;
use serde_json::Value;

/// Longest token or person.
const NAME_CHARS_MAX: usize = 200;
/// Longest advertised name: what a device may have.
const LOCAL_NAME_CHARS_MAX: usize = 248;
/// Most service UUIDs and companies of one advertisement.
const LIST_MAX: usize = 64;

/// Reads a line. Beside the advertisement, a value that was left out because it cannot be true.
/// The error says what is wrong without quoting it.
pub(super) fn parse(value: &Value) -> Result<(Advertisement, Option<&'static str>), String> {
    let sender = sender(value)?;
    let (rssi_dbm, oddity) = rssi(value)?;
    let advertisement = Advertisement {
        sender,
        rssi_dbm,
        name: optional_text(value, "name")?.map(|name| name.chars().take(LOCAL_NAME_CHARS_MAX).collect()),
        service_uuids: service_uuids(value)?,
        manufacturer_data: manufacturer_data(value)?,
    };
    Ok((advertisement, oddity))
}

fn sender(value: &Value) -> Result<Sender, String> {
    let address = optional_text(value, "address")?;
    let token = optional_text(value, "token")?;
    let person = optional_text(value, "person")?;
    match (address, token, person) {
        (Some(address), None, None) => {
            let bytes = parse_address(address).ok_or("its address is not six hexadecimal bytes with colons")?;
            Ok(Sender::Address(bytes, address_type(value)?))
        }
        (None, Some(token), None) => Ok(Sender::Token(named(token, "token")?)),
        (None, None, Some(person)) => Ok(Sender::Person(named(person, "person")?)),
        _ => Err("it has not exactly one of address, token and person".to_owned()),
    }
}

fn named(text: &str, key: &str) -> Result<String, String> {
    match text.trim().is_empty() || text.chars().count() > NAME_CHARS_MAX {
        true => Err(format!("its {key} has not 1 to {NAME_CHARS_MAX} characters")),
        false => Ok(text.to_owned()),
    }
}

/// Absent means public, as with BlueZ.
fn address_type(value: &Value) -> Result<AddressType, String> {
    match optional_text(value, "address_type")? {
        None | Some("public") => Ok(AddressType::Public),
        Some("random") => Ok(AddressType::Random),
        Some(_) => Err("its address_type is neither public nor random".to_owned()),
    }
}

/// `AA:BB:CC:DD:EE:FF` in either case.
pub(super) fn parse_address(text: &str) -> Option<[u8; 6]> {
    let mut address = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut address {
        let part = parts.next().filter(|part| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(address)
}

/// Signal strength; what does not fit 16 bits is none, and said so.
fn rssi(value: &Value) -> Result<(Option<i16>, Option<&'static str>), String> {
    let number = match value.get("rssi_dbm") {
        None | Some(Value::Null) => return Ok((None, None)),
        Some(Value::Number(number)) => number.as_f64().unwrap_or(f64::NAN).round(),
        Some(_) => return Err("its rssi_dbm is no number".to_owned()),
    };
    if (f64::from(i16::MIN)..=f64::from(i16::MAX)).contains(&number) {
        #[expect(clippy::cast_possible_truncation, reason = "a whole number within i16")]
        return Ok((Some(number as i16), None));
    }
    Ok((None, Some("its rssi_dbm is no signal strength")))
}

fn optional_text<'a>(value: &'a Value, key: &str) -> Result<Option<&'a str>, String> {
    match value.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("its {key} is no text")),
    }
}

fn service_uuids(value: &Value) -> Result<Vec<String>, String> {
    let list = match value.get("service_uuids") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) if list.len() <= LIST_MAX => list,
        Some(_) => return Err(format!("its service_uuids is no list of at most {LIST_MAX}")),
    };
    let texts: Option<Vec<String>> = list.iter().map(|uuid| uuid.as_str().map(str::to_owned)).collect();
    texts.ok_or_else(|| "its service_uuids are not all texts".to_owned())
}

/// `{"0x004c": "0215…"}`: company ids, decimal or hexadecimal, and their data in hex.
fn manufacturer_data(value: &Value) -> Result<Vec<(u16, Vec<u8>)>, String> {
    let map = match value.get("manufacturer_data") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Object(map)) if map.len() <= LIST_MAX => map,
        Some(_) => return Err(format!("its manufacturer_data is no object of at most {LIST_MAX}")),
    };
    let pairs: Option<Vec<_>> = map
        .iter()
        .map(|(company, data)| {
            let company = match company.strip_prefix("0x") {
                Some(hex) => u16::from_str_radix(hex, 16).ok()?,
                None => company.parse().ok()?,
            };
            Some((company, parse_hex(data.as_str()?)?))
        })
        .collect();
    pairs.ok_or_else(|| "its manufacturer_data is not company ids with data in hex".to_owned())
}

fn parse_hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes a line's fields; [`parse`] gives the advertisement back.
pub(super) fn to_json(at_ms: i64, advertisement: &Advertisement) -> Value {
    let mut line = Map::new();
    line.insert("at_ms".to_owned(), at_ms.into());
    match &advertisement.sender {
        Sender::Address(address, kind) => {
            let address = address.map(|byte| format!("{byte:02X}")).join(":");
            line.insert("address".to_owned(), address.into());
            let kind = match kind {
                AddressType::Public => "public",
                AddressType::Random => "random",
            };
            line.insert("address_type".to_owned(), kind.into());
        }
        Sender::Token(token) => {
            line.insert("token".to_owned(), token.as_str().into());
        }
        Sender::Person(person) => {
            line.insert("person".to_owned(), person.as_str().into());
        }
    }
    if let Some(rssi_dbm) = advertisement.rssi_dbm {
        line.insert("rssi_dbm".to_owned(), rssi_dbm.into());
    }
    if let Some(name) = &advertisement.name {
        line.insert("name".to_owned(), name.as_str().into());
    }
    if !advertisement.service_uuids.is_empty() {
        line.insert("service_uuids".to_owned(), advertisement.service_uuids.clone().into());
    }
    if !advertisement.manufacturer_data.is_empty() {
        let data = advertisement.manufacturer_data.iter();
        let data: Map<_, _> =
            data.map(|(company, data)| (format!("0x{company:04x}"), Value::from(hex(data)))).collect();
        line.insert("manufacturer_data".to_owned(), data.into());
    }
    Value::Object(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(Advertisement, Option<&'static str>), String> {
        parse(&serde_json::from_str(text).unwrap())
    }

    #[test]
    fn an_advertisement_is_read_whole() {
        let (found, oddity) = read(
            r#"{"at_ms":0,"address":"c0:FF:ee:00:00:01","address_type":"random","rssi_dbm":-61.4,"name":"Watch",
                "service_uuids":["180d"],"manufacturer_data":{"0x004c":"0215","6":""},"extra":1}"#,
        )
        .unwrap();

        assert_eq!(oddity, None);
        assert_eq!(found.sender, Sender::Address([0xC0, 0xFF, 0xEE, 0, 0, 1], AddressType::Random));
        assert_eq!(found.rssi_dbm, Some(-61));
        assert_eq!(found.manufacturer_data, [(0x4C, vec![2, 0x15]), (6, vec![])]);
    }

    #[test]
    fn a_strength_that_does_not_fit_is_none_and_the_rest_is_kept() {
        let (found, oddity) = read(r#"{"token":"t","rssi_dbm":-99999}"#).unwrap();

        assert_eq!((found.rssi_dbm, oddity.is_some()), (None, true));
    }

    #[test]
    fn wrong_lines_are_refused_without_quoting_them() {
        for wrong in [
            r#"{}"#,
            r#"{"address":"c0:ff:ee:00:00"}"#,
            r#"{"address":"c0:ff:ee:00:00:+1"}"#,
            r#"{"address":"c0:ff:ee:00:00:01:02"}"#,
            r#"{"address":"c0:ff:ee:00:00:01","token":"t"}"#,
            r#"{"address":"c0:ff:ee:00:00:01","address_type":"odd"}"#,
            r#"{"person":"  "}"#,
            r#"{"token":5}"#,
            r#"{"token":"t","rssi_dbm":"loud"}"#,
            r#"{"token":"t","service_uuids":"180d"}"#,
            r#"{"token":"t","manufacturer_data":{"x":"00"}}"#,
            r#"{"token":"t","manufacturer_data":{"1":"0"}}"#,
        ] {
            let error = read(wrong).unwrap_err();

            assert!(error.starts_with("it") && !error.contains("c0:"), "{wrong}: {error}");
        }
    }
}
