//! [`Runtime`] over tract-onnx, float32, on the calling thread.
//!
//! In: an ONNX file and the concrete shapes of its inputs. Out: an optimised plan, run again and again.
//!
//! Each large weight goes from the file into its tensor once and becomes a constant of the graph; input shapes are
//! fixed before anything is inferred, because real exports have a dynamic batch and masks that only fold then.

use std::collections::BTreeMap;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use tract_onnx::pb;
use tract_onnx::pb::tensor_proto::DataType;
use tract_onnx::prelude::*;
use tract_onnx::tract_hir::infer::InferenceOp;
use tract_onnx::tract_hir::ops::konst::Const;

use crate::perception::model::ModelError;
use crate::perception::model::onnx::OnnxFile;
use crate::perception::model::onnx::Weight;
use crate::perception::model::precision;
use crate::perception::model::runtime::Element;
use crate::perception::model::runtime::InputSpec;
use crate::perception::model::runtime::Model;
use crate::perception::model::runtime::ModelSpec;
use crate::perception::model::runtime::Output;
use crate::perception::model::runtime::Runtime;
use crate::perception::model::runtime::Values;
use crate::perception::model::yamnet;
use crate::perception::model::yamnet_plan;

/// Loads float32 ONNX files and runs them with tract.
#[derive(Clone, Copy, Debug, Default)]
pub struct TractRuntime;

impl Runtime for TractRuntime {
    fn load(&self, file: &Path, spec: &ModelSpec) -> Result<Box<dyn Model>, ModelError> {
        let mut onnx = OnnxFile::open(file, &spec.outputs)?;
        check_inputs(file, &onnx, spec)?;
        let metadata = take_metadata(&mut onnx);
        let graph = parse(file, &mut onnx)?;
        drop(onnx);
        let state = fix_inputs(graph, &spec.inputs).and_then(prepare).map_err(|error| unsupported(file, &error))?;
        Ok(Box::new(TractModel { file: file.into(), inputs: spec.inputs.clone(), metadata, state }))
    }
}

/// Loads the file that [`yamnet::import_yamnet`] makes, and nothing else, with operators made for its shape.
///
/// The result is the same as [`TractRuntime`]'s to 1e-6 and takes about half the time.
#[derive(Clone, Copy, Debug, Default)]
pub struct YamnetRuntime;

impl Runtime for YamnetRuntime {
    fn load(&self, file: &Path, spec: &ModelSpec) -> Result<Box<dyn Model>, ModelError> {
        let windows = match spec.inputs.as_slice() {
            [input] if input.name == yamnet::INPUT && input.element == Element::F32 => input.shape.first().copied(),
            _ => None,
        };
        let expected = ModelSpec::yamnet(windows.unwrap_or_default());
        if *spec != expected {
            let cause = format!("it is loaded with {expected:?} only");
            return Err(ModelError::Unsupported { file: file.into(), cause });
        }
        let mut onnx = OnnxFile::open(file, &spec.outputs)?;
        check_inputs(file, &onnx, spec)?;
        let metadata = take_metadata(&mut onnx);
        let graph = yamnet_plan::graph(file, &mut onnx, windows.unwrap_or_default())?;
        drop(onnx);
        let state = prepare(graph).map_err(|error| unsupported(file, &error))?;
        Ok(Box::new(TractModel { file: file.into(), inputs: spec.inputs.clone(), metadata, state }))
    }
}

fn take_metadata(onnx: &mut OnnxFile) -> BTreeMap<String, String> {
    let entries = std::mem::take(&mut onnx.model.metadata_props);
    entries.into_iter().map(|entry| (entry.key, entry.value)).collect()
}

fn unsupported(file: &Path, error: &TractError) -> ModelError {
    ModelError::Unsupported { file: file.into(), cause: sentence(error) }
}

#[derive(Debug)]
struct TractModel {
    file: PathBuf,
    inputs: Vec<InputSpec>,
    metadata: BTreeMap<String, String>,
    state: TypedSimpleState,
}

impl Model for TractModel {
    fn run(&mut self, inputs: &[Values<'_>]) -> Result<Vec<Output>, ModelError> {
        let failed = |cause: String| ModelError::Run { file: self.file.clone(), cause };
        if inputs.len() != self.inputs.len() {
            return Err(failed(format!("it takes {} inputs, {} were given", self.inputs.len(), inputs.len())));
        }
        let mut tensors = TVec::new();
        for (spec, values) in self.inputs.iter().zip(inputs) {
            tensors.push(input_tensor(spec, values).map_err(&failed)?.into_tvalue());
        }
        let outputs = self.state.run(tensors).map_err(|error| failed(sentence(&error)))?;
        outputs.iter().map(|value| output(value).map_err(|error| failed(sentence(&error)))).collect()
    }

    fn metadata(&self, key: &str) -> Option<&str> {
        self.metadata.get(key).map(String::as_str)
    }
}

/// Refuses a file that needs an input nobody gives, or that does not know an input it is given.
fn check_inputs(file: &Path, onnx: &OnnxFile, spec: &ModelSpec) -> Result<(), ModelError> {
    let graph_inputs: Vec<&str> =
        onnx.model.graph.iter().flat_map(|graph| &graph.input).map(|input| input.name.as_str()).collect();
    if let Some(name) = graph_inputs.iter().find(|name| spec.inputs.iter().all(|input| input.name != **name)) {
        return Err(ModelError::MissingInput { file: file.into(), name: (*name).into() });
    }
    match spec.inputs.iter().find(|input| !graph_inputs.contains(&input.name.as_str())) {
        None => Ok(()),
        Some(input) => Err(ModelError::Unsupported {
            file: file.into(),
            cause: format!("its outputs {} do not depend on an input {}", spec.outputs.join(", "), input.name),
        }),
    }
}

/// The graph as tract sees it, each large weight read once and put in place of a stand-in source.
fn parse(file: &Path, onnx: &mut OnnxFile) -> Result<InferenceModel, ModelError> {
    let unsupported = |error: TractError| unsupported(file, &error);
    let weights = std::mem::take(&mut onnx.weights);
    let mut model = std::mem::take(&mut onnx.model);
    if let Some(graph) = &mut model.graph {
        graph.input.extend(weights.values().map(|weight| stand_in(&weight.header)));
    }
    let framework = tract_onnx::onnx().with_ignore_value_info(true).with_ignore_output_shapes(true);
    let mut parsed = framework.parse(&model, None).map_err(unsupported)?;
    if let Some(name) = parsed.unresolved_inputs.first() {
        return Err(ModelError::Malformed { file: file.into(), cause: format!("nothing computes the value {name}") });
    }
    for (name, weight) in &weights {
        let tensor = weight_tensor(file, onnx, weight)?;
        if let Some(outlet) = parsed.outlets_by_name.get(name) {
            put_constant(&mut parsed.model, *outlet, tensor).map_err(unsupported)?;
        }
    }
    Ok(parsed.model)
}

/// A weight as a tensor. Float32 data, which is all that is large, goes straight from the file into its place.
fn weight_tensor(file: &Path, onnx: &mut OnnxFile, weight: &Weight) -> Result<Arc<Tensor>, ModelError> {
    let unsupported = |error: TractError| unsupported(file, &error);
    let header = &weight.header;
    let bytes = OnnxFile::raw_bytes(weight);
    if header.data_type() != DataType::Float || bytes.is_none() || cfg!(target_endian = "big") {
        let proto = onnx.read_weight(weight)?;
        let provider = tract_onnx::Onnx::default().provider;
        let tensor = tract_onnx::tensor::load_tensor(&*provider, &proto, None).map_err(unsupported)?;
        return Ok(tensor.into_arc_tensor());
    }
    let expected = precision::elements(header).and_then(|elements| elements.checked_mul(size_of::<f32>()));
    if expected.and_then(|expected| u64::try_from(expected).ok()) != bytes {
        return Err(precision::lying_length(file, header));
    }
    let shape: Vec<usize> = header.dims.iter().filter_map(|size| usize::try_from(*size).ok()).collect();
    let mut tensor = Tensor::zero::<f32>(&shape).map_err(unsupported)?;
    let mut place = tensor.try_as_plain_ram_mut().map_err(unsupported)?;
    onnx.read_raw(weight, place.as_bytes_mut())?;
    Ok(tensor.into_arc_tensor())
}

/// A graph input that keeps a weight's name and type in place until the weight is read.
fn stand_in(header: &pb::TensorProto) -> pb::ValueInfoProto {
    let tensor = pb::type_proto::Tensor { elem_type: header.data_type, shape: None };
    pb::ValueInfoProto {
        name: header.name.clone(),
        r#type: Some(pb::TypeProto {
            value: Some(pb::type_proto::Value::TensorType(tensor)),
            ..pb::TypeProto::default()
        }),
        ..pb::ValueInfoProto::default()
    }
}

fn put_constant(model: &mut InferenceModel, outlet: OutletId, tensor: Arc<Tensor>) -> TractResult<()> {
    model.inputs.retain(|input| *input != outlet);
    let fact = InferenceFact::try_from(&tensor)?;
    let constant: Box<dyn InferenceOp> = Box::new(Const::new(tensor)?);
    model.node_mut(outlet.node).op = constant;
    model.set_outlet_fact(outlet, fact)
}

/// Fixes the input shapes and infers everything else from them.
fn fix_inputs(mut model: InferenceModel, inputs: &[InputSpec]) -> TractResult<TypedModel> {
    let mut ordered = Vec::new();
    for input in inputs {
        let node = model.node_by_name(&input.name)?.id;
        let outlet = OutletId::new(node, 0);
        let element = match input.element {
            Element::F32 => f32::datum_type(),
            Element::I64 => i64::datum_type(),
        };
        model.set_outlet_fact(outlet, InferenceFact::dt_shape(element, &*input.shape))?;
        ordered.push(outlet);
    }
    model.set_input_outlets(&ordered)?;
    model.into_typed()
}

/// Optimises; the working memory that comes with the plan is kept from run to run.
fn prepare(model: TypedModel) -> TractResult<TypedSimpleState> {
    model.into_optimized()?.into_runnable()?.spawn()
}

fn input_tensor(spec: &InputSpec, values: &Values<'_>) -> Result<Tensor, String> {
    let wanted: usize = spec.shape.iter().product();
    let (given, element) = match values {
        Values::F32(values) => (values.len(), Element::F32),
        Values::I64(values) => (values.len(), Element::I64),
    };
    if given != wanted || element != spec.element {
        return Err(format!(
            "input {} takes {wanted} {:?} values for its shape {:?}, {given} {element:?} values were given",
            spec.name, spec.element, spec.shape
        ));
    }
    let tensor = match values {
        Values::F32(values) => Tensor::from_shape(&spec.shape, values),
        Values::I64(values) => Tensor::from_shape(&spec.shape, values),
    };
    tensor.map_err(|error| sentence(&error))
}

fn output(value: &TValue) -> TractResult<Output> {
    let floats = value.cast_to::<f32>()?;
    let values = floats.try_as_plain_ram()?.as_slice::<f32>()?.to_vec();
    Ok(Output { shape: floats.shape().to_vec(), values })
}

/// The runtime's error with its causes, on one line.
fn sentence(error: &TractError) -> String {
    let text: Vec<String> = error.chain().map(|cause| cause.to_string().replace('\n', " ")).collect();
    text.join(": ")
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;

    fn tensor(name: &str, element: DataType, dims: &[i64], raw_data: Vec<u8>) -> pb::TensorProto {
        pb::TensorProto {
            name: name.into(),
            data_type: element.into(),
            dims: dims.into(),
            raw_data,
            ..pb::TensorProto::default()
        }
    }

    fn floats(values: impl IntoIterator<Item = f32>) -> Vec<u8> {
        values.into_iter().flat_map(f32::to_le_bytes).collect()
    }

    fn node(operator: &str, inputs: &[&str], output: &str) -> pb::NodeProto {
        pb::NodeProto {
            op_type: operator.into(),
            input: inputs.iter().map(|input| (*input).into()).collect(),
            output: vec![output.into()],
            ..pb::NodeProto::default()
        }
    }

    fn value(name: &str, element: DataType) -> pb::ValueInfoProto {
        let tensor = pb::type_proto::Tensor { elem_type: element.into(), shape: None };
        let r#type =
            pb::TypeProto { value: Some(pb::type_proto::Value::TensorType(tensor)), ..pb::TypeProto::default() };
        pb::ValueInfoProto { name: name.into(), r#type: Some(r#type), ..pb::ValueInfoProto::default() }
    }

    /// Two towers in one file, as CLIP exports are: tokens look up rows of a table, pixels are doubled.
    fn two_towers() -> pb::GraphProto {
        pb::GraphProto {
            node: vec![
                node("Gather", &["table", "tokens"], "text"),
                node("Mul", &["pixels", "two"], "image"),
                node("Add", &["text", "image"], "both"),
            ],
            initializer: vec![
                tensor("table", DataType::Float, &[100, 4], floats((0..400_u16).map(f32::from))),
                tensor("two", DataType::Float, &[1], floats([2.0])),
            ],
            input: vec![value("tokens", DataType::Int64), value("pixels", DataType::Float)],
            output: ["text", "image", "both"].map(|name| value(name, DataType::Float)).into(),
            // Left over from another export, and wrong.
            value_info: vec![value("text", DataType::Int64)],
            ..pb::GraphProto::default()
        }
    }

    fn load(graph: pb::GraphProto, inputs: &[InputSpec], output: &str) -> Result<Box<dyn Model>, ModelError> {
        let opset_import = vec![pb::OperatorSetIdProto { version: 17, ..pb::OperatorSetIdProto::default() }];
        let model = pb::ModelProto { ir_version: 8, opset_import, graph: Some(graph), ..pb::ModelProto::default() };
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("towers.onnx");
        std::fs::write(&file, model.encode_to_vec()).unwrap();
        TractRuntime.load(&file, &ModelSpec { inputs: inputs.into(), outputs: vec![output.into()] })
    }

    fn refusal(graph: pb::GraphProto) -> String {
        let error = load(graph, &[InputSpec::f32("pixels", &[1, 4])], "image").err().unwrap();
        assert!(error.to_string().contains("towers.onnx"), "{error}");
        error.to_string()
    }

    #[test]
    fn one_tower_of_two_loads_without_the_other() {
        let mut image = load(two_towers(), &[InputSpec::f32("pixels", &[2, 2])], "image").unwrap();
        let mut text = load(two_towers(), &[InputSpec::i64("tokens", &[1, 2])], "text").unwrap();

        let doubled = image.run(&[Values::F32(&[1.0, 2.0, 3.0, 4.0])]).unwrap();
        let rows = text.run(&[Values::I64(&[7, 99])]).unwrap();

        assert_eq!(doubled, [Output { shape: vec![2, 2], values: vec![2.0, 4.0, 6.0, 8.0] }]);
        let values = vec![28.0, 29.0, 30.0, 31.0, 396.0, 397.0, 398.0, 399.0];
        assert_eq!(rows, [Output { shape: vec![1, 2, 4], values }]);
    }

    #[test]
    fn both_towers_need_both_inputs() {
        let error = load(two_towers(), &[InputSpec::i64("tokens", &[1, 2])], "both").err().unwrap();

        assert!(error.to_string().ends_with("needs the input pixels, which is not provided"), "{error}");
    }

    #[test]
    fn integers_are_not_taken_for_floats() {
        let mut text = load(two_towers(), &[InputSpec::i64("tokens", &[1, 2])], "text").unwrap();

        let error = text.run(&[Values::F32(&[7.0, 9.0])]).unwrap_err();

        assert!(error.to_string().contains("2 I64 values for its shape [1, 2], 2 F32 values were given"), "{error}");
    }

    #[test]
    fn quantised_graphs_are_refused_by_operator_and_by_tensor() {
        for operator in ["QuantizeLinear", "DequantizeLinear", "QLinearConv", "MatMulInteger", "DynamicQuantizeLSTM"] {
            let mut graph = two_towers();
            graph.node[1].op_type = operator.into();

            assert!(refusal(graph).contains(&format!("is quantised (operator {operator})")));
        }
        let mut graph = two_towers();
        graph.initializer[1] = tensor("two", DataType::Int8, &[1], vec![2]);
        assert!(refusal(graph).contains("is quantised (tensor two is INT8)"));
    }

    #[test]
    fn half_precision_is_refused_in_weights_inputs_and_casts() {
        let mut weights = two_towers();
        weights.initializer[1] = tensor("two", DataType::Float16, &[1], vec![0, 64]);
        let mut inputs = two_towers();
        inputs.input[1] = value("pixels", DataType::Float16);
        let mut casts = two_towers();
        casts.node[1] = node("Cast", &["pixels"], "image");
        let to = i32::from(DataType::Float16).into();
        casts.node[1].attribute =
            vec![pb::AttributeProto { name: "to".into(), i: to, ..pb::AttributeProto::default() }];

        for graph in [weights, inputs, casts] {
            assert!(refusal(graph).contains("is in half precision"));
        }
    }

    #[test]
    fn weights_in_another_file_or_of_a_lying_length_are_refused() {
        let mut external = two_towers();
        external.initializer[1].data_location = Some(pb::tensor_proto::DataLocation::External.into());
        assert!(refusal(external).contains("keeps tensor two in another file"));

        for dims in [vec![2], vec![-1], vec![i64::MAX, i64::MAX]] {
            let mut graph = two_towers();
            graph.initializer[1].dims = dims;
            assert!(refusal(graph).contains("tensor two is not as long as its shape"));
        }
        let mut table = two_towers();
        table.initializer[0].dims = vec![100, 5];
        let error = load(table, &[InputSpec::i64("tokens", &[1, 2])], "text").err().unwrap();
        assert!(error.to_string().contains("tensor table is not as long"), "{error}");
    }

    #[test]
    fn an_operator_nobody_knows_and_a_value_nobody_computes_are_named() {
        let mut unknown = two_towers();
        unknown.node[1].op_type = "Mystery".into();
        assert!(refusal(unknown).contains("Mystery"));

        let mut loose = two_towers();
        loose.node[1].input[1] = "three".into();
        assert!(refusal(loose).contains("three"));
    }

    #[test]
    fn a_file_that_is_absent_or_no_model_is_named() {
        let spec = ModelSpec { inputs: Vec::new(), outputs: vec!["image".into()] };
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("towers.onnx");

        let absent = TractRuntime.load(&file, &spec).err().unwrap();
        assert!(matches!(absent, ModelError::Unreadable { .. }), "{absent}");

        for bytes in [&b""[..], b"<html>404</html>", b"\x08\x08"] {
            std::fs::write(&file, bytes).unwrap();
            let error = TractRuntime.load(&file, &spec).err().unwrap();
            assert!(matches!(error, ModelError::Malformed { .. }), "{error}");
        }
    }
}
