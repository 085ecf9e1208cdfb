//! Upload of weights from a file to a device, in chunks.

use std::ops::Range;

use backend_api::format::ROW_ALIGN;
use backend_api::run::Host;
use backend_api::{Backend, DType, Format, StorageId};
use half::{bf16, f16};
use reference_cpu::decode::row_shared;

use super::storages::no_storage;
use super::{LoadTimes, Model, file_bytes};
use crate::arch::{Contents, Weight};
use crate::arch::{Identifier, Identity};
use crate::error::ModelError;
use crate::gguf::{ByteSource, TensorInfo};

/// Bytes of a tensor that are in host memory at a time; more if [`ROW_ALIGN`] rows are longer than that.
const PIECE: usize = 4 << 20;
/// Bytes that may be written before the device must have processed all earlier ones, which the driver holds until then.
const IN_FLIGHT: usize = 128 << 20;

impl Model {
    /// Uploads the weights.
    ///
    /// *Errors*: the file cannot be read; the device was lost or its memory is insufficient.
    pub async fn fill(
        &self,
        source: &dyn ByteSource,
        host: &dyn Host,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(), ModelError> {
        let loaded = uploaded(self, source, host, progress).await?;
        self.loaded.get_or_init(|| loaded);
        Ok(())
    }
}

/// Fills the storages of a model's weights.
async fn uploaded(
    model: &Model,
    source: &dyn ByteSource,
    host: &dyn Host,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(Identity, LoadTimes), ModelError> {
    let start = host.now_ms();
    let recipe = model.recipe();
    let mut parts = Vec::new();
    for weight in recipe.weights() {
        parts.extend(Part::of(weight, model.weight(&weight.name).ok_or_else(|| no_storage(&weight.name))?));
    }
    // Over a network, each step back in the file is a separate request, so parts are in the file's order.
    backend_api::sort_by_key(&mut parts, |part| part.tensors.first().map_or(0, |tensor| tensor.offset));
    let mut loader = Loader {
        source,
        backend: &**model.backend(),
        host,
        progress,
        total: recipe.weights().iter().map(file_bytes).sum(),
        buffer: Vec::new(),
        identifier: recipe.identifier(),
        times: LoadTimes::default(),
        in_flight: 0,
    };
    for part in &parts {
        loader.load(part).await?;
    }
    Ok((loader.identifier.finish(), LoadTimes { total_ms: host.now_ms() - start, ..loader.times }))
}

/// Returns the number of rows in which a tensor is written. Matrices of a tensor are stacked; a vector has rows of one
/// number.
fn rows_of(tensor: &TensorInfo) -> usize {
    let (_, outer) = tensor.shape.split_last().unwrap_or((&1, &[]));
    if outer.is_empty() { tensor.shape.iter().product() } else { outer.iter().product() }
}

/// Bytes that are written to a storage together, from zero or more tensors of the file.
struct Part<'a> {
    weight: &'a Weight,
    id: StorageId,
    /// First row of the storage.
    first: usize,
    tensors: &'a [TensorInfo],
}

impl<'a> Part<'a> {
    /// Splits a weight into parts.
    fn of(weight: &'a Weight, id: StorageId) -> Vec<Part<'a>> {
        match &weight.contents {
            Contents::Tensors(tensors) | Contents::Transposed(tensors) => {
                let transposed = matches!(weight.contents, Contents::Transposed(_));
                let (mut parts, mut from, mut first, mut rows) = (Vec::new(), 0, 0, 0);
                for (at, tensor) in tensors.iter().enumerate() {
                    rows += if transposed { tensor.shape[1] } else { rows_of(tensor) };
                    // A few rows are written together with those that follow.
                    if rows.is_multiple_of(ROW_ALIGN) || at + 1 == tensors.len() {
                        parts.push(Part { weight, id, first, tensors: &tensors[from..=at] });
                        (from, first) = (at + 1, rows);
                    }
                }
                parts
            }
            Contents::Rope(_, factors) => vec![Part { weight, id, first: 0, tensors: factors.as_slice() }],
            Contents::Constant(_) | Contents::Temperature(_) => vec![Part { weight, id, first: 0, tensors: &[] }],
        }
    }
}

struct Loader<'a> {
    source: &'a dyn ByteSource,
    backend: &'a dyn Backend,
    host: &'a dyn Host,
    progress: &'a mut dyn FnMut(u64, u64),
    total: u64,
    buffer: Vec<u8>,
    identifier: Identifier,
    times: LoadTimes,
    /// Bytes that were written since the device last finished all work.
    in_flight: usize,
}

impl Loader<'_> {
    async fn load(&mut self, part: &Part<'_>) -> Result<(), ModelError> {
        let Part { weight, id, first, tensors } = *part;
        match &weight.contents {
            Contents::Tensors(_) => match tensors {
                [tensor] => self.tensor(tensor, weight.dtype, id, first).await?,
                _ => self.pieces(tensors, weight, id, first).await?,
            },
            Contents::Transposed(_) => self.pieces(tensors, weight, id, first).await?,
            Contents::Constant(value) => {
                let values = vec![*value; weight.shape.iter().product()];
                self.write(id, 0, bytemuck::cast_slice(&values)).await?;
            }
            Contents::Rope(table, _) => {
                let mut table = table.clone();
                if let [tensor] = tensors {
                    self.read(tensor.offset, tensor.bytes as usize).await?;
                    table.factors = dense(tensor.format, &self.buffer);
                    if let Some(bad) = table.factors.iter().find(|f| !(f.is_finite() && **f > 0.0)) {
                        let reason = format!("the frequency factor {bad} is not a positive number");
                        return Err(ModelError::Tensor { name: tensor.name.to_string(), reason });
                    }
                }
                // The row of position 0 has no rotation, and that of position 1 each angle once.
                self.identifier.positions(&table.rows(0..2));
                self.positions(weight, id, |positions| table.rows(positions)).await?;
            }
            Contents::Temperature(table) => self.positions(weight, id, |positions| table.rows(positions)).await?,
        }
        Ok(())
    }

    /// Writes a table with a row for each position.
    async fn positions(
        &mut self,
        weight: &Weight,
        id: StorageId,
        rows: impl Fn(Range<u32>) -> Vec<f32>,
    ) -> Result<(), ModelError> {
        let (n_ctx, cols) = (weight.shape[0], weight.shape[1]);
        let step = (PIECE / (4 * cols)).max(1);
        for first in (0..n_ctx).step_by(step) {
            let values = rows(first as u32..n_ctx.min(first + step) as u32);
            self.write(id, first, bytemuck::cast_slice(&values)).await?;
        }
        Ok(())
    }

    /// Writes a tensor from row `first` of a storage on.
    async fn tensor(
        &mut self,
        tensor: &TensorInfo,
        dtype: DType,
        id: StorageId,
        first: usize,
    ) -> Result<(), ModelError> {
        let rows = rows_of(tensor);
        let row = (tensor.bytes / rows as u64) as usize;
        let step = (PIECE / row / ROW_ALIGN).max(1) * ROW_ALIGN;
        for from in (0..rows).step_by(step) {
            let n = step.min(rows - from);
            // A tensor may be larger than 4 GiB.
            self.read(tensor.offset + from as u64 * row as u64, n * row).await?;
            if from == 0 {
                self.identifier.tensor(tensor, &self.buffer);
            }
            let bytes = std::mem::take(&mut self.buffer);
            match dtype {
                DType::Packed(_) => self.write(id, first + from, &bytes).await?,
                _ => self.write(id, first + from, bytemuck::cast_slice(&dense(tensor.format, &bytes))).await?,
            }
            self.buffer = bytes;
        }
        Ok(())
    }

    /// Writes tensors that are too small to be written separately.
    async fn pieces(
        &mut self,
        tensors: &[TensorInfo],
        weight: &Weight,
        id: StorageId,
        first: usize,
    ) -> Result<(), ModelError> {
        let total: u64 = tensors.iter().map(|tensor| tensor.bytes).sum();
        if total > PIECE as u64 {
            let reason = format!("it is put together of rows that are no multiples of {ROW_ALIGN}");
            return Err(ModelError::Tensor { name: weight.name.clone(), reason });
        }
        let mut all = Vec::with_capacity(total as usize);
        for tensor in tensors {
            self.read(tensor.offset, tensor.bytes as usize).await?;
            let bytes = &self.buffer;
            self.identifier.tensor(tensor, bytes);
            match (&weight.contents, weight.dtype) {
                (Contents::Transposed(_), _) => {
                    let values = transposed(tensor, bytes);
                    all.extend(values.iter().flat_map(|value| value.to_le_bytes()));
                }
                (_, DType::Packed(_)) => all.extend(bytes),
                _ => all.extend(dense(tensor.format, bytes).iter().flat_map(|value| value.to_le_bytes())),
            }
        }
        self.write(id, first, &all).await
    }

    /// Writes bytes to the device, and sometimes waits until it has processed them.
    async fn write(&mut self, id: StorageId, row: usize, bytes: &[u8]) -> Result<(), ModelError> {
        let start = self.host.now_ms();
        self.backend.write(id, row, bytes)?;
        let written = self.host.now_ms();
        self.times.write_ms += written - start;
        self.in_flight += bytes.len();
        self.host.turn().await;
        if self.in_flight >= IN_FLIGHT {
            self.in_flight = 0;
            while !self.backend.idle()? {
                self.host.turn().await;
            }
        }
        self.times.device_ms += self.host.now_ms() - written;
        Ok(())
    }

    /// Reads bytes of the file into the buffer.
    async fn read(&mut self, offset: u64, len: usize) -> Result<(), ModelError> {
        let start = self.host.now_ms();
        self.buffer.resize(len, 0);
        self.source.read_at(offset, &mut self.buffer).await?;
        self.times.read_ms += self.host.now_ms() - start;
        self.times.bytes += len as u64;
        (self.progress)(self.times.bytes, self.total);
        Ok(())
    }
}

/// Returns the numbers of a matrix, column by column.
fn transposed(tensor: &TensorInfo, bytes: &[u8]) -> Vec<f32> {
    let (rows, cols) = (tensor.shape[0], tensor.shape[1]);
    let (mut row, mut values) = (vec![0.0; cols], vec![0.0; rows * cols]);
    for (i, bytes) in bytes.chunks_exact(bytes.len() / rows).enumerate() {
        row_shared(tensor.format, bytes, &mut row);
        values.iter_mut().skip(i).step_by(rows).zip(&row).for_each(|(to, from)| *to = *from);
    }
    values
}

/// Converts the values of a vector to floats. Recipes accept no other formats for vectors.
fn dense(format: Format, bytes: &[u8]) -> Vec<f32> {
    let halves = bytes.chunks_exact(2).map(|b| u16::from_le_bytes([b[0], b[1]]));
    match format {
        Format::F16 => halves.map(|h| f16::from_bits(h).to_f32()).collect(),
        Format::BF16 => halves.map(|h| bf16::from_bits(h).to_f32()).collect(),
        _ => bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect(),
    }
}
