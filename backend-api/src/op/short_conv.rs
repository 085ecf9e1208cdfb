//! `short_conv`: a causal convolution along the rows, of each channel with a few taps of its own.
//!
//! *Operands*: state `[taps - 1, d]`, the rows before these; x `[t, d]`; kernel `[d, taps]`, as files have it.
//! *Results*: y `[t, d]` with `y[i][c] = sum over j of kernel[c][j] * s[i + j][c]`, where s is the state's rows
//! followed by all rows of x; the state, rewritten as the last rows of s that end with the step's last real one
//! (`StepParams::rows`, at most t), so that rows beyond leave no trace in it.
//!
//! *Source*: A. Gu, T. Dao, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces", 2023, section 3.4;
//! `ggml_ssm_conv`.

use super::describe::{Describe, F32, Output, arity, ensure, floats};
use crate::tensor::{DType, Kind, Tensor, Update};

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShortConv;

impl ShortConv {
    /// The most taps: kernels keep as many values in registers.
    pub const MAX_TAPS: usize = 16;
}

impl Describe for ShortConv {
    const NAME: &'static str = "short_conv";
    const TOLERANCE: f64 = F32;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let [state, x, kernel] = arity(inputs)?;
        floats(&[state, x, kernel])?;
        ensure(state.kind == Kind::State(Update::Replace), || "operand 0 must be a state that is replaced".into())?;
        let matrices = [state, x, kernel].iter().all(|t| t.shape.rank() == 2);
        ensure(matrices, || "operands must be matrices".into())?;
        let (d, taps) = (x.shape.cols(), kernel.shape.cols());
        ensure((2..=Self::MAX_TAPS).contains(&taps), || format!("{taps} taps are not in 2..={}", Self::MAX_TAPS))?;
        let fits = kernel.shape.dim(0) == d && state.shape.dims().eq([taps - 1, d]);
        ensure(fits, || {
            format!("{d} channels of {taps} taps need a state [{}, {d}] and a kernel of theirs", taps - 1)
        })?;
        Ok(vec![Output::New(x.shape, DType::F32), Output::Continues(0)])
    }
}
