//! Reads: copies into pooled pixel buffers, a fence, and a poll.

use crate::Shared;
use crate::dense::{Dense, Fold};
use crate::gl::{Buffer, Fence, Rect};
use crate::store::{Content, Storage};
use backend_api::{DType, Error, ReadId};
use std::collections::HashMap;

/// A read under way.
struct Pending {
    fence: Fence,
    buffer: Buffer,
    dense: Dense,
    dtype: DType,
    first_row: usize,
    rows: usize,
    fold: Fold,
    /// The texels in the buffer.
    rect: Rect,
    /// Floats of a texel in the buffer.
    stride: usize,
    bytes: usize,
}

/// Reads under way, and buffers for the next ones.
#[derive(Default)]
pub(crate) struct Reads {
    pending: HashMap<u32, Pending>,
    free: Vec<Buffer>,
    next: u32,
}

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
        let Content::Dense { dense, dtype, guard_rows } = &storage.content else {
            return Err(Error::Invalid(format!("{} is packed, so it cannot be read", storage.name)));
        };
        let all = dense.host_rows() + guard_rows;
        let end = first_row.checked_add(rows).filter(|end| rows > 0 && *end <= all);
        let end = end.ok_or_else(|| {
            Error::Invalid(format!("cannot read {rows} rows at {first_row} of {}: it has {all}", storage.name))
        })?;
        let first = dense.place(first_row, 0).0;
        let last = dense.place(end - 1, dense.host_cols() - 1).0;
        let rect = shared.fold.rect(first, last + 1);
        let stride = shared.gl.read_lanes(&storage.texture)?;
        let bytes = rect.width as usize * rect.height as usize * stride * 4;
        let fits = self.free.iter().enumerate().filter(|(_, b)| b.bytes >= bytes).min_by_key(|(_, b)| b.bytes);
        let buffer = match fits.map(|(at, _)| at) {
            Some(at) => self.free.swap_remove(at),
            None => shared.gl.pixel_buffer(bytes.next_power_of_two())?,
        };
        shared.gl.read_pixels(&storage.texture, rect, &buffer)?;
        let fence = shared.gl.fence()?;
        shared.gl.flush();
        let (dense, dtype, fold) = (*dense, *dtype, shared.fold);
        let pending = Pending { fence, buffer, dense, dtype, first_row, rows, fold, rect, stride, bytes };
        let id = self.next;
        self.next = self.next.wrapping_add(1);
        self.pending.insert(id, pending);
        Ok(ReadId(id))
    }

    pub(crate) fn try_finish(&mut self, read: ReadId, out: &mut [u8]) -> Result<bool, Error> {
        let pending =
            self.pending.get(&read.0).ok_or_else(|| Error::Invalid(format!("read {} does not exist", read.0)))?;
        let cols = pending.dense.host_cols();
        let expected = pending.rows * pending.dtype.row_bytes(cols)?;
        if out.len() != expected {
            return Err(Error::Invalid(format!("a read of {expected} bytes does not fit {} bytes", out.len())));
        }
        if !pending.fence.passed()? {
            return Ok(false);
        }
        pending.buffer.download(pending.bytes, &mut |bytes| {
            let size = out.len() / (pending.rows * cols);
            for (i, out) in out.chunks_exact_mut(size).enumerate() {
                let (texel, lane) = pending.dense.place(pending.first_row + i / cols, i % cols);
                let [x, y, _] = pending.fold.at(texel);
                let texel = (y - pending.rect.y) as usize * pending.rect.width as usize + (x - pending.rect.x) as usize;
                let at = (texel * pending.stride + lane) * 4;
                let value = bytes.get(at..at + 4).map_or(0.0, |b| f32::from_ne_bytes([b[0], b[1], b[2], b[3]]));
                match pending.dtype {
                    DType::F32 | DType::Packed(_) => out.copy_from_slice(&value.to_le_bytes()),
                    DType::I32 => out.copy_from_slice(&(value as i32).to_le_bytes()),
                    DType::F16 => out.copy_from_slice(&half::f16::from_f32(value).to_le_bytes()),
                }
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
