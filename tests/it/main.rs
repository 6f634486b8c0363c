//! tests

/// Model files: fetched, verified, located, and never used when they are not right.
mod models;
