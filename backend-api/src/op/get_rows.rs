//! `get_rows`: rows of a table.
//!
//! *Operands*: table `[v, d]`, packed or f32; then, by [`Index`], ids.
//! *Results*: `[.., d]` f32. Ids outside `0..v` are clamped.

use super::describe::{Describe, F32, Output, arity, ensure, shape};
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
    /// The table's first row alone.
    First,
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
    const TOLERANCE: f64 = F32;

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
            Index::First | Index::Last => {
                let [_] = arity(inputs)?;
                shape(&[1, d])?
            }
        };
        Ok(vec![Output::New(out, DType::F32)])
    }
}
