//! `matmul`: `a * b^T`.
//!
//! *Operands*: a `[.., m, k]` f32; b `[n, k]` packed or `[.., n, k]` f32.
//! *Results*: `[.., m, n]` f32. Leading dimensions are batch: each pair is equal, or one divides the other and is
//! repeated in place (head `h` of `H` uses matrix `h * G / H` of `G`, as grouped-query attention does).

use super::{Describe, F32, Output, arity, ensure, shape};
use crate::case::Case;
use crate::format::Format;
use crate::step::StepParams;
use crate::tensor::{DType, Tensor};

/// See the [module page](self).
#[derive(Debug, Clone, PartialEq)]
pub struct MatMul;

impl Describe for MatMul {
    const NAME: &'static str = "matmul";
    const TOLERANCE: f64 = F32;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let [a, b] = arity(inputs)?;
        super::floats(&[a])?;
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

    fn cases() -> Vec<Case> {
        let step = StepParams::at(0, 1);
        let mut cases = Vec::new();
        for format in Format::ALL {
            let ks: &[usize] = if format.spec().block_len == 256 { &[256, 768] } else { &[32, 96, 576] };
            for &k in ks {
                for (m, n) in [(1, 64), (1, 37), (5, 33), (20, 72)] {
                    cases.push(Case::new(MatMul, format!("{} {m}x{n}x{k}", format.name()), step, |o| {
                        vec![o.input(&[m, k]), o.packed(*format, n, k)]
                    }));
                }
            }
        }
        for (m, n, k) in [(1, 3, 7), (3, 2, 70), (1, 40, 33)] {
            for format in [Format::F32, Format::F16, Format::BF16] {
                cases.push(Case::new(MatMul, format!("{} odd {m}x{n}x{k}", format.name()), step, |o| {
                    vec![o.input(&[m, k]), o.packed(format, n, k)]
                }));
            }
        }
        let shapes: &[(&[usize], &[usize])] = &[
            (&[1, 1], &[1, 1]),
            (&[4, 64], &[8, 64]),
            (&[1, 576], &[100, 576]),
            (&[3, 60], &[5, 60]),
            (&[33, 65], &[17, 65]),
            (&[64, 128], &[96, 128]),
            (&[6, 5, 16], &[2, 9, 16]),
            (&[3, 1, 12], &[3, 7, 12]),
            (&[2, 4, 3, 20], &[1, 2, 5, 20]),
            (&[5, 8], &[3, 6, 8]),
        ];
        for (a, b) in shapes {
            cases.push(Case::new(MatMul, format!("f32 {a:?} {b:?}"), step, |o| vec![o.input(a), o.input(b)]));
        }
        cases
    }
}
