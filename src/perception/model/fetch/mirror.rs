//! Model files from folders: a mounted disk, a share, a stick.
//!
//! In: folders. Out: the file, copied and checked, from the first folder that has the right bytes under
//! `<model id>/<file>` or `<file>`. A file of the right name and wrong content is passed over and reported.

use std::fs::File;
use std::io;
use std::io::Read;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

use crate::perception::model::fetch::progress::Step;
use crate::perception::model::fetch::slot::Slot;
use crate::perception::model::fetch::slot::Verdict;
use crate::perception::model::fetch::slot::remove;
use crate::perception::model::file_error::ModelFileError;

/// Bytes copied at once.
const BLOCK_BYTES: usize = 1 << 18;

/// Copies the file from the first mirror that has it. `false`: none does, and `causes` says why of those that seemed to.
pub(super) fn copy(
    slot: &Slot<'_>,
    mirrors: &[PathBuf],
    causes: &mut Vec<String>,
    tell: &mut dyn FnMut(Step<'_>),
) -> Result<bool, ModelFileError> {
    for mirror in mirrors {
        for candidate in [mirror.join(slot.model).join(slot.name), mirror.join(slot.name)] {
            match copy_one(slot, &candidate, tell)? {
                None => {}
                Some(Verdict::Taken) => {
                    slot.clear()?;
                    tell(Step::Ready);
                    return Ok(true);
                }
                Some(Verdict::Wrong(what)) => {
                    let cause = format!("{}: {what}", candidate.display());
                    tell(Step::Refused { cause: &cause });
                    causes.push(cause);
                }
            }
        }
    }
    Ok(false)
}

/// `None`: there is no such file.
fn copy_one(slot: &Slot<'_>, from: &Path, tell: &mut dyn FnMut(Step<'_>)) -> Result<Option<Verdict>, ModelFileError> {
    let mut source = match open_regular(from) {
        Ok(Some(source)) => source,
        Ok(None) => return Ok(None),
        Err(error) => return Ok(Some(Verdict::Wrong(error.to_string()))),
    };
    let bytes = source.metadata().map(|metadata| metadata.len()).unwrap_or(0);
    if bytes != slot.pin.bytes {
        return Ok(Some(Verdict::Wrong(format!("a file of {bytes} bytes, not {}", slot.pin.bytes))));
    }
    slot.check_room(bytes)?;
    tell(Step::Copying { from });
    let part = slot.copy_part();
    let mut target = File::create(&part).map_err(|error| slot.write_failed(&part, 0, error))?;
    if let Err(error) = copy_bytes(slot, &part, &mut source, &mut target)? {
        remove(&part)?;
        return Ok(Some(Verdict::Wrong(format!("cannot be read to its end ({error})"))));
    }
    tell(Step::Checking);
    slot.accept(&part).map(Some)
}

/// Copies all bytes. The outer error is the disk's, the inner one the mirror's: a stick that was pulled out.
fn copy_bytes(
    slot: &Slot<'_>,
    part: &Path,
    source: &mut File,
    target: &mut File,
) -> Result<io::Result<()>, ModelFileError> {
    let mut block = vec![0; BLOCK_BYTES];
    let mut bytes = 0;
    loop {
        let count = match source.read(&mut block) {
            Ok(0) => return Ok(Ok(())),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Ok(Err(error)),
        };
        target.write_all(&block[..count]).map_err(|error| slot.write_failed(part, bytes, error))?;
        bytes += count as u64;
    }
}

/// The file opened, unless there is none or it is a folder.
fn open_regular(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Ok(file) if file.metadata()?.is_file() => Ok(Some(file)),
        Ok(_) => Ok(None),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(error),
    }
}
