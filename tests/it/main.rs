//! tests

/// YAMNet: import, parity with other runtimes, damaged files.
mod yamnet;
/// Model files: fetched, verified, located, and never used when they are not right.
mod models;
mod camera; // bad frames, odd formats, static and flickering views become the right episodes
mod clip_fixture; // a trained small CLIP finds pictures by text and text by pictures
mod clip_parity; // CLIP's preprocessing and tokens equal the reference's
/// A day's positions become stays and trips.
mod places;
/// Crowds of devices and floods of advertisements.
mod presence;
/// The house rules that no compiler knows: imports, names, sizes, clock.
mod architecture;
