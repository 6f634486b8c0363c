//! What perception noticed in the readings: one file per sensor.

pub mod place;
pub mod presence;
pub mod scene;
pub mod sound;
