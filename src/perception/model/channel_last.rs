//! 3×3 convolutions over pixels whose channels lie side by side, with bias and the clip to 0–6 in the same pass.
//!
//! In: pixels row-major, channels innermost, a multiple of [`LANES`] of them. Out: the same, each value in 0–6.
//!
//! Each inner loop runs over [`LANES`] neighbouring channels held in registers, which the compiler turns into vector
//! code on every processor we build for, NEON included. These functions allocate nothing and know no model.

/// Channels worked on together: eight vector registers of four floats.
pub(super) const LANES: usize = 32;

/// [`LANES`] neighbouring channels of one pixel.
pub(super) type Lane = [f32; LANES];

/// Sizes of a 3×3 convolution with "same" padding: as many pixels out as in, divided by the stride.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Geometry {
    pub(super) height: usize,
    pub(super) width: usize,
    pub(super) stride: usize,
}

impl Geometry {
    pub(super) fn output_height(self) -> usize {
        self.height.div_ceil(self.stride)
    }

    pub(super) fn output_width(self) -> usize {
        self.width.div_ceil(self.stride)
    }

    pub(super) fn pixels(self) -> usize {
        self.height * self.width
    }

    pub(super) fn output_pixels(self) -> usize {
        self.output_height() * self.output_width()
    }
}

/// The kernel taps that fall inside the image at output position `at`, and the input position of tap 0 plus one.
///
/// TensorFlow's "same": the odd line of padding goes behind, so a stride of 2 over an even size pads nothing in front.
fn taps(at: usize, size: usize, stride: usize) -> (std::ops::Range<usize>, usize) {
    let before = ((size.div_ceil(stride) - 1) * stride + 3).saturating_sub(size) / 2;
    let start = at * stride;
    let first = before.saturating_sub(start);
    let last = (size + before - start).min(3);
    (first..last, start + 1 - before)
}

/// The weights of a depthwise convolution, for each group of [`LANES`] channels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weights<'a> {
    /// Nine taps, row by row.
    pub(super) kernel: &'a [[Lane; 9]],
    pub(super) bias: &'a [Lane],
}

/// A depthwise convolution of each image in `input`.
pub(super) fn depthwise(geometry: Geometry, weights: Weights<'_>, input: &[Lane], output: &mut [Lane]) {
    let groups = weights.kernel.len();
    let row = geometry.width * groups;
    let images = input.chunks_exact(geometry.pixels() * groups);
    for (image, output) in images.zip(output.chunks_exact_mut(geometry.output_pixels() * groups)) {
        for (at, output) in output.chunks_exact_mut(geometry.output_width() * groups).enumerate() {
            let (vertical, above) = taps(at, geometry.height, geometry.stride);
            let mut rows = [(0, &image[..0]); 3];
            let count = vertical.len();
            for (slot, tap) in rows.iter_mut().zip(vertical) {
                *slot = (tap, &image[(above + tap - 1) * row..][..row]);
            }
            depthwise_row(geometry, weights, &rows[..count], output);
        }
    }
}

/// A depthwise convolution of stride 1 whose result takes the place of its input: no second buffer goes through memory.
pub(super) fn depthwise_in_place(geometry: Geometry, weights: Weights<'_>, images: &mut [Lane]) {
    let groups = weights.kernel.len();
    let row = geometry.width * groups;
    let mut above = vec![[0.0; LANES]; row];
    let mut here = above.clone();
    for image in images.chunks_exact_mut(geometry.pixels() * groups) {
        for at in 0..geometry.height {
            let (output, below) = image[at * row..].split_at_mut(row);
            std::mem::swap(&mut above, &mut here);
            here.copy_from_slice(output);
            let first = usize::from(at == 0);
            let last = if below.is_empty() { 2 } else { 3 };
            let below = below.get(..row).unwrap_or_default();
            let rows = [(0, &*above), (1, &*here), (2, below)];
            depthwise_row(geometry, weights, &rows[first..last], output);
        }
    }
}

/// One row of the result, out of up to three rows of the input, each with its row of the kernel.
fn depthwise_row(geometry: Geometry, weights: Weights<'_>, rows: &[(usize, &[Lane])], output: &mut [Lane]) {
    let groups = weights.kernel.len();
    for (at, output) in output.chunks_exact_mut(groups).enumerate() {
        let (horizontal, left) = taps(at, geometry.width, geometry.stride);
        let lanes = output.iter_mut().zip(weights.kernel).zip(weights.bias);
        for (group, ((output, kernel), bias)) in lanes.enumerate() {
            let mut sum = *bias;
            for (y, row) in rows {
                for x in horizontal.clone() {
                    add_product(&mut sum, &row[(left + x - 1) * groups + group], &kernel[y * 3 + x]);
                }
            }
            *output = clip(&sum);
        }
    }
}

/// A convolution from one channel to [`LANES`]. `kernel` holds the nine taps.
pub(super) fn stem(geometry: Geometry, kernel: &[Lane; 9], bias: &Lane, input: &[f32], output: &mut [Lane]) {
    let images = input.chunks_exact(geometry.pixels());
    for (image, output) in images.zip(output.chunks_exact_mut(geometry.output_pixels())) {
        for (at, output_row) in output.chunks_exact_mut(geometry.output_width()).enumerate() {
            let (vertical, above) = taps(at, geometry.height, geometry.stride);
            for (at, output) in output_row.iter_mut().enumerate() {
                let (horizontal, left) = taps(at, geometry.width, geometry.stride);
                let mut sum = *bias;
                for y in vertical.clone() {
                    let row = &image[(above + y - 1) * geometry.width..][..geometry.width];
                    for x in horizontal.clone() {
                        add_product(&mut sum, &[row[left + x - 1]; LANES], &kernel[y * 3 + x]);
                    }
                }
                *output = clip(&sum);
            }
        }
    }
}

/// The mean over each image of `pixels` pixels with `groups` lanes each.
pub(super) fn mean(pixels: usize, groups: usize, input: &[Lane], output: &mut [Lane]) {
    let images = input.chunks_exact(pixels * groups);
    let share = 1.0 / pixels as f32;
    for (image, output) in images.zip(output.chunks_exact_mut(groups)) {
        output.fill([0.0; LANES]);
        for pixel in image.chunks_exact(groups) {
            for (sum, lane) in output.iter_mut().zip(pixel) {
                add_product(sum, lane, &[share; LANES]);
            }
        }
    }
}

/// One fused step where the processor has it in its base instruction set, else a product and a sum.
#[inline(always)]
fn add_product(sum: &mut Lane, left: &Lane, right: &Lane) {
    for ((sum, left), right) in sum.iter_mut().zip(left).zip(right) {
        if cfg!(any(target_arch = "aarch64", target_feature = "fma")) {
            *sum = left.mul_add(*right, *sum);
        } else {
            *sum += left * right;
        }
    }
}

#[inline(always)]
fn clip(sum: &Lane) -> Lane {
    let mut clipped = *sum;
    for value in &mut clipped {
        *value = value.clamp(0.0, 6.0);
    }
    clipped
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, one value at a time.
    fn reference(geometry: Geometry, channel: impl Fn(usize, usize) -> f32, kernel: &[f32; 9], bias: f32) -> Vec<f32> {
        let (top, left) = (pad(geometry.height, geometry.stride), pad(geometry.width, geometry.stride));
        let mut values = Vec::new();
        for y in 0..geometry.output_height() {
            for x in 0..geometry.output_width() {
                let mut sum = bias;
                for (tap, weight) in kernel.iter().enumerate() {
                    let row = (y * geometry.stride + tap / 3).checked_sub(top).filter(|row| *row < geometry.height);
                    let column = (x * geometry.stride + tap % 3).checked_sub(left).filter(|c| *c < geometry.width);
                    if let (Some(row), Some(column)) = (row, column) {
                        sum += weight * channel(row, column);
                    }
                }
                values.push(sum.clamp(0.0, 6.0));
            }
        }
        values
    }

    fn pad(size: usize, stride: usize) -> usize {
        ((size.div_ceil(stride) - 1) * stride + 3).saturating_sub(size) / 2
    }

    fn noise(seed: usize) -> f32 {
        ((seed.wrapping_mul(2_654_435_761) >> 7) % 2000) as f32 / 500.0 - 1.0
    }

    fn lanes(count: usize, salt: usize) -> Vec<Lane> {
        (0..count).map(|lane| std::array::from_fn(|i| noise(salt + lane * LANES + i))).collect()
    }

    const GEOMETRIES: [Geometry; 5] = [
        Geometry { height: 6, width: 4, stride: 1 },
        Geometry { height: 6, width: 4, stride: 2 },
        Geometry { height: 5, width: 7, stride: 2 },
        Geometry { height: 3, width: 2, stride: 1 },
        Geometry { height: 1, width: 1, stride: 1 },
    ];

    #[test]
    fn depthwise_gives_what_its_definition_gives() {
        const GROUPS: usize = 2;
        for geometry in GEOMETRIES {
            let input = lanes(2 * geometry.pixels() * GROUPS, 1);
            let taps = lanes(9 * GROUPS, 2);
            let kernel: Vec<[Lane; 9]> = taps.as_chunks::<9>().0.to_vec();
            let bias = lanes(GROUPS, 3);
            let mut output = vec![[0.0; LANES]; 2 * geometry.output_pixels() * GROUPS];

            let weights = Weights { kernel: &kernel, bias: &bias };
            depthwise(geometry, weights, &input, &mut output);

            for (image, group, i) in [(0, 0, 0), (1, 1, 31), (1, 0, 7)] {
                let at = |y: usize, x: usize| {
                    input[((image * geometry.height + y) * geometry.width + x) * GROUPS + group][i]
                };
                let expected = reference(geometry, at, &kernel[group].map(|lane| lane[i]), bias[group][i]);
                let image = &output[image * geometry.output_pixels() * GROUPS..];
                let found: Vec<f32> = (0..expected.len()).map(|pixel| image[pixel * GROUPS + group][i]).collect();
                assert_close(&found, &expected);
            }
        }
    }

    #[test]
    fn depthwise_gives_the_same_in_place() {
        for geometry in GEOMETRIES.into_iter().filter(|geometry| geometry.stride == 1) {
            let mut values = lanes(2 * geometry.pixels(), 1);
            let taps = lanes(9, 2);
            let weights = Weights { kernel: taps.as_chunks().0, bias: &lanes(1, 3) };
            let mut expected = vec![[0.0; LANES]; values.len()];
            depthwise(geometry, weights, &values, &mut expected);

            depthwise_in_place(geometry, weights, &mut values);

            assert_eq!(values, expected);
        }
    }

    #[test]
    fn stem_gives_what_its_definition_gives() {
        for geometry in GEOMETRIES {
            let input: Vec<f32> = (0..geometry.pixels()).map(noise).collect();
            let kernel: [Lane; 9] = lanes(9, 5).try_into().unwrap();
            let bias = lanes(1, 6)[0];
            let mut output = vec![[0.0; LANES]; geometry.output_pixels()];

            stem(geometry, &kernel, &bias, &input, &mut output);

            for i in [0, 13, 31] {
                let at = |y: usize, x: usize| input[y * geometry.width + x];
                let expected = reference(geometry, at, &kernel.map(|lane| lane[i]), bias[i]);
                assert_close(&output.iter().map(|lane| lane[i]).collect::<Vec<_>>(), &expected);
            }
        }
    }

    #[test]
    fn mean_is_taken_over_pixels_of_one_image() {
        let input = [[1.0; LANES], [2.0; LANES], [3.0; LANES], [6.0; LANES]];
        let mut output = [[9.0; LANES]; 2];

        mean(2, 1, &input, &mut output);

        assert_eq!(output, [[1.5; LANES], [4.5; LANES]]);
    }

    fn assert_close(found: &[f32], expected: &[f32]) {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-5, "{found} instead of {expected}");
        }
    }
}
