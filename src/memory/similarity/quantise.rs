//! Vectors in one byte a value, with a proof of how far that can be off.
//!
//! In: a vector. Out: codes and a scale (`value ≈ scale × code`), and the length of what the rounding lost.
//!
//! With `v = s·c + e` and `q = t·d + f`, where `c` and `d` are codes and `e` and `f` what rounding lost,
//!
//! ```text
//! q·v = t·s·(d·c) + (t·d)·e + f·v,   so   |q·v - t·s·(d·c)| ≤ |t·d|·|e| + |f|·|v|      (Cauchy and Schwarz)
//! ```
//!
//! All on the right is known when a vector is quantised, so a scan of codes gives bounds of every product and never loses one.
//! Never: an estimate without its bound.

use simsimd::SpatialSimilarity;

/// What a quantised vector is besides its codes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    /// A code times this is about the value.
    pub(crate) scale: f32,
    /// Length of what rounding lost, rounded up.
    pub(crate) lost: f32,
}

/// Room for f32 rounding in the exact product, per value: unit round-off is 6e-8, and each of `dims` products and sums
/// of two unit vectors may lose that much.
const ROUNDING: f32 = 6.0e-8;

/// Greatest code.
const CODE_MAX: f32 = 127.0;

/// Quantises a finite vector into `codes`, which has its length.
pub(crate) fn quantise(vector: &[f32], codes: &mut [i8]) -> Scale {
    let largest = vector.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
    let scale = largest / CODE_MAX;
    // Of numbers this small the quotient could leave the range of codes; nothing of them is kept.
    if scale < f32::MIN_POSITIVE {
        codes.fill(0);
        return Scale { scale: 0.0, lost: rounded_up(length(vector)) };
    }
    let mut lost = 0.0_f64;
    for (value, code) in vector.iter().zip(codes) {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a float that is cast saturates, and this one is within ±127"
        )]
        let rounded = (value / scale).round() as i8;
        *code = rounded;
        let rest = f64::from(*value) - f64::from(scale) * f64::from(rounded);
        lost += rest * rest;
    }
    Scale { scale, lost: rounded_up(lost.sqrt()) }
}

/// Length of a vector.
pub(crate) fn length(vector: &[f32]) -> f64 {
    vector.iter().map(|value| f64::from(*value) * f64::from(*value)).sum::<f64>().sqrt()
}

/// The next f32 that is certainly not below.
#[expect(clippy::cast_possible_truncation, reason = "the two added steps are more than the cast can take away")]
pub(crate) fn rounded_up(value: f64) -> f32 {
    (value as f32).next_up().next_up()
}

/// The product of two vectors of equal length. All ranking is by this one function, so "exact" means the same everywhere.
#[expect(clippy::cast_possible_truncation, reason = "cosines need no more than f32")]
pub(crate) fn product(one: &[f32], other: &[f32]) -> f32 {
    f32::dot(one, other).map_or(f32::NAN, |product| product as f32)
}

/// The product of two rows of codes; exact, because it is a sum of whole numbers.
#[expect(
    clippy::cast_possible_truncation,
    reason = "off by one part in 2^24 at most, which `Query::rounding` has room for"
)]
fn code_product(one: &[i8], other: &[i8]) -> f32 {
    i8::dot(one, other).map_or(f32::NAN, |product| product as f32)
}

/// What is known of a product.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Estimate {
    /// The most probable value.
    pub(crate) value: f32,
    /// How far off it can be.
    pub(crate) radius: f32,
}

impl Estimate {
    pub(crate) fn upper(self) -> f32 {
        self.value + self.radius
    }

    pub(crate) fn lower(self) -> f32 {
        self.value - self.radius
    }
}

/// A query in one byte a value.
#[derive(Debug)]
struct Level {
    codes: Vec<i8>,
    scale: f32,
    /// Length of the query as these codes and those of the levels before have it.
    kept: f32,
    /// Length of what they lack, and room for rounding.
    lost: f32,
}

/// A query, quantised twice: the second time what the first lost. The first level costs one product of codes a row and
/// decides most rows; the second halves the bound for those that are left.
#[derive(Debug)]
pub(crate) struct Query<'a> {
    vector: &'a [f32],
    coarse: Level,
    fine: Level,
    /// Room for the rounding of f32 sums, for a row of length 1.
    rounding: f32,
}

impl<'a> Query<'a> {
    /// Quantises a finite vector.
    #[expect(clippy::cast_precision_loss, reason = "dimensions are at most 8,192")]
    pub(crate) fn new(vector: &'a [f32]) -> Self {
        let mut codes = vec![0; vector.len()];
        let coarse = quantise(vector, &mut codes);
        let rest: Vec<f32> =
            vector.iter().zip(&codes).map(|(value, code)| value - coarse.scale * f32::from(*code)).collect();
        let mut fine_codes = vec![0; vector.len()];
        let fine = quantise(&rest, &mut fine_codes);
        let length = rounded_up(length(vector));
        // What is kept is at most the query and what is lost.
        let level =
            |codes, scale: Scale| Level { codes, scale: scale.scale, kept: length + scale.lost, lost: scale.lost };
        let rounding = (vector.len() as f32 + 16.0) * ROUNDING * length;
        Self { vector, coarse: level(codes, coarse), fine: level(fine_codes, fine), rounding }
    }

    /// The exact product.
    pub(crate) fn exact(&self, vector: &[f32]) -> f32 {
        product(self.vector, vector)
    }

    /// The query's coarse codes: what an index of codes is asked with.
    pub(crate) fn codes(&self) -> &[i8] {
        &self.coarse.codes
    }

    /// The first estimate of the product with a row whose length is at most `length_max`.
    pub(crate) fn coarse(&self, row: &[i8], scale: Scale, length_max: f32) -> Estimate {
        let value = self.coarse.scale * scale.scale * code_product(&self.coarse.codes, row);
        Estimate { value, radius: self.radius(&self.coarse, scale, length_max) }
    }

    /// The second one, from the first.
    pub(crate) fn refine(&self, coarse: Estimate, row: &[i8], scale: Scale, length_max: f32) -> Estimate {
        let value = coarse.value + self.fine.scale * scale.scale * code_product(&self.fine.codes, row);
        Estimate { value, radius: self.radius(&self.fine, scale, length_max) }
    }

    fn radius(&self, level: &Level, scale: Scale, length_max: f32) -> f32 {
        level.kept * scale.lost + (level.lost + 2.0 * self.rounding) * length_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn exact(one: &[f32], other: &[f32]) -> f64 {
        one.iter().zip(other).map(|(one, other)| f64::from(*one) * f64::from(*other)).sum()
    }

    #[test]
    fn a_vector_of_nothing_is_quantised_without_a_fault() {
        for vector in [vec![0.0; 4], vec![1.0e-45; 4], vec![-0.0, 1.0e-39, 0.0, 0.0]] {
            let mut codes = vec![1; 4];
            let scale = quantise(&vector, &mut codes);

            assert!(scale.scale.is_finite() && f64::from(scale.lost) >= 0.0, "{vector:?}: {scale:?}");
            assert_eq!(codes, [0; 4]);
        }
    }

    proptest! {
        #[test]
        fn a_product_is_within_its_bounds(
            pairs in proptest::collection::vec((-1.0_f32..1.0, -1.0_f32..1.0), 1..600),
            peak in 0.0_f32..40.0,
        ) {
            let (mut one, other): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
            // One value far above the rest makes the codes of the rest coarse.
            one[0] += peak;
            let mut codes = vec![0; other.len()];
            let scale = quantise(&other, &mut codes);
            let length_max = rounded_up(length(&other));
            let query = Query::new(&one);

            let coarse = query.coarse(&codes, scale, length_max);
            let fine = query.refine(coarse, &codes, scale, length_max);

            let (truth, computed) = (exact(&one, &other), f64::from(product(&one, &other)));
            for estimate in [coarse, fine] {
                let off = f64::from(estimate.radius);
                prop_assert!((f64::from(estimate.value) - truth).abs() <= off, "{estimate:?} of {truth}");
                prop_assert!((f64::from(estimate.value) - computed).abs() <= off, "{estimate:?} of {computed}");
            }
            prop_assert!(fine.radius <= coarse.radius);
        }
    }
}
