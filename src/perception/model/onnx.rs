//! Reads the part of an ONNX file that named outputs need.
//!
//! In: an ONNX file and output names. Out: the graph behind those outputs and the place of its large weights.
//!
//! Weights are left in the file until [`OnnxFile::read_weight`], so loading one tower of a two-tower file costs
//! no memory for the other, and no weight is ever held twice. Shape notes (`value_info`) are not read at all:
//! they describe the dynamic export, and mislead once the input shapes are fixed.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;
use std::ops::Range;
use std::path::Path;
use std::path::PathBuf;

use prost::Message;
use tract_onnx::pb;

use crate::perception::model::ModelError;
use crate::perception::model::precision;
use crate::perception::model::wire::Walker;
use crate::perception::model::wire::WireError;

/// Tensors up to this size (shapes, axes, scalars) are read with the graph; larger ones stay in the file.
const SMALL_TENSOR_BYTES: u64 = 1024;

/// Field numbers of `onnx.proto`.
mod number {
    pub(super) const MODEL_GRAPH: u64 = 7;
    pub(super) const MODEL_TRAINING: u64 = 20;
    pub(super) const GRAPH_INITIALIZER: u64 = 5;
    /// Documentation, shape notes and quantisation notes.
    pub(super) const GRAPH_UNREAD: [u64; 3] = [10, 13, 14];
    pub(super) const TENSOR_RAW_DATA: u64 = 9;
    /// `float_data`, `int32_data`, `string_data`, `int64_data`, `double_data`, `uint64_data`.
    pub(super) const TENSOR_TYPED_DATA: [u64; 6] = [4, 5, 6, 7, 10, 11];
}

/// An initial value of the graph whose data is still in the file.
#[derive(Debug)]
pub(super) struct Weight {
    /// Name, shape and element type; the data fields are empty.
    pub(super) header: pb::TensorProto,
    /// The whole tensor message.
    whole: Range<u64>,
    /// The raw little-endian data, unless the file uses the typed fields.
    raw: Option<Range<u64>>,
}

/// An open ONNX file, its graph cut down to what the asked-for outputs need.
#[derive(Debug)]
pub(super) struct OnnxFile {
    file: PathBuf,
    walker: Walker<BufReader<File>>,
    /// The model without its large weights.
    pub(super) model: pb::ModelProto,
    /// The large weights the graph needs, by name.
    pub(super) weights: BTreeMap<String, Weight>,
}

impl OnnxFile {
    /// Reads the graph behind `outputs`.
    pub(super) fn open(file: &Path, outputs: &[String]) -> Result<Self, ModelError> {
        let opened = File::open(file).map_err(|source| ModelError::Unreadable { file: file.into(), source })?;
        let mut reading = Reading { file, walker: Walker::new(BufReader::new(opened)) };
        let (model, weights) = reading.model()?;
        let mut onnx = Self { file: file.into(), walker: reading.walker, model, weights };
        onnx.keep_only(outputs)?;
        precision::check(file, &onnx.model, onnx.weights.values().map(|weight| &weight.header))?;
        onnx.read_small_weights()?;
        Ok(onnx)
    }

    /// One large weight with its data, checked to be as long as its shape says.
    pub(super) fn read_weight(&mut self, weight: &Weight) -> Result<pb::TensorProto, ModelError> {
        let tensor = match &weight.raw {
            Some(range) => {
                let mut tensor = weight.header.clone();
                tensor.raw_data = self.walker.read(range).map_err(|e| wire_error(&self.file, e))?;
                tensor
            }
            None => {
                let bytes = self.walker.read(&weight.whole).map_err(|e| wire_error(&self.file, e))?;
                pb::TensorProto::decode(&*bytes).map_err(|e| malformed(&self.file, e))?
            }
        };
        precision::check_length(&self.file, &tensor)?;
        Ok(tensor)
    }

    /// Bytes of raw data that a weight has in the file; `None` when the file uses the typed fields.
    pub(super) fn raw_bytes(weight: &Weight) -> Option<u64> {
        weight.raw.as_ref().map(|range| range.end - range.start)
    }

    /// Fills `buffer`, which is [`OnnxFile::raw_bytes`] long, with a weight's raw data.
    pub(super) fn read_raw(&mut self, weight: &Weight, buffer: &mut [u8]) -> Result<(), ModelError> {
        let start = weight.raw.as_ref().map_or(0, |range| range.start);
        self.walker.read_into(start, buffer).map_err(|error| wire_error(&self.file, error))
    }

    /// Takes out one initial value by name, with its data; an empty tensor when the graph has none of that name.
    pub(super) fn take_tensor(&mut self, name: &str) -> Result<pb::TensorProto, ModelError> {
        if let Some(weight) = self.weights.remove(name) {
            return self.read_weight(&weight);
        }
        let small = self.model.graph.iter().flat_map(|graph| &graph.initializer);
        Ok(small.into_iter().find(|tensor| tensor.name == name).cloned().unwrap_or_default())
    }

    fn read_small_weights(&mut self) -> Result<(), ModelError> {
        let small: Vec<String> = self
            .weights
            .iter()
            .filter(|(_, weight)| Self::raw_bytes(weight).is_none_or(|bytes| bytes <= SMALL_TENSOR_BYTES))
            .map(|(name, _)| name.clone())
            .collect();
        for name in small {
            let Some(weight) = self.weights.remove(&name) else { continue };
            let tensor = self.read_weight(&weight)?;
            if let Some(graph) = &mut self.model.graph {
                graph.initializer.push(tensor);
            }
        }
        Ok(())
    }

    /// Drops every node, input and weight that `outputs` do not depend on.
    fn keep_only(&mut self, outputs: &[String]) -> Result<(), ModelError> {
        let Some(graph) = &mut self.model.graph else {
            return Err(malformed(&self.file, "it holds no graph"));
        };
        check_outputs(&self.file, graph, outputs)?;
        let needed = needed_names(&graph.node, outputs);
        graph.node.retain(|node| node.output.iter().any(|name| needed.contains(name)));
        graph.input.retain(|input| needed.contains(&input.name) && !self.weights.contains_key(&input.name));
        let mut kept = Vec::new();
        for name in outputs {
            kept.extend(graph.output.iter().find(|output| output.name == *name).cloned());
        }
        graph.output = kept;
        self.weights.retain(|name, _| needed.contains(name));
        Ok(())
    }
}

fn check_outputs(file: &Path, graph: &pb::GraphProto, outputs: &[String]) -> Result<(), ModelError> {
    let offered: Vec<&str> = graph.output.iter().map(|output| output.name.as_str()).collect();
    match outputs.iter().find(|name| !offered.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => {
            Err(ModelError::MissingOutput { file: file.into(), name: name.clone(), offered: offered.join(", ") })
        }
    }
}

/// Every value name that `outputs` depend on, themselves included. Nodes stand in topological order (ONNX says so).
fn needed_names(nodes: &[pb::NodeProto], outputs: &[String]) -> BTreeSet<String> {
    let mut needed: BTreeSet<String> = outputs.iter().cloned().collect();
    for node in nodes.iter().rev() {
        if node.output.iter().any(|name| needed.contains(name)) {
            add_inputs(node, &mut needed);
        }
    }
    needed.remove("");
    needed
}

/// Adds what a node reads, including what the graphs inside it (branches of an `If`) read from outside.
fn add_inputs(node: &pb::NodeProto, needed: &mut BTreeSet<String>) {
    needed.extend(node.input.iter().cloned());
    for attribute in &node.attribute {
        for graph in attribute.g.iter().chain(&attribute.graphs) {
            needed.extend(graph.output.iter().map(|output| output.name.clone()));
            for inner in &graph.node {
                add_inputs(inner, needed);
            }
        }
    }
}

/// The first pass over a file.
struct Reading<'a> {
    file: &'a Path,
    walker: Walker<BufReader<File>>,
}

impl Reading<'_> {
    fn model(&mut self) -> Result<(pb::ModelProto, BTreeMap<String, Weight>), ModelError> {
        let mut rest = 0..self.walker.file_bytes().map_err(|e| self.wire(e))?;
        let mut rest_of_model = Vec::new();
        let mut graph = None;
        while let Some(field) = self.walker.next_field(&mut rest).map_err(|e| self.wire(e))? {
            match field.number {
                number::MODEL_GRAPH => graph = Some(self.graph(field.payload)?),
                number::MODEL_TRAINING => {}
                _ => rest_of_model.extend(self.read(&field.whole)?),
            }
        }
        let mut model = pb::ModelProto::decode(&*rest_of_model).map_err(|e| malformed(self.file, e))?;
        let Some((graph, weights)) = graph else {
            return Err(malformed(self.file, "it holds no graph"));
        };
        model.graph = Some(graph);
        Ok((model, weights))
    }

    fn graph(&mut self, mut rest: Range<u64>) -> Result<(pb::GraphProto, BTreeMap<String, Weight>), ModelError> {
        let mut rest_of_graph = Vec::new();
        let mut weights = BTreeMap::new();
        while let Some(field) = self.walker.next_field(&mut rest).map_err(|e| self.wire(e))? {
            if field.number == number::GRAPH_INITIALIZER {
                let weight = self.weight(field.payload)?;
                weights.insert(weight.header.name.clone(), weight);
            } else if !number::GRAPH_UNREAD.contains(&field.number) {
                rest_of_graph.extend(self.read(&field.whole)?);
            }
        }
        let graph = pb::GraphProto::decode(&*rest_of_graph).map_err(|e| malformed(self.file, e))?;
        Ok((graph, weights))
    }

    fn weight(&mut self, whole: Range<u64>) -> Result<Weight, ModelError> {
        let mut header = Vec::new();
        let mut raw = None;
        let mut rest = whole.clone();
        while let Some(field) = self.walker.next_field(&mut rest).map_err(|e| self.wire(e))? {
            if field.number == number::TENSOR_RAW_DATA {
                raw = (field.payload_bytes() > 0).then_some(field.payload);
            } else if !number::TENSOR_TYPED_DATA.contains(&field.number) {
                header.extend(self.read(&field.whole)?);
            }
        }
        let header = pb::TensorProto::decode(&*header).map_err(|e| malformed(self.file, e))?;
        Ok(Weight { header, whole, raw })
    }

    fn read(&mut self, range: &Range<u64>) -> Result<Vec<u8>, ModelError> {
        self.walker.read(range).map_err(|e| wire_error(self.file, e))
    }

    fn wire(&self, error: WireError) -> ModelError {
        wire_error(self.file, error)
    }
}

fn wire_error(file: &Path, error: WireError) -> ModelError {
    match error {
        WireError::Io(source) => ModelError::Unreadable { file: file.into(), source },
        damage @ (WireError::Overrun { .. } | WireError::NoField { .. }) => malformed(file, damage),
    }
}

fn malformed(file: &Path, cause: impl ToString) -> ModelError {
    ModelError::Malformed { file: file.into(), cause: cause.to_string() }
}
