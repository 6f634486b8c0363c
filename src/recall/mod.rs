//! What remembering together and finding again are made of: pure rules, the same on the device and on central.
//!
//! In: values. Out: values. Never: files, rows, clocks, threads.

pub mod context;
pub mod entity;
pub mod facts;
pub mod gist;
pub mod links;
pub mod score;
