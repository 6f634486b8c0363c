//! What model files there are, where they come from and what they must be.
//!
//! In: `models/manifest.toml`, compiled in (or another text of that format, in tests). Out: a checked [`Manifest`],
//! in which every file either has a size and a hash or is brought by its owner.
//!
//! This module is plain: it reads no file, opens no connection, and never looks into a models folder.

mod check;
mod raw;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

/// The manifest this program was built with.
const BUILTIN: &str = include_str!("../../../../models/manifest.toml");

/// A checked list of models, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    models: Vec<Model>,
}

/// One model: a set of files that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// Stable name in lower case, digits and `-`: the config, the command line and the store use it.
    pub id: String,
    /// What it gives, in a few words.
    pub purpose: String,
    /// SPDX name of the licence of the weights.
    pub licence: String,
    /// Whether it is fetched when the config names no other.
    pub is_default: bool,
    /// Whether its owner brings the files, so that nothing is fetched.
    pub is_local: bool,
    /// The page where a person reads about it.
    pub home: String,
    /// What else to know.
    pub note: String,
    /// Its files; one that is built stands after the one it is built from.
    pub files: Vec<ModelFile>,
}

/// One file of a model, at `<models folder>/<model id>/<name>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelFile {
    /// File name without folder.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// How it gets there.
    pub origin: Origin,
    /// Names and shapes of the graph's inputs; empty for a file that is no graph.
    pub inputs: BTreeMap<String, TensorShape>,
    /// Names and shapes of the graph's outputs that percept uses.
    pub outputs: BTreeMap<String, TensorShape>,
}

/// What a model file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize, serde::Serialize)]
pub enum Role {
    /// Only there to build another file from; not needed to run.
    #[serde(rename = "source")]
    Source,
    /// The sound classifier's graph.
    #[serde(rename = "sound")]
    Sound,
    /// The image tower.
    #[serde(rename = "image")]
    Image,
    /// The text tower.
    #[serde(rename = "text")]
    Text,
    /// Both towers in one graph.
    #[serde(rename = "image+text")]
    ImageAndText,
}

/// How a file comes into the models folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Copied from a mirror folder or downloaded from the first source that has it.
    Fetched {
        /// What it must be.
        pin: Pin,
        /// Addresses, in the order to try them.
        sources: Vec<String>,
    },
    /// Made by percept from another file of the same model; the same bytes on every machine.
    Built {
        /// What must come out.
        pin: Pin,
        /// Name of the file it is made from.
        from: String,
    },
    /// Brought by its owner; its hash is recorded when it is taken in.
    Local,
}

/// The identity of a file's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256, 64 lower-case hexadecimal digits.
    pub sha256: String,
}

/// Element type and dimensions of a tensor, such as `f32[N,3,224,224]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorShape {
    /// `f32` or `i64`.
    pub element: String,
    /// Sizes; `None` where the size is free (`N`).
    pub dimensions: Vec<Option<u32>>,
}

/// A manifest that does not hold. The one compiled in is tested, so only a developer sees this.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the model manifest is wrong: {cause}")]
pub struct ManifestError {
    /// Which model, which file, and what is wrong with it.
    pub cause: String,
}

impl Manifest {
    /// The manifest compiled into this program.
    #[must_use]
    #[expect(clippy::expect_used, reason = "a constant text, parsed by a test")]
    pub fn builtin() -> &'static Self {
        static PARSED: OnceLock<Manifest> = OnceLock::new();
        PARSED.get_or_init(|| Self::parse(BUILTIN).expect("models/manifest.toml is checked by a test"))
    }

    /// Reads and checks a manifest.
    ///
    /// # Errors
    /// [`ManifestError`] naming the first mistake: an unknown key, an id twice, a hash that is none, a file
    /// without an origin.
    pub fn parse(text: &str) -> Result<Self, ManifestError> {
        let raw: raw::Manifest =
            toml::from_str(text).map_err(|error| ManifestError { cause: error.to_string().trim_end().to_owned() })?;
        check::manifest(raw).map(|models| Self { models }).map_err(|cause| ManifestError { cause })
    }

    /// All models, in the order of the file.
    #[must_use]
    pub fn models(&self) -> &[Model] {
        &self.models
    }

    /// The model with this id.
    #[must_use]
    pub fn model(&self, id: &str) -> Option<&Model> {
        self.models.iter().find(|model| model.id == id)
    }

    /// The known id most like `id`, when one is alike enough to be meant.
    #[must_use]
    pub fn nearest(&self, id: &str) -> Option<&str> {
        let alike = |model: &&Model| strsim::jaro_winkler(&model.id, id);
        let best = self.models.iter().max_by(|a, b| alike(a).total_cmp(&alike(b)))?;
        (alike(&best) > 0.75).then_some(best.id.as_str())
    }
}

impl Model {
    /// Bytes of all files whose size is pinned.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().filter_map(ModelFile::pin).map(|pin| pin.bytes).sum()
    }

    /// The file called `name`.
    #[must_use]
    pub fn file(&self, name: &str) -> Option<&ModelFile> {
        self.files.iter().find(|file| file.name == name)
    }
}

impl ModelFile {
    /// What its content must be; `None` for a file its owner brings.
    #[must_use]
    pub fn pin(&self) -> Option<&Pin> {
        match &self.origin {
            Origin::Fetched { pin, .. } | Origin::Built { pin, .. } => Some(pin),
            Origin::Local => None,
        }
    }
}

impl fmt::Display for TensorShape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> =
            self.dimensions.iter().map(|size| size.map_or_else(|| "N".to_owned(), |size| size.to_string())).collect();
        write!(formatter, "{}[{}]", self.element, sizes.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiled_in_manifest_holds() {
        let ids: Vec<&str> = Manifest::parse(BUILTIN)
            .map(|_| Manifest::builtin())
            .unwrap()
            .models()
            .iter()
            .map(|model| model.id.as_str())
            .collect();

        assert_eq!(ids, ["yamnet", "tinyclip-vit-8m-16", "clip-vit-b-32", "openclip-laion2b-vit-b-32"]);
    }

    #[test]
    fn the_defaults_are_yamnet_and_tinyclip() {
        let defaults: Vec<&str> = Manifest::builtin()
            .models()
            .iter()
            .filter(|model| model.is_default)
            .map(|model| model.id.as_str())
            .collect();

        assert_eq!(defaults, ["yamnet", "tinyclip-vit-8m-16"]);
    }

    #[test]
    fn a_misspelt_id_finds_the_nearest() {
        assert_eq!(Manifest::builtin().nearest("yamnett"), Some("yamnet"));
        assert_eq!(Manifest::builtin().nearest("tinyclip"), Some("tinyclip-vit-8m-16"));
        assert_eq!(Manifest::builtin().nearest("qqqq"), None);
    }

    #[test]
    fn a_shape_prints_as_it_is_written() {
        let model = Manifest::builtin().model("clip-vit-b-32").unwrap();

        assert_eq!(model.file("vision_model.onnx").unwrap().inputs["pixel_values"].to_string(), "f32[N,3,224,224]");
    }
}
