//! The one integration binary: a line of purpose per module.

// The store from outside: what goes through the writer is found by the reader.
mod memory;
// Rows for the tests of the store.
mod memory_rows;
