//! Builds percept's float32 YAMNet from Google's published `.tflite` file.
//!
//! In: the bytes of `yamnet.tflite` (int8 weights with one scale per channel). Out: an ONNX file with float32 weights,
//! the class names inside it, and the constants of the front end for whoever computes log-mel frames.
//!
//! The integer graph's rounding of activations is left behind; its weights, strides, padding and activation are taken
//! from the file as they stand. The front end of the file (framing, spectrum, mel) is not translated:
//! [`perception::log_mel`](crate::perception) computes it, and the mel matrix is handed out to check it against.

use std::io::Write;
use std::path::Path;

use prost::Message;

use crate::perception::model::ModelError;
use crate::perception::model::onnx_build::GraphBuilder;
use crate::perception::model::runtime::InputSpec;
use crate::perception::model::runtime::ModelSpec;
use crate::perception::model::tflite::ElementType;
use crate::perception::model::tflite::Table;
use crate::perception::model::tflite::Tflite;
use crate::perception::model::tflite::TfliteError;
use crate::perception::model::tflite::TfliteOperator;
use crate::perception::model::tflite::TfliteTensor;
use crate::perception::model::tflite::attached_file;

/// Name of the ONNX input: log-mel patches, `[windows, 96, 64]`.
pub const INPUT: &str = "log_mel";
/// Name of the ONNX output with a score of 0 to 1 for each class, `[windows, 521]`.
pub const SCORES: &str = "scores";
/// Name of the ONNX output with the embedding (all values ≥ 0, not of unit length), `[windows, 1024]`.
pub const EMBEDDING: &str = "embedding";
/// Key under which the ONNX file carries the class names, one per line, in the order of the scores.
pub const CLASS_NAMES: &str = "percept.classes";

/// Frames of a patch.
pub const PATCH_FRAMES: usize = 96;
/// Mel bands of a frame.
pub const MEL_BANDS: usize = 64;
/// Classes YAMNet tells apart.
pub const CLASSES: usize = 521;
/// Values of an embedding.
pub const EMBEDDING_VALUES: usize = 1024;
/// Bins of the 512-point spectrum the mel matrix is applied to.
pub const SPECTRUM_BINS: usize = 257;

/// Builtin operator numbers of the TensorFlow Lite schema.
mod code {
    pub(super) const CONV_2D: i32 = 3;
    pub(super) const DEPTHWISE_CONV_2D: i32 = 4;
    pub(super) const FULLY_CONNECTED: i32 = 9;
    pub(super) const LOGISTIC: i32 = 14;
    pub(super) const MEAN: i32 = 40;
}

impl ModelSpec {
    /// The imported YAMNet for `windows` windows a run: one input, then scores and embedding.
    pub fn yamnet(windows: usize) -> Self {
        Self {
            inputs: vec![InputSpec::f32(INPUT, &[windows, PATCH_FRAMES, MEL_BANDS])],
            outputs: vec![SCORES.into(), EMBEDDING.into()],
        }
    }
}

/// Why a `.tflite` file could not be imported as YAMNet.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The bytes are no readable TensorFlow Lite file. Fetch it again.
    #[error(transparent)]
    Unreadable(#[from] TfliteError),
    /// A readable file, but not the YAMNet that the manifest names.
    #[error("it is not the YAMNet audio classifier: {0}")]
    NotYamnet(String),
}

/// YAMNet as percept runs it.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedYamnet {
    /// The ONNX file, float32, opset 17; equal bytes for equal input.
    pub onnx: Vec<u8>,
    /// Names of the classes, in the order of the scores.
    pub class_names: Vec<String>,
    /// The mel matrix of the published front end: [`MEL_BANDS`] rows of [`SPECTRUM_BINS`] weights.
    pub mel_matrix: Vec<f32>,
    /// What the published front end adds to each mel band before the logarithm.
    pub log_offset: f32,
}

/// Imports the bytes of `yamnet.tflite`.
///
/// # Errors
/// [`ImportError::Unreadable`] for damaged bytes, [`ImportError::NotYamnet`] for another model.
pub fn import_yamnet(tflite: &[u8]) -> Result<ImportedYamnet, ImportError> {
    let file = Tflite::parse(tflite)?;
    let class_names = class_names(tflite)?;
    let (mel_matrix, log_offset) = front_end(&file)?;
    let onnx = network(&file, &class_names)?;
    Ok(ImportedYamnet { onnx, class_names, mel_matrix, log_offset })
}

/// Imports the file `tflite` and writes the result to `onnx`, which is complete or absent at any moment.
///
/// # Errors
/// [`ModelError`] naming the file that could not be read, imported or written.
pub fn import_yamnet_file(tflite: &Path, onnx: &Path) -> Result<(), ModelError> {
    let bytes = std::fs::read(tflite).map_err(|source| ModelError::Unreadable { file: tflite.into(), source })?;
    let imported = import_yamnet(&bytes)
        .map_err(|error| ModelError::Malformed { file: tflite.into(), cause: error.to_string() })?;
    write_whole(onnx, &imported.onnx).map_err(|source| ModelError::Unwritable { file: onnx.into(), source })
}

/// Writes beside the target, makes it durable, then renames: a power cut leaves the old file or the new one.
fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    std::fs::File::open(folder)?.sync_all()
}

/// The class names: one per line in the text file attached to the model.
fn class_names(tflite: &[u8]) -> Result<Vec<String>, ImportError> {
    let text = attached_file(tflite).and_then(|bytes| std::str::from_utf8(bytes).ok());
    let names: Vec<String> = text.unwrap_or_default().lines().map(str::to_owned).collect();
    if names.len() == CLASSES {
        Ok(names)
    } else {
        Err(ImportError::NotYamnet(format!("{} class names are attached instead of {CLASSES}", names.len())))
    }
}

/// The mel matrix and the offset of the logarithm: weights and bias of the first dense operator.
fn front_end(file: &Tflite<'_>) -> Result<(Vec<f32>, f32), ImportError> {
    let dense = file
        .operators
        .iter()
        .find(|operator| operator.code == code::FULLY_CONNECTED)
        .ok_or_else(|| ImportError::NotYamnet("it has no mel matrix".into()))?;
    let matrix = input(file, dense, 1)?;
    expect_shape(matrix, &[MEL_BANDS, SPECTRUM_BINS])?;
    let offsets = dequantise(input(file, dense, 2)?)?;
    match offsets.first() {
        Some(first) if offsets.iter().all(|offset| offset == first) => Ok((dequantise(matrix)?, *first)),
        _ => Err(ImportError::NotYamnet("its logarithm has no single offset".into())),
    }
}

/// Translates the operators from the first convolution to the scores.
fn network(file: &Tflite<'_>, class_names: &[String]) -> Result<Vec<u8>, ImportError> {
    let start = file.operators.iter().position(|operator| operator.code == code::CONV_2D);
    let operators = file.operators.get(start.unwrap_or(usize::MAX)..).unwrap_or_default();
    let mut network = Network {
        file,
        builder: GraphBuilder::new("yamnet"),
        value: INPUT.into(),
        height: PATCH_FRAMES,
        width: MEL_BANDS,
        channels: 1,
    };
    network.builder.input(INPUT, &[PATCH_FRAMES, MEL_BANDS]);
    network.value = network.builder.insert_axis(INPUT, 1);
    let mut produced = None;
    for operator in operators {
        if let Some(output) =
            operator.outputs.first().filter(|_| produced.is_none() || operator.inputs.first() == produced.as_ref())
        {
            produced = Some(*output);
        } else {
            return Err(ImportError::NotYamnet("its operators are no chain".into()));
        }
        if network.add(operator)? {
            return Ok(network.finish(class_names));
        }
    }
    Err(ImportError::NotYamnet("its network does not end in scores".into()))
}

/// The chain built so far and the size of the value at its end.
struct Network<'a> {
    file: &'a Tflite<'a>,
    builder: GraphBuilder,
    value: String,
    height: usize,
    width: usize,
    channels: usize,
}

impl Network<'_> {
    /// Appends one operator; true when it was the last.
    fn add(&mut self, operator: &TfliteOperator<'_>) -> Result<bool, ImportError> {
        match operator.code {
            code::CONV_2D => self.convolution(operator, ConvolutionOptions::standard(operator)?)?,
            code::DEPTHWISE_CONV_2D => self.convolution(operator, ConvolutionOptions::depthwise(operator)?)?,
            code::MEAN => self.mean()?,
            code::FULLY_CONNECTED => self.dense(operator)?,
            code::LOGISTIC => {
                self.builder.sigmoid(&self.value, SCORES);
                return Ok(true);
            }
            other => return Err(ImportError::NotYamnet(format!("its network uses operator {other}"))),
        }
        Ok(false)
    }

    fn convolution(&mut self, operator: &TfliteOperator<'_>, options: ConvolutionOptions) -> Result<(), ImportError> {
        let kernel = input(self.file, operator, 1)?;
        let &[first, kernel_height, kernel_width, last] = kernel.shape.as_slice() else {
            return Err(ImportError::NotYamnet(format!("{} is no kernel of four axes", kernel.name)));
        };
        let (inputs, outputs) = if options.depthwise { (last, last) } else { (last, first) };
        if inputs != self.channels || (options.depthwise && first != 1) {
            return Err(ImportError::NotYamnet(format!(
                "{} does not fit the {} channels before it",
                kernel.name, self.channels
            )));
        }
        let taps = kernel_height * kernel_width;
        let weights = dequantise(kernel)?;
        let weights = if options.depthwise {
            transpose(&weights, taps, last)
        } else {
            per_filter_channels_first(&weights, taps, last)
        };
        let bias = dequantise(input(self.file, operator, 2)?)?;
        if bias.len() != outputs {
            return Err(ImportError::NotYamnet(format!("{} has not one bias per channel", kernel.name)));
        }
        let (height, above, below) = same_padding(self.height, kernel_height, options.stride);
        let (width, left, right) = same_padding(self.width, kernel_width, options.stride);
        let shape = [outputs, if options.depthwise { 1 } else { inputs }, kernel_height, kernel_width];
        let weights = self.builder.weight("kernel", &shape, &weights);
        let bias = self.builder.weight("bias", &[outputs], &bias);
        let group = if options.depthwise { outputs } else { 1 };
        self.value =
            self.builder.convolution(&self.value, &weights, &bias, options.stride, [above, left, below, right], group);
        self.value = self.builder.clip(&self.value, 0.0, 6.0);
        (self.height, self.width, self.channels) = (height, width, outputs);
        Ok(())
    }

    fn mean(&mut self) -> Result<(), ImportError> {
        if self.channels != EMBEDDING_VALUES {
            return Err(ImportError::NotYamnet(format!("its embedding has {} values", self.channels)));
        }
        self.builder.spatial_mean(&self.value, EMBEDDING);
        self.value = EMBEDDING.into();
        Ok(())
    }

    fn dense(&mut self, operator: &TfliteOperator<'_>) -> Result<(), ImportError> {
        let matrix = input(self.file, operator, 1)?;
        expect_shape(matrix, &[CLASSES, EMBEDDING_VALUES])?;
        let bias = input(self.file, operator, 2)?;
        expect_shape(bias, &[CLASSES])?;
        let weights = self.builder.weight("classes", &[CLASSES, EMBEDDING_VALUES], &dequantise(matrix)?);
        let bias = self.builder.weight("bias", &[CLASSES], &dequantise(bias)?);
        self.value = self.builder.dense(&self.value, &weights, &bias);
        Ok(())
    }

    fn finish(mut self, class_names: &[String]) -> Vec<u8> {
        self.builder.output(SCORES, &[CLASSES]);
        self.builder.output(EMBEDDING, &[EMBEDDING_VALUES]);
        self.builder.metadata(CLASS_NAMES, &class_names.join("\n"));
        self.builder.finish().encode_to_vec()
    }
}

/// The options of a convolution that change its result.
struct ConvolutionOptions {
    depthwise: bool,
    stride: usize,
}

impl ConvolutionOptions {
    /// `Conv2DOptions`: padding, stride_w, stride_h, activation, dilations.
    fn standard(operator: &TfliteOperator<'_>) -> Result<Self, ImportError> {
        Self::read(operator, false, [3, 4, 5])
    }

    /// `DepthwiseConv2DOptions` has the depth multiplier before the activation.
    fn depthwise(operator: &TfliteOperator<'_>) -> Result<Self, ImportError> {
        Self::read(operator, true, [4, 5, 6])
    }

    fn read(operator: &TfliteOperator<'_>, depthwise: bool, slots: [usize; 3]) -> Result<Self, ImportError> {
        const SAME: u8 = 0;
        const RELU6: u8 = 3;
        let missing = || ImportError::NotYamnet("a convolution has no options".into());
        let options: &Table<'_> = operator.options.as_ref().ok_or_else(missing)?;
        let [activation, dilation_width, dilation_height] = slots;
        let strides = (options.i32(1, 0)?, options.i32(2, 0)?);
        let dilations = (options.i32(dilation_width, 1)?, options.i32(dilation_height, 1)?);
        let fits = options.u8(0, SAME)? == SAME
            && options.u8(activation, 0)? == RELU6
            && dilations == (1, 1)
            && strides.0 == strides.1;
        match usize::try_from(strides.0) {
            Ok(stride @ 1..=2) if fits => Ok(Self { depthwise, stride }),
            _ => Err(ImportError::NotYamnet("a convolution has options YAMNet does not use".into())),
        }
    }
}

/// Output size and padding before and after, as TensorFlow's "same" has it: the odd one goes after.
fn same_padding(size: usize, kernel: usize, stride: usize) -> (usize, usize, usize) {
    let output = size.div_ceil(stride);
    let padding = ((output - 1) * stride + kernel).saturating_sub(size);
    (output, padding / 2, padding - padding / 2)
}

fn input<'a>(
    file: &'a Tflite<'_>,
    operator: &TfliteOperator<'_>,
    position: usize,
) -> Result<&'a TfliteTensor<'a>, ImportError> {
    let index = operator.inputs.get(position).copied().unwrap_or(usize::MAX);
    Ok(file.tensor(index)?)
}

fn expect_shape(tensor: &TfliteTensor<'_>, shape: &[usize]) -> Result<(), ImportError> {
    if tensor.shape == shape {
        Ok(())
    } else {
        Err(ImportError::NotYamnet(format!("{} has shape {:?} instead of {shape:?}", tensor.name, tensor.shape)))
    }
}

/// The tensor's real values, row-major: scale × (integer − zero point), with the scale of each value's channel.
fn dequantise(tensor: &TfliteTensor<'_>) -> Result<Vec<f32>, ImportError> {
    let lies =
        || ImportError::NotYamnet(format!("{} is not as long as its shape {:?} says", tensor.name, tensor.shape));
    let mut elements = 1_usize;
    for size in &tensor.shape {
        elements = elements.checked_mul(*size).ok_or_else(lies)?;
    }
    let integers: Vec<i32> = match tensor.element {
        ElementType::Float32 => {
            let values: Vec<f32> = little_endian(tensor.data, f32::from_le_bytes);
            return if values.len() == elements && tensor.data.len() == 4 * elements {
                Ok(values)
            } else {
                Err(lies())
            };
        }
        ElementType::Int8 => little_endian(tensor.data, |[byte]: [u8; 1]| i32::from(byte.cast_signed())),
        ElementType::Int32 => little_endian(tensor.data, i32::from_le_bytes),
        ElementType::Other(number) => {
            return Err(ImportError::NotYamnet(format!("{} has element type {number}", tensor.name)));
        }
    };
    if integers.len() != elements || elements == 0 {
        return Err(lies());
    }
    scale(tensor, &integers)
}

fn scale(tensor: &TfliteTensor<'_>, integers: &[i32]) -> Result<Vec<f32>, ImportError> {
    let unscaled = || ImportError::NotYamnet(format!("{} has not one scale per channel", tensor.name));
    if tensor.scales.is_empty() || tensor.zero_points.iter().any(|zero| *zero != 0) {
        return Err(unscaled());
    }
    let channels =
        if tensor.scales.len() == 1 { 1 } else { *tensor.shape.get(tensor.channel_axis).ok_or_else(unscaled)? };
    if channels != tensor.scales.len() {
        return Err(unscaled());
    }
    let inner: usize = if channels == 1 { 1 } else { tensor.shape.iter().skip(tensor.channel_axis + 1).product() };
    // Bias integers reach 2^24 and beyond, so the product is taken in f64 and rounded once.
    #[expect(clippy::cast_possible_truncation, reason = "the result is a float32 weight by definition")]
    let real = |(index, integer): (usize, &i32)| {
        (f64::from(*integer) * f64::from(tensor.scales[index / inner % channels])) as f32
    };
    Ok(integers.iter().enumerate().map(real).collect())
}

fn little_endian<T, const N: usize>(bytes: &[u8], read: impl Fn([u8; N]) -> T) -> Vec<T> {
    let (whole, _) = bytes.as_chunks::<N>();
    whole.iter().map(|chunk| read(*chunk)).collect()
}

/// A `rows` × `columns` matrix, columns first.
fn transpose(values: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    (0..columns).flat_map(|column| (0..rows).map(move |row| values[row * columns + column])).collect()
}

/// Kernels of `[taps, channels]` each become `[channels, taps]`.
fn per_filter_channels_first(values: &[f32], taps: usize, channels: usize) -> Vec<f32> {
    values.chunks_exact(taps * channels).flat_map(|filter| transpose(filter, taps, channels)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_padding_puts_the_odd_one_after() {
        assert_eq!(same_padding(96, 3, 2), (48, 0, 1));
        assert_eq!(same_padding(48, 3, 1), (48, 1, 1));
        assert_eq!(same_padding(48, 1, 1), (48, 0, 0));
        assert_eq!(same_padding(3, 3, 2), (2, 1, 1));
    }

    #[test]
    fn each_channel_has_its_own_scale() {
        let tensor = TfliteTensor {
            name: "kernel",
            shape: vec![1, 1, 2, 2],
            element: ElementType::Int8,
            data: &[1, 0xff, 127, 0x80],
            scales: vec![0.5, 2.0],
            zero_points: vec![0, 0],
            channel_axis: 3,
        };

        assert_eq!(dequantise(&tensor).unwrap(), [0.5, -2.0, 63.5, -256.0]);
    }

    #[test]
    fn a_tensor_shorter_than_its_shape_is_refused() {
        let tensor = TfliteTensor {
            name: "kernel",
            shape: vec![usize::MAX, 2],
            element: ElementType::Int8,
            data: &[1, 2],
            scales: vec![1.0],
            zero_points: vec![],
            channel_axis: 0,
        };

        assert!(dequantise(&tensor).unwrap_err().to_string().contains("not as long as its shape"));
    }
}
