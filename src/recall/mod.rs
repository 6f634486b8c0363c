//! What is made of memories without touching them.
//!
//! In: values. Out: values. Shared by the device's store and central's.
//! Never: I/O, the clock, a database.

pub mod context;
