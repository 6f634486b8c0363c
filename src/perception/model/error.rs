//! What can go wrong between a model file and its scores, each with the sentence a user reads.

use std::path::PathBuf;

use crate::domain::disposition::Disposition;

/// A model that could not be loaded or run. Every variant names the file.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The file is not there or may not be read. Fetching it again (`percept models fetch`) may help.
    #[error("cannot read model {}: {source}", file.display())]
    Unreadable {
        /// The model file.
        file: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The bytes are not what the file claims to be: truncated, damaged or another format. Fetch it again.
    #[error("model {} is damaged or not of the expected format: {cause}", file.display())]
    Malformed {
        /// The model file.
        file: PathBuf,
        /// Which part does not hold.
        cause: String,
    },
    /// The file could not be written: a full disk or a missing permission. Nothing half-written is left.
    #[error("cannot write model {}: {source}", file.display())]
    Unwritable {
        /// The model file.
        file: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The graph computes with quantised integers. Another file is needed: the float32 export of the same model.
    #[error("model {} is quantised ({what}): only float32 ONNX models give right results, take the float32 file", file.display())]
    Quantised {
        /// The model file.
        file: PathBuf,
        /// The operator or tensor that gives it away.
        what: String,
    },
    /// The graph computes with 16-bit floats. Another file is needed: the float32 export of the same model.
    #[error("model {} is in half precision ({what}): only float32 ONNX models can be run, take the float32 file", file.display())]
    HalfPrecision {
        /// The model file.
        file: PathBuf,
        /// The operator or tensor that gives it away.
        what: String,
    },
    /// Weights stand in a second file, which no hash covers. A single-file export is needed.
    #[error("model {} keeps tensor {tensor} in another file: only single-file ONNX models are loaded", file.display())]
    ExternalData {
        /// The model file.
        file: PathBuf,
        /// The tensor whose data is elsewhere.
        tensor: String,
    },
    /// The file has no output of that name: it is another model than the manifest says.
    #[error("model {} has no output {name} (it offers {offered})", file.display())]
    MissingOutput {
        /// The model file.
        file: PathBuf,
        /// The output that was asked for.
        name: String,
        /// The outputs the file has, joined by commas.
        offered: String,
    },
    /// The asked-for outputs need an input that the caller does not give.
    #[error("model {} needs the input {name}, which is not provided", file.display())]
    MissingInput {
        /// The model file.
        file: PathBuf,
        /// The input the graph needs.
        name: String,
    },
    /// The runtime does not know an operator or finds the shapes inconsistent. Another file or a newer percept is needed.
    #[error("model {} cannot be prepared: {cause}", file.display())]
    Unsupported {
        /// The model file.
        file: PathBuf,
        /// The runtime's own words.
        cause: String,
    },
    /// A run failed, or was given tensors of another size than the model was loaded for. A fault of the program.
    #[error("model {} failed to run: {cause}", file.display())]
    Run {
        /// The model file.
        file: PathBuf,
        /// What did not fit, or the runtime's own words.
        cause: String,
    },
}

impl ModelError {
    /// What the caller should do: go on without this model, or try once more later.
    pub fn disposition(&self) -> Disposition {
        match self {
            Self::Unwritable { .. } | Self::Unreadable { .. } => Disposition::Retry,
            Self::Run { .. } => Disposition::SetAside,
            Self::Malformed { .. }
            | Self::Quantised { .. }
            | Self::HalfPrecision { .. }
            | Self::ExternalData { .. }
            | Self::MissingOutput { .. }
            | Self::MissingInput { .. }
            | Self::Unsupported { .. } => Disposition::Degrade,
        }
    }
}
