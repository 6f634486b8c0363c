//! What deciding to remember and finding again have in common: pure rules, the same on the device and on central.
//!
//! In: values. Out: values. Never: files, rows, clocks, threads.

pub mod links;
