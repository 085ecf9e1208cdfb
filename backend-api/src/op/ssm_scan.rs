//! `ssm_scan`: a selective state-space model along the rows. Each channel has a state of n numbers that decays and takes in
//! x at a pace, and with a mix of it, that are made of the row itself.
//!
//! *Operands*: state `[d, n]`, as it is before these rows; x `[t, d]`; dt `[t, heads]`; a `[heads, n]`, or `[heads, 1]`
//! for all n alike; b, c `[t, groups * n]`; skip `[heads]`. Channels are dealt to heads and heads to groups, in order.
//! *Results*: y `[t, d]` and the state. For row i, channel j of head h of group g, with `p = softplus(dt[i][h])`:
//! `state[j] = state[j] * exp(p * a[h]) + p * x[i][j] * b[i][g]`, elementwise, then
//! `y[i][j] = sum(state[j] * c[i][g]) + skip[h] * x[i][j]`. Rows of y beyond the step's real ones
//! (`StepParams::rows`) are zeros, and leave no trace in the state.
//!
//! *Source*: A. Gu, T. Dao, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces", 2023, algorithm 2; of heads:
//! T. Dao, A. Gu, "Transformers are SSMs", 2024; `ggml_ssm_scan`, which leaves out the skip.

use super::describe::{Describe, F32, Output, arity, ensure, floats};
use crate::tensor::{DType, Kind, Tensor, Update};

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SsmScan;

impl SsmScan {
    /// The most numbers of a channel's state: kernels keep them in registers.
    pub const MAX_STATE: usize = 256;
}

impl Describe for SsmScan {
    const NAME: &'static str = "ssm_scan";
    const TOLERANCE: f64 = F32;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let [state, x, dt, a, b, c, skip] = arity(inputs)?;
        floats(inputs)?;
        ensure(state.kind == Kind::State(Update::Replace), || "operand 0 must be a state that is replaced".into())?;
        ensure(inputs[..6].iter().all(|t| t.shape.rank() == 2), || "operands but skip must be matrices".into())?;
        let (t, d, n, heads) = (x.shape.dim(0), x.shape.cols(), state.shape.cols(), a.shape.dim(0));
        ensure(n <= Self::MAX_STATE, || format!("states of {n} numbers exceed {}", Self::MAX_STATE))?;
        ensure(state.shape.dim(0) == d, || format!("{d} channels need a state of as many rows"))?;
        ensure(d.is_multiple_of(heads), || format!("{heads} heads do not divide {d} channels"))?;
        ensure(dt.shape.dims().eq([t, heads]), || format!("dt must be [{t}, {heads}]"))?;
        ensure([1, n].contains(&a.shape.cols()), || format!("a must have 1 or {n} columns"))?;
        let groups = b.shape.cols() / n;
        let mixes = b.shape == c.shape && b.shape.dims().eq([t, groups * n]) && heads.is_multiple_of(groups.max(1));
        ensure(mixes && groups > 0, || format!("b and c must be [{t}, groups * {n}], where groups divide {heads}"))?;
        ensure(skip.shape.dims().eq([heads]), || format!("skip must be [{heads}]"))?;
        Ok(vec![Output::New(x.shape, DType::F32), Output::Continues(0)])
    }
}
