//! Notes the day of the build: no wall-clock time before it can be true on a running device.

use std::time::SystemTime;
use std::time::UNIX_EPOCH;

/// 2026-11-30, when this line was written: the floor for build machines whose own clock is wrong.
const FLOOR_S: u64 = 1_795_996_800;

#[expect(clippy::disallowed_methods, reason = "a build reads the time of the build")]
fn main() {
    println!("cargo::rerun-if-env-changed=SOURCE_DATE_EPOCH");
    println!("cargo::rerun-if-changed=build.rs");
    let named = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|text| text.parse::<u64>().ok());
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let day_s = named.unwrap_or(now_s) / 86_400 * 86_400;
    println!("cargo::rustc-env=PERCEPT_BUILT_S={}", day_s.max(FLOOR_S));
}
