//! Takes in the files of a model that has no address.
//!
//! In: the folder they lie in (or a mirror's `<model id>/` folder, or the model's own). Out: the files in the
//! model's folder and their hashes in `SHA256SUMS`, by which a later change is noticed. Both or neither: the record is
//! written last, and files without a record are not used.

use std::collections::BTreeMap;
use std::path::Path;
use std::path::PathBuf;

use crate::perception::model::digest;
use crate::perception::model::fetch::progress::Progress;
use crate::perception::model::fetch::progress::Step;
use crate::perception::model::fetch::slot::Slot;
use crate::perception::model::fetch::slot::Verdict;
use crate::perception::model::file_error::ModelFileError;
use crate::perception::model::manifest::Model;
use crate::perception::model::manifest::Pin;
use crate::perception::model::record;

/// Copies all files of a local model into `folder`, unless they are there, and records their hashes.
pub(super) fn take_in(
    model: &Model,
    folder: &Path,
    given: Option<&Path>,
    mirrors: &[PathBuf],
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<(), ModelFileError> {
    let mut places: Vec<PathBuf> = given.map(Path::to_owned).into_iter().collect();
    if given.is_none() {
        places.push(folder.to_owned());
        places.extend(mirrors.iter().map(|mirror| mirror.join(&model.id)));
    }
    let found = find_all(model, folder, &places)?;
    let mut hashes = BTreeMap::new();
    for (name, source) in found {
        let mut tell = |step: Step<'_>| progress(Progress { model: &model.id, file: &name, step });
        let pin = digest::of_file(&source).map_err(|error| ModelFileError::io("read", &source, 0, error))?;
        if source == folder.join(&name) {
            tell(Step::Present);
        } else {
            tell(Step::Copying { from: &source });
            copy(&Slot { model: &model.id, name: &name, folder, pin: &pin }, &source)?;
            tell(Step::Ready);
        }
        hashes.insert(name, pin.sha256);
    }
    write_record(model, folder, &hashes)
}

/// Where each file lies; the error names the first that lies nowhere.
fn find_all(model: &Model, folder: &Path, places: &[PathBuf]) -> Result<Vec<(String, PathBuf)>, ModelFileError> {
    let find = |name: &str| places.iter().map(|place| place.join(name)).find(|path| path.is_file());
    let each = model.files.iter().map(|file| {
        let missing = || places.first().map_or(folder, PathBuf::as_path).join(&file.name);
        let found = find(&file.name);
        found
            .map(|path| (file.name.clone(), path))
            .ok_or_else(|| ModelFileError::NotSupplied { model: model.id.clone(), file: missing() })
    });
    each.collect()
}

fn copy(slot: &Slot<'_>, source: &Path) -> Result<(), ModelFileError> {
    slot.check_room(slot.pin.bytes)?;
    let part = slot.copy_part();
    std::fs::copy(source, &part).map_err(|error| slot.write_failed(&part, 0, error))?;
    match slot.accept(&part)? {
        Verdict::Taken => Ok(()),
        Verdict::Wrong(_) => {
            let changed = std::io::Error::other("it changed while it was copied");
            Err(ModelFileError::io("copy", source, 0, changed))
        }
    }
}

fn write_record(model: &Model, folder: &Path, hashes: &BTreeMap<String, String>) -> Result<(), ModelFileError> {
    let text = record::print(hashes);
    let pin: Pin = digest::of_bytes(text.as_bytes());
    Slot { model: &model.id, name: record::NAME, folder, pin: &pin }.write_whole(text.as_bytes())
}
