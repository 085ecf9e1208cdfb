//! States of a sequence, which are on the device between steps.

use backend_api::{DType, Update};

/// Name of the state with token ids, one for each position.
pub const HISTORY: &str = "history";

/// Alignment of the positions of a sequence among others: devices require aligned offsets of bindings.
pub(crate) const ALIGNED: usize = 64;

/// A state that a session keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateSpec {
    /// The name in every graph of the model.
    pub name: String,
    /// The shape.
    pub shape: Vec<usize>,
    /// The dtype.
    pub dtype: DType,
    /// How a step changes it.
    pub update: Update,
}
