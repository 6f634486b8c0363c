//! tests

/// YAMNet: import, parity with other runtimes, damaged files.
mod yamnet;
/// Model files: fetched, verified, located, and never used when they are not right.
mod models;
