//! tests

/// YAMNet: import, parity with other runtimes, damaged files.
mod yamnet;
