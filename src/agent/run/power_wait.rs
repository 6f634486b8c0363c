//! A start with a nearly empty battery: every sensor stays closed until there is power.
//!
//! systemd starts percept again after it stopped for the battery; without this wait it would open its sensors, stop and
//! start for as long as the battery lasts.

use super::Resident;
use crate::agent::power;
use crate::agent::power::Level;
use crate::agent::power::PowerJudge;
use crate::domain::time::Clock as _;
use std::sync::mpsc;
use std::time::Duration;

/// Looks before the first sensor is opened: one may be misread.
const FIRST_LOOKS: u8 = 2;

/// Between two looks; also how late a stop is noticed.
const PAUSE: Duration = Duration::from_secs(1);

/// Waits while the charge is critical. False when the run was told to stop meanwhile.
pub(super) fn until_charged(config: &power::Config, resident: &Resident<'_>, tell: &mut dyn FnMut(&str)) -> bool {
    let (_open, pace) = mpsc::channel::<()>();
    let mut judge = PowerJudge::new(config.clone());
    let mut looks = 0_u8;
    let mut was_told = false;
    loop {
        let assessment = judge.handle_signs(&power::look(std::path::Path::new("/")), resident.clock.stamp());
        let is_critical = assessment.level == Level::Critical;
        looks = looks.saturating_add(1);
        if looks >= FIRST_LOOKS && !is_critical {
            return true;
        }
        if is_critical && !was_told {
            was_told = true;
            tell("the battery is nearly empty: waiting for power, with every sensor closed");
        }
        if is_critical {
            let words = "waiting for power, with every sensor closed";
            let _ = sd_notify::notify(&[
                sd_notify::NotifyState::Ready,
                sd_notify::NotifyState::Watchdog,
                sd_notify::NotifyState::Status(words),
            ]);
            let _ = pace.recv_timeout(PAUSE);
        }
        if resident.signals.must_stop() {
            return false;
        }
    }
}
