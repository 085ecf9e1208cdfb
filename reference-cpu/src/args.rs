//! Arguments of a kernel: operands, results, the step.

use crate::fast::lanes::Instructions;
use backend_api::{DType, Format, Shape, StepParams, Tensor};
use std::ops::Range;

/// The most operands and results that a form may have here; one with more is refused.
pub(crate) const MAX_INPUTS: usize = 8;
pub(crate) const MAX_OUTPUTS: usize = 3;

/// All units of a kernel's work.
pub(crate) const WHOLE: Range<usize> = 0..usize::MAX;

/// Memory of a tensor.
#[derive(Clone, Copy)]
pub(crate) enum Bytes<'a> {
    /// 32-bit words: f32 or i32, row-major.
    Words(&'a [u32]),
    /// Rows of file blocks.
    Packed(&'a [u8]),
}

/// An operand.
#[derive(Clone, Copy)]
pub(crate) struct Operand<'a> {
    pub tensor: &'a Tensor,
    pub bytes: Bytes<'a>,
}

impl<'a> Operand<'a> {
    pub fn shape(&self) -> Shape {
        self.tensor.shape
    }

    /// The values of an f32 tensor; none of any other.
    pub fn floats(&self) -> &'a [f32] {
        match self.bytes {
            Bytes::Words(words) => bytemuck::cast_slice(words),
            Bytes::Packed(_) => &[],
        }
    }

    /// The values of an i32 tensor; none of any other.
    pub fn ints(&self) -> &'a [i32] {
        match self.bytes {
            Bytes::Words(words) => bytemuck::cast_slice(words),
            Bytes::Packed(_) => &[],
        }
    }

    /// The format and file bytes of a packed matrix.
    pub fn packed(&self) -> Option<(Format, &'a [u8])> {
        match (self.tensor.dtype, self.bytes) {
            (DType::Packed(format), Bytes::Packed(bytes)) => Some((format, bytes)),
            _ => None,
        }
    }

    /// Row `row` of a matrix as f32: as it is, or decoded into `scratch`.
    // Inlined, so that it is compiled for the instruction set of its caller.
    #[inline(always)]
    pub fn row<'s>(&self, row: usize, scratch: &'s mut [f32]) -> &'s [f32]
    where
        'a: 's,
    {
        let cols = self.tensor.shape.cols();
        match self.packed() {
            Some((format, bytes)) => {
                let (len, out) = (bytes.len() / self.tensor.shape.dim(0), &mut scratch[..cols]);
                crate::decode::row(format, &bytes[row * len..][..len], out);
                out
            }
            None => &self.floats()[row * cols..][..cols],
        }
    }
}

/// Everything that one kernel runs on.
pub(crate) struct Args<'a> {
    pub step: StepParams,
    pub inputs: [Option<Operand<'a>>; MAX_INPUTS],
    pub outputs: [&'a mut [u32]; MAX_OUTPUTS],
    /// The shape of result 0.
    pub shape: Shape,
    /// Working memory of the size that [`crate::cpu`] plans: a decoded row and more.
    pub scratch: &'a mut [f32],
    /// Instruction set of the fast path's kernels.
    pub instructions: Instructions,
    /// How many threads may share the work.
    pub threads: usize,
    /// Which of the [units](crate::fast::Needs) of the work are to be done.
    pub units: Range<usize>,
}

impl<'a> Args<'a> {
    /// Operand `index`. Graphs are checked when they are built, so it is there.
    pub fn input(&self, index: usize) -> Operand<'a> {
        self.inputs[index].unwrap_or(Operand { tensor: empty(), bytes: Bytes::Words(&[]) })
    }

    /// Returns the range of `all` rows that this call computes, where a unit has `each` of them.
    pub fn share(&self, each: usize, all: usize) -> Range<usize> {
        let at = |unit: usize| unit.saturating_mul(each).min(all);
        at(self.units.start)..at(self.units.end)
    }

    /// Result 0 as f32.
    pub fn out(&mut self) -> &mut [f32] {
        bytemuck::cast_slice_mut(self.outputs[0])
    }

    /// Result 0 as f32, with the scratch memory.
    pub fn out_and_scratch(&mut self) -> (&mut [f32], &mut [f32]) {
        (bytemuck::cast_slice_mut(self.outputs[0]), self.scratch)
    }

    /// Result 0 as i32.
    pub fn out_ints(&mut self) -> &mut [i32] {
        bytemuck::cast_slice_mut(self.outputs[0])
    }
}

/// Rounds what was written to a state, if that has a codec.
pub(crate) fn round(state: &Tensor, words: &mut [u32]) {
    if let DType::Coded(codec) = state.dtype {
        codec.round(bytemuck::cast_slice_mut(words));
    }
}

fn empty() -> &'static Tensor {
    static EMPTY: std::sync::OnceLock<Tensor> = std::sync::OnceLock::new();
    EMPTY.get_or_init(|| Tensor {
        name: String::new(),
        shape: Shape::SCALAR,
        dtype: DType::F32,
        kind: backend_api::Kind::Temporary,
    })
}
