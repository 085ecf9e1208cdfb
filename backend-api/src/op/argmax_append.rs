//! `argmax_append`: the index of the largest element, written into the token history after the step's rows.
//!
//! *Operands*: token history, a state `[n_ctx]` i32; x `[1, n]`. *Results*: the history.

use super::{Append, ArgMax, At, Describe, EXACT, Output, arity, ensure};
use crate::case::{Case, Fill};
use crate::step::StepParams;
use crate::tensor::{DType, Kind, Tensor};

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArgMaxAppend;

impl Describe for ArgMaxAppend {
    const NAME: &'static str = "argmax_append";
    const TOLERANCE: f64 = EXACT;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let [history, x] = arity(inputs)?;
        ensure(x.shape.rows() == 1, || "x must be one row".into())?;
        let ids = ArgMax.infer(&[x])?;
        let [Output::New(shape, DType::I32)] = ids.as_slice() else { return Err("x has no index".into()) };
        let id = Tensor { name: "id".into(), shape: *shape, dtype: DType::I32, kind: Kind::Temporary };
        Append { at: At::Next }.infer(&[history, &id])
    }

    fn cases() -> Vec<Case> {
        let case = |name: &str, n: usize, fill: Fill, step| {
            Case::new(ArgMaxAppend, name, step, |o| vec![o.history(16, 100), o.filled(&[1, n], fill)])
        };
        vec![
            case("decode", 5256, Fill::Shuffled, StepParams::at(4, 1)),
            case("after prefill", 49_152, Fill::Shuffled, StepParams::at(0, 7)),
            case("ties", 300, Fill::Values(vec![0.0, 2.0, 1.0, 2.0]), StepParams::at(14, 1)),
            case("history is full", 100, Fill::Shuffled, StepParams::at(15, 1)),
        ]
    }
}
