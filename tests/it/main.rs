//! tests

/// The house rules that no compiler knows: imports, names, sizes, clock.
mod architecture;
