//! What becomes of one row: it stays, it goes, or what names the forgotten is taken out of it.
//!
//! In: a row with its edges, what is to be forgotten, who else is known. Out: a [`Verdict`].
//!
//! | the row | person | place |
//! |---|---|---|
//! | names it, and nobody (no other place) besides | goes | a stay there goes, everything else is redacted |
//! | names others too | redacted | redacted |
//! | has the name only in other letters (`will`), in the name of a place or a sensor | redacted | redacted |
//!
//! Redacted: the name is replaced by [`SOMEONE`] or [`SOMEWHERE`] in sentence, metadata and names, facts that name it go,
//! and so does what cannot be read and mended: pictures, recordings, vectors. Coordinates go with a place.
//! Others are: the people of the graph and of the config, the row's own person, faces and facts.
//! Never: the store, files, the clock.

use crate::memory::forget::name::Name;
use serde_json::Map;
use serde_json::Value;
use std::collections::BTreeMap;

/// What stands in the place of a forgotten person.
pub const SOMEONE: &str = "someone";

/// What stands in the place of a forgotten place.
pub const SOMEWHERE: &str = "somewhere";

/// Metadata that lists the people of a picture or a talk.
const PEOPLE_KEYS: [&str; 7] = ["face_names", "faceNames", "faces", "participants", "people", "personName", "speakers"];

/// Metadata that names places.
const PLACE_KEYS: [&str; 4] = ["from_place", "locationLabel", "place", "to_place"];

/// Metadata that says where a place is.
const POSITION_KEYS: [&str; 7] =
    ["bounds", "gps", "latitude", "latitude_deg", "longitude", "longitude_deg", "position"];

/// A row as far as it may name somebody.
#[derive(Debug, Clone, Default)]
pub(crate) struct Row {
    pub(crate) modality: String,
    pub(crate) source: String,
    pub(crate) external_id: Option<String>,
    pub(crate) tool_name: String,
    pub(crate) content: String,
    /// As it is stored, which need not be JSON.
    pub(crate) metadata: String,
    pub(crate) edges: Vec<Edge>,
}

/// An edge of the graph, with its ends.
#[derive(Debug, Clone)]
pub(crate) struct Edge {
    pub(crate) id: String,
    /// Text and type of both nodes.
    pub(crate) nodes: [(String, String); 2],
    pub(crate) relation: String,
    pub(crate) fact: String,
}

/// What becomes of a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Verdict {
    /// It says nothing of the forgotten.
    Stays,
    /// It goes.
    Goes,
    /// It stays without them.
    Redacted(Box<Redaction>),
}

/// A row without the name.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Redaction {
    pub(crate) source: String,
    pub(crate) external_id: Option<String>,
    pub(crate) tool_name: String,
    pub(crate) content: String,
    pub(crate) metadata: String,
    /// Ids of the edges that go.
    pub(crate) edges: Vec<String>,
}

/// A name and what it is the name of.
#[derive(Debug, Clone)]
pub(crate) struct Named {
    pub(crate) name: Name,
    pub(crate) is_place: bool,
}

impl Named {
    /// What stands in its place.
    pub(crate) const fn placeholder(&self) -> &'static str {
        if self.is_place { SOMEWHERE } else { SOMEONE }
    }

    /// The text without the name; `None` when it is not in it.
    pub(crate) fn redacted(&self, text: &str) -> Option<String> {
        self.name.replaced(text, self.placeholder())
    }

    fn without(&self, text: &str) -> String {
        self.redacted(text).unwrap_or_else(|| text.to_owned())
    }

    fn is_in_edge(&self, edge: &Edge) -> bool {
        edge.nodes.iter().any(|(text, _)| self.name.is_in(text))
            || self.name.is_in(&edge.fact)
            || self.name.is_in(&edge.relation)
    }

    /// The metadata object, if the row has one. Names may be escaped in it, so that only its strings tell.
    fn parsed(row: &Row) -> Option<Map<String, Value>> {
        serde_json::from_str(&row.metadata).ok()
    }
}

/// Judges one row.
pub(crate) fn judge(row: &Row, named: &Named, known: &Roll) -> Verdict {
    let metadata = Named::parsed(row);
    let edges: Vec<String> =
        row.edges.iter().filter(|edge| named.is_in_edge(edge)).map(|edge| edge.id.clone()).collect();
    let Some(redaction) = redact(row, metadata.as_ref(), named, edges) else { return Verdict::Stays };
    let goes = if named.is_place {
        is_stay_there(row, metadata.as_ref(), named)
    } else {
        is_about(row, metadata.as_ref(), named) && !names_others(row, metadata.as_ref(), &redaction, named, known)
    };
    if goes { Verdict::Goes } else { Verdict::Redacted(Box::new(redaction)) }
}

/// The row without the name; `None` when the name is not in it.
fn redact(row: &Row, metadata: Option<&Map<String, Value>>, named: &Named, edges: Vec<String>) -> Option<Redaction> {
    let redaction = Redaction {
        source: named.without(&row.source),
        external_id: row.external_id.clone().filter(|id| !named.name.is_in(id)),
        tool_name: named.without(&row.tool_name),
        content: named.without(&row.content),
        metadata: match metadata {
            Some(object) => redacted_object(object, named)
                .map_or_else(|| row.metadata.clone(), |object| Value::Object(object).to_string()),
            None => named.without(&row.metadata),
        },
        edges,
    };
    let is_same = redaction.edges.is_empty()
        && redaction.source == row.source
        && redaction.external_id == row.external_id
        && redaction.tool_name == row.tool_name
        && redaction.content == row.content
        && redaction.metadata == row.metadata;
    if is_same {
        return None;
    }
    Some(if named.is_place { without_position(redaction) } else { redaction })
}

/// Takes the name out of an object; `None` when it is not in it. A person or place that is the name itself goes whole.
pub(crate) fn redacted_object(object: &Map<String, Value>, named: &Named) -> Option<Map<String, Value>> {
    let mut is_changed = false;
    let mut result = Map::new();
    for (key, value) in object {
        let is_whole = matches!(key.as_str(), "person" | "place" | "personName" | "locationLabel")
            && value.as_str().is_some_and(|text| named.name.is(text));
        // An id with something else in it would be another id, perhaps one that is taken.
        let is_id = key == "multimodal_episode_id" && value.as_str().is_some_and(|text| named.name.is_in(text));
        if is_whole || is_id {
            is_changed = true;
            continue;
        }
        let new_key = named.redacted(key);
        let new_value = redacted_value(value, named);
        is_changed |= new_key.is_some() || new_value.is_some();
        result.insert(new_key.unwrap_or_else(|| key.clone()), new_value.unwrap_or_else(|| value.clone()));
    }
    is_changed.then_some(result)
}

fn redacted_value(value: &Value, named: &Named) -> Option<Value> {
    match value {
        Value::String(text) => named.redacted(text).map(Value::String),
        Value::Array(values) => {
            let redacted: Vec<Option<Value>> = values.iter().map(|value| redacted_value(value, named)).collect();
            let is_changed = redacted.iter().any(Option::is_some);
            let merged = redacted.into_iter().zip(values).map(|(new, old)| new.unwrap_or_else(|| old.clone()));
            is_changed.then(|| Value::Array(merged.collect()))
        }
        Value::Object(object) => redacted_object(object, named).map(Value::Object),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Coordinates are another name of the place.
fn without_position(redaction: Redaction) -> Redaction {
    let Ok(mut object) = serde_json::from_str::<Map<String, Value>>(&redaction.metadata) else { return redaction };
    drop_positions(&mut object);
    Redaction { metadata: Value::Object(object).to_string(), ..redaction }
}

/// Removes every coordinate from an object and the objects in it.
pub(crate) fn drop_positions(object: &mut Map<String, Value>) {
    object.retain(|key, _| !POSITION_KEYS.contains(&key.as_str()));
    for inner in object.values_mut().filter_map(Value::as_object_mut) {
        drop_positions(inner);
    }
}

/// Whether the row is a stay at that place and nowhere else.
fn is_stay_there(row: &Row, metadata: Option<&Map<String, Value>>, named: &Named) -> bool {
    let places: Vec<&str> = metadata
        .map(|object| PLACE_KEYS.iter().filter_map(|key| object.get(*key)?.as_str()).collect())
        .unwrap_or_default();
    row.modality == "spatial" && !places.is_empty() && places.iter().all(|place| named.name.is(place))
}

/// Whether the row tells of the person: by a person's field, a face, a fact, or by calling the name in its words.
fn is_about(row: &Row, metadata: Option<&Map<String, Value>>, named: &Named) -> bool {
    let by_fact = row.edges.iter().any(|edge| {
        edge.nodes.iter().any(|(text, kind)| kind == "person" && named.name.is(text))
            || named.name.is_called_in(&edge.fact)
    });
    let place = metadata.and_then(|object| object.get("place")?.as_str()).unwrap_or_default();
    let words = if place.is_empty() { row.content.clone() } else { row.content.replace(place, "") };
    let by_field = match metadata {
        Some(object) => people_in(object).iter().any(|person| named.name.is(person)) || calls_in_object(object, named),
        None => named.name.is_called_in(&row.metadata),
    };
    by_fact || by_field || named.name.is_called_in(&words)
}

/// Whether a string that names no place calls the name.
fn calls_in_object(object: &Map<String, Value>, named: &Named) -> bool {
    object.iter().any(|(key, value)| !PLACE_KEYS.contains(&key.as_str()) && calls_in(value, named))
}

fn calls_in(value: &Value, named: &Named) -> bool {
    match value {
        Value::String(text) => named.name.is_called_in(text),
        Value::Array(values) => values.iter().any(|value| calls_in(value, named)),
        Value::Object(object) => calls_in_object(object, named),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether the row names another person: in a field, as a face, in a fact, or in its words if percept knows them.
fn names_others(
    row: &Row,
    metadata: Option<&Map<String, Value>>,
    redaction: &Redaction,
    named: &Named,
    known: &Roll,
) -> bool {
    let is_other = |text: &str| !named.name.is_in(text) && !is_nobody(text);
    let by_field = metadata.is_some_and(|object| people_in(object).iter().any(|person| is_other(person)));
    let by_face = faces_in(&row.content).iter().any(|face| is_other(face));
    let nodes = row.edges.iter().flat_map(|edge| &edge.nodes);
    let by_fact = nodes.into_iter().any(|(text, kind)| kind == "person" && is_other(text));
    // Without the name: who is called Smith is not meant where Alice Smith is forgotten.
    by_field
        || by_face
        || by_fact
        || known.is_any_in(&redaction.content, named)
        || known.is_any_in(&redaction.metadata, named)
}

fn is_nobody(text: &str) -> bool {
    let text = text.trim();
    text.is_empty() || text.eq_ignore_ascii_case(SOMEONE) || text.eq_ignore_ascii_case(SOMEWHERE)
}

fn people_in(object: &Map<String, Value>) -> Vec<String> {
    let mut people: Vec<String> = object.get("person").and_then(Value::as_str).map(str::to_owned).into_iter().collect();
    for value in PEOPLE_KEYS.iter().filter_map(|key| object.get(*key)) {
        match value {
            Value::String(text) => people.push(text.clone()),
            Value::Array(values) => people.extend(values.iter().filter_map(person_of)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
        }
    }
    people
}

/// A face as a bare name or as an object with one.
fn person_of(value: &Value) -> Option<String> {
    let text = value.as_str().or_else(|| value.get("name")?.as_str()).or_else(|| value.get("person")?.as_str())?;
    Some(text.to_owned())
}

/// The names after `Faces: ` in a moment's sentence.
fn faces_in(content: &str) -> Vec<String> {
    let Some((before, rest)) = content.split_once("Faces: ") else { return Vec::new() };
    if !(before.is_empty() || before.ends_with(". ")) {
        return Vec::new();
    }
    let list = rest.split_once(". ").map_or(rest, |(list, _)| list);
    list.split(", ").map(|face| face.trim_end_matches('.').to_owned()).collect()
}

/// The people that are known, by their first word.
#[derive(Debug, Clone, Default)]
pub(crate) struct Roll(BTreeMap<String, Vec<Vec<String>>>);

impl Roll {
    /// A roll of these names.
    pub(crate) fn new(names: impl IntoIterator<Item = String>) -> Self {
        let mut roll: BTreeMap<String, Vec<Vec<String>>> = BTreeMap::new();
        for name in names.into_iter().filter(|name| !is_nobody(name)) {
            let words = words_of(&name);
            if let Some(first) = words.first() {
                roll.entry(first.clone()).or_default().push(words);
            }
        }
        Self(roll)
    }

    /// Whether someone of the roll is named in the text; names that hold the forgotten one are nobody else's.
    fn is_any_in(&self, text: &str, named: &Named) -> bool {
        let words = words_of(text);
        (0..words.len()).any(|at| {
            self.0.get(&words[at]).is_some_and(|names| {
                names.iter().any(|name| words[at..].starts_with(name) && !named.name.is_in(&name.join(" ")))
            })
        })
    }
}

fn words_of(text: &str) -> Vec<String> {
    text.split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests;
