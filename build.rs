//! Tells the program the day it was built: a clock that shows an earlier one is wrong. `SOURCE_DATE_EPOCH` makes a build
//! reproducible.

use std::time::Duration;
use std::time::SystemTime;

const DAY_S: u64 = 86_400;

#[expect(clippy::disallowed_methods, reason = "a build has a date")]
fn main() {
    println!("cargo:rerun-if-env-changed=SOURCE_DATE_EPOCH");
    println!("cargo:rerun-if-changed=build.rs");
    let given = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|text| text.trim().parse::<u64>().ok());
    let since_epoch =
        || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map(|since: Duration| since.as_secs());
    let built_s = given.or_else(|| since_epoch().ok()).unwrap_or(0);
    println!("cargo:rustc-env=PERCEPT_BUILD_MS={}", built_s / DAY_S * DAY_S * 1_000);
}
