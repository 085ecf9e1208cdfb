//! How tensors lie in buffers: dense ones in one, packed ones in chunks of rows that fit a binding.

use backend_api::format::{Packing, ROW_ALIGN, TEXEL};
use backend_api::{DType, Error, Products, Shape};

/// Some rows of a matrix in a buffer of their own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chunk {
    /// Its place among the chunks.
    pub index: usize,
    /// Its first row.
    pub first: usize,
    /// Its rows.
    pub rows: usize,
    /// Its layout; none for a dense matrix.
    pub packing: Option<Packing>,
}

impl Chunk {
    /// Bytes of a packed chunk's buffer.
    pub fn bytes(&self) -> u64 {
        self.packing.map_or(0, |p| p.texels as u64 * TEXEL as u64)
    }
}

/// Limits of a device, and the precision that its user chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes that a binding of packed weights should have at most: the device's limit, or a smaller one for tests.
    pub weights: u64,
    /// Bytes that any binding can have at most.
    pub binding: u64,
    /// Invocations, a power of two, that share a subgroup wherever their indices differ in no higher bit; 1 where kernels
    /// use no subgroups.
    pub subgroup: usize,
    /// Precision of matmuls of several rows with quantised weights.
    pub products: Products,
}

/// The chunks of a matrix. A dense one is a single chunk. A packed one is cut to `limits.weights`, but to no fewer than
/// [`ROW_ALIGN`] rows, which is what can be written apart.
///
/// *Errors*: those rows do not fit a binding of the device.
pub fn chunks(dtype: DType, shape: &Shape, limits: &Limits) -> Result<Vec<Chunk>, Error> {
    let (rows, k) = (shape.rows(), shape.cols());
    let DType::Packed(format) = dtype else {
        return Ok(vec![Chunk { index: 0, first: 0, rows, packing: None }]);
    };
    let bytes = |n: usize| Packing::new(format, n, k).map(|p| p.texels as u64 * TEXEL as u64);
    let fits = |n: usize| bytes(n).is_ok_and(|b| b <= limits.weights);
    let per_chunk = if fits(rows) {
        rows
    } else {
        // The most multiples of ROW_ALIGN rows that fit, by bisection: planes round up to texels.
        let (mut low, mut high) = (0, rows.div_ceil(ROW_ALIGN));
        while low + 1 < high {
            let middle = low.midpoint(high);
            if fits(middle * ROW_ALIGN) { low = middle } else { high = middle }
        }
        low.max(1) * ROW_ALIGN
    };
    let need = bytes(per_chunk.min(rows))?;
    if need > limits.binding {
        return Err(Error::Limit {
            what: format!("a binding of {ROW_ALIGN} rows of {k} {} weights (bytes)", format.name()),
            need,
            have: limits.binding,
            remedy: "use a model with narrower matrices, or another backend",
        });
    }
    let mut chunks = Vec::new();
    for first in (0..rows).step_by(per_chunk) {
        let rows = per_chunk.min(rows - first);
        chunks.push(Chunk { index: chunks.len(), first, rows, packing: Some(Packing::new(format, rows, k)?) });
    }
    Ok(chunks)
}
