//! Shapes, element types and tensors. Row-major: the innermost dimension comes last.

use crate::codec::Codec;
use crate::error::Error;
use crate::format::Format;
use std::fmt;

/// Up to four dimensions, innermost last. A rank of 0 is a scalar.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    dims: [u32; 4],
    rank: u8,
}

impl Shape {
    /// Most elements a tensor may have: element indices are 32-bit signed in shaders.
    pub const MAX_ELEMENTS: usize = i32::MAX as usize;

    /// No dimensions: one element.
    pub const SCALAR: Shape = Shape { dims: [1; 4], rank: 0 };

    /// A shape from its dimensions.
    ///
    /// *Errors*: more than four dimensions, a dimension of 0, or more than [`Self::MAX_ELEMENTS`] elements.
    pub fn new(dims: &[usize]) -> Result<Shape, Error> {
        let invalid = |why: &str| Error::Invalid(format!("shape {dims:?} {why}"));
        if dims.len() > 4 {
            return Err(invalid("has more than 4 dimensions"));
        }
        let mut shape = Shape { dims: [1; 4], rank: dims.len() as u8 };
        let mut elements = 1usize;
        for (slot, dim) in shape.dims.iter_mut().zip(dims) {
            elements = elements.checked_mul(*dim).ok_or_else(|| invalid("is too large"))?;
            *slot = u32::try_from(*dim).map_err(|_| invalid("is too large"))?;
        }
        match elements {
            0 => Err(invalid("has a dimension of 0")),
            n if n > Self::MAX_ELEMENTS => Err(invalid("has more than 2^31 - 1 elements")),
            _ => Ok(shape),
        }
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        usize::from(self.rank)
    }

    /// Dimension `axis`, outermost first.
    pub fn dim(&self, axis: usize) -> usize {
        self.dims[..self.rank()][axis] as usize
    }

    /// The dimensions, outermost first.
    pub fn dims(&self) -> impl DoubleEndedIterator<Item = usize> + ExactSizeIterator + use<> {
        let shape = *self;
        (0..shape.rank()).map(move |axis| shape.dim(axis))
    }

    /// The dimensions as four numbers, padded with leading ones.
    pub fn dims4(&self) -> [usize; 4] {
        let mut out = [1; 4];
        for (slot, dim) in out.iter_mut().rev().zip(self.dims().rev()) {
            *slot = dim;
        }
        out
    }

    /// The innermost dimension; 1 for a scalar.
    pub fn cols(&self) -> usize {
        self.dims().next_back().unwrap_or(1)
    }

    /// The product of all dimensions but the innermost.
    pub fn rows(&self) -> usize {
        self.len() / self.cols()
    }

    /// The number of elements, never 0.
    #[expect(clippy::len_without_is_empty, reason = "a shape is never empty")]
    pub fn len(&self) -> usize {
        self.dims().product()
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.dims()).finish()
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The element type of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DType {
    /// 32-bit floats in the backend's dense layout.
    F32,
    /// 32-bit signed integers (ids). Backends may hold them as floats: values stay below 2^24.
    I32,
    /// Floats of a state, kept in a codec.
    Coded(Codec),
    /// A matrix in a weight format, repacked into planes; only read by matmul and get-rows.
    Packed(Format),
}

impl DType {
    /// Replaces the weight format of a packed matrix; other types stay as they are.
    pub fn in_format(self, format: Format) -> DType {
        match self {
            DType::Packed(_) => DType::Packed(format),
            dense => dense,
        }
    }

    /// Bytes of a row of `cols` elements, as [`Backend::write`](crate::Backend::write) takes it.
    ///
    /// *Errors*: a packed row is not a multiple of the block length.
    pub fn row_bytes(self, cols: usize) -> Result<usize, Error> {
        match self {
            DType::F32 | DType::I32 => Ok(4 * cols),
            DType::Coded(codec) => Ok(codec.row_bytes(cols)),
            DType::Packed(format) => format.row_bytes(cols),
        }
    }

    /// The numbers in bytes that a storage of this type gave, as [`Backend::try_read`](crate::Backend::try_read) does.
    pub fn numbers(self, bytes: &[u8]) -> Box<dyn Iterator<Item = f64> + '_> {
        let (words, _) = bytes.as_chunks::<4>();
        match self {
            DType::F32 | DType::Packed(_) => Box::new(words.iter().map(|w| f64::from(f32::from_le_bytes(*w)))),
            DType::I32 => Box::new(words.iter().map(|w| f64::from(i32::from_le_bytes(*w)))),
            DType::Coded(codec) => Box::new(codec.decode(bytes).into_iter().map(f64::from)),
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DType::F32 => f.write_str("f32"),
            DType::I32 => f.write_str("i32"),
            DType::Coded(codec) => f.write_str(codec.spec().name),
            DType::Packed(format) => write!(f, "packed {}", format.name()),
        }
    }
}

/// How a state changes; what may be done with it follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Update {
    /// Rows are written at the step's position and stay as they are, so that going back costs nothing: nothing looks
    /// beyond the position.
    Append,
    /// Rewritten as a whole by each step: tails of convolutions, recurrent states. Going back takes a checkpoint: zeros
    /// before the first token, or a copy.
    Replace,
    /// Written by the caller between steps, which only read it. An input that all sequences of a step share is none of this,
    /// but a [`Kind::Input`].
    ByCaller,
}

/// Kind of a tensor; it decides where the tensor lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Written once before the first step.
    Weight,
    /// Persists from step to step (KV cache, token history, tails of convolutions); changed only by nodes that continue it.
    State(Update),
    /// Written by the caller between steps.
    Input,
    /// Lives within a step, in a slot of the plan.
    Temporary,
    /// Made by a node and read by the caller.
    Output,
}

impl Kind {
    /// Whether the tensor has a storage of its own, which the caller makes and binds.
    pub fn is_external(self) -> bool {
        self != Kind::Temporary
    }
}

/// A tensor of a graph.
#[derive(Debug, Clone)]
pub struct Tensor {
    /// For dumps and errors, e.g. `blk.3.attn_norm.weight`.
    pub name: String,
    /// Its shape.
    pub shape: Shape,
    /// Its element type.
    pub dtype: DType,
    /// Kind of the tensor.
    pub kind: Kind,
}

impl Tensor {
    /// The bytes that it takes on a GPU, where numbers have four bytes each and codes those of
    /// [`Codec::device_row_bytes`]. Weights that are packed are no matter of this.
    pub fn dense_bytes(&self) -> u64 {
        match self.dtype {
            DType::Coded(codec) => (codec.device_row_bytes(self.shape.cols()) * self.shape.rows()) as u64,
            _ => self.shape.len() as u64 * 4,
        }
    }
}

impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.dtype, self.shape)
    }
}
