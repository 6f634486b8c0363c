//! Who was where, what was heard and seen where: the edges an episode adds to the graph.

use crate::domain::time::Timestamp;

/// A thing the graph knows, unique by (text, kind).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Node {
    /// How it is called: `Alice`, `Kitchen`, `Speech`.
    pub text: String,
    /// What it is.
    pub kind: NodeKind,
}

/// The kinds of node; handed-in facts may bring others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeKind {
    /// A known person.
    Person,
    /// A place.
    Location,
    /// A class of sound.
    Sound,
    /// A class of thing seen.
    Object,
    /// A capturing device.
    Device,
    /// Anything else, by name.
    Other(String),
}

impl NodeKind {
    /// The name stored in the database.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Person => "person",
            Self::Location => "location",
            Self::Sound => "sound",
            Self::Object => "object",
            Self::Device => "device",
            Self::Other(name) => name,
        }
    }

    /// The kind of that name; what is none of the known ones is [`Self::Other`].
    #[must_use]
    pub fn parse(name: &str) -> Self {
        let known = [Self::Person, Self::Location, Self::Sound, Self::Object, Self::Device];
        known.into_iter().find(|kind| kind.as_str() == name).unwrap_or_else(|| Self::Other(name.to_owned()))
    }
}

impl Node {
    /// A node of that kind.
    #[must_use]
    pub fn new(kind: NodeKind, text: impl Into<String>) -> Self {
        Self { text: text.into(), kind }
    }
}

/// One edge of the graph, with the sentence it stands for.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Fact {
    /// Where the edge starts.
    pub subject: Node,
    /// What it says: `discovered_during`, `appears_in`, `heard_at`, `seen_at`, `located_at`.
    pub relation: String,
    /// Where it ends; the subject itself for a self edge.
    pub object: Node,
    /// The sentence.
    pub fact: String,
    /// The kind of edge, `triple` for facts.
    pub edge_type: String,
    /// From when it holds.
    pub valid_from: Timestamp,
    /// Until when, if it ended.
    pub valid_to: Option<Timestamp>,
}

impl Fact {
    /// A triple that holds from `valid_from` on.
    #[must_use]
    pub fn triple(subject: Node, relation: &str, object: Node, fact: String, valid_from: Timestamp) -> Self {
        Self {
            subject,
            relation: relation.to_owned(),
            object,
            fact,
            edge_type: "triple".to_owned(),
            valid_from,
            valid_to: None,
        }
    }
}
