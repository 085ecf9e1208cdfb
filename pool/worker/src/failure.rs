//! Why a worker did not do what it was asked.

use anygpu::{EngineError, ModelError, StageError};
use anygpu_pool_proto::{Failure, ProtoError, Reason, limits};

/// A message that a worker does not act on, or could not.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{detail}")]
pub struct Refused {
    /// In a word.
    pub reason: Reason,
    /// In one line, for a person.
    pub detail: String,
}

impl Refused {
    /// With a reason and its explanation.
    pub fn new(reason: Reason, detail: impl Into<String>) -> Refused {
        Refused { reason, detail: detail.into() }
    }

    /// The message that says so.
    pub(crate) fn message(self, session: u64, epoch: u64) -> Failure {
        let mut detail = self.detail;
        let end = (0..=limits::DETAIL_BYTES.min(detail.len())).rev().find(|at| detail.is_char_boundary(*at));
        detail.truncate(end.unwrap_or(0));
        Failure { session, epoch, reason: self.reason.into(), detail }
    }
}

impl From<ProtoError> for Refused {
    fn from(error: ProtoError) -> Refused {
        Refused::new(Reason::Malformed, error.to_string())
    }
}

impl From<ModelError> for Refused {
    fn from(error: ModelError) -> Refused {
        EngineError::from(error).into()
    }
}

impl From<EngineError> for Refused {
    fn from(error: EngineError) -> Refused {
        let reason = match &error {
            error if error.is_out_of_memory() => Reason::OutOfMemory,
            error if error.lost().is_some() => Reason::DeviceLost,
            EngineError::Model(ModelError::Stage(StageError::Position { .. })) => Reason::OutOfOrder,
            EngineError::Model(ModelError::Source(_)) => Reason::Fetch,
            _ => Reason::Malformed,
        };
        Refused::new(reason, error.to_string())
    }
}
