//! The facts of a line, and those its faces stand for.
//!
//! In: `facts: [{subject, subject_type, relation, object, object_type, valid_from, valid_to, fact}]`. Out: edges.

use super::LineError;
use super::NAME_BYTES_MAX;
use super::fields::Fields;
use crate::domain::episode::Metadata;
use crate::domain::fact::Fact;
use crate::domain::fact::Node;
use crate::domain::fact::NodeKind;
use crate::domain::time::Timestamp;
use crate::episodes::social;

/// Most facts of one line.
const FACTS_MAX: usize = 1_000;

/// Longest sentence of a fact, in bytes.
const SENTENCE_BYTES_MAX: usize = 4 << 10;

/// First instant a fact may speak of, and the first it may not: the years 1 and 10000. A fact may be much older than any
/// capture: who was born when.
const VALID_MS: std::ops::Range<i64> = -62_135_596_800_000..253_402_300_800_000;

/// The type of a node that the line gives none.
const UNTYPED: &str = "entity";

const KEYS: [&str; 8] =
    ["subject", "subject_type", "relation", "object", "object_type", "valid_from", "valid_to", "fact"];

/// Takes the facts; one without `valid_from` holds from the line's own time on.
pub(super) fn take(fields: &mut Fields, timestamp: Timestamp) -> Result<Vec<Fact>, LineError> {
    let list = fields.list("facts", FACTS_MAX)?;
    let facts = list
        .into_iter()
        .enumerate()
        .map(|(index, value)| fact(Fields::of(value, &format!("facts[{index}]"), &KEYS)?, timestamp));
    facts.collect()
}

fn fact(mut fields: Fields, timestamp: Timestamp) -> Result<Fact, LineError> {
    let subject = node(&mut fields, "subject", "subject_type")?;
    let relation = needed(&mut fields, "relation")?;
    let object = node(&mut fields, "object", "object_type")?;
    let sentence = fields.text("fact", SENTENCE_BYTES_MAX)?;
    let sentence = sentence.unwrap_or_else(|| format!("{} {} {}", subject.text, words(&relation), object.text));
    let valid_from = instant(&mut fields, "valid_from")?.unwrap_or(timestamp);
    let valid_to = instant(&mut fields, "valid_to")?;
    if let Some(valid_to) = valid_to.filter(|valid_to| *valid_to < valid_from) {
        let sentence = format!("it ends at {valid_to}, before it begins at {valid_from}");
        return Err(LineError::new(&fields.at("valid_to"), sentence));
    }
    Ok(Fact { valid_to, ..Fact::triple(subject, &relation, object, sentence, valid_from) })
}

fn needed(fields: &mut Fields, key: &str) -> Result<String, LineError> {
    let name = fields.name(key)?.map(|name| name.trim().to_owned());
    name.ok_or_else(|| LineError::new(&fields.at(key), "it is missing; a fact needs subject, relation and object"))
}

fn node(fields: &mut Fields, text_key: &str, kind_key: &str) -> Result<Node, LineError> {
    let text = needed(fields, text_key)?;
    let kind = fields.name(kind_key)?;
    Ok(Node::new(kind_named(kind.as_deref().map_or(UNTYPED, str::trim)), text))
}

fn kind_named(name: &str) -> NodeKind {
    let known = [NodeKind::Person, NodeKind::Location, NodeKind::Sound, NodeKind::Object, NodeKind::Device];
    known.into_iter().find(|kind| kind.as_str() == name).unwrap_or_else(|| NodeKind::Other(name.to_owned()))
}

fn instant(fields: &mut Fields, key: &str) -> Result<Option<Timestamp>, LineError> {
    match fields.millis(key)? {
        Some(millis) if !VALID_MS.contains(&millis) => Err(LineError::new(
            &fields.at(key),
            format!("{millis} is outside the years 1 to 9999; give milliseconds since 1970"),
        )),
        millis => Ok(millis.map(Timestamp::from_millis)),
    }
}

/// `located_at` → `located at`.
fn words(relation: &str) -> String {
    relation.replace('_', " ")
}

/// A recognised face is a person: seen at the place of the line, or merely known from here.
pub(super) fn of_faces(faces: &[String], metadata: &Metadata, tool_name: &str, at: Timestamp) -> Vec<Fact> {
    let place = metadata.get("place").and_then(serde_json::Value::as_str).filter(|place| place.len() <= NAME_BYTES_MAX);
    let fact = |name: &String| match place {
        Some(place) => social::appears_in(name, place, at),
        None => {
            let person = Node::new(NodeKind::Person, name);
            let sentence = format!("{name} recognised by {tool_name}");
            Fact::triple(person.clone(), "discovered_during", person, sentence, at)
        }
    };
    faces.iter().map(fact).collect()
}
