//! `matmul`: `a * b^T`.
//!
//! *Operands*: a `[.., m, k]` f32; b `[n, k]` packed or `[.., n, k]` f32.
//! *Results*: `[.., m, n]` f32. Leading dimensions are batch: each pair is equal, or one divides the other and is
//! repeated in place (head `h` of `H` uses matrix `h * G / H` of `G`, as grouped-query attention does).

use super::describe::{Describe, F32, Output, arity, ensure, floats, shape};
use crate::tensor::{DType, Tensor};

/// See the [module page](self).
#[derive(Debug, Clone, PartialEq)]
pub struct MatMul;

impl Describe for MatMul {
    const NAME: &'static str = "matmul";
    const TOLERANCE: f64 = F32;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let [a, b] = arity(inputs)?;
        floats(&[a])?;
        ensure(b.dtype != DType::I32, || "b must hold numbers, not ids".into())?;
        ensure(a.shape.rank() >= 2 && b.shape.rank() >= 2, || "operands must be matrices".into())?;
        ensure(a.shape.cols() == b.shape.cols(), || "the inner dimensions differ".into())?;
        let ([a0, a1, m, _], [b0, b1, n, _]) = (a.shape.dims4(), b.shape.dims4());
        let join = |x: usize, y: usize| {
            let (small, large) = (x.min(y), x.max(y));
            ensure(large.is_multiple_of(small), || format!("batch dimensions {x} and {y} do not divide"))?;
            Ok::<usize, String>(large)
        };
        let dims = [join(a0, b0)?, join(a1, b1)?, m, n];
        let rank = a.shape.rank().max(b.shape.rank());
        Ok(vec![Output::New(shape(&dims[4 - rank..])?, DType::F32)])
    }
}
