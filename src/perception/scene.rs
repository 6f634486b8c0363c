//! Cheap decision whether a camera looks at something else.
//!
//! In: decoded frames with their time. Out: for each, its [`Signature`] (a perceptual hash, brightness, blank or not)
//! and a [`Decision`]: a new scene, a refresh of the current one, or the same.
//!
//! Light that flickers and sensor noise must not fill the memory: at most [`Config::starts_per_minute_max`] scenes
//! start in any minute, whatever the camera shows. CLIP runs only where the decision says so.
//! This module does no I/O and never reads the clock.

use std::collections::VecDeque;

use crate::domain::time::Stamp;
use crate::perception::pixels::RgbImage;

/// Cells on a side of the grid of mean brightness that the signature is made from.
const GRID: usize = 9;
/// Pixels looked at per side, at most; more would cost time and change nothing.
const PROBES_MAX: usize = 288;
/// Neighbouring cells differ when their means do by more than this (of 255): well above the noise of a cell's mean.
const DEADBAND: f32 = 4.0;
/// A frame whose probes all lie within this range (of 255) holds nothing: a driver's filler, a dead sensor.
const BLANK_RANGE: u8 = 2;
/// A frame none of whose cells is brighter than this (of 255) is black: a lens cap.
const BLACK_LEVEL: f32 = 8.0;
const MINUTE_MS: i64 = 60_000;

/// When a picture counts as a new scene.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Bits of the 144-bit hash that must differ for a new scene.
    pub hash_distance_min: u32,
    /// Change of mean brightness (0–1) that makes a new scene by itself.
    pub brightness_change_min: f32,
    /// Most scenes that may start in any 60 s.
    pub starts_per_minute_max: usize,
    /// A scene that lasts is looked at again by CLIP this often, seconds.
    pub refresh_s: u32,
    /// After this many seconds without a usable frame, the next one begins a scene.
    pub gap_s: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            hash_distance_min: 24,
            brightness_change_min: 0.25,
            starts_per_minute_max: 4,
            refresh_s: 300,
            gap_s: 600,
        }
    }
}

/// What a frame looks like from afar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Signature {
    /// One bit for each pair of neighbouring cells, right minus left then lower minus upper: brighter by more than the dead band or not.
    hash: [u128; 2],
    /// Mean luma, 0 (black) to 1.
    pub brightness: f32,
    /// Whether there is nothing to see: black, or one flat colour.
    pub is_blank: bool,
}

/// What to do with a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It begins a new scene: run CLIP.
    Start,
    /// It is the scene of before, which has not been looked at for a while: run CLIP again.
    Refresh,
    /// It is the scene of before.
    Same,
    /// It would begin a new scene, but too many have begun in the last minute.
    Limited,
}

/// Follows one camera.
#[derive(Debug, Clone)]
pub struct SceneTracker {
    config: Config,
    reference: Option<Signature>,
    seen_at: Option<Stamp>,
    last_frame_at: Option<Stamp>,
    starts: VecDeque<Stamp>,
    limited_count: u64,
}

impl Signature {
    /// Looks at up to 288 × 288 pixels of the frame, spread evenly.
    #[must_use]
    pub fn of(image: &RgbImage) -> Self {
        let probes = Probes::of(image);
        Self {
            hash: [probes.hash(|x, y| (x + 1, y)), probes.hash(|x, y| (x, y + 1))],
            brightness: probes.mean() / 255.0,
            is_blank: probes.is_blank(),
        }
    }

    /// Bits in which two signatures differ, 0 to 144.
    #[must_use]
    pub fn distance(&self, other: &Self) -> u32 {
        self.hash.iter().zip(other.hash).map(|(mine, theirs)| (mine ^ theirs).count_ones()).sum()
    }
}

/// Mean luma of each cell, and the range of each channel over all probes.
struct Probes {
    cells: [[f32; GRID]; GRID],
    low: [u8; 3],
    high: [u8; 3],
}

impl Probes {
    fn of(image: &RgbImage) -> Self {
        let (width, height) = (image.width_px() as usize, image.height_px() as usize);
        let (mut sums, mut counts) = ([[0_u32; GRID]; GRID], [[0_u32; GRID]; GRID]);
        let (mut low, mut high) = ([u8::MAX; 3], [0; 3]);
        let (rows, columns) = (height.clamp(GRID, PROBES_MAX), width.clamp(GRID, PROBES_MAX));
        for row in 0..rows {
            for column in 0..columns {
                let at = (row * height / rows * width + column * width / columns) * 3;
                let pixel = [image.pixels()[at], image.pixels()[at + 1], image.pixels()[at + 2]];
                let (y, x) = (row * GRID / rows, column * GRID / columns);
                sums[y][x] += luma(pixel);
                counts[y][x] += 1;
                for (channel, value) in pixel.into_iter().enumerate() {
                    low[channel] = low[channel].min(value);
                    high[channel] = high[channel].max(value);
                }
            }
        }
        #[expect(
            clippy::cast_precision_loss,
            reason = "at most 255,000 times 1,024: below 2^28, and a mean needs no more"
        )]
        let cells =
            std::array::from_fn(|y| std::array::from_fn(|x| sums[y][x] as f32 / 1000.0 / counts[y][x].max(1) as f32));
        Self { cells, low, high }
    }

    fn hash(&self, neighbour: impl Fn(usize, usize) -> (usize, usize)) -> u128 {
        let mut bits = 0;
        for y in 0..GRID {
            for x in 0..GRID {
                let (nx, ny) = neighbour(x, y);
                if nx < GRID && ny < GRID {
                    bits = bits << 1 | u128::from(self.cells[ny][nx] - self.cells[y][x] > DEADBAND);
                }
            }
        }
        bits
    }

    fn mean(&self) -> f32 {
        const CELLS: f32 = (GRID * GRID) as f32;
        self.cells.as_flattened().iter().sum::<f32>() / CELLS
    }

    fn is_blank(&self) -> bool {
        let is_flat = self.low.iter().zip(self.high).all(|(low, high)| high - low <= BLANK_RANGE);
        is_flat || self.cells.as_flattened().iter().all(|&cell| cell <= BLACK_LEVEL)
    }
}

/// Rec. 601 luma times 1,000.
fn luma([red, green, blue]: [u8; 3]) -> u32 {
    299 * u32::from(red) + 587 * u32::from(green) + 114 * u32::from(blue)
}

impl SceneTracker {
    /// A camera that has shown nothing yet.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self { config, reference: None, seen_at: None, last_frame_at: None, starts: VecDeque::new(), limited_count: 0 }
    }

    /// Judges the next frame.
    pub fn handle_frame(&mut self, signature: Signature, now: Stamp) -> Decision {
        let gap_ms = i64::from(self.config.gap_s) * 1000;
        if self.last_frame_at.is_some_and(|last| now.millis_since(last) > gap_ms) {
            // Nobody knows whether it is the same after so long.
            self.reference = None;
        }
        self.last_frame_at = Some(now);
        let decision = self.judge(&signature, now);
        match decision {
            Decision::Start => self.starts.push_back(now),
            Decision::Limited => self.limited_count += 1,
            Decision::Refresh | Decision::Same => {}
        }
        if matches!(decision, Decision::Start | Decision::Refresh) {
            self.reference = Some(signature);
            self.seen_at = Some(now);
        }
        decision
    }

    /// Frames that differed but could not begin a scene because of the limit.
    #[must_use]
    pub fn limited_count(&self) -> u64 {
        self.limited_count
    }

    fn judge(&mut self, signature: &Signature, now: Stamp) -> Decision {
        while self.starts.front().is_some_and(|start| now.millis_since(*start) >= MINUTE_MS) {
            self.starts.pop_front();
        }
        let differs = self.reference.is_none_or(|reference| self.differs(&reference, signature));
        if differs && self.starts.len() < self.config.starts_per_minute_max {
            Decision::Start
        } else if differs {
            Decision::Limited
        } else if self.is_refresh_due(now) {
            Decision::Refresh
        } else {
            Decision::Same
        }
    }

    fn differs(&self, reference: &Signature, signature: &Signature) -> bool {
        reference.distance(signature) >= self.config.hash_distance_min
            || (reference.brightness - signature.brightness).abs() >= self.config.brightness_change_min
    }

    fn is_refresh_due(&self, now: Stamp) -> bool {
        let refresh_ms = i64::from(self.config.refresh_s) * 1000;
        self.seen_at.is_none_or(|seen| now.millis_since(seen) >= refresh_ms)
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "test pictures are made of small numbers"
    )]

    use super::*;
    use crate::domain::time::ClockQuality;
    use crate::domain::time::Timestamp;
    use proptest::prelude::*;

    #[test]
    fn a_hundred_equal_frames_are_one_scene() {
        let mut tracker = SceneTracker::new(Config::default());
        let signature = Signature::of(&street(0, 1.0));

        let decisions: Vec<_> = (0..100).map(|second| tracker.handle_frame(signature, at(second * 1000))).collect();

        assert_eq!(decisions[0], Decision::Start);
        assert!(decisions[1..].iter().all(|decision| *decision == Decision::Same));
    }

    #[test]
    fn noise_and_slow_light_start_no_scene() {
        let mut tracker = SceneTracker::new(Config::default());
        tracker.handle_frame(Signature::of(&street(0, 1.0)), at(0));

        for second in 1..150 {
            let light = 1.0 + 0.15 * (second as f32 / 20.0).sin();
            let decision = tracker.handle_frame(Signature::of(&street(second, light)), at(second as i64 * 1000));
            assert!(matches!(decision, Decision::Same | Decision::Refresh), "{second} s: {decision:?}");
        }
    }

    #[test]
    fn a_lamp_that_flickers_starts_at_most_four_scenes_a_minute() {
        let mut tracker = SceneTracker::new(Config::default());
        let (dark, light) = (Signature::of(&street(0, 0.2)), Signature::of(&street(0, 1.4)));
        let starts: Vec<i64> = (0..3000)
            .filter(|tick| {
                let signature = if tick % 2 == 0 { dark } else { light };
                tracker.handle_frame(signature, at(tick * 100)) == Decision::Start
            })
            .collect();

        for window in starts.windows(5) {
            assert!(window[4] - window[0] >= 600, "{starts:?}");
        }
        assert!(starts.len() >= 8);
        assert!(tracker.limited_count() > 0);
    }

    #[test]
    fn another_view_starts_a_scene_and_coming_back_another() {
        let mut tracker = SceneTracker::new(Config::default());
        let (street, wall) = (Signature::of(&street(0, 1.0)), Signature::of(&stripes()));

        let decisions = [street, street, wall, street].map(|signature| tracker.handle_frame(signature, at(0)));

        assert_eq!(decisions, [Decision::Start, Decision::Same, Decision::Start, Decision::Start]);
        assert!(street.distance(&wall) >= 24, "{}", street.distance(&wall));
    }

    #[test]
    fn a_lasting_scene_is_refreshed_slowly() {
        let mut tracker = SceneTracker::new(Config::default());
        let signature = Signature::of(&street(0, 1.0));

        let decisions = [0, 299, 300, 301, 600].map(|second| tracker.handle_frame(signature, at(second * 1000)));

        use Decision::{Refresh, Same, Start};
        assert_eq!(decisions, [Start, Same, Refresh, Same, Refresh]);
    }

    #[test]
    fn after_a_long_gap_the_next_frame_begins_a_scene() {
        let mut tracker = SceneTracker::new(Config { refresh_s: 100_000, ..Config::default() });
        let signature = Signature::of(&street(0, 1.0));

        let decisions = [0, 600, 1201, 1202].map(|second| tracker.handle_frame(signature, at(second * 1000)));

        assert_eq!(decisions, [Decision::Start, Decision::Same, Decision::Start, Decision::Same]);
    }

    #[test]
    fn black_and_flat_frames_are_blank_and_dark_ones_with_a_lamp_are_not() {
        let frame = |paint: &dyn Fn(u32, u32) -> [u8; 3]| Signature::of(&painted(640, 480, paint));

        assert!(frame(&|_, _| [0, 0, 0]).is_blank);
        assert!(frame(&|x, y| [((x * 7 + y * 3) % 9) as u8; 3]).is_blank);
        assert!(frame(&|_, _| [255, 0, 0]).is_blank);
        assert!(!frame(&|x, y| if x < 100 && y < 100 { [200, 180, 90] } else { [3, 3, 3] }).is_blank);
        assert!(!Signature::of(&street(0, 1.0)).is_blank);
    }

    proptest! {
        #[test]
        fn any_size_of_frame_has_a_finite_signature(width in 1_u32..700, height in 1_u32..700, seed in 0_u32..9) {
            let signature = Signature::of(&painted(width, height, |x, y| [(x * seed) as u8, y as u8, (x ^ y) as u8]));

            prop_assert!((0.0..=1.0).contains(&signature.brightness));
            prop_assert_eq!(signature.distance(&signature), 0);
        }
    }

    fn at(ms: i64) -> Stamp {
        Stamp { monotonic_ms: ms, utc: Timestamp::from_millis(ms), quality: ClockQuality::Network }
    }

    fn painted(width: u32, height: u32, paint: impl Fn(u32, u32) -> [u8; 3]) -> RgbImage {
        let pixels = (0..height).flat_map(|y| (0..width).map(move |x| (x, y))).flat_map(|(x, y)| paint(x, y)).collect();
        RgbImage::new(width, height, pixels).unwrap()
    }

    /// Sky, road and houses under a light, with fresh noise of ±12 on each pixel.
    fn street(seed: u32, light: f32) -> RgbImage {
        painted(320, 240, |x, y| {
            let base = match (x / 40 % 3, y) {
                (_, 0..60) => 170.0,
                (0, 60..160) => 60.0,
                (1, 60..160) => 110.0,
                (_, 60..160) => 90.0,
                _ => 40.0 + x as f32 / 8.0,
            };
            let noise = (x.wrapping_mul(73_856_093) ^ y.wrapping_mul(19_349_663) ^ seed.wrapping_mul(83_492_791)) >> 7;
            [(base * light + (noise % 25) as f32 - 12.0) as u8; 3]
        })
    }

    fn stripes() -> RgbImage {
        painted(320, 240, |x, y| if (x + y) / 60 % 2 == 0 { [200, 120, 40] } else { [20, 30, 60] })
    }
}
