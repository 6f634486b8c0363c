//! How far this machine's wall clock can be trusted at the moment.
//!
//! In: the kernel's word on synchronisation, whether there is a battery-backed clock, the date. Out: a quality.
//! A board without such a clock starts at a date that some file remembered: until NTP or GPS has set it, nobody has.

use crate::domain::time::ClockQuality;
use crate::domain::time::Timestamp;
use std::path::Path;

/// The day this program was built, UTC: no later clock can truly show an earlier date.
pub const BUILT: Timestamp = Timestamp::from_millis(parse_millis(env!("PERCEPT_BUILD_MS")));

const fn parse_millis(text: &str) -> i64 {
    let digits = text.as_bytes();
    let (mut value, mut at) = (0_i64, 0);
    while at < digits.len() {
        value = value * 10 + (digits[at] - b'0') as i64;
        at += 1;
    }
    value
}

/// The quality at this moment; `utc` is what the wall clock shows.
#[must_use]
pub fn quality(utc: Timestamp) -> ClockQuality {
    judge(utc, kernel_is_synchronised(), Path::new("/dev/rtc0").exists())
}

fn judge(utc: Timestamp, is_synchronised: bool, has_rtc: bool) -> ClockQuality {
    match (is_synchronised, has_rtc) {
        _ if utc < BUILT => ClockQuality::Unset,
        (true, _) => ClockQuality::Network,
        (false, true) => ClockQuality::Rtc,
        (false, false) => ClockQuality::Unset,
    }
}

/// What `timedatectl` calls "System clock synchronized": any NTP client tells the kernel so.
#[expect(unsafe_code, reason = "adjtimex is in no safe crate; it fills a struct of plain numbers and changes nothing")]
fn kernel_is_synchronised() -> bool {
    // SAFETY: all-zero is a valid `timex` (plain integers), and modes = 0 makes the call read-only.
    let state = unsafe {
        let mut timex: libc::timex = std::mem::zeroed();
        libc::adjtimex(&raw mut timex)
    };
    (0..libc::TIME_ERROR).contains(&state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_before_the_build_is_never_trusted() {
        assert_eq!(judge(BUILT.plus_millis(-1), true, true), ClockQuality::Unset);
        assert_eq!(judge(Timestamp::from_millis(0), false, true), ClockQuality::Unset);
    }

    #[test]
    fn without_ntp_a_battery_makes_the_difference() {
        assert_eq!(judge(BUILT, true, false), ClockQuality::Network);
        assert_eq!(judge(BUILT, false, true), ClockQuality::Rtc);
        assert_eq!(judge(BUILT, false, false), ClockQuality::Unset);
    }

    #[test]
    fn the_program_knows_when_it_was_built() {
        assert!(BUILT >= crate::domain::time::FIRST_BUILD);
    }
}
