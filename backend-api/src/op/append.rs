//! `append`: writes rows into a state.
//!
//! *Operands*: state `[n_ctx, ..]`; x `[t, ..]` of the same dtype, or f32 where the state has halves, and row size.
//! *Results*: the state, with the step's real rows of x (`StepParams::rows`, at most t) written from the row that
//! [`At`] gives. Rows beyond the state's end are dropped. All other rows stay as they are.

use super::{Describe, EXACT, Output, arity, ensure};
use crate::case::{Case, Fill};
use crate::step::StepParams;
use crate::tensor::{DType, Kind, Tensor};

/// Where rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum At {
    /// From the step's position, as many as the step has real rows.
    Position,
    /// One row, right after the step's real rows: where the next token belongs.
    Next,
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
        ensure(state.kind == Kind::State, || "operand 0 must be a state".into())?;
        let rounds = (state.dtype, x.dtype) == (DType::F16, DType::F32);
        let fits = rounds || (state.dtype == x.dtype && !matches!(x.dtype, DType::Packed(_)));
        ensure(fits, || "dtypes differ".into())?;
        let rank = state.shape.rank();
        let same = rank == x.shape.rank() && rank >= 1 && state.shape.dims().skip(1).eq(x.shape.dims().skip(1));
        ensure(same, || "rows have different shapes".into())?;
        ensure(x.shape.dim(0) <= state.shape.dim(0), || "there are more rows than the state has".into())?;
        ensure(self.at == At::Position || x.shape.dim(0) == 1, || "only one row can be next".into())?;
        Ok(vec![Output::Continues(0)])
    }

    fn cases() -> Vec<Case> {
        let dense = |name: &str, n: usize, t: usize, d: usize, step| {
            Case::new(Append { at: At::Position }, name, step, |o| vec![o.state(&[n, d]), o.input(&[t, d])])
        };
        let halves = |name: &str, t: usize, d: usize, step| {
            let wide = Fill::Uniform(-1000.0, 1000.0);
            Case::new(Append { at: At::Position }, name, step, |o| vec![o.halves(&[12, d]), o.filled(&[t, d], wide)])
        };
        vec![
            dense("one row", 12, 1, 192, StepParams::at(5, 1)),
            dense("some rows", 12, 4, 33, StepParams::at(3, 4)),
            dense("fewer real rows", 12, 4, 20, StepParams::at(3, 2)),
            dense("at the end", 12, 1, 20, StepParams::at(11, 1)),
            dense("wide and folded", 3, 1, 5000, StepParams::at(1, 1)),
            halves("halves, one row", 1, 192, StepParams::at(5, 1)),
            halves("halves, fewer real rows", 4, 40, StepParams::at(9, 2)),
            halves("halves, at the end", 3, 8, StepParams::at(10, 2)),
            Case::new(Append { at: At::Next }, "next token", StepParams::at(4, 3), |o| {
                vec![o.history(16, 1000), o.ids(&[1], 50_000)]
            }),
            Case::new(Append { at: At::Next }, "next row", StepParams::at(4, 3), |o| {
                vec![o.state(&[9, 6]), o.filled(&[1, 6], Fill::Uniform(-3.0, 3.0))]
            }),
        ]
    }
}
