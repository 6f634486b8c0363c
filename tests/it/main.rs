//! tests

mod log_mel; // log-mel frames against numpy
