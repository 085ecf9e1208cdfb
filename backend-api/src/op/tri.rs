//! `tri`: a triangle of each matrix, and zeros elsewhere.
//!
//! *Operands*: x `[.., m, n]`. *Results*: like x.

use super::describe::{Describe, EXACT, Output, arity, ensure, floats};
use crate::tensor::{DType, Tensor};

/// Which triangle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TriKind {
    /// Columns from the diagonal on.
    UpperWithDiagonal,
    /// Columns after the diagonal.
    Upper,
    /// Columns up to the diagonal.
    LowerWithDiagonal,
    /// Columns before the diagonal.
    Lower,
}

impl TriKind {
    /// All triangles.
    pub const ALL: [TriKind; 4] =
        [TriKind::UpperWithDiagonal, TriKind::Upper, TriKind::LowerWithDiagonal, TriKind::Lower];

    /// Whether it is above the diagonal.
    pub const fn is_upper(self) -> bool {
        matches!(self, TriKind::UpperWithDiagonal | TriKind::Upper)
    }

    /// The fewest columns that its elements are away from the diagonal.
    pub const fn least(self) -> usize {
        match self {
            TriKind::UpperWithDiagonal | TriKind::LowerWithDiagonal => 0,
            TriKind::Upper | TriKind::Lower => 1,
        }
    }
}

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tri {
    /// Which triangle.
    pub kind: TriKind,
}

impl Describe for Tri {
    const NAME: &'static str = "tri";
    const TOLERANCE: f64 = EXACT;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let [x] = arity(inputs)?;
        floats(&[x])?;
        ensure(x.shape.rank() >= 2, || "takes matrices".into())?;
        Ok(vec![Output::New(x.shape, DType::F32)])
    }
}
