//! Model files: fetched, verified, located, and never used when they are not right.

mod command;
mod download;
mod fetch;
mod server;

use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use percept::perception::model::ModelFileError;
use percept::perception::model::fetch::Fetcher;
use percept::perception::model::fetch::Network;
use percept::perception::model::fetch::Options;
use percept::perception::model::manifest::Manifest;
use sha2::Digest as _;

/// A models folder with a manifest of its own: model `m` with file `a.bin` ([`content`]) from `sources`.
struct Bench {
    folder: tempfile::TempDir,
    models_dir: PathBuf,
    manifest: Manifest,
    mirrors: Vec<PathBuf>,
}

impl Bench {
    fn new(sources: &[String]) -> Self {
        Self::with_manifest(&manifest_text(&content(), sources))
    }

    fn with_manifest(text: &str) -> Self {
        let manifest = Manifest::parse(text).unwrap();
        let folder = tempfile::tempdir().unwrap();
        Self { models_dir: folder.path().join("models"), folder, manifest, mirrors: Vec::new() }
    }

    fn models_dir(&self) -> PathBuf {
        self.models_dir.clone()
    }

    /// A file in the model's folder.
    fn file(&self, name: &str) -> PathBuf {
        self.models_dir().join("m").join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        write(&self.file(name), bytes);
    }

    fn open(&self) -> Result<Fetcher<'_>, ModelFileError> {
        Fetcher::open(Options {
            manifest: &self.manifest,
            models_dir: &self.models_dir,
            mirrors: &self.mirrors,
            network: Network {
                connect_timeout: Duration::from_secs(5),
                idle_timeout: Duration::from_millis(500),
                uses_proxy: false,
            },
            builder: |source| match source {
                [b'?', ..] => Err("the source makes no sense".to_owned()),
                _ => Ok(source.iter().rev().copied().collect()),
            },
        })
    }

    /// Fetches the model and tells the steps.
    fn fetch(&self) -> Result<Vec<String>, ModelFileError> {
        self.fetch_from(None)
    }

    fn fetch_from(&self, local_files: Option<&Path>) -> Result<Vec<String>, ModelFileError> {
        let mut steps = Vec::new();
        self.open()?.fetch("m", local_files, &mut |progress| steps.push(format!("{:?}", progress.step)))?;
        Ok(steps)
    }

    /// The names in the model's folder, sorted.
    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.models_dir().join("m")).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// 300,000 bytes without a pattern.
fn content() -> Vec<u8> {
    let mut state = 1_u32;
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    (0..300_000).map(next).collect()
}

fn manifest_text(content: &[u8], sources: &[String]) -> String {
    format!(
        "format = 1\n[[model]]\nid = \"m\"\npurpose = \"p\"\nlicence = \"MIT\"\ndefault = true\nhome = \"h\"\n\
         note = \"\"\n{}",
        file_text("a.bin", "sound", content, &format!("sources = {sources:?}"))
    )
}

fn file_text(name: &str, role: &str, content: &[u8], origin: &str) -> String {
    format!(
        "[[model.file]]\nname = {name:?}\nrole = {role:?}\nbytes = {}\nsha256 = \"{}\"\n{origin}\n",
        content.len(),
        sha256(content)
    )
}

fn sha256(bytes: &[u8]) -> String {
    sha2::Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn write(path: &Path, bytes: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}
