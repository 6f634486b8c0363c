//! Whether a JPEG's picture data is all there.
//!
//! In: the bytes of a JPEG up to its end marker. Out: yes, or a [`PixelError`]: a frame that lost bytes on the way
//! (dropped USB packets are the commonest fault of cameras) still ends with its end marker, and decoders fill the rest with
//! grey without a word. So the Huffman codes of every block are walked and counted, without decoding any picture.
//! Only baseline JPEG is walked (ITU-T T.81, F.2), which is what cameras make; others are left to the decoder.

use crate::perception::jpeg_end::Segments;
use crate::perception::pixels::PixelError;

/// Coefficients of a block.
const BLOCK: u32 = 64;

/// Checks that each scan holds as many blocks as the picture has.
///
/// # Errors
/// [`PixelError::Truncated`] if blocks are missing, [`PixelError::Damaged`] for codes that do not exist.
pub fn check(bytes: &[u8]) -> Result<(), PixelError> {
    let mut picture = Picture::default();
    for segment in Segments::new(bytes) {
        let segment = segment?;
        match segment.marker {
            0xC0 | 0xC1 => picture.read_frame(segment.body)?,
            0xC2 | 0xC3 | 0xC5..=0xC7 | 0xC9..=0xCB | 0xCD..=0xCF => return Ok(()),
            0xC4 => picture.read_tables(segment.body)?,
            0xDD => picture.restart_interval = number(segment.body, 0)?,
            0xDA => picture.check_scan(segment.body, segment.scan)?,
            _ => {}
        }
    }
    Ok(())
}

#[derive(Default)]
struct Picture {
    width: u32,
    height: u32,
    components: Vec<Component>,
    /// DC tables 0–3, then AC tables 0–3.
    tables: [Option<Table>; 8],
    restart_interval: u32,
}

#[derive(Clone, Copy)]
struct Component {
    id: u8,
    horizontal: u32,
    vertical: u32,
}

/// For each 16 bits that may come next: the length of the code they begin with (0: none) and its symbol.
struct Table(Vec<(u8, u8)>);

impl Picture {
    fn read_frame(&mut self, body: &[u8]) -> Result<(), PixelError> {
        (self.height, self.width) = (number(body, 1)?, number(body, 3)?);
        self.components = body
            .get(6..)
            .unwrap_or_default()
            .chunks_exact(3)
            .map(|part| Component {
                id: part[0],
                horizontal: u32::from(part[1] >> 4).clamp(1, 4),
                vertical: u32::from(part[1] & 15).clamp(1, 4),
            })
            .collect();
        Ok(())
    }

    fn read_tables(&mut self, mut body: &[u8]) -> Result<(), PixelError> {
        while let [class, rest @ ..] = body {
            let counts = rest.get(..16).ok_or_else(damaged_table)?;
            let symbol_count: usize = counts.iter().map(|&count| usize::from(count)).sum();
            let symbols = rest.get(16..16 + symbol_count).ok_or_else(damaged_table)?;
            let slot = usize::from(class >> 4 & 1) * 4 + usize::from(class & 3);
            self.tables[slot] = Some(Table::new(counts, symbols)?);
            body = &rest[16 + symbol_count..];
        }
        Ok(())
    }

    fn check_scan(&self, header: &[u8], data: &[u8]) -> Result<(), PixelError> {
        let mut blocks = Vec::new();
        for part in
            header.get(1..).unwrap_or_default().chunks_exact(2).take(usize::from(header.first().copied().unwrap_or(0)))
        {
            let Some(component) = self.components.iter().find(|component| component.id == part[0]) else { continue };
            let tables = (&self.tables[usize::from(part[1] >> 4 & 3)], &self.tables[4 + usize::from(part[1] & 3)]);
            // Without tables of its own an MJPEG frame means the standard ones: the decoder knows them.
            let (Some(dc), Some(ac)) = tables else { return Ok(()) };
            blocks.push((*component, dc, ac));
        }
        let (unit_count, is_interleaved) =
            self.units(&blocks.iter().map(|(component, ..)| *component).collect::<Vec<_>>());
        let mut bits = Bits { data, at: 0, buffer: 0, count: 0 };
        for unit in 0..unit_count {
            if self.restart_interval > 0 && unit > 0 && unit % u64::from(self.restart_interval) == 0 {
                bits.restart()?;
            }
            for (component, dc, ac) in &blocks {
                let repeats = if is_interleaved { component.horizontal * component.vertical } else { 1 };
                for _ in 0..repeats {
                    bits.skip_block(dc, ac)?;
                }
            }
        }
        Ok(())
    }

    /// How many units (MCUs) a scan of these components has, and whether a unit holds several blocks.
    fn units(&self, scanned: &[Component]) -> (u64, bool) {
        let most = |side: fn(&Component) -> u32| self.components.iter().map(side).max().unwrap_or(1);
        let (most_h, most_v) = (most(|component| component.horizontal), most(|component| component.vertical));
        let count = |across: u32, down: u32| u64::from(across) * u64::from(down);
        match scanned {
            [one] => {
                let (width, height) = (self.width * one.horizontal, self.height * one.vertical);
                (count(width.div_ceil(most_h * 8), height.div_ceil(most_v * 8)), false)
            }
            _ => (count(self.width.div_ceil(most_h * 8), self.height.div_ceil(most_v * 8)), true),
        }
    }
}

impl Table {
    /// Codes are given by the number of symbols of each length, in order (T.81, annex C).
    fn new(counts: &[u8], symbols: &[u8]) -> Result<Self, PixelError> {
        let mut entries = vec![(0, 0); 1 << 16];
        let mut symbols = symbols.iter();
        let mut start = 0;
        for (length, &count) in (1_u8..).zip(counts) {
            for &symbol in symbols.by_ref().take(usize::from(count)) {
                let end = start + (1_usize << (16 - length));
                entries.get_mut(start..end).ok_or_else(damaged_table)?.fill((length, symbol));
                start = end;
            }
        }
        Ok(Self(entries))
    }
}

/// Reads entropy-coded data bit by bit, stuffed zeros left out, up to the next marker.
struct Bits<'a> {
    data: &'a [u8],
    at: usize,
    /// The bits ahead, right-aligned.
    buffer: u64,
    count: u32,
}

impl Bits<'_> {
    fn fill(&mut self) {
        while self.count <= 48 {
            let (byte, used) = match self.data.get(self.at..) {
                Some([0xFF, 0x00, ..]) => (0xFF, 2),
                Some([0xFF, ..] | []) | None => return,
                Some([byte, ..]) => (*byte, 1),
            };
            self.buffer = self.buffer << 8 | u64::from(byte);
            self.count += 8;
            self.at += used;
        }
    }

    fn skip(&mut self, bits: u32) -> Result<(), PixelError> {
        if bits > self.count {
            return Err(PixelError::Truncated("part of its picture data is missing".into()));
        }
        self.count -= bits;
        Ok(())
    }

    /// The next symbol. At most 16 bits of code and 15 of value follow each other, which one fill holds.
    fn symbol(&mut self, table: &Table) -> Result<u8, PixelError> {
        self.fill();
        let ahead = if self.count >= 16 { self.buffer >> (self.count - 16) } else { self.buffer << (16 - self.count) };
        let (length, symbol) = table.0[usize::from(u16::try_from(ahead & 0xFFFF).unwrap_or_default())];
        if length == 0 {
            let is_end = self.count < 16;
            return Err(if is_end {
                PixelError::Truncated("part of its picture data is missing".into())
            } else {
                PixelError::Damaged("its picture data holds a code that does not exist".into())
            });
        }
        self.skip(u32::from(length))?;
        Ok(symbol)
    }

    fn skip_block(&mut self, dc: &Table, ac: &Table) -> Result<(), PixelError> {
        let size = self.symbol(dc)?;
        self.skip(u32::from(size & 15))?;
        let mut coefficient = 1;
        while coefficient < BLOCK {
            let symbol = self.symbol(ac)?;
            let (run, size) = (u32::from(symbol >> 4), u32::from(symbol & 15));
            match (run, size) {
                (15, 0) => coefficient += 16,
                (_, 0) => break,
                _ => coefficient += run + 1,
            }
            self.skip(size)?;
        }
        if coefficient > BLOCK {
            return Err(PixelError::Damaged("a block of it has more values than fit".into()));
        }
        Ok(())
    }

    /// At most padding bits may be left before a restart marker.
    fn restart(&mut self) -> Result<(), PixelError> {
        self.fill();
        match self.data.get(self.at..) {
            Some([0xFF, 0xD0..=0xD7, ..]) if self.count < 8 => {
                (self.buffer, self.count) = (0, 0);
                self.at += 2;
                Ok(())
            }
            _ => Err(PixelError::Damaged("part of its picture data is missing".into())),
        }
    }
}

fn number(body: &[u8], at: usize) -> Result<u32, PixelError> {
    match body.get(at..at + 2) {
        Some(&[high, low]) => Ok(u32::from(u16::from_be_bytes([high, low]))),
        _ => Err(PixelError::Damaged("a header of it is too short".into())),
    }
}

fn damaged_table() -> PixelError {
    PixelError::Damaged("a code table of it is damaged".into())
}
