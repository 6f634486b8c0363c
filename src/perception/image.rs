//! A picture as a unit vector: CLIP's preprocessing and the image tower.
//!
//! In: a decoded picture. Out: a vector of unit length in the space that the text tower shares.
//!
//! Preprocessing is that of the reference (torchvision on Pillow): the shorter side becomes the model's side, bicubic with
//! antialias in 8 bits, the middle square, then mean and deviation per channel. [`mod@resize`] computes as
//! Pillow does, which tests prove against Pillow's own results. This module names no file and reads no clock.

use std::sync::Arc;

use crate::domain::id::ModelId;
use crate::perception::clip;
use crate::perception::clip::ClipError;
use crate::perception::clip::Loader;
use crate::perception::model::runtime::InputSpec;
use crate::perception::model::runtime::Model;
use crate::perception::model::runtime::ModelSpec;
use crate::perception::model::runtime::Values;
use crate::perception::pixels::RgbImage;
use crate::perception::resize;

/// Mean of red, green and blue over CLIP's training pictures, of 0–1 (OpenAI's `_transform`).
const MEAN: [f32; 3] = [0.481_454_66, 0.457_827_5, 0.408_210_73];
/// Standard deviation of the same.
const DEVIATION: [f32; 3] = [0.268_629_54, 0.261_302_6, 0.275_777_1];
/// A picture more than this many times as long as wide is cropped before it is resized, so that a sliver cannot ask
/// for a huge intermediate picture.
const ASPECT_MAX: u32 = 64;

/// The image tower, loaded.
pub struct ImageTower {
    model_id: ModelId,
    side_px: u32,
    model: Box<dyn Model>,
}

impl std::fmt::Debug for ImageTower {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "ImageTower({}, {} px)", self.model_id, self.side_px)
    }
}

impl ImageTower {
    /// Loads the tower. `side_px` is the side of the square it reads, 224 for the published models.
    ///
    /// # Errors
    /// [`ClipError::Model`]: go on without CLIP.
    pub fn load(model_id: ModelId, side_px: u32, loader: &Loader) -> Result<Self, ClipError> {
        let side = side_px as usize;
        let spec = ModelSpec {
            inputs: vec![InputSpec::f32("pixel_values", &[1, 3, side, side])],
            outputs: vec!["image_embeds".to_owned()],
        };
        let model = loader(&spec)?;
        Ok(Self { model_id, side_px, model })
    }

    /// The model, which the text tower shares.
    #[must_use]
    pub fn model_id(&self) -> &ModelId {
        &self.model_id
    }

    /// The vector of a picture, unit length.
    ///
    /// # Errors
    /// [`ClipError`]: this picture goes without a vector.
    pub fn embed(&mut self, image: &RgbImage) -> Result<Arc<[f32]>, ClipError> {
        let pixel_values = preprocess(image, self.side_px);
        let outputs = self.model.run(&[Values::F32(&pixel_values)])?;
        clip::unit_vector(&self.model_id, &outputs)
    }
}

/// The values the image tower reads: `[3, side_px, side_px]`, normalised, channel by channel.
#[must_use]
pub fn preprocess(image: &RgbImage, side_px: u32) -> Vec<f32> {
    let square = middle_square(image, side_px);
    (0..3)
        .flat_map(|channel| {
            square.pixels().iter().skip(channel).step_by(3).map(move |&value| {
                // In this order, as the reference divides before it normalises.
                (f32::from(value) / 255.0 - MEAN[channel]) / DEVIATION[channel]
            })
        })
        .collect()
}

/// The middle square of `side_px` after the shorter side was resized to it, as torchvision's `Resize` and `CenterCrop` do.
#[must_use]
pub fn middle_square(image: &RgbImage, side_px: u32) -> RgbImage {
    let image = &without_slivers(image);
    let (width, height) = (image.width_px(), image.height_px());
    // torchvision truncates the longer side.
    let longer = |longer: u32, shorter: u32| {
        u32::try_from(u64::from(side_px) * u64::from(longer) / u64::from(shorter)).unwrap_or(u32::MAX)
    };
    let (new_width, new_height) =
        if width <= height { (side_px, longer(height, width)) } else { (longer(width, height), side_px) };
    let resized = resize(image, new_width, new_height);
    crop(&resized, (middle(new_width - side_px), middle(new_height - side_px)), (side_px, side_px))
}

/// `int(round(excess / 2))` of Python, which rounds halves to even.
fn middle(excess: u32) -> u32 {
    excess / 2 + u32::from(excess % 4 == 3)
}

fn without_slivers(image: &RgbImage) -> RgbImage {
    let (width, height) = (image.width_px(), image.height_px());
    let kept = (width.min(height.saturating_mul(ASPECT_MAX)), height.min(width.saturating_mul(ASPECT_MAX)));
    if kept == (width, height) {
        return image.clone();
    }
    crop(image, ((width - kept.0) / 2, (height - kept.1) / 2), kept)
}

/// Bicubic with antialias in 8 bits, as `Image.resize(…, BICUBIC)` of Pillow.
fn resize(image: &RgbImage, width: u32, height: u32) -> RgbImage {
    let size = (image.width_px() as usize, image.height_px() as usize);
    let pixels = resize::resize(image.pixels(), size, (width as usize, height as usize));
    RgbImage::from_parts(width, height, pixels)
}

fn crop(image: &RgbImage, (left, top): (u32, u32), (width, height): (u32, u32)) -> RgbImage {
    let row_bytes = image.width_px() as usize * 3;
    let (start, length) = (left as usize * 3, width as usize * 3);
    let pixels = image
        .pixels()
        .chunks_exact(row_bytes)
        .skip(top as usize)
        .take(height as usize)
        .flat_map(|row| &row[start..start + length])
        .copied()
        .collect();
    RgbImage::from_parts(width, height, pixels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_found_as_python_rounds() {
        // int(round(excess / 2.0)) of Python 3.
        assert_eq!([0, 1, 2, 3, 4, 5, 6, 7].map(middle), [0, 0, 1, 2, 2, 2, 3, 4]);
    }

    #[test]
    fn any_shape_becomes_the_square() {
        for (width, height) in [(1, 1), (1, 9000), (9000, 1), (224, 224), (640, 360), (3, 400)] {
            let image = RgbImage::new(width, height, vec![9; (width * height * 3) as usize]).unwrap();

            let values = preprocess(&image, 224);

            assert_eq!(values.len(), 3 * 224 * 224);
            assert!(values.iter().all(|value| value.is_finite()));
        }
    }

    #[test]
    fn the_channels_come_in_the_order_red_green_blue() {
        let red = RgbImage::new(8, 8, [255, 0, 0].repeat(64)).unwrap();

        let values = preprocess(&red, 4);

        assert!((values[0] - 1.930_336).abs() < 1e-5);
        assert!((values[16] + 1.752_097).abs() < 1e-5);
        assert!((values[32] + 1.480_219).abs() < 1e-5);
    }
}
