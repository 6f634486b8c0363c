//! The small surface every model is used through: load named outputs at fixed shapes, then run.
//!
//! In: a model file, the inputs with their concrete shapes, the names of the wanted outputs.
//! Out: float32 values, one vector per named output, in the order asked for.
//!
//! [`TractRuntime`](crate::perception::model::TractRuntime) takes any float32 file,
//! [`YamnetRuntime`](crate::perception::model::YamnetRuntime) one file in less time. Nothing of the library behind
//! them shows here, since another may take its place.

use std::path::Path;

use crate::perception::model::ModelError;

/// The element type of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// 32-bit float: pictures, log-mel patches.
    F32,
    /// 64-bit integer: token ids and attention masks.
    I64,
}

/// One input of a model, at the only shape it will ever be given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputSpec {
    /// The name the file uses.
    pub name: String,
    /// Concrete sizes, outermost first, e.g. `[1, 3, 224, 224]`.
    pub shape: Vec<usize>,
    /// The element type.
    pub element: Element,
}

impl InputSpec {
    /// A float32 input.
    pub fn f32(name: &str, shape: &[usize]) -> Self {
        Self { name: name.into(), shape: shape.into(), element: Element::F32 }
    }

    /// A 64-bit integer input.
    pub fn i64(name: &str, shape: &[usize]) -> Self {
        Self { name: name.into(), shape: shape.into(), element: Element::I64 }
    }
}

/// Which part of a model file to load.
///
/// Only what the named outputs need is read, so that one tower of a two-tower CLIP file costs no memory for the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelSpec {
    /// The inputs, in the order [`Model::run`] takes them. An input the outputs do not need is an error.
    pub inputs: Vec<InputSpec>,
    /// The outputs, in the order [`Model::run`] returns them; all are float32.
    pub outputs: Vec<String>,
}

/// The values of one input, row-major, as many as its [`InputSpec::shape`] has elements.
#[derive(Clone, Copy, Debug)]
pub enum Values<'a> {
    /// For an [`Element::F32`] input.
    F32(&'a [f32]),
    /// For an [`Element::I64`] input.
    I64(&'a [i64]),
}

/// The values of one output, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// Sizes, outermost first.
    pub shape: Vec<usize>,
    /// As many values as the shape has elements.
    pub values: Vec<f32>,
}

/// A loaded model. Runs on the calling thread only, and gives equal results for equal inputs.
pub trait Model: Send {
    /// Runs the model once.
    ///
    /// `inputs` are in the order of [`ModelSpec::inputs`], the result in the order of [`ModelSpec::outputs`].
    ///
    /// # Errors
    /// [`ModelError::Run`] when the number, type or length of the inputs is not what the model was loaded for.
    fn run(&mut self, inputs: &[Values<'_>]) -> Result<Vec<Output>, ModelError>;

    /// The text the file carries under `key` in its ONNX metadata, such as the names of its classes.
    fn metadata(&self, key: &str) -> Option<&str> {
        let _ = key;
        None
    }
}

/// Something that can load models.
pub trait Runtime: Send + Sync {
    /// Loads what `spec` names of the ONNX file `file`.
    ///
    /// # Errors
    /// Every [`ModelError`] but [`ModelError::Run`]; the file is only read.
    fn load(&self, file: &Path, spec: &ModelSpec) -> Result<Box<dyn Model>, ModelError>;
}
