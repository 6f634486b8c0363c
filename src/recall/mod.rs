//! What finding again is made of: pure rules, the same on the device and on central.
//!
//! In: values. Out: values. Never: files, rows, clocks, threads.

pub mod context;
pub mod entity;
pub mod expansion;
pub mod facts;
pub mod fusion;
pub mod gist;
pub mod links;
pub mod name_sort;
pub mod names;
pub mod naming;
pub mod pagerank;
pub mod phrases;
pub mod question;
pub mod score;
pub mod seeds;
pub mod time_words;
pub mod weights;
