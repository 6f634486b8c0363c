//! A stream of MJPEG cut into its pictures.
//!
//! In: bytes as a program writes them, in pieces of any size. Out: whole JPEGs, and a count of what was none.
//! It walks the markers and their lengths, so that the picture inside a picture (a thumbnail) is no picture of its own.
//! An image that the next one cuts off, that breaks the marker grammar or that exceeds [`IMAGE_BYTES_MAX`] is skipped.

/// Largest image, in bytes; a larger one is skipped.
pub(super) const IMAGE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Bytes looked at a second time after damage before they are thrown away instead, until the next whole image:
/// no stream of bytes makes this quadratic.
const RESCAN_BYTES_MAX: usize = 1024 * 1024;

const START: u8 = 0xD8;
const END: u8 = 0xD9;
const SCAN: u8 = 0xDA;

/// What was in the stream and no picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Damage {
    /// Images that began and did not end as they should.
    pub(super) images: u64,
    /// Bytes outside of whole images, those of damaged images included.
    pub(super) bytes: u64,
}

/// Cuts a stream into pictures. Holds at most one image and one piece.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    held: Vec<u8>,
    at: usize,
    place: Place,
    has_scan: bool,
    rescanned_bytes: usize,
    damage: Damage,
}

/// Where in the grammar the next byte stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Place {
    /// Before an image.
    #[default]
    Outside,
    /// Before a marker.
    Marker,
    /// In compressed picture data.
    Scan,
}

/// What one step found.
enum Step {
    /// It went on.
    On,
    /// More bytes are needed.
    More,
    /// An image ends here.
    Whole,
    /// The image is damaged; the next one begins at this place if it is known.
    Damaged(Option<usize>),
}

impl Splitter {
    /// Takes the next bytes of the stream.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
    }

    /// What was skipped so far.
    pub(super) fn damage(&self) -> Damage {
        self.damage
    }

    /// The next whole image, if its end has come.
    pub(super) fn next_image(&mut self) -> Option<Vec<u8>> {
        loop {
            let step = match self.place {
                Place::Outside => self.seek(),
                Place::Marker => self.marker(),
                Place::Scan => self.scan(),
            };
            match step {
                Step::On => {}
                Step::More => {
                    if self.held.len() <= IMAGE_BYTES_MAX {
                        return None;
                    }
                    self.skip(self.held.len());
                }
                Step::Whole => {
                    let rest = self.held.split_off(self.at);
                    self.rescanned_bytes = 0;
                    self.go_outside();
                    return Some(std::mem::replace(&mut self.held, rest));
                }
                Step::Damaged(Some(next)) => self.skip(next),
                Step::Damaged(None) => {
                    let next = self.rescan_from();
                    self.skip(next);
                }
            }
        }
    }

    /// Looks for the start of an image.
    fn seek(&mut self) -> Step {
        let start = self.held.windows(3).position(|bytes| *bytes == [0xFF, START, 0xFF]);
        let outside = start.unwrap_or_else(|| self.held.len().saturating_sub(2));
        self.held.drain(..outside);
        self.damage.bytes += outside as u64;
        if start.is_none() {
            return Step::More;
        }
        (self.at, self.place, self.has_scan) = (2, Place::Marker, false);
        Step::On
    }

    /// Reads a marker, and steps over its segment.
    fn marker(&mut self) -> Step {
        let [0xFF, code, ..] = self.held[self.at.min(self.held.len())..] else {
            let is_short = self.held.len() < self.at + 2;
            return if is_short { Step::More } else { Step::Damaged(None) };
        };
        match code {
            0xFF => self.at += 1,
            START => return Step::Damaged(Some(self.at)),
            END => {
                self.at += 2;
                return if self.has_scan { Step::Whole } else { Step::Damaged(None) };
            }
            0x01 | 0xD0..=0xD7 => self.at += 2,
            _ if !self.allows(code) => return Step::Damaged(None),
            _ => return self.segment(code),
        }
        Step::On
    }

    /// Whether a segment of this kind may stand here. Between scans only tables, comments and the next scan may.
    fn allows(&self, code: u8) -> bool {
        let is_between = matches!(code, 0xC4 | 0xCC | 0xDA..=0xDD | 0xE0..=0xEF | 0xFE);
        is_between || (!self.has_scan && code >= 0xC0)
    }

    fn segment(&mut self, code: u8) -> Step {
        let Some(&[high, low]) = self.held.get(self.at + 2..self.at + 4) else { return Step::More };
        let length = usize::from(u16::from_be_bytes([high, low]));
        if length < 2 {
            return Step::Damaged(None);
        }
        if self.held.len() < self.at + 2 + length {
            return Step::More;
        }
        self.at += 2 + length;
        if code == SCAN {
            (self.place, self.has_scan) = (Place::Scan, true);
        }
        Step::On
    }

    /// Goes to the next marker in picture data that is none of the data's own.
    fn scan(&mut self) -> Step {
        let ahead = &self.held[self.at..];
        let is_foreign = |pair: &[u8]| pair[0] == 0xFF && !matches!(pair[1], 0x00 | 0xD0..=0xD7 | 0xFF);
        match ahead.windows(2).position(is_foreign) {
            Some(offset) => {
                (self.at, self.place) = (self.at + offset, Place::Marker);
                Step::On
            }
            None => {
                self.at += ahead.len().saturating_sub(1);
                Step::More
            }
        }
    }

    /// Where to look for the next image after damage: behind this image's start, unless that was done too often.
    fn rescan_from(&mut self) -> usize {
        self.rescanned_bytes += self.at;
        if self.rescanned_bytes > RESCAN_BYTES_MAX { self.at } else { 2 }
    }

    /// Throws the image away up to `to`.
    fn skip(&mut self, to: usize) {
        self.damage.images += 1;
        self.damage.bytes += to as u64;
        self.held.drain(..to);
        self.go_outside();
    }

    fn go_outside(&mut self) {
        (self.at, self.place) = (0, Place::Outside);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pictures_come_out_whole_however_the_bytes_arrive() {
        let (first, second) = (jpeg(7, 300), jpeg(9, 5));
        let stream = [first.clone(), second.clone(), first.clone()].concat();

        for piece in [1, 2, 3, 7, 64, 4096] {
            let (images, damage) = split(stream.chunks(piece));
            assert_eq!(images, [first.clone(), second.clone(), first.clone()], "in pieces of {piece}");
            assert_eq!(damage, Damage::default());
        }
    }

    #[test]
    fn a_thumbnail_is_no_picture_of_its_own() {
        let image = with_thumbnail(&jpeg(1, 40));

        let (images, damage) = split([image.as_slice()]);

        assert_eq!((images, damage), (vec![image], Damage::default()));
    }

    #[test]
    fn a_cut_image_and_one_without_end_and_random_bytes_are_skipped_and_the_next_is_used() {
        let good = jpeg(3, 500);
        let cut = &good[..good.len() * 2 / 5];
        let endless = &good[..good.len() - 2];
        let noise: Vec<u8> = (0..5_000_u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let stream = [cut, &good, endless, &noise, &good].concat();

        let (images, damage) = split(stream.chunks(100));

        assert_eq!(images, [good.clone(), good.clone()]);
        assert!(damage.images >= 2, "{damage:?}");
        assert_eq!(damage.bytes, (cut.len() + endless.len() + noise.len()) as u64);
    }

    #[test]
    fn an_image_cut_inside_a_header_does_not_swallow_the_next() {
        let good = jpeg(3, 500);
        let with_thumbnail = with_thumbnail(&jpeg(1, 5_000));
        let stream = [&with_thumbnail[..6], &good.repeat(20)].concat();

        let (images, damage) = split(stream.chunks(1_000));

        assert!(images == vec![good; 20], "{} images", images.len());
        assert_eq!(damage, Damage { images: 1, bytes: 6 });
    }

    #[test]
    fn an_image_without_end_is_dropped_at_the_bound_and_the_next_one_found() {
        let mut splitter = Splitter::default();
        let good = jpeg(3, 50);
        splitter.push(&good[..good.len() - 2]);
        let mut held_max = 0;
        for _ in 0..3 * IMAGE_BYTES_MAX / 65_536 {
            splitter.push(&[0x55; 65_536]);
            assert_eq!(splitter.next_image(), None);
            held_max = held_max.max(splitter.held.len());
        }

        splitter.push(&good);

        assert_eq!(splitter.next_image(), Some(good));
        assert!(held_max <= IMAGE_BYTES_MAX, "{held_max}");
        assert!(splitter.damage().images >= 1);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived_and_counted(bytes in proptest::collection::vec(prop_oneof![Just(0xFF_u8), Just(0xD8), Just(0xD9), Just(0xDA), any::<u8>()], 0..4_000), piece in 1_usize..700) {
            let mut splitter = Splitter::default();
            let mut out = 0;
            for piece in bytes.chunks(piece) {
                splitter.push(piece);
                while let Some(image) = splitter.next_image() {
                    prop_assert!(image.starts_with(&[0xFF, START]) && image.ends_with(&[0xFF, END]));
                    out += image.len();
                }
            }
            prop_assert_eq!(out + splitter.held.len() + usize::try_from(splitter.damage().bytes).unwrap(), bytes.len());
        }
    }

    fn split<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Vec<u8>>, Damage) {
        let mut splitter = Splitter::default();
        let mut images = Vec::new();
        for piece in pieces {
            splitter.push(piece);
            images.extend(std::iter::from_fn(|| splitter.next_image()));
        }
        (images, splitter.damage())
    }

    /// The marker grammar of a JPEG with `length` bytes of picture data, stuffed zeros and restart markers included.
    pub(in crate::sensors::camera) fn jpeg(seed: u8, length: usize) -> Vec<u8> {
        let mut image = vec![0xFF, START, 0xFF, 0xE0, 0, 4, 1, 2, 0xFF, 0xC0, 0, 5, 8, 0, 16, 0xFF, SCAN, 0, 3, 0];
        for index in 0..length {
            image.extend(match index % 50 {
                10 => [0xFF, 0x00],
                20 => [0xFF, 0xD3],
                _ => [seed, seed],
            });
        }
        image.extend([0xFF, 0xC4, 0, 3, 1, 0xFF, SCAN, 0, 3, 0, seed, 0xFF, END]);
        image
    }

    fn with_thumbnail(thumbnail: &[u8]) -> Vec<u8> {
        let length = u16::try_from(thumbnail.len() + 2).unwrap().to_be_bytes();
        let mut image = vec![0xFF, START, 0xFF, 0xE1, length[0], length[1]];
        image.extend(thumbnail);
        image.extend(&jpeg(2, 30)[2..]);
        image
    }
}
