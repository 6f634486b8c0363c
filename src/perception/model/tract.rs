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
use tract_onnx::prelude::*;
use tract_onnx::tract_hir::infer::InferenceOp;
use tract_onnx::tract_hir::ops::konst::Const;

use crate::perception::model::ModelError;
use crate::perception::model::onnx::OnnxFile;
use crate::perception::model::runtime::Element;
use crate::perception::model::runtime::InputSpec;
use crate::perception::model::runtime::Model;
use crate::perception::model::runtime::ModelSpec;
use crate::perception::model::runtime::Output;
use crate::perception::model::runtime::Runtime;
use crate::perception::model::runtime::Values;

/// Loads float32 ONNX files and runs them with tract.
#[derive(Clone, Copy, Debug, Default)]
pub struct TractRuntime;

impl Runtime for TractRuntime {
    fn load(&self, file: &Path, spec: &ModelSpec) -> Result<Box<dyn Model>, ModelError> {
        let mut onnx = OnnxFile::open(file, &spec.outputs)?;
        check_inputs(file, &onnx, spec)?;
        let metadata = std::mem::take(&mut onnx.model.metadata_props);
        let metadata = metadata.into_iter().map(|entry| (entry.key, entry.value)).collect();
        let graph = parse(file, &mut onnx)?;
        drop(onnx);
        let plan = prepare(graph, &spec.inputs)
            .map_err(|error| ModelError::Unsupported { file: file.into(), cause: sentence(&error) })?;
        Ok(Box::new(TractModel { file: file.into(), inputs: spec.inputs.clone(), metadata, plan }))
    }
}

#[derive(Debug)]
struct TractModel {
    file: PathBuf,
    inputs: Vec<InputSpec>,
    metadata: BTreeMap<String, String>,
    plan: Arc<TypedRunnableModel>,
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
        let outputs = self.plan.run(tensors).map_err(|error| failed(sentence(&error)))?;
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
    let unsupported = |error: TractError| ModelError::Unsupported { file: file.into(), cause: sentence(&error) };
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
        let proto = onnx.read_weight(weight)?;
        let tensor = framework_tensor(&framework, &proto).map_err(unsupported)?;
        drop(proto);
        if let Some(outlet) = parsed.outlets_by_name.get(name) {
            put_constant(&mut parsed.model, *outlet, tensor).map_err(unsupported)?;
        }
    }
    Ok(parsed.model)
}

fn framework_tensor(framework: &tract_onnx::Onnx, proto: &pb::TensorProto) -> TractResult<Arc<Tensor>> {
    let tensor = tract_onnx::tensor::load_tensor(&*framework.provider, proto, None)?;
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
    let fact = InferenceFact::from(&tensor);
    let constant: Box<dyn InferenceOp> = Box::new(Const::new(tensor)?);
    model.node_mut(outlet.node).op = constant;
    model.set_outlet_fact(outlet, fact)
}

/// Fixes the input shapes, infers everything else from them, and optimises.
fn prepare(mut model: InferenceModel, inputs: &[InputSpec]) -> TractResult<Arc<TypedRunnableModel>> {
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
    let mut model = model.into_typed()?;
    model.declutter()?;
    model.optimize()?;
    model.into_runnable()
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
