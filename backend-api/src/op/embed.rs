//! `embed`: token rows plus position rows.
//!
//! *Operands*: token table `[v, d]` packed; token history `[n_ctx]` i32; position table `[p, d]` packed.
//! *Results*: `[rows, d]`: for row i the token row of the history's entry at the step's position plus i, plus that
//! position's row. Ids and positions are clamped to the tables.

use super::{Describe, F32, GetRows, Index, Output, arity, ensure};
use crate::case::Case;
use crate::format::Format;
use crate::step::StepParams;
use crate::tensor::{DType, Tensor};

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Embed {
    /// Rows of the result.
    pub rows: usize,
}

impl Describe for Embed {
    const NAME: &'static str = "embed";
    const TOLERANCE: f64 = F32;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let [tokens, history, positions] = arity(inputs)?;
        let packed = |t: &Tensor| matches!(t.dtype, DType::Packed(_));
        ensure(packed(tokens) && packed(positions), || "tables must be packed".into())?;
        ensure(tokens.shape.cols() == positions.shape.cols(), || "tables have different widths".into())?;
        let rows = self.rows;
        GetRows { index: Index::Positions { rows } }.infer(&[positions])?;
        GetRows { index: Index::Tokens { rows } }.infer(&[tokens, history])
    }

    fn cases() -> Vec<Case> {
        let rows: &[(&str, Format, Format, usize, usize)] = &[
            ("decode", Format::Q8_0, Format::F32, 1, 512),
            ("prefill", Format::Q8_0, Format::F32, 5, 512),
            ("halves", Format::F16, Format::F16, 3, 40),
            ("same format", Format::F32, Format::F32, 2, 96),
        ];
        rows.iter()
            .map(|&(name, a, b, rows, d)| {
                Case::new(Embed { rows }, name, StepParams::at(3, rows as u32), |o| {
                    let tokens = o.packed(a, 50, d);
                    let history = o.history(24, 50);
                    vec![tokens, history, o.packed(b, 24, d)]
                })
            })
            .collect()
    }
}
