//! The hashes of files their owner brought, kept beside them in `SHA256SUMS`.
//!
//! A local model has no hash in the manifest. When its files are taken in, theirs are written down in the form
//! `sha256sum -c` reads, so that a damaged file is noticed later as with any other model.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// File name of the record in the model's folder.
pub(super) const NAME: &str = "SHA256SUMS";

/// Recorded SHA-256 by file name; empty when nothing was recorded. Lines of another form are passed over.
pub(super) fn read(folder: &Path) -> io::Result<BTreeMap<String, String>> {
    match std::fs::read_to_string(folder.join(NAME)) {
        Ok(text) => Ok(parse(&text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeMap::new()),
        Err(error) => Err(error),
    }
}

/// The text of a record.
pub(super) fn print(hashes: &BTreeMap<String, String>) -> String {
    hashes.iter().map(|(name, sha256)| format!("{sha256}  {name}\n")).collect()
}

fn parse(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter_map(|line| line.split_once("  "))
        .filter(|(sha256, _)| sha256.len() == 64)
        .map(|(sha256, name)| (name.to_owned(), sha256.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_back() {
        let hashes = BTreeMap::from([("a.onnx".to_owned(), "0".repeat(64)), ("b c.onnx".to_owned(), "1".repeat(64))]);

        assert_eq!(parse(&print(&hashes)), hashes);
    }

    #[test]
    fn a_damaged_line_is_passed_over() {
        assert_eq!(parse("abc  a.onnx\n\nxyz"), BTreeMap::new());
    }
}
