//! The store: one SQLite file, one writer.
