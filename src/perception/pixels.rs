//! Any picture a camera delivers, as plain RGB.
//!
//! In: the bytes of one frame with the format its source claims. Out: an [`RgbImage`] of bounded size, or a
//! [`PixelError`] that says what was wrong with the frame.
//!
//! A frame is whole or it is refused: a JPEG that was cut, lost its end marker or lost bytes in the middle would
//! decode to a picture that is half grey, and that picture must never become an observation.
//! Sizes are checked before anything is allocated. This module does no I/O and never panics on any input.

use std::io::Cursor;

use image::ImageDecoder;
use image::codecs::png::PngDecoder;
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use crate::domain::reading::Picture;
use crate::domain::reading::PixelFormat;
use crate::perception::jpeg_end;
use crate::perception::jpeg_scan;

/// Longest side of an accepted frame, pixels.
pub const SIDE_PX_MAX: u32 = 16_384;
/// Most pixels of an accepted frame: 32 Mpx, 96 MB as RGB.
pub const PIXELS_MAX: u64 = 32_000_000;

/// A picture: `3 × width × height` bytes, row by row, red first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RgbImage {
    width_px: u32,
    height_px: u32,
    pixels: Vec<u8>,
}

/// Why a frame was refused. All of them concern this one frame: skip it, count it, use the next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PixelError {
    /// The frame ends before the picture does.
    #[error("the frame is cut short: {0}")]
    Truncated(String),
    /// The bytes are no picture of the claimed format.
    #[error("the frame is damaged: {0}")]
    Damaged(String),
    /// The frame claims a size no camera of ours delivers, or none at all.
    #[error(
        "the frame claims {width_px} × {height_px} pixels; 1 to {SIDE_PX_MAX} a side and {PIXELS_MAX} in all are accepted"
    )]
    Size {
        /// Claimed width.
        width_px: u32,
        /// Claimed height.
        height_px: u32,
    },
}

impl RgbImage {
    /// Wraps `3 × width_px × height_px` bytes.
    ///
    /// # Errors
    /// [`PixelError::Size`] outside the bounds, [`PixelError::Truncated`] if the bytes are fewer or more.
    pub fn new(width_px: u32, height_px: u32, pixels: Vec<u8>) -> Result<Self, PixelError> {
        let expected = pixel_count(width_px, height_px)? * 3;
        if pixels.len() != expected {
            return Err(short(pixels.len(), expected));
        }
        Ok(Self { width_px, height_px, pixels })
    }

    /// A picture this crate made itself and whose bytes therefore fit its size.
    pub(in crate::perception) fn from_parts(width_px: u32, height_px: u32, pixels: Vec<u8>) -> Self {
        debug_assert_eq!(pixels.len() as u64, 3 * u64::from(width_px) * u64::from(height_px));
        Self { width_px, height_px, pixels }
    }

    /// Width in pixels, at least 1.
    pub fn width_px(&self) -> u32 {
        self.width_px
    }

    /// Height in pixels, at least 1.
    pub fn height_px(&self) -> u32 {
        self.height_px
    }

    /// The bytes, row by row, red first.
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }
}

/// The format of a picture file, from its first bytes.
pub fn sniff(bytes: &[u8]) -> Option<PixelFormat> {
    if bytes.starts_with(&[0xFF, 0xD8]) {
        Some(PixelFormat::Jpeg)
    } else if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        Some(PixelFormat::Png)
    } else {
        None
    }
}

/// Decodes one frame as its source describes it.
///
/// # Errors
/// As [`decode`].
pub fn decode_picture(picture: &Picture) -> Result<RgbImage, PixelError> {
    let (width_px, height_px) = picture.size_px.unwrap_or_default();
    decode(picture.format, width_px, height_px, &picture.bytes)
}

/// Decodes one frame. `width_px` and `height_px` are what the driver claims; JPEG and PNG carry their own
/// size and ignore it. Bytes after the picture (driver buffers are padded) are ignored.
///
/// # Errors
/// See [`PixelError`]; each concerns this frame alone.
pub fn decode(format: PixelFormat, width_px: u32, height_px: u32, bytes: &[u8]) -> Result<RgbImage, PixelError> {
    match format {
        PixelFormat::Jpeg => decode_jpeg(bytes),
        PixelFormat::Png => decode_png(bytes),
        PixelFormat::Rgb8 => from_raw(width_px, height_px, bytes, 3, <[u8]>::to_vec),
        PixelFormat::Grey8 => from_raw(width_px, height_px, bytes, 1, grey_to_rgb),
        PixelFormat::Yuyv => decode_yuyv(width_px, height_px, bytes),
        PixelFormat::Nv12 => decode_nv12(width_px, height_px, bytes),
    }
}

fn decode_jpeg(bytes: &[u8]) -> Result<RgbImage, PixelError> {
    let bytes = &bytes[..jpeg_end::find(bytes)?];
    jpeg_scan::check(bytes)?;
    let options = DecoderOptions::default()
        .set_strict_mode(true)
        .set_max_width(SIDE_PX_MAX as usize)
        .set_max_height(SIDE_PX_MAX as usize)
        .jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().map_err(|error| PixelError::Damaged(error.to_string()))?;
    let (width, height) = decoder.dimensions().unwrap_or_default();
    let (width_px, height_px) = (saturated(width), saturated(height));
    pixel_count(width_px, height_px)?;
    let pixels = decoder.decode().map_err(|error| PixelError::Damaged(error.to_string()))?;
    RgbImage::new(width_px, height_px, pixels)
}

fn decode_png(bytes: &[u8]) -> Result<RgbImage, PixelError> {
    let damaged = |error: image::ImageError| PixelError::Damaged(error.to_string());
    let mut limits = image::Limits::default();
    // The widest PNG pixel is 8 bytes (16-bit RGBA).
    limits.max_alloc = Some(PIXELS_MAX * 8);
    let decoder = PngDecoder::with_limits(Cursor::new(bytes), limits).map_err(damaged)?;
    let (width_px, height_px) = decoder.dimensions();
    pixel_count(width_px, height_px)?;
    let image = image::DynamicImage::from_decoder(decoder).map_err(damaged)?;
    RgbImage::new(width_px, height_px, image.into_rgb8().into_raw())
}

fn from_raw(
    width_px: u32,
    height_px: u32,
    bytes: &[u8],
    bytes_per_pixel: usize,
    convert: impl Fn(&[u8]) -> Vec<u8>,
) -> Result<RgbImage, PixelError> {
    let expected = pixel_count(width_px, height_px)? * bytes_per_pixel;
    let used = bytes.get(..expected).ok_or_else(|| short(bytes.len(), expected))?;
    RgbImage::new(width_px, height_px, convert(used))
}

fn grey_to_rgb(grey: &[u8]) -> Vec<u8> {
    grey.iter().flat_map(|&level| [level; 3]).collect()
}

fn decode_yuyv(width_px: u32, height_px: u32, bytes: &[u8]) -> Result<RgbImage, PixelError> {
    pixel_count(width_px, height_px)?;
    // An odd last pixel still takes a whole pair.
    let row_bytes = (width_px as usize).div_ceil(2) * 4;
    let expected = row_bytes * height_px as usize;
    let used = bytes.get(..expected).ok_or_else(|| short(bytes.len(), expected))?;
    let mut pixels = Vec::with_capacity(width_px as usize * height_px as usize * 3);
    for row in used.chunks_exact(row_bytes) {
        for x in 0..width_px as usize {
            let pair = &row[x / 2 * 4..x / 2 * 4 + 4];
            pixels.extend(yuv_to_rgb(pair[x % 2 * 2], pair[1], pair[3]));
        }
    }
    RgbImage::new(width_px, height_px, pixels)
}

fn decode_nv12(width_px: u32, height_px: u32, bytes: &[u8]) -> Result<RgbImage, PixelError> {
    let luma_bytes = pixel_count(width_px, height_px)?;
    let (width, height) = (width_px as usize, height_px as usize);
    let chroma_row = width.div_ceil(2) * 2;
    let expected = luma_bytes + chroma_row * height.div_ceil(2);
    let used = bytes.get(..expected).ok_or_else(|| short(bytes.len(), expected))?;
    let (luma, chroma) = used.split_at(luma_bytes);
    let mut pixels = Vec::with_capacity(luma_bytes * 3);
    for y in 0..height {
        for x in 0..width {
            let at = y / 2 * chroma_row + x / 2 * 2;
            pixels.extend(yuv_to_rgb(luma[y * width + x], chroma[at], chroma[at + 1]));
        }
    }
    RgbImage::new(width_px, height_px, pixels)
}

/// Limited-range BT.601 in 8-bit fixed point, the constants of the V4L2 documentation (1.164, 1.596, 0.813, 0.391, 2.018).
fn yuv_to_rgb(y: u8, u: u8, v: u8) -> [u8; 3] {
    let c = 298 * (i32::from(y) - 16) + 128;
    let (d, e) = (i32::from(u) - 128, i32::from(v) - 128);
    [c + 409 * e, c - 100 * d - 208 * e, c + 516 * d].map(|value| u8::try_from((value >> 8).clamp(0, 255)).unwrap_or(0))
}

/// Pixels of a frame of this size.
fn pixel_count(width_px: u32, height_px: u32) -> Result<usize, PixelError> {
    let count = u64::from(width_px) * u64::from(height_px);
    let fits = width_px <= SIDE_PX_MAX && height_px <= SIDE_PX_MAX && (1..=PIXELS_MAX).contains(&count);
    usize::try_from(count).ok().filter(|_| fits).ok_or(PixelError::Size { width_px, height_px })
}

fn short(found: usize, expected: usize) -> PixelError {
    PixelError::Truncated(format!("{found} bytes where {expected} belong"))
}

fn saturated(side: usize) -> u32 {
    u32::try_from(side).unwrap_or(u32::MAX)
}

/// The picture as a PNG file, which loses nothing.
#[must_use]
pub fn encode_png(image: &RgbImage) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let encoder = image::codecs::png::PngEncoder::new(std::io::Cursor::new(&mut bytes));
    let colour = image::ExtendedColorType::Rgb8;
    image::ImageEncoder::write_image(encoder, image.pixels(), image.width_px(), image.height_px(), colour).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "test pictures are made of small numbers"
    )]

    use super::*;

    #[test]
    fn a_whole_jpeg_decodes_padded_or_not() {
        let bytes = jpeg(64, 48);
        let image = decode(PixelFormat::Jpeg, 0, 0, &bytes).unwrap();

        assert_eq!((image.width_px(), image.height_px()), (64, 48));
        assert_eq!(decode(PixelFormat::Jpeg, 0, 0, &[bytes, vec![0; 4096]].concat()), Ok(image));
    }

    #[test]
    fn a_jpeg_cut_anywhere_is_refused() {
        let bytes = jpeg(64, 48);

        for end in 0..bytes.len() {
            assert!(decode(PixelFormat::Jpeg, 0, 0, &bytes[..end]).is_err(), "cut at {end}");
            let padded = [&bytes[..end], &[0; 4096]].concat();
            assert!(decode(PixelFormat::Jpeg, 0, 0, &padded).is_err(), "cut at {end} and padded");
        }
    }

    #[test]
    fn a_jpeg_that_lost_its_middle_is_refused() {
        let bytes = jpeg(320, 240);
        let scan = bytes.windows(2).position(|pair| pair == [0xFF, 0xDA]).unwrap() + 14;
        for share in [5, 10, 40, 70] {
            let kept = scan + (bytes.len() - scan) * share / 100;
            let broken = [&bytes[..kept], &[0xFF, 0xD9]].concat();

            assert!(decode(PixelFormat::Jpeg, 0, 0, &broken).is_err(), "kept {share} %");
        }
    }

    #[test]
    fn a_jpeg_that_lost_a_packet_is_refused() {
        let bytes = jpeg(320, 240);
        let scan = bytes.windows(2).position(|pair| pair == [0xFF, 0xDA]).unwrap() + 14;
        for share in [5, 40, 70, 90] {
            let from = scan + (bytes.len() - scan) * share / 100;
            let broken = [&bytes[..from], &bytes[from + 512..]].concat();

            assert!(decode(PixelFormat::Jpeg, 0, 0, &broken).is_err(), "lost 512 bytes at {share} %");
        }
    }

    #[test]
    fn random_bytes_are_refused_without_a_panic() {
        let mut state = 1_u64;
        for length in 0..600 {
            let mut bytes: Vec<u8> = (0..length).map(|_| random(&mut state)).collect();
            for format in [PixelFormat::Jpeg, PixelFormat::Png] {
                assert!(decode(format, 0, 0, &bytes).is_err());
            }
            if length > 2 {
                bytes[..2].copy_from_slice(&[0xFF, 0xD8]);
                assert!(decode(PixelFormat::Jpeg, 0, 0, &bytes).is_err());
            }
        }
    }

    #[test]
    fn a_lying_header_is_refused_before_memory_is_taken() {
        let mut jpeg = jpeg(64, 48);
        let frame = jpeg.windows(2).position(|pair| pair == [0xFF, 0xC0]).unwrap();
        jpeg[frame + 5..frame + 9].fill(0xFF);
        let mut png = png(8, 8);
        png[16..24].copy_from_slice(&[0, 0, 0x80, 0, 0, 0, 0x80, 0]);

        assert!(decode(PixelFormat::Jpeg, 0, 0, &jpeg).is_err());
        assert!(decode(PixelFormat::Png, 0, 0, &png).is_err());
        let raw = decode(PixelFormat::Grey8, u32::MAX, u32::MAX, &[0; 16]);
        assert_eq!(raw, Err(PixelError::Size { width_px: u32::MAX, height_px: u32::MAX }));
    }

    #[test]
    fn grey_rgb_and_png_give_the_same_picture() {
        let grey: Vec<u8> = (0..=255).collect();
        let rgb = grey_to_rgb(&grey);
        let from_grey = decode(PixelFormat::Grey8, 16, 16, &grey).unwrap();

        assert_eq!(decode(PixelFormat::Rgb8, 16, 16, &rgb).unwrap(), from_grey);
        assert_eq!(from_grey.pixels(), rgb);
        assert!(decode(PixelFormat::Png, 0, 0, &png(8, 8)[..60]).is_err());
        assert!(decode(PixelFormat::Png, 0, 0, &png(8, 8)).is_ok());
    }

    #[test]
    fn yuv_formats_agree_on_the_primary_colours() {
        for ((y, u, v), expected) in [
            ((81, 90, 240), [255, 0, 0]),
            ((41, 240, 110), [0, 0, 255]),
            ((235, 128, 128), [255, 255, 255]),
            ((16, 128, 128), [0, 0, 0]),
        ] {
            let yuyv = decode(PixelFormat::Yuyv, 3, 1, &[y, u, y, v, y, u, 0, v]).unwrap();
            let nv12 = decode(PixelFormat::Nv12, 2, 2, &[y, y, y, y, u, v]).unwrap();

            for pixel in yuyv.pixels().chunks(3).chain(nv12.pixels().chunks(3)) {
                for (&found, expected) in pixel.iter().zip(expected) {
                    assert!(i32::from(found).abs_diff(expected) <= 2, "{pixel:?} for {y} {u} {v}");
                }
            }
        }
    }

    #[test]
    fn a_short_raw_frame_is_refused() {
        for format in [PixelFormat::Rgb8, PixelFormat::Grey8, PixelFormat::Yuyv, PixelFormat::Nv12] {
            assert!(matches!(decode(format, 640, 360, &[7; 1000]), Err(PixelError::Truncated(_))), "{format:?}");
        }
    }

    fn random(state: &mut u64) -> u8 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state.to_be_bytes()[0]
    }

    fn noise(width: u32, height: u32) -> image::RgbImage {
        let mut state = 7;
        image::RgbImage::from_fn(width, height, |x, y| {
            image::Rgb([(x * 3) as u8, (y * 5) as u8, random(&mut state) / 2])
        })
    }

    fn jpeg(width: u32, height: u32) -> Vec<u8> {
        encoded(&noise(width, height), image::ImageFormat::Jpeg)
    }

    fn png(width: u32, height: u32) -> Vec<u8> {
        encoded(&noise(width, height), image::ImageFormat::Png)
    }

    fn encoded(image: &image::RgbImage, format: image::ImageFormat) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        image.write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    }
}
