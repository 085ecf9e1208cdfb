//! `append`: writes rows into a state.
//!
//! *Operands*: state `[n_ctx, ..]`; x `[t, ..]` of the same dtype, or f32 where the state has a codec, and row size.
//! *Results*: the state, with the step's real rows of x (`StepParams::rows`, at most t) written from the row that
//! [`At`] gives. Rows beyond the state's end are dropped. All other rows stay as they are.

use super::describe::{Describe, EXACT, Output, arity, ensure};
use crate::tensor::{DType, Kind, Tensor, Update};

/// Where rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum At {
    /// From the step's position, as many as the step has real rows.
    Position,
    /// One row, right after the step's real rows: where the next token belongs.
    Next,
    /// As many rows as the step has real ones, each right after the row of the step with its number.
    EachNext,
}

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Append {
    /// Where rows are written.
    pub at: At,
}

impl Describe for Append {
    const NAME: &'static str = "append";
    const TOLERANCE: f64 = EXACT;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let [state, x] = arity(inputs)?;
        ensure(state.kind == Kind::State(Update::Append), || {
            "operand 0 must be a state that rows are appended to".into()
        })?;
        let rounds = matches!(state.dtype, DType::Coded(_)) && x.dtype == DType::F32;
        let fits = rounds || (state.dtype == x.dtype && !matches!(x.dtype, DType::Packed(_)));
        ensure(fits, || "dtypes differ".into())?;
        let rank = state.shape.rank();
        let same = rank == x.shape.rank() && rank >= 1 && state.shape.dims().skip(1).eq(x.shape.dims().skip(1));
        ensure(same, || "rows have different shapes".into())?;
        ensure(x.shape.dim(0) <= state.shape.dim(0), || "there are more rows than the state has".into())?;
        ensure(self.at != At::Next || x.shape.dim(0) == 1, || "only one row can be next".into())?;
        Ok(vec![Output::Continues(0)])
    }
}
