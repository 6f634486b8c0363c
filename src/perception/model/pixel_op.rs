//! The channel-last convolutions as operators of the runtime.
//!
//! In: tensors of pixels, `[windows × height × width, channels]`. Out: the same, of the next size.
//! The arithmetic is in [`channel_last`]; this file only fits it into a graph.

use tract_onnx::prelude::*;
use tract_onnx::tract_core::internal::*;

use crate::perception::model::channel_last;
use crate::perception::model::channel_last::Geometry;
use crate::perception::model::channel_last::LANES;
use crate::perception::model::channel_last::Lane;

/// What an operator computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// 3×3 from one channel to [`LANES`], bias, clip to 0–6. Inputs: `[windows, height, width]`, kernel, bias.
    Stem,
    /// 3×3 on each channel by itself, bias, clip to 0–6. Inputs: pixels, kernel, bias.
    Depthwise,
    /// Mean over each window's pixels. Input: pixels.
    Mean,
}

/// A convolution or mean over pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PixelOp {
    pub(super) kind: Kind,
    pub(super) geometry: Geometry,
    /// Channels of the result, a multiple of [`LANES`].
    pub(super) channels: usize,
}

impl PixelOp {
    /// The result's shape for inputs whose first axis is `first`.
    fn output_shape<D>(&self, first: D) -> [D; 2]
    where
        D: std::ops::Div<usize, Output = D> + std::ops::Mul<usize, Output = D> + From<usize>,
    {
        let rows = match self.kind {
            Kind::Stem => first * self.geometry.output_pixels(),
            Kind::Depthwise => first / self.geometry.pixels() * self.geometry.output_pixels(),
            Kind::Mean => first / self.geometry.pixels(),
        };
        [rows, D::from(self.channels)]
    }

    fn replace(&self, pixels: &mut Tensor, weights_and_bias: &[TValue]) -> TractResult<()> {
        let [kernel, bias] = weights_and_bias else { bail!("a depthwise convolution has a kernel and a bias") };
        let kernel = kernel.try_as_plain_ram()?.as_slice::<f32>()?;
        let bias = bias.try_as_plain_ram()?.as_slice::<f32>()?;
        let mut pixels = pixels.try_as_plain_ram_mut()?;
        let (pixels, _) = pixels.as_slice_mut::<f32>()?.as_chunks_mut();
        channel_last::depthwise_in_place(self.geometry, weights(kernel, bias), pixels);
        Ok(())
    }

    fn compute(&self, inputs: &[&[f32]], output: &mut [f32]) -> TractResult<()> {
        let (output, _) = output.as_chunks_mut::<LANES>();
        match (self.kind, inputs) {
            (Kind::Stem, [values, kernel, bias]) => {
                let ([kernel], [bias]) = (taps(kernel), lanes(bias)) else { bail!("a stem has one lane of channels") };
                channel_last::stem(self.geometry, kernel, bias, values, output);
            }
            (Kind::Depthwise, [values, kernel, bias]) => {
                channel_last::depthwise(self.geometry, weights(kernel, bias), lanes(values), output);
            }
            (Kind::Mean, [values]) => {
                channel_last::mean(self.geometry.pixels(), self.channels / LANES, lanes(values), output);
            }
            _ => bail!("{:?} was given {} inputs", self.kind, inputs.len()),
        }
        Ok(())
    }
}

impl Op for PixelOp {
    fn name(&self) -> StaticName {
        match self.kind {
            Kind::Stem => "PixelStem".into(),
            Kind::Depthwise => "PixelDepthwise".into(),
            Kind::Mean => "PixelMean".into(),
        }
    }

    op_as_typed_op!();
}

impl EvalOp for PixelOp {
    op_out_of_plan!();

    fn eval(&self, _ctx: &EvalContext, mut inputs: TVec<TValue>) -> TractResult<TVec<TValue>> {
        if self.kind == Kind::Depthwise && self.geometry.stride == 1 {
            // The plan has let go of a value that nothing else reads, so this takes it over without a copy.
            let mut pixels = inputs.remove(0).into_tensor();
            self.replace(&mut pixels, &inputs)?;
            return Ok(tvec!(pixels.into_tvalue()));
        }
        let first = *inputs[0].shape().first().context("an image has a first axis")?;
        let mut output = Tensor::zero::<f32>(&self.output_shape(first))?;
        let slices: TVec<&[f32]> =
            inputs.iter().map(|input| input.try_as_plain_ram()?.as_slice::<f32>()).collect::<TractResult<_>>()?;
        self.compute(&slices, output.try_as_plain_ram_mut()?.as_slice_mut::<f32>()?)?;
        Ok(tvec!(output.into_tvalue()))
    }
}

impl TypedOp for PixelOp {
    fn output_facts(&self, inputs: &[&TypedFact]) -> TractResult<TVec<TypedFact>> {
        let first = inputs[0].shape.first().context("an image has a first axis")?.clone();
        let [rows, channels] = match first.to_usize() {
            Ok(first) => self.output_shape(first).map(|size| size.to_dim()),
            Err(_) => bail!("the number of windows must be fixed"),
        };
        Ok(tvec!(f32::fact([rows, channels])))
    }

    as_op!();
}

fn weights<'a>(kernel: &'a [f32], bias: &'a [f32]) -> channel_last::Weights<'a> {
    channel_last::Weights { kernel: taps(kernel), bias: lanes(bias) }
}

fn lanes(values: &[f32]) -> &[Lane] {
    values.as_chunks().0
}

fn taps(values: &[f32]) -> &[[Lane; 9]] {
    lanes(values).as_chunks().0
}
