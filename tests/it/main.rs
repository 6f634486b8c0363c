//! tests

/// Bad frames, odd formats, static and flickering views become the right episodes.
mod camera;
/// A trained small CLIP finds pictures by text and text by pictures.
mod clip_fixture;
/// CLIP's preprocessing and tokens equal the reference's.
mod clip_parity;
/// YAMNet: import, parity with other runtimes, damaged files.
mod yamnet;
