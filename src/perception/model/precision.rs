//! Refuses ONNX graphs that are not plain float32, and tensors whose data is not what their shape says.
//!
//! In: the graph and the headers of its weights. Out: nothing, or the sentence why the file is refused.
//!
//! The runtime gives wrong scores for quantised graphs without any error (measured on QDQ exports) and cannot read
//! half precision, so both are found here, by operator and by element type, before it sees the file.

use std::path::Path;

use tract_onnx::pb;
use tract_onnx::pb::tensor_proto::DataLocation;
use tract_onnx::pb::tensor_proto::DataType;

use crate::perception::model::ModelError;

/// Checks every operator and every tensor of the graph.
pub(super) fn check<'a>(
    file: &Path,
    model: &'a pb::ModelProto,
    weights: impl Iterator<Item = &'a pb::TensorProto>,
) -> Result<(), ModelError> {
    for weight in weights {
        check_tensor(file, weight)?;
    }
    match &model.graph {
        Some(graph) => check_graph(file, graph),
        None => Ok(()),
    }
}

/// Checks that a tensor's data is as long as its shape and type say.
pub(super) fn check_length(file: &Path, tensor: &pb::TensorProto) -> Result<(), ModelError> {
    let elements = elements(tensor);
    let found = match element_bytes(tensor.data_type()) {
        Some(bytes) if !tensor.raw_data.is_empty() => {
            tensor.raw_data.len().is_multiple_of(bytes).then_some(tensor.raw_data.len() / bytes)
        }
        _ => Some(typed_elements(tensor)),
    };
    if elements.is_some() && found == elements { Ok(()) } else { Err(lying_length(file, tensor)) }
}

/// The elements a tensor has by its shape, unless that is negative or too many to count.
pub(super) fn elements(tensor: &pb::TensorProto) -> Option<usize> {
    tensor.dims.iter().try_fold(1_usize, |elements, dim| elements.checked_mul(usize::try_from(*dim).ok()?))
}

/// The error for a tensor whose shape and data do not fit.
pub(super) fn lying_length(file: &Path, tensor: &pb::TensorProto) -> ModelError {
    let cause = format!("tensor {} is not as long as its shape {:?} says", tensor.name, tensor.dims);
    ModelError::Malformed { file: file.into(), cause }
}

fn typed_elements(tensor: &pb::TensorProto) -> usize {
    tensor.float_data.len()
        + tensor.int32_data.len()
        + tensor.int64_data.len()
        + tensor.double_data.len()
        + tensor.uint64_data.len()
        + tensor.string_data.len()
}

fn check_graph(file: &Path, graph: &pb::GraphProto) -> Result<(), ModelError> {
    for tensor in &graph.initializer {
        check_tensor(file, tensor)?;
        check_length(file, tensor)?;
    }
    for input in graph.input.iter().chain(&graph.output) {
        if let Some(pb::type_proto::Value::TensorType(tensor)) = input.r#type.as_ref().and_then(|t| t.value.as_ref()) {
            check_element(file, tensor.elem_type, &input.name)?;
        }
    }
    graph.node.iter().try_for_each(|node| check_node(file, node))
}

fn check_node(file: &Path, node: &pb::NodeProto) -> Result<(), ModelError> {
    if is_quantised(&node.op_type) {
        return Err(ModelError::Quantised { file: file.into(), what: format!("operator {}", node.op_type) });
    }
    for attribute in &node.attribute {
        if node.op_type == "Cast" && attribute.name == "to" {
            let to = i32::try_from(attribute.i).unwrap_or_default();
            check_element(file, to, &format!("operator Cast {}", node.name))?;
        }
        for tensor in attribute.t.iter().chain(&attribute.tensors) {
            check_tensor(file, tensor)?;
            check_length(file, tensor)?;
        }
        for graph in attribute.g.iter().chain(&attribute.graphs) {
            check_graph(file, graph)?;
        }
    }
    Ok(())
}

/// Operators that compute on quantised integers: the QDQ pair, the QLinear and the Integer family, and the
/// vendor operators that follow the same names (`QAttention`, `DynamicQuantizeMatMul`, `MatMulNBits`, …).
fn is_quantised(operator: &str) -> bool {
    let q_name = operator.strip_prefix('Q').and_then(|rest| rest.chars().next());
    operator.to_lowercase().contains("quantize")
        || operator.ends_with("Integer")
        || operator.contains("NBits")
        || q_name.is_some_and(char::is_uppercase)
}

fn check_tensor(file: &Path, tensor: &pb::TensorProto) -> Result<(), ModelError> {
    if tensor.data_location() == DataLocation::External {
        return Err(ModelError::ExternalData { file: file.into(), tensor: tensor.name.clone() });
    }
    check_element(file, tensor.data_type, &format!("tensor {}", tensor.name))
}

fn check_element(file: &Path, element: i32, what: &str) -> Result<(), ModelError> {
    let Ok(element) = DataType::try_from(element) else {
        return Err(ModelError::Malformed { file: file.into(), cause: format!("{what} has element type {element}") });
    };
    let what = format!("{what} is {}", element.as_str_name());
    match element {
        DataType::Float16 | DataType::Bfloat16 => Err(ModelError::HalfPrecision { file: file.into(), what }),
        DataType::Int8
        | DataType::Uint8
        | DataType::Uint16
        | DataType::Int16
        | DataType::Uint4
        | DataType::Int4
        | DataType::Float4e2m1
        | DataType::Float8e4m3fn
        | DataType::Float8e4m3fnuz
        | DataType::Float8e5m2
        | DataType::Float8e5m2fnuz => Err(ModelError::Quantised { file: file.into(), what }),
        DataType::Undefined
        | DataType::Float
        | DataType::Int32
        | DataType::Int64
        | DataType::String
        | DataType::Bool
        | DataType::Double
        | DataType::Uint32
        | DataType::Uint64
        | DataType::Complex64
        | DataType::Complex128 => Ok(()),
    }
}

/// Bytes of one element of raw data, for the types that have raw data of a fixed size and pass [`check`].
fn element_bytes(element: DataType) -> Option<usize> {
    match element {
        DataType::Bool => Some(1),
        DataType::Float | DataType::Int32 | DataType::Uint32 => Some(4),
        DataType::Int64 | DataType::Uint64 | DataType::Double | DataType::Complex64 => Some(8),
        DataType::Complex128 => Some(16),
        DataType::Undefined
        | DataType::String
        | DataType::Uint8
        | DataType::Int8
        | DataType::Uint16
        | DataType::Int16
        | DataType::Float16
        | DataType::Bfloat16
        | DataType::Uint4
        | DataType::Int4
        | DataType::Float4e2m1
        | DataType::Float8e4m3fn
        | DataType::Float8e4m3fnuz
        | DataType::Float8e5m2
        | DataType::Float8e5m2fnuz => None,
    }
}
