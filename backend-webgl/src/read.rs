//! Reads: copies into pooled pixel buffers, a fence, and a poll.

use crate::Shared;
use crate::dense::{Dense, Fold};
use crate::gl::{Buffer, Fence, Rect, Texture};
use crate::store::{Content, Storage};
use backend_api::format::TEXEL;
use backend_api::{Codec, DType, Error, ReadId};
use std::collections::HashMap;

/// Rows of a tensor in a texture.
pub(crate) struct Rows {
    pub(crate) dense: Dense,
    pub(crate) dtype: DType,
    /// Columns of the tensor.
    pub(crate) cols: usize,
    pub(crate) first: usize,
    pub(crate) count: usize,
}

/// A read under way.
struct Pending {
    fence: Fence,
    buffer: Buffer,
    rows: Rows,
    fold: Fold,
    /// The texels in the buffer.
    rect: Rect,
    /// Floats of a texel in the buffer.
    stride: usize,
    bytes: usize,
}

impl Pending {
    /// Bytes of a row for the host.
    fn host_row(&self) -> Result<usize, Error> {
        match self.rows.dtype {
            DType::Coded(codec) => Ok(codec.row_bytes(self.rows.cols)),
            dtype => dtype.row_bytes(self.rows.dense.host_cols()),
        }
    }

    /// Takes a row of words out of what the device gave: whole texels, as they are.
    fn coded_row(&self, codec: Codec, row: usize, bytes: &[u8], out: &mut [u8]) {
        let (first, count) = (self.rows.dense.place(row, 0).0, self.rows.dense.row_texels());
        let texel = |at: usize| {
            let [x, y, _] = self.fold.at(first + at);
            let at = (y - self.rect.y) as usize * self.rect.width as usize + (x - self.rect.x) as usize;
            bytes.get(at * TEXEL..(at + 1) * TEXEL).unwrap_or(&[0; TEXEL])
        };
        let device: Vec<u8> = (0..count).flat_map(texel).copied().collect();
        out.copy_from_slice(&codec.to_host(self.rows.cols, &device));
    }

    /// Takes a row out of what the device gave, a run at a time: rows are long, and reads may be megabytes.
    fn row(&self, row: usize, bytes: &[u8], mut out: &mut [u8]) {
        if let DType::Coded(codec) = self.rows.dtype
            && self.rows.dense.layout.words(codec, self.rows.cols).is_some()
        {
            return self.coded_row(codec, row, bytes, out);
        }
        let cols = self.rows.dense.host_cols();
        let (size, lanes) = (out.len() / cols, self.rows.dense.layout.lanes());
        let mut col = 0;
        while col < cols {
            let (texel, lane) = self.rows.dense.place(row, col);
            let run = self.rows.dense.run(&self.fold, row, col);
            let [x, y, _] = self.fold.at(texel);
            let texel = (y - self.rect.y) as usize * self.rect.width as usize + (x - self.rect.x) as usize;
            let source = bytes.get((texel * self.stride + lane) * 4..).unwrap_or_default();
            let (target, rest) = out.split_at_mut(run * size);
            // Drivers may give four floats for a texel of one; then runs are not dense.
            let apart = 4 * self.stride / lanes;
            if self.rows.dtype == DType::F32 && apart == 4 && source.len() >= target.len() {
                target.copy_from_slice(&source[..target.len()]);
            } else {
                for (out, four) in target.chunks_exact_mut(size).zip(source.chunks(apart)) {
                    let value = four.first_chunk().map_or(0.0, |b| f32::from_ne_bytes(*b));
                    match self.rows.dtype {
                        DType::F32 | DType::Packed(_) => out.copy_from_slice(&value.to_le_bytes()),
                        DType::I32 => out.copy_from_slice(&(value as i32).to_le_bytes()),
                        // The one codec that is no blocks.
                        DType::Coded(_) => out.copy_from_slice(&half::f16::from_f32(value).to_le_bytes()),
                    }
                }
            }
            (out, col) = (rest, col + run);
        }
    }
}

/// Reads under way, and buffers for the next ones.
#[derive(Default)]
pub(crate) struct Reads {
    pending: HashMap<u32, Pending>,
    free: Vec<Buffer>,
    next: u32,
}

/// The smallest buffer: tokens that are read together may lie at the end of one line and the beginning of the next, and then
/// both lines are read.
const SMALLEST: usize = 4096;
/// Buffers that are kept for later reads.
const POOL: usize = 8;

impl Reads {
    pub(crate) fn begin(
        &mut self,
        shared: &Shared,
        storage: &Storage,
        first_row: usize,
        rows: usize,
    ) -> Result<ReadId, Error> {
        let Content::Dense { dense, dtype, guard_rows, cols } = &storage.content else {
            return Err(Error::Invalid(format!("{} is packed, so it cannot be read", storage.name)));
        };
        let all = dense.host_rows() + guard_rows;
        if rows == 0 || first_row.checked_add(rows).is_none_or(|end| end > all) {
            let name = &storage.name;
            return Err(Error::Invalid(format!("cannot read {rows} rows at {first_row} of {name}: it has {all}")));
        }
        let rows = Rows { dense: *dense, dtype: *dtype, cols: *cols, first: first_row, count: rows };
        self.copy(shared, &storage.texture, rows)
    }

    /// Begins to read rows that are there.
    pub(crate) fn copy(&mut self, shared: &Shared, texture: &Texture, rows: Rows) -> Result<ReadId, Error> {
        let dense = &rows.dense;
        let first = dense.place(rows.first, 0).0;
        let last = dense.place(rows.first + rows.count - 1, dense.host_cols() - 1).0;
        let rect = shared.fold.rect(first, last + 1);
        let stride = shared.gl.read_lanes(texture)?;
        let bytes = rect.width as usize * rect.height as usize * stride * 4;
        let fits = self.free.iter().enumerate().filter(|(_, b)| b.bytes >= bytes).min_by_key(|(_, b)| b.bytes);
        let buffer = match fits.map(|(at, _)| at) {
            Some(at) => self.free.swap_remove(at),
            None => shared.gl.pixel_buffer(bytes.next_power_of_two().max(SMALLEST))?,
        };
        shared.gl.read_pixels(texture, rect, &buffer)?;
        let fence = shared.gl.fence()?;
        shared.gl.flush();
        let pending = Pending { fence, buffer, rows, fold: shared.fold, rect, stride, bytes };
        let id = self.next;
        self.next = self.next.wrapping_add(1);
        self.pending.insert(id, pending);
        Ok(ReadId(id))
    }

    pub(crate) fn try_finish(&mut self, read: ReadId, out: &mut [u8]) -> Result<bool, Error> {
        let pending =
            self.pending.get(&read.0).ok_or_else(|| Error::Invalid(format!("read {} does not exist", read.0)))?;
        let expected = pending.rows.count * pending.host_row()?;
        if out.len() != expected {
            return Err(Error::Invalid(format!("a read of {expected} bytes does not fit {} bytes", out.len())));
        }
        if !pending.fence.passed()? {
            return Ok(false);
        }
        pending.buffer.download(pending.bytes, &mut |bytes| {
            let row_bytes = out.len() / pending.rows.count;
            for (row, out) in (pending.rows.first..).zip(out.chunks_exact_mut(row_bytes)) {
                pending.row(row, bytes, out);
            }
        })?;
        if let Some(done) = self.pending.remove(&read.0)
            && self.free.len() < POOL
        {
            self.free.push(done.buffer);
        }
        Ok(true)
    }
}
