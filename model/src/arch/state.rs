//! States of a sequence, which are on the device between steps.

use backend_api::{DType, Update};

/// Name of the state with token ids, one for each position.
pub const HISTORY: &str = "history";

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
