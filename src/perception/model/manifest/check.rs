//! Turns the manifest as written into one that holds, or says what is wrong with it.
//!
//! In: [`raw`] structures. Out: [`Model`]s in which ids and file names are plain, hashes are hashes, and each
//! file has exactly one origin. File names become paths and sources become requests, so nothing loose passes here.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::perception::model::manifest::Model;
use crate::perception::model::manifest::ModelFile;
use crate::perception::model::manifest::Origin;
use crate::perception::model::manifest::Pin;
use crate::perception::model::manifest::TensorShape;
use crate::perception::model::manifest::raw;

/// The only format there is.
const FORMAT: u32 = 1;

/// Checks all models; the error names the first mistake.
pub(super) fn manifest(raw: raw::Manifest) -> Result<Vec<Model>, String> {
    if raw.format != FORMAT {
        return Err(format!("format {} is unknown, this percept reads format {FORMAT}", raw.format));
    }
    let mut ids = BTreeSet::new();
    raw.models
        .into_iter()
        .map(|model| {
            if !ids.insert(model.id.clone()) {
                return Err(format!("model {:?} stands twice", model.id));
            }
            let id = model.id.clone();
            check_model(model).map_err(|cause| format!("model {id:?}: {cause}"))
        })
        .collect()
}

fn check_model(raw: raw::Model) -> Result<Model, String> {
    if !is_plain(&raw.id, "-") {
        return Err("an id has only lower-case letters, digits and `-`".to_owned());
    }
    for (key, text) in [("purpose", &raw.purpose), ("licence", &raw.licence), ("home", &raw.home)] {
        if text.trim().is_empty() {
            return Err(format!("{key} is empty"));
        }
    }
    if raw.files.is_empty() {
        return Err("it has no file".to_owned());
    }
    let mut files: Vec<ModelFile> = Vec::new();
    for file in raw.files {
        let name = file.name.clone();
        let checked = check_file(file, raw.local, &files).map_err(|cause| format!("file {name:?}: {cause}"))?;
        files.push(checked);
    }
    Ok(Model {
        id: raw.id,
        purpose: raw.purpose,
        licence: raw.licence,
        is_default: raw.default,
        is_local: raw.local,
        home: raw.home,
        note: raw.note,
        files,
    })
}

fn check_file(raw: raw::File, is_local: bool, earlier: &[ModelFile]) -> Result<ModelFile, String> {
    if !is_plain(&raw.name.to_ascii_lowercase(), "-_.") || raw.name.starts_with('.') {
        return Err("a file name has only letters, digits, `-`, `_` and `.`, and no folder".to_owned());
    }
    if raw.name.ends_with(".part") {
        return Err("the ending .part belongs to downloads under way".to_owned());
    }
    if earlier.iter().any(|file| file.name == raw.name) {
        return Err("it stands twice".to_owned());
    }
    let inputs = shapes(&raw.inputs)?;
    let outputs = shapes(&raw.outputs)?;
    let (name, role) = (raw.name.clone(), raw.role);
    let origin = if is_local { local_origin(&raw)? } else { pinned_origin(raw, earlier)? };
    Ok(ModelFile { name, role, origin, inputs, outputs })
}

fn local_origin(raw: &raw::File) -> Result<Origin, String> {
    let is_bare = raw.bytes.is_none() && raw.sha256.is_none() && raw.sources.is_empty() && raw.built_from.is_none();
    if is_bare {
        Ok(Origin::Local)
    } else {
        Err("a local model's file has no bytes, sha256, sources or built_from".to_owned())
    }
}

fn pinned_origin(raw: raw::File, earlier: &[ModelFile]) -> Result<Origin, String> {
    let (Some(bytes), Some(sha256)) = (raw.bytes, raw.sha256) else {
        return Err("bytes and sha256 are both needed".to_owned());
    };
    if bytes == 0 {
        return Err("bytes is 0".to_owned());
    }
    if sha256.len() != 64 || !sha256.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return Err(format!("{sha256:?} is no sha256 (64 lower-case hexadecimal digits)"));
    }
    let pin = Pin { bytes, sha256 };
    match (raw.built_from, raw.sources.is_empty()) {
        (None, false) => fetched(pin, raw.sources),
        (Some(from), true) if earlier.iter().any(|file| file.name == from) => Ok(Origin::Built { pin, from }),
        (Some(from), true) => Err(format!("it is built from {from:?}, which no earlier file of the model is called")),
        (None, true) | (Some(_), false) => Err("exactly one of sources and built_from is needed".to_owned()),
    }
}

fn fetched(pin: Pin, sources: Vec<String>) -> Result<Origin, String> {
    let is_address = |source: &String| source.starts_with("https://") || source.starts_with("http://");
    match sources.iter().find(|source| !is_address(source)) {
        Some(source) => Err(format!("{source:?} is no http or https address")),
        None => Ok(Origin::Fetched { pin, sources }),
    }
}

fn shapes(raw: &BTreeMap<String, String>) -> Result<BTreeMap<String, TensorShape>, String> {
    raw.iter()
        .map(|(name, text)| {
            let shape =
                parse_shape(text).ok_or_else(|| format!("{name} = {text:?} is no shape, such as f32[N,3,224,224]"))?;
            Ok((name.clone(), shape))
        })
        .collect()
}

fn parse_shape(text: &str) -> Option<TensorShape> {
    let (element, sizes) = text.strip_suffix(']')?.split_once('[')?;
    if !matches!(element, "f32" | "i64") {
        return None;
    }
    let dimensions = sizes
        .split(',')
        .map(|size| match size {
            "N" => Some(None),
            _ => size.parse::<u32>().ok().filter(|size| *size > 0).map(Some),
        })
        .collect::<Option<Vec<_>>>()?;
    Some(TensorShape { element: element.to_owned(), dimensions })
}

fn is_plain(text: &str, marks: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || marks.contains(c))
}

#[cfg(test)]
mod tests {
    use crate::perception::model::manifest::Manifest;

    const GOOD: &str = r#"
format = 1
[[model]]
id = "m"
purpose = "p"
licence = "MIT"
default = false
home = "h"
note = ""
[[model.file]]
name = "a.onnx"
role = "sound"
bytes = 3
sha256 = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
sources = ["https://example.org/a.onnx"]
inputs = { patch = "f32[N,96,64]" }
"#;

    /// The refusal of the good manifest with one text replaced.
    fn refusal(from: &str, to: &str) -> String {
        assert!(GOOD.contains(from), "{from} is not in the manifest");
        Manifest::parse(&GOOD.replace(from, to)).unwrap_err().to_string()
    }

    #[test]
    fn the_good_one_passes() {
        assert_eq!(Manifest::parse(GOOD).unwrap().models().len(), 1);
    }

    #[test]
    fn each_mistake_is_named() {
        for (from, to, named) in [
            ("format = 1", "format = 2", "format 2"),
            ("licence =", "license =", "license"),
            ("id = \"m\"", "id = \"../m\"", "lower-case"),
            ("licence = \"MIT\"", "licence = \" \"", "licence is empty"),
            ("name = \"a.onnx\"", "name = \"../a.onnx\"", "no folder"),
            ("name = \"a.onnx\"", "name = \"..\"", "no folder"),
            ("name = \"a.onnx\"", "name = \"a.part\"", ".part"),
            ("role = \"sound\"", "role = \"sond\"", "sond"),
            ("bytes = 3", "bytes = 0", "bytes is 0"),
            ("bytes = 3\n", "", "both needed"),
            ("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaA\"", "no sha256"),
            ("https://", "ftp://", "no http"),
            ("sources = [\"https://example.org/a.onnx\"]", "", "exactly one"),
            ("sources = [\"https://example.org/a.onnx\"]", "built_from = \"b\"", "built from \"b\""),
            ("default = false", "default = false\nlocal = true", "local model"),
            ("f32[N,96,64]", "f16[N,96,64]", "no shape"),
            ("f32[N,96,64]", "f32[N,0,64]", "no shape"),
        ] {
            let refusal = refusal(from, to);

            assert!(refusal.contains(named), "{to}: {refusal}");
        }
    }

    #[test]
    fn a_model_or_a_file_twice_is_refused() {
        let (head, model) = GOOD.split_once("[[model]]").unwrap();
        let twice = format!("{head}[[model]]{model}[[model]]{model}");
        let (model, file) = GOOD.split_once("[[model.file]]").unwrap();
        let file_twice = format!("{model}[[model.file]]{file}[[model.file]]{file}");

        assert!(Manifest::parse(&twice).unwrap_err().to_string().contains("\"m\" stands twice"));
        assert!(Manifest::parse(&file_twice).unwrap_err().to_string().contains("\"a.onnx\": it stands twice"));
    }
}
