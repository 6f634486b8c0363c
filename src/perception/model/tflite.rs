//! Reads the parts of a TensorFlow Lite file that an import needs: tensors, operators, attached files.
//!
//! In: the bytes of a `.tflite` file (a flatbuffer, schema version 3). Out: borrowed views of its first subgraph.
//!
//! Every offset is checked before it is followed, so a truncated or lying file is an error and never a panic, and
//! nothing is allocated that is larger than the file itself. This reader interprets no operator and writes nothing.

use std::ops::Range;

/// Why a `.tflite` file could not be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TfliteError {
    /// The identifier `TFL3` is not at byte 4.
    #[error("not a TensorFlow Lite file (no TFL3 mark)")]
    NotTflite,
    /// An offset or length points outside the file.
    #[error("{what} at byte {at} reaches outside the file")]
    OutOfRange {
        /// What was being read.
        what: &'static str,
        /// Where in the file.
        at: usize,
    },
    /// A part that the format requires is absent.
    #[error("it has no {what}")]
    Missing {
        /// What is absent.
        what: &'static str,
    },
}

/// Element types of the tensors an import understands (numbers of the schema's `TensorType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ElementType {
    Float32,
    Int32,
    Int8,
    Other(u8),
}

/// One tensor of the subgraph.
#[derive(Clone, Debug)]
pub(super) struct TfliteTensor<'a> {
    pub(super) name: &'a str,
    pub(super) shape: Vec<usize>,
    pub(super) element: ElementType,
    /// Row-major little-endian data; empty for values computed at run time.
    pub(super) data: &'a [u8],
    /// One scale for the whole tensor, one per slice of [`TfliteTensor::channel_axis`], or none.
    pub(super) scales: Vec<f32>,
    pub(super) zero_points: Vec<i64>,
    pub(super) channel_axis: usize,
}

/// One operator of the subgraph.
#[derive(Clone, Debug)]
pub(super) struct TfliteOperator<'a> {
    /// Number of the schema's `BuiltinOperator`.
    pub(super) code: i32,
    pub(super) inputs: Vec<usize>,
    pub(super) outputs: Vec<usize>,
    pub(super) options: Option<Table<'a>>,
}

/// The first subgraph of a file.
#[derive(Debug)]
pub(super) struct Tflite<'a> {
    pub(super) tensors: Vec<TfliteTensor<'a>>,
    pub(super) operators: Vec<TfliteOperator<'a>>,
}

impl<'a> Tflite<'a> {
    pub(super) fn parse(file: &'a [u8]) -> Result<Self, TfliteError> {
        if file.get(4..8) != Some(b"TFL3") {
            return Err(TfliteError::NotTflite);
        }
        let model = Table::at(file, offset(file, 0, "root table")?)?;
        let codes = model.tables(1, "operator codes")?;
        let subgraphs = model.tables(2, "subgraphs")?;
        let buffers = model.tables(4, "buffers")?;
        let graph = subgraphs.first().ok_or(TfliteError::Missing { what: "subgraph" })?;
        let tensors =
            graph.tables(0, "tensors")?.iter().map(|table| tensor(table, &buffers)).collect::<Result<_, _>>()?;
        let operators =
            graph.tables(3, "operators")?.iter().map(|table| operator(table, &codes)).collect::<Result<_, _>>()?;
        Ok(Self { tensors, operators })
    }

    pub(super) fn tensor(&self, index: usize) -> Result<&TfliteTensor<'a>, TfliteError> {
        self.tensors.get(index).ok_or(TfliteError::Missing { what: "tensor that an operator names" })
    }
}

fn tensor<'a>(table: &Table<'a>, buffers: &[Table<'a>]) -> Result<TfliteTensor<'a>, TfliteError> {
    let element = match table.u8(1, 0)? {
        0 => ElementType::Float32,
        2 => ElementType::Int32,
        9 => ElementType::Int8,
        other => ElementType::Other(other),
    };
    let buffer = buffers
        .get(usize::try_from(table.u32(2, 0)?).unwrap_or(usize::MAX))
        .ok_or(TfliteError::Missing { what: "buffer that a tensor names" })?;
    let quantisation = table.table(4)?;
    let (scales, zero_points, axis) = match &quantisation {
        None => (Vec::new(), Vec::new(), 0),
        Some(table) => (table.f32s(2)?, table.i64s(3)?, table.i32(6, 0)?),
    };
    let shape = table.i32s(0)?.into_iter().map(|size| usize::try_from(size).unwrap_or(0)).collect();
    Ok(TfliteTensor {
        name: table.string(3)?,
        shape,
        element,
        data: buffer.bytes(0)?,
        scales,
        zero_points,
        channel_axis: usize::try_from(axis).unwrap_or(usize::MAX),
    })
}

fn operator<'a>(table: &Table<'a>, codes: &[Table<'a>]) -> Result<TfliteOperator<'a>, TfliteError> {
    let code = codes
        .get(usize::try_from(table.u32(0, 0)?).unwrap_or(usize::MAX))
        .ok_or(TfliteError::Missing { what: "operator code that an operator names" })?;
    // Codes above 127 stand only in the newer field, older files have only the older one.
    let code = i32::from(code.u8(0, 0)?).max(code.i32(3, 0)?);
    Ok(TfliteOperator {
        code,
        inputs: indices(table.i32s(1)?),
        outputs: indices(table.i32s(2)?),
        options: table.table(4)?,
    })
}

/// Tensor numbers; the −1 of an absent optional input becomes a number no file has.
fn indices(numbers: Vec<i32>) -> Vec<usize> {
    numbers.into_iter().map(|number| usize::try_from(number).unwrap_or(usize::MAX)).collect()
}

/// One table of the flatbuffer. Fields are named by their slot in the schema; an absent field is its default.
#[derive(Clone, Debug)]
pub(super) struct Table<'a> {
    file: &'a [u8],
    at: usize,
    slots: Range<usize>,
}

impl<'a> Table<'a> {
    fn at(file: &'a [u8], at: usize) -> Result<Self, TfliteError> {
        let outside = TfliteError::OutOfRange { what: "table", at };
        let back = i32::from_le_bytes(array(file, at, "table")?);
        let slots_at = i64::try_from(at).ok().and_then(|at| at.checked_sub(i64::from(back)));
        let Some(slots_at) = slots_at.and_then(|at| usize::try_from(at).ok()) else { return Err(outside) };
        let bytes = usize::from(u16::from_le_bytes(array(file, slots_at, "table layout")?));
        let slots = slots_at.saturating_add(4)..slots_at.saturating_add(bytes);
        if slots.end > file.len() { Err(outside) } else { Ok(Self { file, at, slots }) }
    }

    pub(super) fn u8(&self, slot: usize, default: u8) -> Result<u8, TfliteError> {
        self.scalar(slot).map(|value| value.map_or(default, u8::from_le_bytes))
    }

    pub(super) fn u32(&self, slot: usize, default: u32) -> Result<u32, TfliteError> {
        self.scalar(slot).map(|value| value.map_or(default, u32::from_le_bytes))
    }

    pub(super) fn i32(&self, slot: usize, default: i32) -> Result<i32, TfliteError> {
        self.scalar(slot).map(|value| value.map_or(default, i32::from_le_bytes))
    }

    fn scalar<const N: usize>(&self, slot: usize) -> Result<Option<[u8; N]>, TfliteError> {
        self.field(slot)?.map(|at| array(self.file, at, "field")).transpose()
    }

    fn table(&self, slot: usize) -> Result<Option<Table<'a>>, TfliteError> {
        let Some(at) = self.field(slot)? else { return Ok(None) };
        Table::at(self.file, offset(self.file, at, "table")?).map(Some)
    }

    fn tables(&self, slot: usize, what: &'static str) -> Result<Vec<Table<'a>>, TfliteError> {
        let Some(range) = self.vector(slot, 4)? else { return Err(TfliteError::Missing { what }) };
        range.step_by(4).map(|at| Table::at(self.file, offset(self.file, at, what)?)).collect()
    }

    fn string(&self, slot: usize) -> Result<&'a str, TfliteError> {
        Ok(std::str::from_utf8(self.bytes(slot)?).unwrap_or_default())
    }

    fn bytes(&self, slot: usize) -> Result<&'a [u8], TfliteError> {
        Ok(self.vector(slot, 1)?.and_then(|range| self.file.get(range)).unwrap_or_default())
    }

    fn i32s(&self, slot: usize) -> Result<Vec<i32>, TfliteError> {
        self.numbers(slot, i32::from_le_bytes)
    }

    fn f32s(&self, slot: usize) -> Result<Vec<f32>, TfliteError> {
        self.numbers(slot, f32::from_le_bytes)
    }

    fn i64s(&self, slot: usize) -> Result<Vec<i64>, TfliteError> {
        self.numbers(slot, i64::from_le_bytes)
    }

    fn numbers<T, const N: usize>(&self, slot: usize, read: fn([u8; N]) -> T) -> Result<Vec<T>, TfliteError> {
        let Some(range) = self.vector(slot, N)? else { return Ok(Vec::new()) };
        range.step_by(N).map(|at| array(self.file, at, "number").map(read)).collect()
    }

    /// The bytes of a vector's elements, known to lie inside the file.
    fn vector(&self, slot: usize, element_bytes: usize) -> Result<Option<Range<usize>>, TfliteError> {
        let Some(field) = self.field(slot)? else { return Ok(None) };
        let at = offset(self.file, field, "vector")?;
        let length = u32::from_le_bytes(array(self.file, at, "vector length")?);
        let end = usize::try_from(length)
            .ok()
            .and_then(|length| length.checked_mul(element_bytes))
            .and_then(|bytes| bytes.checked_add(at + 4));
        match end {
            Some(end) if end <= self.file.len() => Ok(Some(at + 4..end)),
            _ => Err(TfliteError::OutOfRange { what: "vector", at }),
        }
    }

    /// Where the field in `slot` stands; `None` when the file leaves it at its default.
    fn field(&self, slot: usize) -> Result<Option<usize>, TfliteError> {
        let at = self.slots.start + 2 * slot;
        if at + 2 > self.slots.end {
            return Ok(None);
        }
        let forward = usize::from(u16::from_le_bytes(array(self.file, at, "table layout")?));
        Ok((forward > 0).then_some(self.at + forward))
    }
}

/// Follows the relative offset that stands at `at`.
fn offset(file: &[u8], at: usize, what: &'static str) -> Result<usize, TfliteError> {
    let forward = u32::from_le_bytes(array(file, at, what)?);
    match usize::try_from(forward).ok().and_then(|forward| forward.checked_add(at)) {
        Some(target) if target < file.len() => Ok(target),
        _ => Err(TfliteError::OutOfRange { what, at }),
    }
}

fn array<const N: usize>(file: &[u8], at: usize, what: &'static str) -> Result<[u8; N], TfliteError> {
    at.checked_add(N)
        .and_then(|end| file.get(at..end))
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or(TfliteError::OutOfRange { what, at })
}

/// The first file attached to a model: metadata writers append an uncompressed zip archive to the flatbuffer.
///
/// Returns `None` when nothing is attached, or when what is attached is compressed.
pub(super) fn attached_file(file: &[u8]) -> Option<&[u8]> {
    const DIRECTORY_END: &[u8] = b"PK\x05\x06";
    const DIRECTORY_ENTRY: &[u8] = b"PK\x01\x02";
    const LOCAL_HEADER: &[u8] = b"PK\x03\x04";
    let end = file.len().checked_sub(22)?;
    let u16_at = |at: usize| array(file, at, "zip").ok().map(u16::from_le_bytes).map(usize::from);
    let u32_at = |at: usize| array(file, at, "zip").ok().map(u32::from_le_bytes).and_then(|n| usize::try_from(n).ok());
    let marked = |at: usize, mark: &[u8]| at.checked_add(4).and_then(|end| file.get(at..end)) == Some(mark);
    let entry = u32_at(end + 16).filter(|_| marked(end, DIRECTORY_END))?;
    let header = u32_at(entry.checked_add(42)?).filter(|_| marked(entry, DIRECTORY_ENTRY))?;
    let bytes = u32_at(entry + 24)?;
    let stored = u16_at(entry + 10)? == 0 && marked(header, LOCAL_HEADER);
    let start = header.checked_add(30)?.checked_add(u16_at(header + 26)?)?.checked_add(u16_at(header + 28)?)?;
    file.get(start..start.checked_add(bytes)?).filter(|_| stored)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_tflite_file_are_refused() {
        for bytes in [&b""[..], b"TFL3", b"\x08\0\0\0TFL2\0\0\0\0", b"PK\x03\x04PK\x03\x04"] {
            assert_eq!(Tflite::parse(bytes).unwrap_err(), TfliteError::NotTflite);
        }
    }

    #[test]
    fn a_root_offset_outside_the_file_is_refused() {
        let error = Tflite::parse(b"\xff\xff\xff\x7fTFL3\0\0\0\0").unwrap_err();

        assert_eq!(error, TfliteError::OutOfRange { what: "root table", at: 0 });
    }

    #[test]
    fn a_table_whose_layout_lies_before_the_file_is_refused() {
        let error = Tflite::parse(b"\x08\0\0\0TFL3\xff\xff\xff\x7f\0\0\0\0").unwrap_err();

        assert_eq!(error, TfliteError::OutOfRange { what: "table", at: 8 });
    }

    #[test]
    fn a_model_without_subgraphs_is_refused() {
        // Root table at 16, its layout at 8 with no slots at all.
        let error = Tflite::parse(b"\x10\0\0\0TFL3\x04\0\x04\0\0\0\0\0\x08\0\0\0").unwrap_err();

        assert_eq!(error, TfliteError::Missing { what: "operator codes" });
    }

    #[test]
    fn nothing_attached_is_not_an_error() {
        assert_eq!(attached_file(b""), None);
        assert_eq!(attached_file(&[0; 64]), None);
    }
}
