//! `get_rows`: rows of a table.
//!
//! *Operands*: table `[v, d]`, packed or f32; then, by [`Index`], ids.
//! *Results*: `[.., d]` f32. Ids outside `0..v` are clamped.

use super::{Describe, EXACT, Output, arity, ensure, shape};
use crate::case::Case;
use crate::format::Format;
use crate::step::StepParams;
use crate::tensor::{DType, Tensor};

/// Which rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Index {
    /// Operand 1, `[..]` i32: one row for each id.
    Ids,
    /// Operand 1 is the token history `[n_ctx]` i32: the ids at the step's position and after it, `rows` of them.
    Tokens {
        /// Rows of the result.
        rows: usize,
    },
    /// The step's position and the numbers after it, `rows` of them.
    Positions {
        /// Rows of the result.
        rows: usize,
    },
    /// The step's last real row alone (`StepParams::rows - 1`).
    Last,
}

/// See the [module page](self).
#[derive(Debug, Clone, PartialEq)]
pub struct GetRows {
    /// Which rows.
    pub index: Index,
}

impl Describe for GetRows {
    const NAME: &'static str = "get_rows";
    // Decoders associate as the formats are defined, so packed rows come out bit for bit (see `exact` of the suite for
    // the one exception, drivers that fuse multiply and add); copying rows computes nothing.
    const TOLERANCE: f64 = super::F32;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let table = *inputs.first().ok_or("takes a table")?;
        ensure(table.shape.rank() == 2, || "the table must be a matrix".into())?;
        ensure(table.dtype != DType::I32, || "the table must hold numbers, not ids".into())?;
        let d = table.shape.cols();
        let ids_must = |ok: bool| ensure(ok, || "ids must be i32".into());
        let out = match self.index {
            Index::Ids => {
                let [_, ids] = arity(inputs)?;
                ids_must(ids.dtype == DType::I32)?;
                let dims: Vec<usize> = ids.shape.dims().chain([d]).collect();
                shape(&dims)?
            }
            Index::Tokens { rows } => {
                let [_, history] = arity(inputs)?;
                ids_must(history.dtype == DType::I32 && history.shape.rank() == 1)?;
                ensure(rows <= history.shape.len(), || format!("{rows} rows exceed the history"))?;
                shape(&[rows, d])?
            }
            Index::Positions { rows } => {
                let [_] = arity(inputs)?;
                ensure(rows <= table.shape.dim(0), || format!("{rows} rows exceed the table"))?;
                shape(&[rows, d])?
            }
            Index::Last => {
                let [_] = arity(inputs)?;
                shape(&[1, d])?
            }
        };
        Ok(vec![Output::New(out, DType::F32)])
    }

    fn cases() -> Vec<Case> {
        let step = StepParams::at(3, 2);
        let mut cases = Vec::new();
        for format in Format::ALL {
            let k = if format.spec().block_len == 256 { 512 } else { 96 };
            let mut case = Case::new(GetRows { index: Index::Ids }, format!("packed {}", format.name()), step, |o| {
                vec![o.packed(*format, 40, k), o.ids(&[7], 40)]
            });
            case.tolerance = Self::TOLERANCE;
            cases.push(case);
        }
        let mut dense = |name: &str, index, v: usize, d: usize, ids: &[usize]| {
            let mut case = Case::new(GetRows { index }, format!("f32 {name}"), step, |o| match index {
                Index::Ids => vec![o.input(&[v, d]), o.ids(ids, v as u32)],
                Index::Tokens { .. } => vec![o.input(&[v, d]), o.history(16, v as u32)],
                Index::Positions { .. } | Index::Last => vec![o.input(&[v, d])],
            });
            case.tolerance = EXACT;
            cases.push(case);
        };
        dense("ids 2d", Index::Ids, 19, 33, &[3, 2]);
        dense("tokens", Index::Tokens { rows: 2 }, 19, 64, &[]);
        dense("positions", Index::Positions { rows: 2 }, 19, 30, &[]);
        dense("last", Index::Last, 5, 33, &[]);
        cases.push(Case::new(GetRows { index: Index::Ids }, "ids out of range are clamped", step, |o| {
            let table = o.packed(Format::Q8_0, 8, 32);
            vec![table, o.ids(&[12], 20)]
        }));
        cases
    }
}
