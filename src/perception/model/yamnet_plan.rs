//! Prepares the imported YAMNet to run about twice as fast as the runtime's own convolutions would.
//!
//! In: the ONNX file that [`yamnet`](crate::perception::model::yamnet) writes and a number of windows. Out: a [`Model`](crate::perception::model::runtime::Model) equal to the general one to 1e-6.
//!
//! The network's shape is the reason: thirteen pairs of a depthwise and a 1×1 convolution. With channels side by side
//! the 1×1 ones are plain matrix products, for which the runtime has packed kernels with bias and clip fused, and the
//! depthwise ones are [`PixelOp`]s. A file of any other shape is refused; the general runtime can run it.

use std::path::Path;

use tract_onnx::pb;
use tract_onnx::prelude::*;
use tract_onnx::tract_core::internal::*;
use tract_onnx::tract_core::ops::einsum::EinSum;
use tract_onnx::tract_core::ops::math;
use tract_onnx::tract_core::ops::nn::sigmoid;

use crate::perception::model::ModelError;
use crate::perception::model::channel_last::Geometry;
use crate::perception::model::channel_last::LANES;
use crate::perception::model::onnx::OnnxFile;
use crate::perception::model::pixel_op::Kind;
use crate::perception::model::pixel_op::PixelOp;
use crate::perception::model::yamnet::EMBEDDING;
use crate::perception::model::yamnet::INPUT;
use crate::perception::model::yamnet::MEL_BANDS;
use crate::perception::model::yamnet::PATCH_FRAMES;
use crate::perception::model::yamnet::SCORES;

/// Builds the graph for `windows` windows a run; its outputs are the scores, then the embedding.
pub(super) fn graph(file: &Path, onnx: &mut OnnxFile, windows: usize) -> Result<TypedModel, ModelError> {
    let unsupported = |error: TractError| ModelError::Unsupported { file: file.into(), cause: format!("{error:#}") };
    let nodes = onnx.model.graph.as_ref().map(|graph| graph.node.clone()).unwrap_or_default();
    let mut plan = Plan::new(windows).map_err(unsupported)?;
    for node in &nodes {
        let weights = Weights::of(onnx, node)?;
        plan.add(node, weights).map_err(unsupported)?;
    }
    plan.finish().map_err(unsupported)
}

/// The float32 weights among a node's inputs.
struct Weights {
    shape: Vec<usize>,
    kernel: Vec<f32>,
    bias: Vec<f32>,
}

impl Weights {
    fn of(onnx: &mut OnnxFile, node: &pb::NodeProto) -> Result<Self, ModelError> {
        let name = |position: usize| node.input.get(position).map(String::as_str).unwrap_or_default();
        let kernel = onnx.take_tensor(name(1))?;
        let bias = onnx.take_tensor(name(2))?;
        let shape = kernel.dims.iter().map(|size| usize::try_from(*size).unwrap_or_default()).collect();
        Ok(Self { shape, kernel: floats(&kernel.raw_data), bias: floats(&bias.raw_data) })
    }
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|chunk| f32::from_le_bytes(*chunk)).collect()
}

/// The graph so far, the value at its end and that value's size.
struct Plan {
    model: TypedModel,
    value: OutletId,
    geometry: Geometry,
    channels: usize,
    outputs: Vec<OutletId>,
}

impl Plan {
    fn new(windows: usize) -> TractResult<Self> {
        let mut model = TypedModel::default();
        let value = model.add_source(INPUT, f32::fact([windows, PATCH_FRAMES, MEL_BANDS]))?;
        let geometry = Geometry { height: PATCH_FRAMES, width: MEL_BANDS, stride: 1 };
        Ok(Self { model, value, geometry, channels: 1, outputs: Vec::new() })
    }

    fn add(&mut self, node: &pb::NodeProto, weights: Weights) -> TractResult<()> {
        match node.op_type.as_str() {
            // Axes of size 1 come and go; they have no place among pixels.
            "Unsqueeze" | "Flatten" => Ok(()),
            "Conv" => self.convolution(node, weights),
            "Clip" if weights.kernel == [0.0] && weights.bias == [6.0] => Ok(()),
            "GlobalAveragePool" => {
                let mean = self.pixels(&node.name, Kind::Mean, self.geometry, self.channels, &[])?;
                self.outputs.push(mean);
                Ok(())
            }
            "Gemm" => self.product(&node.name, &weights),
            "Sigmoid" => {
                self.value = self.model.wire_node(&node.name, sigmoid(), &[self.value])?[0];
                self.outputs.insert(0, self.value);
                Ok(())
            }
            other => bail!("{other} is no operator of the imported YAMNet"),
        }
    }

    fn convolution(&mut self, node: &pb::NodeProto, weights: Weights) -> TractResult<()> {
        let &[filters, _, height, width] = weights.shape.as_slice() else { bail!("{} has no kernel", node.name) };
        if (height, width) == (1, 1) {
            self.product(&node.name, &weights)?;
            return self.clip(&node.name);
        }
        ensure!((height, width) == (3, 3) && filters % LANES == 0, "{} has an unusual kernel", node.name);
        ensure!(weights.shape[1] == 1, "{} mixes channels", node.name);
        let kind = if self.channels == 1 { Kind::Stem } else { Kind::Depthwise };
        ensure!(kind == Kind::Stem || filters == self.channels, "{} changes the channels", node.name);
        let stride = node.attribute.iter().find(|attribute| attribute.name == "strides").and_then(|s| s.ints.first());
        let stride = usize::try_from(stride.copied().unwrap_or(1))?;
        let geometry = Geometry { stride, ..self.geometry };
        let kernel = tensor1(&taps_by_lane(&weights.kernel));
        let kernel = self.model.add_const(format!("{}.kernel", node.name), kernel)?;
        let bias = self.model.add_const(format!("{}.bias", node.name), tensor1(&weights.bias))?;
        self.pixels(&node.name, kind, geometry, filters, &[kernel, bias])?;
        self.geometry = Geometry { height: geometry.output_height(), width: geometry.output_width(), stride: 1 };
        Ok(())
    }

    fn pixels(
        &mut self,
        name: &str,
        kind: Kind,
        geometry: Geometry,
        channels: usize,
        weights: &[OutletId],
    ) -> TractResult<OutletId> {
        let inputs: TVec<OutletId> = std::iter::once(self.value).chain(weights.iter().copied()).collect();
        self.value = self.model.wire_node(name, PixelOp { kind, geometry, channels }, &inputs)?[0];
        self.channels = channels;
        Ok(self.value)
    }

    /// Pixels × weightsᵀ + bias.
    fn product(&mut self, name: &str, weights: &Weights) -> TractResult<()> {
        let (outputs, inputs) = (weights.shape[0], weights.shape[1]);
        ensure!(inputs == self.channels, "{name} takes {inputs} channels, {} are there", self.channels);
        let kernel = Tensor::from_shape(&[outputs, inputs], &weights.kernel)?;
        let kernel = self.model.add_const(format!("{name}.kernel"), kernel)?;
        let bias = Tensor::from_shape(&[1, outputs], &weights.bias)?;
        let bias = self.model.add_const(format!("{name}.bias"), bias)?;
        let op = EinSum::new("mk,nk->mn".parse()?, f32::datum_type());
        self.value = self.model.wire_node(name, op, &[self.value, kernel])?[0];
        self.value = self.model.wire_node(format!("{name}.add"), math::add(), &[self.value, bias])?[0];
        self.channels = outputs;
        Ok(())
    }

    fn clip(&mut self, name: &str) -> TractResult<()> {
        let low = self.model.add_const(format!("{name}.low"), tensor2(&[[0.0_f32]]))?;
        let high = self.model.add_const(format!("{name}.high"), tensor2(&[[6.0_f32]]))?;
        self.value = self.model.wire_node(format!("{name}.at_least"), math::max(), &[self.value, low])?[0];
        self.value = self.model.wire_node(format!("{name}.at_most"), math::min(), &[self.value, high])?[0];
        Ok(())
    }

    fn finish(mut self) -> TractResult<TypedModel> {
        ensure!(self.outputs.len() == 2, "{SCORES} or {EMBEDDING} is not computed");
        self.model.select_output_outlets(&self.outputs)?;
        Ok(self.model)
    }
}

/// `[channels, 9]` taps become `[channels / LANES, 9, LANES]`.
fn taps_by_lane(kernel: &[f32]) -> Vec<f32> {
    let mut taps = Vec::with_capacity(kernel.len());
    for lane in kernel.chunks_exact(9 * LANES) {
        for tap in 0..9 {
            taps.extend(lane.iter().skip(tap).step_by(9));
        }
    }
    taps
}
