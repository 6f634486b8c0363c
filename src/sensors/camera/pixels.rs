//! Pixel formats of V4L2, and a frame's bytes as a [`Picture`].
//!
//! In: four-character codes, sizes, frames with padded rows. Out: which format and size to ask for, and pictures
//! without padding. Never: decoding. A frame of MJPEG is passed on as it is, padding behind its end included.

use crate::domain::reading::Picture;
use crate::domain::reading::PixelFormat;
use crate::sensors::camera::node::Offer;
use crate::sensors::camera::node::Sizes;
use std::fmt;

/// A pixel format's four characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct FourCc(pub [u8; 4]);

impl fmt::Display for FourCc {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(String::from_utf8_lossy(&self.0).trim_end())
    }
}

/// How the bytes of a frame are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// As it is.
    Whole(PixelFormat),
    /// Rows of so many bytes a pixel.
    Rows(PixelFormat, usize),
    /// Rows of blue, green, red.
    Bgr,
    /// A plane of Y and one of UV pairs, half as high.
    Nv12,
}

/// What percept reads, best first: plain pixels need no decoder and are never half broken.
const READABLE: [(FourCc, Layout); 8] = [
    (FourCc(*b"YUYV"), Layout::Rows(PixelFormat::Yuyv, 2)),
    (FourCc(*b"NV12"), Layout::Nv12),
    (FourCc(*b"RGB3"), Layout::Rows(PixelFormat::Rgb8, 3)),
    (FourCc(*b"BGR3"), Layout::Bgr),
    (FourCc(*b"MJPG"), Layout::Whole(PixelFormat::Jpeg)),
    (FourCc(*b"JPEG"), Layout::Whole(PixelFormat::Jpeg)),
    (FourCc(*b"GREY"), Layout::Rows(PixelFormat::Grey8, 1)),
    (FourCc(*b"GRAY"), Layout::Rows(PixelFormat::Grey8, 1)),
];

/// How a format's frames are laid out; [`None`] for one that percept does not read.
pub(super) fn layout(fourcc: FourCc) -> Option<Layout> {
    READABLE.iter().find(|(known, _)| *known == fourcc).map(|(_, layout)| *layout)
}

/// The formats that percept reads, in words.
pub(super) fn readable() -> String {
    READABLE.map(|(fourcc, _)| fourcc.to_string()).join(", ")
}

/// Whether a format is a sensor's undeveloped colour mosaic: `BA81`, `RGGB`, `RG10`, packed `pBAA`, `pRCC` …
pub(super) fn is_bayer(fourcc: FourCc) -> bool {
    let name = fourcc.to_string();
    let plain = ["BA81", "GBRG", "GRBG", "RGGB", "BYR2"].contains(&name.as_str());
    let [first, second, depth @ ..] = fourcc.0;
    let is_order = |pair: [u8; 2]| [*b"BG", *b"GB", *b"BA", *b"RG", *b"GR", *b"BY"].contains(&pair);
    let is_deep = is_order([first, second]) && [*b"10", *b"12", *b"14", *b"16"].contains(&depth);
    let is_packed = first == b'p' && b"BGgR".contains(&second);
    let is_compressed =
        [*b"aB", *b"aG", *b"ag", *b"aR", *b"bB", *b"bG", *b"bg", *b"bR", *b"PC"].contains(&[first, second]);
    plain || is_deep || is_packed || is_compressed
}

/// The format and size to ask for: the size nearest to the wish first, then the better format.
pub(super) fn choose(offers: &[Offer], wish_px: (u32, u32)) -> Option<(FourCc, (u32, u32))> {
    let rank = |offer: &Offer| READABLE.iter().position(|(known, _)| *known == offer.fourcc);
    let candidates = offers.iter().filter_map(|offer| Some((rank(offer)?, offer)));
    candidates
        .map(|(rank, offer)| (nearest(&offer.sizes, wish_px), rank, offer.fourcc))
        .min_by_key(|(size_px, rank, _)| (cost(*size_px, wish_px), *rank))
        .map(|(size_px, _, fourcc)| (fourcc, size_px))
}

fn nearest(sizes: &Sizes, wish_px: (u32, u32)) -> (u32, u32) {
    match sizes {
        Sizes::Listed(listed) => listed.iter().copied().min_by_key(|size| cost(*size, wish_px)).unwrap_or(wish_px),
        Sizes::Range(least, most) => {
            let within = |wish: u32, least: u32, most: u32| wish.min(most).max(least);
            (within(wish_px.0, least.0, most.0), within(wish_px.1, least.1, most.1))
        }
    }
}

/// Sizes that are too small come after all that are large enough; then the fewest pixels too many or too few.
fn cost(size_px: (u32, u32), wish_px: (u32, u32)) -> (bool, u64) {
    let area = |(width, height): (u32, u32)| u64::from(width) * u64::from(height);
    (size_px.0 < wish_px.0 || size_px.1 < wish_px.1, area(size_px).abs_diff(area(wish_px)))
}

/// A stream as the device agreed to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreed {
    /// The format.
    pub fourcc: FourCc,
    /// Width and height in pixels.
    pub size_px: (u32, u32),
    /// Bytes from one row to the next; 0 when rows are not padded.
    pub stride_bytes: u32,
}

/// A frame's bytes as a picture, rows closed up.
///
/// # Errors
/// A sentence when the frame is too short for its format, or percept does not read the format.
pub(super) fn picture(agreed: &Agreed, bytes: &[u8]) -> Result<Picture, String> {
    let (width, height) = (agreed.size_px.0 as usize, agreed.size_px.1 as usize);
    let layout = layout(agreed.fourcc).ok_or_else(|| format!("{} is no format that percept reads", agreed.fourcc))?;
    let plain =
        |format: PixelFormat, bytes: Vec<u8>| Picture { format, size_px: Some(agreed.size_px), bytes: bytes.into() };
    let rows = |bytes_per_row: usize, row_count: usize| {
        close_up(bytes, bytes_per_row, (agreed.stride_bytes as usize).max(bytes_per_row), row_count).ok_or_else(|| {
            format!("a frame came with {} bytes, too few for {width}x{height} {}", bytes.len(), agreed.fourcc)
        })
    };
    match layout {
        Layout::Whole(_) if bytes.is_empty() => Err("a frame came empty".to_owned()),
        Layout::Whole(format) => Ok(Picture { format, size_px: None, bytes: bytes.into() }),
        Layout::Rows(format, bytes_per_pixel) => Ok(plain(format, rows(width * bytes_per_pixel, height)?)),
        Layout::Nv12 => Ok(plain(PixelFormat::Nv12, rows(width.next_multiple_of(2), height + height.div_ceil(2))?)),
        Layout::Bgr => {
            let mut pixels = rows(width * 3, height)?;
            pixels.chunks_exact_mut(3).for_each(|pixel| pixel.swap(0, 2));
            Ok(plain(PixelFormat::Rgb8, pixels))
        }
    }
}

/// `row_count` rows without what pads them; the last one may come without its padding.
fn close_up(bytes: &[u8], bytes_per_row: usize, stride: usize, row_count: usize) -> Option<Vec<u8>> {
    let needed = stride * row_count.checked_sub(1)? + bytes_per_row;
    let bytes = bytes.get(..needed)?;
    if stride == bytes_per_row {
        return Some(bytes.to_vec());
    }
    Some(bytes.chunks(stride).flat_map(|row| &row[..bytes_per_row]).copied().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(fourcc: &[u8; 4], sizes: &[(u32, u32)]) -> Offer {
        Offer { fourcc: FourCc(*fourcc), sizes: Sizes::Listed(sizes.to_vec()) }
    }

    fn agreed(fourcc: &[u8; 4], size_px: (u32, u32), stride_bytes: u32) -> Agreed {
        Agreed { fourcc: FourCc(*fourcc), size_px, stride_bytes }
    }

    #[test]
    fn the_nearest_size_wins_and_plain_pixels_are_preferred() {
        let offers = [
            offer(b"H264", &[(640, 480)]),
            offer(b"MJPG", &[(320, 240), (640, 480), (1280, 720)]),
            offer(b"YUYV", &[(640, 480), (320, 240)]),
        ];

        assert_eq!(choose(&offers, (640, 480)), Some((FourCc(*b"YUYV"), (640, 480))));
        assert_eq!(choose(&offers, (1000, 600)), Some((FourCc(*b"MJPG"), (1280, 720))), "only MJPEG is that large");
        assert_eq!(choose(&offers, (1920, 1080)), Some((FourCc(*b"MJPG"), (1280, 720))), "the largest there is");
        assert_eq!(choose(&offers[..1], (640, 480)), None);
    }

    #[test]
    fn a_range_of_sizes_and_an_unknown_size_are_asked_for_as_wished() {
        let ranged = Offer { fourcc: FourCc(*b"GREY"), sizes: Sizes::Range((16, 16), (640, 360)) };

        assert_eq!(choose(&[ranged], (640, 480)), Some((FourCc(*b"GREY"), (640, 360))));
        assert_eq!(choose(&[offer(b"GREY", &[])], (640, 480)), Some((FourCc(*b"GREY"), (640, 480))));
    }

    #[test]
    fn padded_rows_are_closed_up_in_every_layout() {
        let cases: [(Agreed, &[u8], PixelFormat, &[u8]); 4] = [
            (agreed(b"GREY", (2, 2), 3), &[1, 2, 0, 3, 4], PixelFormat::Grey8, &[1, 2, 3, 4]),
            (agreed(b"BGR3", (1, 2), 4), &[1, 2, 3, 0, 4, 5, 6, 0], PixelFormat::Rgb8, &[3, 2, 1, 6, 5, 4]),
            (agreed(b"YUYV", (2, 1), 0), &[1, 2, 3, 4], PixelFormat::Yuyv, &[1, 2, 3, 4]),
            (agreed(b"NV12", (2, 2), 4), &[1, 2, 0, 0, 3, 4, 0, 0, 5, 6, 0, 0], PixelFormat::Nv12, &[1, 2, 3, 4, 5, 6]),
        ];

        for (agreed, bytes, format, closed) in cases {
            let picture = picture(&agreed, bytes).unwrap();
            assert_eq!((picture.format, picture.size_px), (format, Some(agreed.size_px)));
            assert_eq!(&*picture.bytes, closed, "{}", agreed.fourcc);
        }
    }

    #[test]
    fn a_short_frame_is_no_picture_and_a_jpeg_keeps_its_padding() {
        assert!(picture(&agreed(b"GREY", (640, 360), 640), &[0; 640 * 359]).is_err());
        assert!(picture(&agreed(b"MJPG", (640, 360), 0), &[]).is_err());

        let padded = picture(&agreed(b"MJPG", (640, 360), 0), &[0xFF, 0xD8, 0xFF, 0xD9, 0, 0]).unwrap();

        assert_eq!((padded.format, padded.size_px, padded.bytes.len()), (PixelFormat::Jpeg, None, 6));
    }

    #[test]
    fn undeveloped_formats_are_known_by_their_names() {
        let bayer = [b"BA81", b"RGGB", b"GRBG", b"RG10", b"BG12", b"GB16", b"pBAA", b"pRCC", b"pgAA"];
        let plain = [b"YUYV", b"MJPG", b"GREY", b"RGB3", b"BGR3", b"NV12", b"H264", b"UYVY", b"RGBP", b"BA24"];

        assert!(bayer.iter().all(|fourcc| is_bayer(FourCc(**fourcc))));
        assert!(!plain.iter().any(|fourcc| is_bayer(FourCc(**fourcc))));
    }
}
