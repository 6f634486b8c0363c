//! A file from its addresses, in order.
//!
//! In: addresses and the pin. Out: the file in its place, or what each address answered. A connection that breaks is
//! taken up again at the byte where it broke, as long as tries bring bytes; a wrong file is removed at once.

use std::fs::File;
use std::io;
use std::io::Read;
use std::io::Write;
use std::path::Path;

use crate::perception::model::fetch::http::Answer;
use crate::perception::model::fetch::http::Http;
use crate::perception::model::fetch::http::Network;
use crate::perception::model::fetch::http::RequestError;
use crate::perception::model::fetch::http::body_cause;
use crate::perception::model::fetch::progress::Step;
use crate::perception::model::fetch::slot::Slot;
use crate::perception::model::fetch::slot::Verdict;
use crate::perception::model::fetch::slot::remove;
use crate::perception::model::file_error::ModelFileError;

/// Requests to one address in one fetch, those that brought bytes included.
const REQUESTS_MAX: u32 = 20;
/// Requests in a row that brought no byte before the next address is tried.
const BARREN_REQUESTS_MAX: u32 = 3;
/// Bytes read from the network at once.
const BLOCK_BYTES: usize = 1 << 16;

/// Downloads files.
pub(super) struct Downloader {
    http: Http,
}

/// How one request ended.
enum End {
    /// The `.part` file is as long as it must be.
    Complete,
    /// It is not; why. Another try may bring the rest.
    Interrupted(String),
    /// This address will not do; why.
    Refused(String),
}

impl Downloader {
    pub(super) fn new(network: Network) -> Self {
        Self { http: Http::new(network) }
    }

    /// Puts the file in its place from the first address that has it. `causes` is what mirrors answered before.
    pub(super) fn download(
        &self,
        slot: &Slot<'_>,
        sources: &[String],
        mut causes: Vec<String>,
        tell: &mut dyn FnMut(Step<'_>),
    ) -> Result<(), ModelFileError> {
        for address in sources {
            match self.try_address(slot, address, tell)? {
                None => return Ok(()),
                Some(cause) => {
                    let cause = format!("{address}: {cause}");
                    tell(Step::Refused { cause: &cause });
                    causes.push(cause);
                }
            }
        }
        Err(ModelFileError::NoSource { model: slot.model.to_owned(), file: slot.name.to_owned(), causes })
    }

    /// `None`: the file is in its place. Otherwise why this address did not give it.
    fn try_address(
        &self,
        slot: &Slot<'_>,
        address: &str,
        tell: &mut dyn FnMut(Step<'_>),
    ) -> Result<Option<String>, ModelFileError> {
        let mut barren = 0;
        let mut last_cause = String::new();
        for _ in 0..REQUESTS_MAX {
            let kept = slot.part_bytes()?;
            match self.request(slot, address, kept, tell)? {
                End::Refused(cause) => return Ok(Some(cause)),
                End::Complete => match finish(slot, tell)? {
                    Verdict::Taken => return Ok(None),
                    // What was kept from an earlier try may have been the wrong part of it: once more, whole.
                    Verdict::Wrong(_) if kept > 0 => {}
                    Verdict::Wrong(cause) => return Ok(Some(format!("sent {cause}"))),
                },
                End::Interrupted(cause) => {
                    barren = if slot.part_bytes()? > kept { 0 } else { barren + 1 };
                    last_cause = cause;
                    if barren == BARREN_REQUESTS_MAX {
                        break;
                    }
                }
            }
        }
        Ok(Some(last_cause))
    }

    fn request(
        &self,
        slot: &Slot<'_>,
        address: &str,
        kept: u64,
        tell: &mut dyn FnMut(Step<'_>),
    ) -> Result<End, ModelFileError> {
        if kept == slot.pin.bytes {
            return Ok(End::Complete);
        }
        slot.check_room(slot.pin.bytes - kept)?;
        tell(Step::Asking { address, kept_bytes: kept });
        match self.http.ask(address, kept, slot.pin.bytes) {
            Ok(Answer::Body { from, body }) => receive(slot, from, body, tell),
            Ok(Answer::NothingThere) => {
                remove(&slot.part())?;
                Ok(End::Interrupted("has nothing behind the bytes of an earlier try".to_owned()))
            }
            Err(RequestError::Refused(cause)) => Ok(End::Refused(cause)),
            Err(RequestError::Interrupted(cause)) => Ok(End::Interrupted(cause)),
        }
    }
}

fn finish(slot: &Slot<'_>, tell: &mut dyn FnMut(Step<'_>)) -> Result<Verdict, ModelFileError> {
    tell(Step::Checking);
    let verdict = slot.accept(&slot.part())?;
    if verdict == Verdict::Taken {
        tell(Step::Ready);
    }
    Ok(verdict)
}

/// Appends the body to the `.part` file, which is cut to `from` bytes first.
fn receive(
    slot: &Slot<'_>,
    from: u64,
    mut body: Box<dyn Read>,
    tell: &mut dyn FnMut(Step<'_>),
) -> Result<End, ModelFileError> {
    let part = slot.part();
    let mut file = open_at(&part, from).map_err(|error| slot.write_failed(&part, from, error))?;
    let mut block = vec![0; BLOCK_BYTES];
    let mut bytes = from;
    loop {
        let count = match body.read(&mut block) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                return Ok(End::Interrupted(format!("broke off after {bytes} bytes ({})", body_cause(&error))));
            }
        };
        if bytes + count as u64 > slot.pin.bytes {
            remove(&part)?;
            return Ok(End::Refused(format!("sends more than the {} bytes of the file", slot.pin.bytes)));
        }
        file.write_all(&block[..count]).map_err(|error| slot.write_failed(&part, bytes, error))?;
        bytes += count as u64;
        tell(Step::Received { bytes, total_bytes: slot.pin.bytes });
    }
    if bytes == slot.pin.bytes {
        return Ok(End::Complete);
    }
    Ok(End::Interrupted(format!("ended after {bytes} of {} bytes", slot.pin.bytes)))
}

/// Opens a file to append to it from byte `from` on.
fn open_at(part: &Path, from: u64) -> io::Result<File> {
    let file = File::options().create(true).append(true).open(part)?;
    if file.metadata()?.len() != from {
        file.set_len(from)?;
    }
    Ok(file)
}
