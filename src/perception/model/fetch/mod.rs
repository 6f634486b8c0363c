//! Brings model files into the models folder.
//!
//! In: a model id, the models folder, mirror folders. Out: that model's files, each with the size and the hash
//! the manifest promises, and nothing else: what is not right never gets its name.
//!
//! A file is taken from the first place that has the right bytes: what is there already, the mirror folders,
//! then its addresses in order. A download grows a `.part` file, so that one cut off goes on where it stopped.
//! Nothing waits here: what cannot be had at once is an error that the caller may try again later.
//!
//! The only place in `perception` that speaks HTTP. It never loads a model.

mod download;
mod http;
mod local;
mod lock;
mod mirror;
mod progress;
mod slot;

use std::path::Path;
use std::path::PathBuf;

pub use http::Network;
pub use progress::Progress;
pub use progress::Step;

use crate::perception::model::digest;
use crate::perception::model::file_error::ModelFileError;
use crate::perception::model::locate::Depth;
use crate::perception::model::locate::FileState;
use crate::perception::model::locate::known;
use crate::perception::model::locate::look_at;
use crate::perception::model::manifest::Manifest;
use crate::perception::model::manifest::Model;
use crate::perception::model::manifest::ModelFile;
use crate::perception::model::manifest::Origin;
use crate::perception::model::manifest::Pin;
use crate::perception::model::yamnet;

use download::Downloader;
use lock::Lock;
use slot::Slot;

/// Makes the content of a built file from the content of its source.
pub type Builder = fn(&[u8]) -> Result<Vec<u8>, String>;

/// Builds YAMNet's float32 ONNX graph from Google's tflite: the [`Builder`] of the built-in manifest.
///
/// # Errors
/// The sentence of [`yamnet::ImportError`].
pub fn build_yamnet(tflite: &[u8]) -> Result<Vec<u8>, String> {
    yamnet::import_yamnet(tflite).map(|imported| imported.onnx).map_err(|error| error.to_string())
}

/// Where to fetch from and to.
#[derive(Debug)]
pub struct Options<'a> {
    /// The models to choose from.
    pub manifest: &'a Manifest,
    /// The folder that holds one folder per model. Created when it is not there.
    pub models_dir: &'a Path,
    /// Folders to look in before any address, as `FOLDER/<model id>/<file>` or `FOLDER/<file>`.
    pub mirrors: &'a [PathBuf],
    /// How long to wait for addresses.
    pub network: Network,
    /// Builds the files that are built.
    pub builder: Builder,
}

/// Fetches into one models folder, which it holds locked as long as it lives.
pub struct Fetcher<'a> {
    options: Options<'a>,
    downloader: Downloader,
    _lock: Lock,
}

impl<'a> Fetcher<'a> {
    /// Creates the models folder if need be and locks it.
    ///
    /// # Errors
    /// [`ModelFileError::Busy`] when another percept is fetching into it, [`ModelFileError::Io`] when it cannot be
    /// created or written.
    pub fn open(options: Options<'a>) -> Result<Self, ModelFileError> {
        let lock = Lock::take(options.models_dir)?;
        Ok(Self { downloader: Downloader::new(options.network), options, _lock: lock })
    }

    /// Makes all files of model `id` right; files that are so already are left alone. `local_files` is the folder
    /// from which a local model's files are taken in.
    ///
    /// # Errors
    /// The first file that could not be had, as [`ModelFileError`]; those before it stay.
    pub fn fetch(
        &self,
        id: &str,
        local_files: Option<&Path>,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(), ModelFileError> {
        let model = known(self.options.manifest, id)?;
        let folder = self.options.models_dir.join(&model.id);
        lock::create_folder(&folder)?;
        if model.is_local {
            return local::take_in(model, &folder, local_files, self.options.mirrors, progress);
        }
        model.files.iter().try_for_each(|file| self.fetch_file(model, file, &folder, progress))
    }

    fn fetch_file(
        &self,
        model: &Model,
        file: &ModelFile,
        folder: &Path,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(), ModelFileError> {
        let mut tell = |step: Step<'_>| progress(Progress { model: &model.id, file: &file.name, step });
        let found = look_at(self.options.models_dir, model, file, Depth::Hash);
        if let FileState::Good { .. } = found.state {
            tell(Step::Present);
            return Ok(());
        }
        match &file.origin {
            Origin::Fetched { pin, sources } => {
                let slot = Slot { model: &model.id, name: &file.name, folder, pin };
                let mut causes = Vec::new();
                if mirror::copy(&slot, self.options.mirrors, &mut causes, &mut tell)? {
                    return Ok(());
                }
                self.downloader.download(&slot, sources, causes, &mut tell)
            }
            Origin::Built { pin, from } => {
                tell(Step::Building { from });
                self.build(&Slot { model: &model.id, name: &file.name, folder, pin }, from)?;
                tell(Step::Ready);
                Ok(())
            }
            // A local model takes its files in as a whole.
            Origin::Local => Ok(()),
        }
    }

    fn build(&self, slot: &Slot<'_>, from: &str) -> Result<(), ModelFileError> {
        let source = slot.folder.join(from);
        let bytes = std::fs::read(&source).map_err(|error| ModelFileError::io("read", &source, 0, error))?;
        let refuse = |cause| ModelFileError::Build { model: slot.model.to_owned(), file: slot.path(), cause };
        let built = (self.options.builder)(&bytes).map_err(refuse)?;
        check_built(slot.pin, &digest::of_bytes(&built)).map_err(refuse)?;
        slot.write_whole(&built)
    }
}

/// A right source gives right bytes on every machine, so another result is a fault of percept.
fn check_built(expected: &Pin, found: &Pin) -> Result<(), String> {
    if expected == found {
        return Ok(());
    }
    Err(format!(
        "it came out with {} bytes, sha256 {}, and not {} bytes, sha256 {} as the manifest says. \
         This is a fault of percept: please report it",
        found.bytes, found.sha256, expected.bytes, expected.sha256
    ))
}
