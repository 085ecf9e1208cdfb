//! `argmax`: the index of the largest element of each row, the first of equals.
//!
//! *Operands*: x `[.., n]`. *Results*: `[..]` i32 (`[1]` for a vector).

use super::{Describe, EXACT, Output, arity, floats, shape};
use crate::case::{Case, Fill};
use crate::step::StepParams;
use crate::tensor::{DType, Tensor};

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArgMax;

impl Describe for ArgMax {
    const NAME: &'static str = "argmax";
    const TOLERANCE: f64 = EXACT;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let [x] = arity(inputs)?;
        floats(&[x])?;
        let rank = x.shape.rank();
        let dims: Vec<usize> = if rank > 1 { x.shape.dims().take(rank - 1).collect() } else { vec![1] };
        Ok(vec![Output::New(shape(&dims)?, DType::I32)])
    }

    fn cases() -> Vec<Case> {
        let rows: &[(&str, &[usize], Fill)] = &[
            ("one", &[1, 1], Fill::Shuffled),
            ("rows", &[7, 33], Fill::Shuffled),
            ("vocabulary", &[1, 49_152], Fill::Shuffled),
            ("odd vocabulary", &[2, 1001], Fill::Shuffled),
            ("3d", &[2, 3, 100], Fill::Uniform(-5.0, 5.0)),
            ("ties", &[5, 300], Fill::Values(vec![0.0, 2.0, 1.0, 2.0, -1.0, 2.0, 0.5])),
            ("all equal", &[2, 65], Fill::Values(vec![-3.0])),
            ("negative", &[3, 50], Fill::Uniform(-1e30, -1e20)),
        ];
        rows.iter()
            .map(|(name, dims, fill)| {
                Case::new(ArgMax, *name, StepParams::at(0, 1), |o| vec![o.filled(dims, fill.clone())])
            })
            .collect()
    }
}
