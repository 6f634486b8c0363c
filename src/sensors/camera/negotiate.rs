//! What to ask a V4L2 device for, and who reads it.
//!
//! In: the frame rates it offers, what it agreed to, and error texts. Out: the rate to ask for, whether nokhwa can read
//! such a stream, and the number of an error that nokhwa only has in words. Never: a system call.

use crate::sensors::camera::node::Offer;
use crate::sensors::camera::node::Sizes;
use crate::sensors::camera::pixels::FourCc;
use nokhwa::utils::FrameFormat;
use std::io;

/// Seconds a frame, as numerator and denominator.
pub(super) type Interval = (u32, u32);

/// The interval to ask for: the slowest that is not slower than the wish, else the fastest. Without a list of what is
/// offered, the wish itself in whole frames a second.
pub(super) fn interval(offered: &[Interval], frames_per_s: f64) -> Interval {
    let wish_s = 1.0 / frames_per_s;
    let seconds = |(numerator, denominator): Interval| f64::from(numerator) / f64::from(denominator.max(1));
    let by_length = |left: &Interval, right: &Interval| seconds(*left).total_cmp(&seconds(*right));
    let valid = || offered.iter().copied().filter(|(numerator, denominator)| *numerator > 0 && *denominator > 0);
    let fast_enough = valid().filter(|interval| seconds(*interval) <= wish_s).max_by(by_length);
    fast_enough.or_else(|| valid().min_by(by_length)).unwrap_or_else(|| (1, whole(frames_per_s)))
}

fn whole(frames_per_s: f64) -> u32 {
    (1..=120).find(|rate| f64::from(*rate) >= frames_per_s).unwrap_or(120)
}

/// nokhwa's word for a format and a rate, when it reads such streams. It takes whole frames a second only, needs the
/// rate told by the device, does not know `GREY`, and tries every size one by one where a device offers a range.
pub(super) fn nokhwa_terms(fourcc: FourCc, interval: Option<Interval>, offers: &[Offer]) -> Option<(FrameFormat, u32)> {
    let format = match &fourcc.0 {
        b"YUYV" => FrameFormat::YUYV,
        b"MJPG" => FrameFormat::MJPEG,
        b"NV12" => FrameFormat::NV12,
        b"RGB3" => FrameFormat::RAWRGB,
        b"BGR3" => FrameFormat::RAWBGR,
        _ => return None,
    };
    let is_listed = offers.iter().all(|offer| matches!(&offer.sizes, Sizes::Listed(sizes) if !sizes.is_empty()));
    match interval {
        Some((1, rate)) if is_listed && rate > 0 => Some((format, rate)),
        _ => None,
    }
}

/// An error of nokhwa as one of the system, with the number that its text ends in.
pub(super) fn system_error(error: &nokhwa::NokhwaError) -> io::Error {
    let text = error.to_string();
    let number = text.rsplit_once("(os error ").and_then(|(_, rest)| rest.split(')').next()?.parse().ok());
    number.map_or_else(|| io::Error::other(text), io::Error::from_raw_os_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_rate_that_is_fast_enough_is_asked_for() {
        let offered = [(1, 30), (1, 5), (1, 15), (0, 1)];

        assert_eq!(interval(&offered, 1.0), (1, 5));
        assert_eq!(interval(&offered, 10.0), (1, 15));
        assert_eq!(interval(&offered, 60.0), (1, 30), "the fastest there is");
        assert_eq!(interval(&[(1, 1), (2, 1)], 0.5), (2, 1));
        assert_eq!(interval(&[], 0.2), (1, 1));
        assert_eq!(interval(&[], 7.5), (1, 8));
        assert_eq!(interval(&[], f64::NAN), (1, 120));
    }

    #[test]
    fn what_nokhwa_would_refuse_is_not_given_to_it() {
        let listed = [Offer { fourcc: FourCc(*b"YUYV"), sizes: Sizes::Listed(vec![(640, 480)]) }];
        let ranged = [Offer { fourcc: FourCc(*b"YUYV"), sizes: Sizes::Range((2, 1), (8192, 8192)) }];
        let yuyv = FourCc(*b"YUYV");

        assert_eq!(nokhwa_terms(yuyv, Some((1, 5)), &listed), Some((FrameFormat::YUYV, 5)));
        assert_eq!(nokhwa_terms(FourCc(*b"GREY"), Some((1, 5)), &listed), None);
        assert_eq!(nokhwa_terms(yuyv, Some((1001, 30_000)), &listed), None, "no whole rate");
        assert_eq!(nokhwa_terms(yuyv, None, &listed), None, "the device does not tell its rate");
        assert_eq!(nokhwa_terms(yuyv, Some((1, 5)), &ranged), None);
    }

    #[test]
    fn the_number_of_an_error_is_found_in_its_words() {
        let gone = nokhwa::NokhwaError::ReadFrameError("No such device (os error 19)".into());
        let words = nokhwa::NokhwaError::ReadFrameError("Stream Not Started".into());

        assert_eq!(system_error(&gone).raw_os_error(), Some(19));
        assert_eq!(system_error(&words).raw_os_error(), None);
        assert!(system_error(&words).to_string().contains("Stream Not Started"));
    }
}
