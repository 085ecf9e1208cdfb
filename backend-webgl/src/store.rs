//! Storages: one texture each.

use crate::dense::Dense;
use crate::gl::{Texels, Texture, UPLOAD_BYTES};
use crate::{Layout, Shared};
use backend_api::format::Packing;
use backend_api::{DType, Error, StorageDesc};
use std::ops::Range;

/// The largest id that a float holds exactly.
const MAX_ID: i32 = 1 << 24;

/// Content of a storage.
pub(crate) enum Content {
    Dense { dense: Dense, dtype: DType, guard_rows: usize, cols: usize },
    Packed(Packing),
}

/// A storage.
pub(crate) struct Storage {
    pub(crate) name: String,
    pub(crate) texture: Texture,
    pub(crate) content: Content,
}

/// How the texture of a storage is made: what its texels are, its size, and what it holds.
fn texture_of(shared: &Shared, desc: &StorageDesc) -> Result<(Texels, [u32; 3], Content), Error> {
    let (texels, count, content, fold) = match desc.dtype {
        DType::Packed(format) => {
            let packing = Packing::new(format, desc.shape.rows(), desc.shape.cols())?;
            (Texels::Rgba32ui, packing.texels, Content::Packed(packing), &shared.weight_fold)
        }
        dtype @ (DType::F32 | DType::I32 | DType::Coded(_)) => {
            let layout = shared.layout;
            let dense = Dense::new(&desc.shape, dtype, layout);
            let content = Content::Dense { dense, dtype, guard_rows: desc.guard_rows, cols: desc.shape.cols() };
            let texels = match dtype {
                DType::Coded(codec) if layout.words(codec, desc.shape.cols()).is_some() => Texels::Words,
                DType::Coded(_) => layout.half_texels(),
                _ => layout.texels(),
            };
            (texels, dense.texels_with(desc.guard_rows), content, &shared.fold)
        }
    };
    Ok((texels, fold.size(&desc.name, count)?, content))
}

/// The bytes that a storage takes.
///
/// *Errors*: it exceeds what textures can hold here.
pub(crate) fn bytes(shared: &Shared, desc: &StorageDesc) -> Result<u64, Error> {
    let (texels, size, _) = texture_of(shared, desc)?;
    Ok(size.iter().map(|side| u64::from(*side)).product::<u64>() * texels.bytes() as u64)
}

impl Storage {
    pub(crate) fn new(shared: &Shared, desc: &StorageDesc) -> Result<Storage, Error> {
        let (texels, size, content) = texture_of(shared, desc)?;
        let texture = shared.gl.texture(&desc.name, texels, size)?;
        Ok(Storage { name: desc.name.clone(), texture, content })
    }

    pub(crate) fn write(&self, shared: &Shared, first_row: usize, bytes: &[u8]) -> Result<(), Error> {
        match &self.content {
            Content::Packed(packing) => {
                packing.repack(first_row, bytes, &mut |texel, bytes| self.upload(shared, texel as usize, bytes))
            }
            Content::Dense { dense, dtype, guard_rows, cols } => match dtype {
                DType::Coded(codec) => {
                    let row = codec.row_bytes(*cols);
                    self.rows_of(dense, *guard_rows, first_row, bytes.len(), row)?;
                    // Their rows are whole texels.
                    self.upload(shared, dense.place(first_row, 0).0, &codec.to_device(*cols, bytes))
                }
                _ => self.write_dense(shared, dense, *dtype, *guard_rows, first_row, bytes),
            },
        }
    }

    /// How many rows so many bytes are, and where they end.
    fn rows_of(
        &self,
        dense: &Dense,
        guard_rows: usize,
        first_row: usize,
        bytes: usize,
        row: usize,
    ) -> Result<(usize, usize), Error> {
        let rows = bytes / row;
        let end = first_row.checked_add(rows).filter(|end| *end <= dense.host_rows() + guard_rows);
        let Some(end) = end.filter(|_| rows * row == bytes) else {
            return Err(Error::Invalid(format!(
                "cannot write {bytes} bytes at row {first_row} of {}: it has {} rows of {row} bytes",
                self.name,
                dense.host_rows() + guard_rows,
            )));
        };
        Ok((rows, end))
    }

    fn write_dense(
        &self,
        shared: &Shared,
        dense: &Dense,
        dtype: DType,
        guard_rows: usize,
        first_row: usize,
        bytes: &[u8],
    ) -> Result<(), Error> {
        let cols = dense.host_cols();
        let (rows, end) = self.rows_of(dense, guard_rows, first_row, bytes.len(), dtype.row_bytes(cols)?)?;
        if rows == 0 {
            return Ok(());
        }
        let lanes = dense.layout.lanes();
        let first = dense.place(first_row, 0);
        let last = dense.place(end - 1, cols - 1);
        let mut values = vec![0f32; (last.0 + 1 - first.0) * lanes];
        for (i, four) in bytes.chunks_exact(4).enumerate() {
            let (texel, lane) = dense.place(first_row + i / cols, i % cols);
            let four = [four[0], four[1], four[2], four[3]];
            values[(texel - first.0) * lanes + lane] = match dtype {
                DType::F32 | DType::Coded(_) | DType::Packed(_) => f32::from_le_bytes(four),
                DType::I32 => {
                    let id = i32::from_le_bytes(four);
                    if !(-MAX_ID..=MAX_ID).contains(&id) {
                        return Err(Error::Invalid(format!("{}: the id {id} exceeds 2^24", self.name)));
                    }
                    id as f32
                }
            };
        }
        if cols > 1 || dense.rows > 1 || dense.layout == Layout::R32f {
            return self.upload(shared, first.0, bytemuck::cast_slice(&values));
        }
        self.write_elements(shared, dense, first_row..end, first.0, &values)
    }

    /// Writes elements of a vector in the packed layout, given as the texels from `origin` on that they touch. The
    /// first and last texel, and the one before the guards, may be shared with elements that must stay.
    fn write_elements(
        &self,
        shared: &Shared,
        dense: &Dense,
        elements: Range<usize>,
        origin: usize,
        values: &[f32],
    ) -> Result<(), Error> {
        let last = values.len() / 4 - 1;
        let seam = (dense.cols / 4).wrapping_sub(origin);
        let edges = [0, seam.min(last), last];
        let mut from = 0;
        for (i, &edge) in edges.iter().enumerate() {
            if i > 0 && edges[i - 1] == edge {
                continue;
            }
            if from < edge {
                self.upload(shared, origin + from, bytemuck::cast_slice(&values[4 * from..4 * edge]))?;
            }
            from = edge + 1;
            let at = origin + edge;
            let mine = |lane| elements.clone().any(|row| dense.place(row, 0) == (at, lane));
            let lanes = std::array::from_fn(|lane| mine(lane).then(|| values[4 * edge + lane]));
            let [x, y, _] = shared.fold.at(at);
            shared.gl.write_lanes(&self.texture, (x, y), lanes)?;
        }
        shared.gl.check(&self.name, 0)
    }

    /// Writes whole texels, in pieces that are rectangles and not too long.
    fn upload(&self, shared: &Shared, first: usize, bytes: &[u8]) -> Result<(), Error> {
        let size = self.texture.texels.bytes();
        let fold = if self.texture.texels == Texels::Rgba32ui { &shared.weight_fold } else { &shared.fold };
        let (mut at, mut rest) = (first, bytes);
        while !rest.is_empty() {
            let (rect, layer) = fold.piece(at, (rest.len() / size).min(UPLOAD_BYTES / size));
            let texels = rect.texels();
            let (piece, after) = rest.split_at(texels * size);
            self.texture.upload(layer, rect, piece)?;
            (at, rest) = (at + texels, after);
        }
        shared.gl.check(&self.name, bytes.len() as u64)
    }
}

impl Storage {
    /// Whether it was made for such a tensor.
    pub(crate) fn holds(&self, tensor: &backend_api::Tensor) -> bool {
        match (&self.content, tensor.dtype) {
            (Content::Packed(packing), DType::Packed(format)) => {
                packing.format == format && packing.rows == tensor.shape.rows() && packing.k == tensor.shape.cols()
            }
            (Content::Dense { dense, dtype, .. }, wanted @ (DType::F32 | DType::I32 | DType::Coded(_))) => {
                *dtype == wanted && *dense == Dense::new(&tensor.shape, wanted, dense.layout)
            }
            (Content::Packed(_), DType::F32 | DType::I32 | DType::Coded(_))
            | (Content::Dense { .. }, DType::Packed(_)) => false,
        }
    }
}
