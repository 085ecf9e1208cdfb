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
        // Where a row ends within a pack, what is left of it stays zero; else rows follow each other without a gap.
        let runs = if self.k.is_multiple_of(spec.pack_len) { 1 } else { rows };
        let run_bytes = bytes.len().checked_div(runs).unwrap_or(0).max(1);
        for (start, plane) in self.planes.iter().zip(spec.planes()) {
            let mut out = vec![0; (rows * packs * plane.bytes).next_multiple_of(TEXEL)];
            let each = plane.bytes * spec.block_len / spec.pack_len;
            let stride = if runs == 1 { out.len() } else { packs * plane.bytes };
            for (from, out) in bytes.chunks_exact(run_bytes).zip(out.chunks_mut(stride.max(1))) {
                plane.fill(from, spec.block_bytes, each, out);
            }
            let texel = *start as usize + first * packs * plane.bytes / TEXEL;
            write(texel as u32, &out)?;
        }
        Ok(())
    }
}
