//! percept

pub mod perception;
