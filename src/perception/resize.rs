//! Bicubic resizing with antialias, to the bit as Pillow does it.
//!
//! In: RGB pixels. Out: RGB pixels of another size. CLIP was trained on pictures that Pillow resized; a picture of fine
//! lines resized by another implementation differs by a level here and there, and its vector with it.
//!
//! The method is that of Pillow's `Resample.c` (`Image.resize(…, BICUBIC)`, 8 bits per channel): weights of the cubic with
//! a = −0.5 stretched by the scale, rounded to 22 bits; first across, then down, cut to 8 bits in between.
//! Never: files, the clock.

/// Bits behind the point of a weight: 32, less 8 of the pixel and 2 to spare.
const PRECISION_BITS: u32 = 22;

/// Pixels on either side that the cubic reaches at scale 1.
const SUPPORT: f64 = 2.0;

const CHANNELS: usize = 3;

/// The weights of one pixel of the result: where its window begins, and one weight for each pixel in it.
struct Window {
    first: usize,
    weights: Vec<i64>,
}

/// Resizes `width` × `height` RGB pixels (3 bytes each, row by row) to `new_width` × `new_height`.
#[must_use]
pub fn resize(pixels: &[u8], (width, height): (usize, usize), (new_width, new_height): (usize, usize)) -> Vec<u8> {
    let across = if new_width == width { pixels.to_vec() } else { resize_rows(pixels, width, new_width) };
    if new_height == height { across } else { resize_columns(&across, new_width, height, new_height) }
}

fn resize_rows(pixels: &[u8], width: usize, new_width: usize) -> Vec<u8> {
    let windows = windows(width, new_width);
    let mut result = Vec::with_capacity(pixels.len() / width * new_width);
    for row in pixels.chunks_exact(width * CHANNELS) {
        for window in &windows {
            let mut sums = [1_i64 << (PRECISION_BITS - 1); CHANNELS];
            for (pixel, weight) in row[window.first * CHANNELS..].chunks_exact(CHANNELS).zip(&window.weights) {
                for (sum, value) in sums.iter_mut().zip(pixel) {
                    *sum += i64::from(*value) * weight;
                }
            }
            result.extend(sums.map(to_level));
        }
    }
    result
}

fn resize_columns(pixels: &[u8], width: usize, height: usize, new_height: usize) -> Vec<u8> {
    let stride = width * CHANNELS;
    let mut result = Vec::with_capacity(stride * new_height);
    let mut sums = vec![0_i64; stride];
    for window in windows(height, new_height) {
        sums.fill(1 << (PRECISION_BITS - 1));
        for (row, weight) in pixels[window.first * stride..].chunks_exact(stride).zip(&window.weights) {
            for (sum, value) in sums.iter_mut().zip(row) {
                *sum += i64::from(*value) * weight;
            }
        }
        result.extend(sums.iter().map(|sum| to_level(*sum)));
    }
    result
}

fn to_level(sum: i64) -> u8 {
    u8::try_from((sum >> PRECISION_BITS).clamp(0, 255)).unwrap_or(u8::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "sides of pictures stay far below 2^53")]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positions within a picture, cut as C does"
)]
fn windows(size: usize, new_size: usize) -> Vec<Window> {
    let scale = size as f64 / new_size as f64;
    let stretch = scale.max(1.0);
    let reach = SUPPORT * stretch;
    (0..new_size)
        .map(|index| {
            let centre = (index as f64 + 0.5) * scale;
            let first = (centre - reach + 0.5).max(0.0) as usize;
            let end = ((centre + reach + 0.5) as usize).min(size);
            let raw: Vec<f64> = (first..end).map(|at| cubic((at as f64 - centre + 0.5) / stretch)).collect();
            let total: f64 = raw.iter().sum();
            let whole = f64::from(1_u32 << PRECISION_BITS);
            let weights = raw.iter().map(|weight| (weight / total * whole).round() as i64).collect();
            Window { first, weights }
        })
        .collect()
}

/// The cubic convolution kernel with a = −0.5 (R. Keys, 1981).
fn cubic(distance: f64) -> f64 {
    const A: f64 = -0.5;
    let x = distance.abs();
    if x < 1.0 {
        ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        (((x - 5.0) * x + 8.0) * x - 4.0) * A
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flat_picture_stays_flat_at_any_size() {
        for (size, new_size) in [((7, 5), (3, 2)), ((7, 5), (21, 13)), ((4, 4), (4, 9))] {
            let flat = [10_u8, 128, 250].repeat(size.0 * size.1);

            let resized = resize(&flat, size, new_size);

            assert_eq!(resized, [10_u8, 128, 250].repeat(new_size.0 * new_size.1));
        }
    }

    #[test]
    fn an_edge_overshoots_as_a_cubic_does_and_is_cut_to_eight_bits() {
        let edge: Vec<u8> = [0, 0, 255, 255].iter().flat_map(|level| [*level; 3]).collect();

        let resized: Vec<u8> = resize(&edge, (4, 1), (8, 1)).chunks(3).map(|pixel| pixel[0]).collect();

        assert_eq!(resized, [0, 0, 0, 52, 203, 255, 255, 255]);
    }
}
