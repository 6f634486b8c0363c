//! A picture file as a query.

use crate::agent::machine;
use crate::agent::models;
use crate::config::Loaded;
use crate::domain::episode::EmbeddingKind;
use crate::memory::search::QueryVector;
use crate::perception::pixels;
use anyhow::Context as _;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// Largest file that is taken for a picture, in bytes.
const PICTURE_BYTES_MAX: u64 = 64 << 20;

/// The vector of the picture in that file, by the configured CLIP model.
///
/// # Errors
/// When the file cannot be read, holds no JPEG or PNG picture, or the model is not there.
pub fn vector_of(file: &Path, loaded: &Loaded) -> anyhow::Result<QueryVector> {
    let name = file.display();
    let mut bytes = Vec::new();
    File::open(file)
        .and_then(|opened| opened.take(PICTURE_BYTES_MAX + 1).read_to_end(&mut bytes))
        .with_context(|| format!("read the picture {name}"))?;
    anyhow::ensure!(bytes.len() as u64 <= PICTURE_BYTES_MAX, "{name} is larger than {PICTURE_BYTES_MAX} bytes");
    let format = pixels::sniff(&bytes).with_context(|| format!("{name} is no JPEG or PNG picture"))?;
    let picture = pixels::decode(format, 0, 0, &bytes).with_context(|| format!("{name} holds no whole picture"))?;
    drop(bytes);
    let mut tower = models::image_tower(&loaded.config, &loaded.models_dir(), machine::memory_bytes())
        .with_context(|| format!("{name} cannot be compared with anything"))?;
    let vector = tower.embed(&picture).with_context(|| format!("{name} gets no vector"))?;
    Ok(QueryVector { model_id: tower.model_id().clone(), kind: EmbeddingKind::Image, vector })
}
