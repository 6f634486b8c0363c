//! Writes ONNX graphs: a chain of operators with their float32 weights.
//!
//! In: operators in order. Out: a [`pb::ModelProto`], opset 17, whose bytes depend on nothing but what was put in.
//! It checks nothing: whoever builds a graph knows its shapes.

use tract_onnx::pb;
use tract_onnx::pb::attribute_proto::AttributeType;
use tract_onnx::pb::tensor_proto::DataType;
use tract_onnx::pb::tensor_shape_proto::Dimension;
use tract_onnx::pb::tensor_shape_proto::dimension;

/// The operator set all operators below are written for.
const OPSET: i64 = 17;
/// The ONNX file format that goes with it.
const IR_VERSION: i64 = 8;

/// A graph in the making. The first axis of every value is the number of windows, which stays open.
#[derive(Debug)]
pub(super) struct GraphBuilder {
    graph: pb::GraphProto,
    metadata: Vec<pb::StringStringEntryProto>,
}

impl GraphBuilder {
    pub(super) fn new(name: &str) -> Self {
        Self { graph: pb::GraphProto { name: name.into(), ..pb::GraphProto::default() }, metadata: Vec::new() }
    }

    pub(super) fn input(&mut self, name: &str, shape: &[usize]) {
        self.graph.input.push(value_info(name, shape));
    }

    pub(super) fn output(&mut self, name: &str, shape: &[usize]) {
        self.graph.output.push(value_info(name, shape));
    }

    pub(super) fn metadata(&mut self, key: &str, value: &str) {
        self.metadata.push(pb::StringStringEntryProto { key: key.into(), value: value.into() });
    }

    /// Adds a float32 weight, row-major, and returns its name.
    pub(super) fn weight(&mut self, what: &str, shape: &[usize], values: &[f32]) -> String {
        self.tensor(what, DataType::Float, shape, values.iter().flat_map(|value| value.to_le_bytes()).collect())
    }

    /// `Unsqueeze`: the same values with an axis of size 1 at `axis`.
    pub(super) fn insert_axis(&mut self, value: &str, axis: i64) -> String {
        let axes = self.tensor("axes", DataType::Int64, &[1], axis.to_le_bytes().to_vec());
        self.node("Unsqueeze", &[value, &axes], Vec::new())
    }

    /// `Conv` with square strides; `pads` are above, left, below, right.
    pub(super) fn convolution(
        &mut self,
        value: &str,
        kernel: &str,
        bias: &str,
        stride: usize,
        pads: [usize; 4],
        group: usize,
    ) -> String {
        let attributes = vec![ints("strides", &[stride, stride]), ints("pads", &pads), int("group", group)];
        self.node("Conv", &[value, kernel, bias], attributes)
    }

    /// `Clip` to a range, both ends included.
    pub(super) fn clip(&mut self, value: &str, low: f32, high: f32) -> String {
        let low = self.weight("low", &[], &[low]);
        let high = self.weight("high", &[], &[high]);
        self.node("Clip", &[value, &low, &high], Vec::new())
    }

    /// The mean over height and width, named `output`.
    pub(super) fn spatial_mean(&mut self, value: &str, output: &str) {
        let pooled = self.node("GlobalAveragePool", &[value], Vec::new());
        self.named_node("Flatten", &[&pooled], vec![int("axis", 1)], output);
    }

    /// `Gemm`: value × weightsᵀ + bias.
    pub(super) fn dense(&mut self, value: &str, weights: &str, bias: &str) -> String {
        self.node("Gemm", &[value, weights, bias], vec![int("transB", 1)])
    }

    /// `Sigmoid`, named `output`.
    pub(super) fn sigmoid(&mut self, value: &str, output: &str) {
        self.named_node("Sigmoid", &[value], Vec::new(), output);
    }

    pub(super) fn finish(self) -> pb::ModelProto {
        pb::ModelProto {
            ir_version: IR_VERSION,
            opset_import: vec![pb::OperatorSetIdProto { version: OPSET, ..pb::OperatorSetIdProto::default() }],
            producer_name: "percept".into(),
            graph: Some(self.graph),
            metadata_props: self.metadata,
            ..pb::ModelProto::default()
        }
    }

    fn tensor(&mut self, what: &str, element: DataType, shape: &[usize], raw_data: Vec<u8>) -> String {
        let name = format!("{what}_{}", self.graph.initializer.len());
        self.graph.initializer.push(pb::TensorProto {
            name: name.clone(),
            dims: shape.iter().map(|size| signed(*size)).collect(),
            data_type: element.into(),
            raw_data,
            ..pb::TensorProto::default()
        });
        name
    }

    fn node(&mut self, operator: &str, inputs: &[&str], attributes: Vec<pb::AttributeProto>) -> String {
        let output = format!("{}_{}", operator.to_lowercase(), self.graph.node.len());
        self.named_node(operator, inputs, attributes, &output);
        output
    }

    fn named_node(&mut self, operator: &str, inputs: &[&str], attribute: Vec<pb::AttributeProto>, output: &str) {
        self.graph.node.push(pb::NodeProto {
            name: output.into(),
            op_type: operator.into(),
            input: inputs.iter().map(|input| (*input).to_owned()).collect(),
            output: vec![output.into()],
            attribute,
            ..pb::NodeProto::default()
        });
    }
}

fn value_info(name: &str, shape: &[usize]) -> pb::ValueInfoProto {
    let fixed = shape.iter().map(|size| dimension::Value::DimValue(signed(*size)));
    let dim = std::iter::once(dimension::Value::DimParam("windows".into()))
        .chain(fixed)
        .map(|value| Dimension { value: Some(value), ..Dimension::default() })
        .collect();
    let tensor =
        pb::type_proto::Tensor { elem_type: DataType::Float.into(), shape: Some(pb::TensorShapeProto { dim }) };
    let r#type = pb::TypeProto { value: Some(pb::type_proto::Value::TensorType(tensor)), ..pb::TypeProto::default() };
    pb::ValueInfoProto { name: name.into(), r#type: Some(r#type), ..pb::ValueInfoProto::default() }
}

fn int(name: &str, value: usize) -> pb::AttributeProto {
    pb::AttributeProto {
        name: name.into(),
        r#type: AttributeType::Int.into(),
        i: signed(value),
        ..pb::AttributeProto::default()
    }
}

fn ints(name: &str, values: &[usize]) -> pb::AttributeProto {
    pb::AttributeProto {
        name: name.into(),
        r#type: AttributeType::Ints.into(),
        ints: values.iter().map(|value| signed(*value)).collect(),
        ..pb::AttributeProto::default()
    }
}

/// Sizes of graphs that fit in memory fit in 63 bits.
fn signed(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}
