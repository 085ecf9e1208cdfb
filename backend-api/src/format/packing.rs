//! How a matrix lies in an image of texels.

use super::{Format, GROUP, MAX_PLANES, ROW_ALIGN, TEXEL};
use crate::error::Error;

/// How `rows` x `k` elements of a format lie in an image of texels.
///
/// *Units*: offsets and sizes in texels of 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packing {
    /// The format.
    pub format: Format,
    /// Rows of the matrix.
    pub rows: usize,
    /// Elements of a row.
    pub k: usize,
    /// Groups of [`GROUP`] elements a row, whole packs.
    pub groups: usize,
    /// First texel of each plane; unused planes are 0.
    pub planes: [u32; MAX_PLANES],
    /// Texels of the image.
    pub texels: usize,
}

/// Takes whole texels of an image: (first texel, bytes).
pub type WriteTexels<'a> = dyn FnMut(u32, &[u8]) -> Result<(), Error> + 'a;

impl Packing {
    /// Lays out a matrix.
    ///
    /// *Errors*: a row is not a multiple of the block length, or the image needs 2^32 texels or more.
    pub fn new(format: Format, rows: usize, k: usize) -> Result<Packing, Error> {
        let spec = format.spec();
        format.row_bytes(k)?;
        let packs = k.div_ceil(spec.pack_len);
        let mut planes = [0u32; MAX_PLANES];
        let mut texels = 0usize;
        for (start, plane) in planes.iter_mut().zip(spec.planes()) {
            let size =
                packs.checked_mul(plane.bytes).and_then(|row| row.checked_mul(rows)).map(|bytes| bytes.div_ceil(TEXEL));
            let end = size.and_then(|s| s.checked_add(texels)).filter(|e| u32::try_from(*e).is_ok());
            let Some(end) = end else {
                return Err(Error::Invalid(format!("a {} matrix of {rows} x {k} is too large to address", spec.name)));
            };
            *start = texels as u32;
            texels = end;
        }
        Ok(Packing { format, rows, k, groups: packs * (spec.pack_len / GROUP), planes, texels })
    }

    /// Splits `rows` rows of file bytes, beginning with row `first`, over the planes and hands each plane's bytes
    /// to `write(texel, bytes)`. Bytes are whole texels; the last ones of a plane are filled up with zeros.
    ///
    /// *Errors*: `first` is not a multiple of [`ROW_ALIGN`], the bytes are not whole rows, or the rows end
    /// neither at such a multiple nor at the end of the matrix; and what `write` returns.
    pub fn repack(&self, first: usize, bytes: &[u8], write: &mut WriteTexels<'_>) -> Result<(), Error> {
        let spec = self.format.spec();
        let row_bytes = self.format.row_bytes(self.k)?;
        let rows = bytes.len().checked_div(row_bytes).unwrap_or(0);
        let end = first.saturating_add(rows);
        let aligned = first.is_multiple_of(ROW_ALIGN) && (end.is_multiple_of(ROW_ALIGN) || end == self.rows);
        if rows * row_bytes != bytes.len() || !aligned || end > self.rows {
            return Err(Error::Invalid(format!(
                "cannot write {} bytes at row {first} of a {} matrix of {} rows: whole rows of {row_bytes} bytes in \
                 multiples of {ROW_ALIGN} rows are needed",
                bytes.len(),
                spec.name,
                self.rows
            )));
        }
        let packs = self.k.div_ceil(spec.pack_len);
        let blocks = spec.pack_len / spec.block_len;
        let pack_bytes = blocks * spec.block_bytes;
        let mut out: Vec<Vec<u8>> =
            spec.planes().iter().map(|p| vec![0u8; (rows * packs * p.bytes).next_multiple_of(TEXEL)]).collect();
        let mut last = vec![0u8; pack_bytes];
        for row in 0..rows {
            let src = &bytes[row * row_bytes..][..row_bytes];
            for pack in 0..packs {
                let from = pack * pack_bytes;
                let whole = &src[from..row_bytes.min(from + pack_bytes)];
                let whole = if whole.len() == pack_bytes {
                    whole
                } else {
                    last.fill(0);
                    last[..whole.len()].copy_from_slice(whole);
                    &last
                };
                let at = row * packs + pack;
                for (plane, bytes) in spec.planes().iter().zip(&mut out) {
                    plane.fill(whole, blocks, &mut bytes[at * plane.bytes..][..plane.bytes]);
                }
            }
        }
        for ((start, plane), bytes) in self.planes.iter().zip(spec.planes()).zip(&out) {
            let texel = *start as usize + first * packs * plane.bytes / TEXEL;
            write(texel as u32, bytes)?;
        }
        Ok(())
    }
}
