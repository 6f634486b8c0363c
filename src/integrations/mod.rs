//! How other programs reach what percept remembers, in protocols that are not percept's own.
//!
//! In: their requests. Out: what a backend answers. Each protocol states what it needs as a trait; `agent` implements it.
//! Never: opens the store, decides what is worth remembering.

pub mod mcp;
