//! What an error of cpal means for an open stream, and for one that could not be opened.
//!
//! In: cpal's kind of error. Out: go on, or give up and why. No I/O.

use crate::sensors::live::Failure;
use cpal::ErrorKind;

/// What an error of a running stream means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Frames were lost; the stream goes on.
    Xrun,
    /// The stream goes on, or its silence will show that it does not.
    Survived,
    /// The device or the sound server is gone.
    Gone,
    /// The device is there, the stream has to be built anew.
    Stale,
    /// Capture is not permitted any more.
    Refused,
}

/// The meaning of an error that a running stream reports.
#[expect(clippy::wildcard_enum_match_arm, reason = "cpal may add variants at any time")]
pub(super) fn meaning(kind: ErrorKind) -> Meaning {
    match kind {
        ErrorKind::Xrun => Meaning::Xrun,
        ErrorKind::DeviceNotAvailable | ErrorKind::HostUnavailable => Meaning::Gone,
        ErrorKind::StreamInvalidated => Meaning::Stale,
        ErrorKind::PermissionDenied => Meaning::Refused,
        _ => Meaning::Survived,
    }
}

/// Why a device could not be opened, in words for the operator. `said` is what the sound system wrote about it.
#[expect(clippy::wildcard_enum_match_arm, reason = "cpal may add variants at any time")]
pub(super) fn failure(error: &cpal::Error, said: &str) -> Failure {
    let detail = match said.trim() {
        "" => sentence(error),
        said => format!("{} ({said})", sentence(error)),
    };
    match error.kind() {
        ErrorKind::DeviceBusy => Failure::unusable(format!(
            "{detail} Another program holds it: end that, or set microphone.device to \"default\" to share it through \
             the sound server."
        )),
        ErrorKind::PermissionDenied => {
            Failure::unusable(format!("{detail} Add the user that percept runs as to the group audio."))
        }
        ErrorKind::UnsupportedConfig
        | ErrorKind::UnsupportedOperation
        | ErrorKind::InvalidInput
        | ErrorKind::ResourceExhausted => Failure::unusable(detail),
        ErrorKind::Xrun | ErrorKind::StreamInvalidated => Failure::stalled(detail),
        _ => Failure::unplugged(detail),
    }
}

/// cpal's words, or its kind's.
pub(super) fn sentence(error: &cpal::Error) -> String {
    error.message().map_or_else(|| error.kind().to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::coverage::CoverageReason;

    #[test]
    fn only_an_error_after_which_nothing_can_come_ends_a_stream() {
        use ErrorKind::*;
        for kind in [DeviceBusy, DeviceChanged, RealtimeDenied, BackendError, Other, ResourceExhausted] {
            assert_eq!(meaning(kind), Meaning::Survived, "{kind:?}");
        }
        assert_eq!(meaning(DeviceNotAvailable), Meaning::Gone);
        assert_eq!(meaning(StreamInvalidated), Meaning::Stale);
    }

    #[test]
    fn a_busy_device_says_what_to_do_and_keeps_the_sound_systems_words() {
        let failure = failure(&cpal::Error::new(ErrorKind::DeviceBusy), "open: Device or resource busy\n");

        assert_eq!(failure.reason, CoverageReason::Unusable);
        assert!(failure.detail.contains("(open: Device or resource busy) Another program"), "{}", failure.detail);
    }
}
