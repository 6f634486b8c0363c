//! A buffer of cpal as domain samples.
//!
//! In: values in any of cpal's layouts. Out: the four layouts of the domain. Values keep their full scale; nothing is
//! resampled, mixed or clipped. DSD is no sound of this kind and gives nothing.

use super::offer::Format;
use crate::domain::reading::Samples;
use cpal::Data;
use cpal::SampleFormat;
use cpal::SizedSample;

/// The layout by cpal's name; `None` for those percept does not take.
#[expect(clippy::wildcard_enum_match_arm, reason = "cpal may add variants at any time")]
pub(super) fn format_of(format: SampleFormat) -> Option<Format> {
    match format {
        SampleFormat::I8 => Some(Format::I8),
        SampleFormat::I16 => Some(Format::I16),
        SampleFormat::I24 => Some(Format::I24),
        SampleFormat::I32 => Some(Format::I32),
        SampleFormat::U8 => Some(Format::U8),
        SampleFormat::U16 => Some(Format::U16),
        SampleFormat::U24 => Some(Format::U24),
        SampleFormat::U32 => Some(Format::U32),
        SampleFormat::F32 => Some(Format::F32),
        SampleFormat::F64 => Some(Format::F64),
        _ => None,
    }
}

/// cpal's name of a layout.
pub(super) fn cpal_format(format: Format) -> SampleFormat {
    match format {
        Format::I8 => SampleFormat::I8,
        Format::I16 => SampleFormat::I16,
        Format::I24 => SampleFormat::I24,
        Format::I32 => SampleFormat::I32,
        Format::U8 => SampleFormat::U8,
        Format::U16 => SampleFormat::U16,
        Format::U24 => SampleFormat::U24,
        Format::U32 => SampleFormat::U32,
        Format::F32 => SampleFormat::F32,
        Format::F64 => SampleFormat::F64,
    }
}

/// The values of a buffer; `None` for a layout percept does not take.
pub(super) fn samples(data: &Data) -> Option<Samples> {
    Some(match format_of(data.sample_format())? {
        Format::I8 => Samples::I16(map(data, from_i8)?),
        Format::U8 => Samples::I16(map(data, from_u8)?),
        Format::I16 => Samples::I16(map(data, |value: i16| value)?),
        Format::U16 => Samples::I16(map(data, from_u16)?),
        Format::I24 => Samples::I24(map(data, |value: cpal::I24| from_i24(value.inner()))?),
        Format::U24 => Samples::I24(map(data, |value: cpal::U24| from_u24(value.inner()))?),
        Format::I32 => Samples::I32(map(data, |value: i32| value)?),
        Format::U32 => Samples::I32(map(data, from_u32)?),
        Format::F32 => Samples::F32(map(data, |value: f32| value)?),
        Format::F64 => Samples::F32(map(data, from_f64)?),
    })
}

fn map<T: SizedSample, U>(data: &Data, convert: impl Fn(T) -> U) -> Option<Vec<U>> {
    Some(data.as_slice::<T>()?.iter().map(|value| convert(*value)).collect())
}

fn from_i8(value: i8) -> i16 {
    i16::from(value) << 8
}

fn from_u8(value: u8) -> i16 {
    (i16::from(value) - 0x80) << 8
}

fn from_u16(value: u16) -> i16 {
    (value ^ 0x8000).cast_signed()
}

fn from_u32(value: u32) -> i32 {
    (value ^ 0x8000_0000).cast_signed()
}

/// The low 24 bits with their sign: ALSA leaves the high byte undefined.
fn from_i24(value: i32) -> i32 {
    (value << 8) >> 8
}

fn from_u24(value: i32) -> i32 {
    from_i24(value ^ 0x80_0000)
}

#[expect(clippy::cast_possible_truncation, reason = "24 bits of precision suffice")]
fn from_f64(value: f64) -> f32 {
    value as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_layout_keeps_its_zero_and_its_full_scale() {
        assert_eq!([-128, 0, 127].map(from_i8), [-32_768, 0, 32_512]);
        assert_eq!([0, 128, 255].map(from_u8), [-32_768, 0, 32_512]);
        assert_eq!([0, 0x8000, 0xffff].map(from_u16), [i16::MIN, 0, i16::MAX]);
        assert_eq!([0, 0x8000_0000, u32::MAX].map(from_u32), [i32::MIN, 0, i32::MAX]);
        assert_eq!([0, 0x80_0000, 0xff_ffff].map(from_u24), [-8_388_608, 0, 8_388_607]);
        assert_eq!([-1.0, 0.0, 1.0].map(from_f64), [-1.0, 0.0, 1.0]);
    }

    #[test]
    fn the_undefined_high_byte_of_24_bits_is_no_part_of_the_value() {
        assert_eq!([0x00ff_ffff, 0x7fff_ffff, -1, 0x55_7fff_u32.cast_signed()].map(from_i24), [-1, -1, -1, 0x55_7fff]);
    }

    #[test]
    fn a_layout_has_one_name_on_either_side() {
        use Format::*;
        for format in [I8, I16, I24, I32, U8, U16, U24, U32, F32, F64] {
            assert_eq!(format_of(cpal_format(format)), Some(format));
        }
        assert_eq!(format_of(SampleFormat::DsdU8), None);
    }
}
