//! The `percept` program.
fn main() {}
