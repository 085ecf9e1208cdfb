//! `gated_delta_net`: linear attention whose memory of keys and values fades, and which corrects what it recalls.
//!
//! *Operands*: state `[heads * dv, dk]`, as it is before these rows: for each head a matrix from keys to values; q, k
//! `[t, heads_k * dk]`; v `[t, heads * dv]`; g `[t, heads]`, or `[t, heads * dk]` for each column by itself; beta
//! `[t, heads]`. Heads of q and k are fewer than, or as many as, the others: head h has head `h % heads_k`, or with `grouped`
//! `h / (heads / heads_k)`.
//! *Results*: o `[t, heads * dv]` and the state. For row i and each head, whose matrix is m:
//! `m = m * exp(g[i])`, then `m += outer(beta[i] * (v[i] - m k[i]), k[i])`, then `o[i] = m q[i] / sqrt(dk)`. Rows of o
//! beyond the step's real ones (`StepParams::rows`) are zeros, and leave no trace in the state.
//!
//! *Source*: S. Yang, J. Kautz, A. Hatamizadeh, "Gated Delta Networks: Improving Mamba2 with Delta Rule", 2024;
//! `ggml_gated_delta_net`.

use super::describe::{Describe, F32, Output, arity, ensure, floats};
use crate::tensor::{DType, Kind, Tensor, Update};

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatedDeltaNet {
    /// Whether neighbouring heads share a head of q and k; otherwise those that are `heads_k` apart do.
    pub grouped: bool,
}

impl GatedDeltaNet {
    /// The most channels of a key: kernels keep a row of the state in registers.
    pub const MAX_KEY: usize = 256;

    /// Heads, and heads of q and k, of operands that fit.
    pub fn heads(inputs: &[&Tensor]) -> (usize, usize) {
        (inputs[5].shape.cols(), inputs[1].shape.cols() / inputs[0].shape.cols())
    }
}

impl Describe for GatedDeltaNet {
    const NAME: &'static str = "gated_delta_net";
    const TOLERANCE: f64 = F32;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let [state, q, k, v, g, _] = arity(inputs)?;
        floats(inputs)?;
        ensure(state.kind == Kind::State(Update::Replace), || "operand 0 must be a state that is replaced".into())?;
        ensure(inputs.iter().all(|t| t.shape.rank() == 2), || "operands must be matrices".into())?;
        let (t, dk) = (q.shape.dim(0), state.shape.cols());
        ensure(dk <= Self::MAX_KEY, || format!("keys of {dk} channels exceed {}", Self::MAX_KEY))?;
        let (heads, heads_k) = Self::heads(inputs);
        let keys = q.shape == k.shape && q.shape.cols() == heads_k * dk;
        ensure(keys && heads_k > 0 && heads.is_multiple_of(heads_k), || {
            format!("q and k must be [{t}, heads of {dk}], where their heads divide {heads}")
        })?;
        let values = v.shape.cols() == state.shape.dim(0) && v.shape.cols().is_multiple_of(heads);
        ensure(values, || format!("v must have as many columns as the state has rows, and {heads} must divide them"))?;
        ensure([heads, heads * dk].contains(&g.shape.cols()), || {
            format!("g must have {heads} columns, or {dk} times")
        })?;
        ensure(inputs[1..].iter().all(|x| x.shape.dim(0) == t), || format!("operands must have {t} rows"))?;
        Ok(vec![Output::New(v.shape, DType::F32), Output::Continues(0)])
    }
}
