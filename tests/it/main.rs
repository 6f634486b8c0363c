//! tests

/// A day's positions become stays and trips.
mod places;
/// Crowds of devices and floods of advertisements.
mod presence;
