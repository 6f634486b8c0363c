//! percept
