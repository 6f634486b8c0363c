//! Recorded sessions as sensors.
