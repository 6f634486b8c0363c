//! What is made of memories without touching them: when facts hold, which entity is meant, what a day was like.
//!
//! In: values. Out: values. Shared by the device's store and central's.
//! Never: I/O, the clock, a database.

pub mod entity;
pub mod facts;
pub mod gist;
