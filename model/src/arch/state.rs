//! States of a text on the device from one step to the next.

use backend_api::{DType, Update};

/// The state of token ids, one for each position.
pub const HISTORY: &str = "history";

/// A state that a session keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateSpec {
    /// Its name in every graph of the model.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// How its values are stored.
    pub dtype: DType,
    /// Change that a step makes to it.
    pub update: Update,
}
