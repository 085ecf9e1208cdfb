//! `resize`: images of another size.
//!
//! *Operands*: x `[.., h, w]`. *Results*: x resized to `dims`, of the same rank. The last two dimensions are resampled by
//! `mode`; other dimensions, and with [`ResizeMode::Nearest`] all, take the element `floor(i * from / to)` as `i`.
//!
//! Output `i` of `to` lies at `(i + 1/2) * from / to - 1/2` among `from` elements: pixels are areas. With `align_corners`
//! it lies at `i * (from - 1) / (to - 1)`, so that first and last ones meet: pixels are points. The elements at the edges
//! go on beyond them.
//!
//! *Source*: R. Keys, "Cubic convolution interpolation for digital image processing", 1981, with a = -3/4; `Resize` of
//! ONNX, `interpolate` of PyTorch, `ggml_interpolate`.

use super::describe::{Describe, F32, Output, arity, ensure, floats, shape};
use crate::tensor::{DType, Shape, Tensor};

/// How elements between others are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ResizeMode {
    /// One of them.
    Nearest,
    /// Interpolates the two neighbours in each dimension by distance.
    Linear,
    /// Averages all elements within `max(1, from / to)`, weighed by distance, so that downscaling skips none.
    Antialias,
    /// Interpolates the four neighbours in each dimension by cubic convolution.
    Cubic,
}

impl ResizeMode {
    /// All modes.
    pub const ALL: [ResizeMode; 4] =
        [ResizeMode::Nearest, ResizeMode::Linear, ResizeMode::Antialias, ResizeMode::Cubic];
}

/// See the [module page](self). Dimensions are four, as in [`Shape::dims4`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resize {
    /// The size of the result.
    pub dims: [usize; 4],
    /// How elements between others are made.
    pub mode: ResizeMode,
    /// Whether pixels are points, of which those in the corners stay where they are.
    pub align_corners: bool,
}

/// Where the outputs of a dimension lie among its elements, exactly: output `i` at `(i * step + first) / unit - 1`, which
/// is never below -1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Positions {
    /// From one output to the next.
    pub step: usize,
    /// Position in the input of output 0.
    pub first: usize,
    /// From one element to the next.
    pub unit: usize,
    /// How far from an output an element with a weight lies at most, where that is asked for.
    pub reach: usize,
}

impl Resize {
    /// The most elements that one result is made of: shaders have bounded loops.
    pub const MAX_TAPS: usize = 4096;

    /// Where the outputs of each dimension lie among the elements of x.
    pub fn positions(&self, x: &Shape) -> [Positions; 4] {
        let from = x.dims4();
        std::array::from_fn(|axis| {
            let (from, to) = (from[axis], self.dims[axis]);
            if axis < 2 || self.mode == ResizeMode::Nearest {
                Positions { step: from, first: to, unit: to, reach: to }
            } else if self.align_corners {
                let unit = (to - 1).max(1);
                Positions { step: from - 1, first: unit, unit, reach: unit }
            } else {
                Positions { step: 2 * from, first: from + to, unit: 2 * to, reach: 2 * from.max(to) }
            }
        })
    }
}

impl Describe for Resize {
    const NAME: &'static str = "resize";
    const TOLERANCE: f64 = F32;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let [x] = arity(inputs)?;
        floats(&[x])?;
        let (from, lead) = (x.shape.dims4(), 4 - x.shape.rank());
        ensure(x.shape.rank() >= 2, || "x must be an image".into())?;
        ensure(self.dims[..lead].iter().all(|dim| *dim == 1), || format!("the result must be of rank {}", 4 - lead))?;
        let aligned = matches!(self.mode, ResizeMode::Linear | ResizeMode::Cubic);
        ensure(aligned || !self.align_corners, || format!("{:?} has no corners to align", self.mode))?;
        let result = shape(&self.dims[lead..])?;
        // Positions are whole numbers of 32 bits in shaders.
        let places = |(from, to): (usize, usize)| from.checked_mul(to)?.checked_mul(2)?.checked_add(3 * (from + to));
        let fits = from.into_iter().zip(self.dims).all(|sizes| places(sizes).is_some_and(|n| n <= i32::MAX as usize));
        ensure(fits, || format!("from {:?} to {:?} is too far; resize in several steps", from, self.dims))?;
        let taps = |axis: usize| 2 * from[axis].div_ceil(self.dims[axis]).min(from[axis]);
        ensure(self.mode != ResizeMode::Antialias || taps(2) * taps(3) <= Self::MAX_TAPS, || {
            format!("more than {} elements for each result; resize in several steps", Self::MAX_TAPS)
        })?;
        Ok(vec![Output::New(result, DType::F32)])
    }
}
