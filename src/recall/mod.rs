//! What finding again is made of: pure rules, the same on the device and on central.
//!
//! In: values. Out: values. Never: files, rows, clocks, threads.

pub mod pagerank;
pub mod phrases;
pub mod question;
pub mod score;
pub mod time_words;
