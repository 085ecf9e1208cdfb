//! Results of kernels that a watcher may read.

use crate::tensor::{DType, Kind, Tensor};

/// A matrix of floats that a kernel makes. It lies in a slot, in an output or in scratch memory, and is there until another
/// kernel of the step takes that for something else.
///
/// *Shapes*: row-major, as everywhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// The tensor's name; of what is no tensor of the graph, the kernel's.
    pub name: String,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
}

impl Made {
    /// The matrix that a tensor is; none if it holds no floats, or is a state, which is the caller's to read.
    pub fn of(tensor: &Tensor) -> Option<Made> {
        let is_state = matches!(tensor.kind, Kind::State(_));
        let matrix = || Made { name: tensor.name.clone(), rows: tensor.shape.rows(), cols: tensor.shape.cols() };
        (tensor.dtype == DType::F32 && !is_state).then(matrix)
    }
}
