//! tests

mod camera; // bad frames, odd formats, static and flickering views become the right episodes
mod clip_fixture; // a trained small CLIP finds pictures by text and text by pictures
mod clip_parity; // CLIP's preprocessing and tokens equal the reference's
