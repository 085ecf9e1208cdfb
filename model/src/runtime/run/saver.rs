//! Snapshots during a generation, so that an interrupted one can be resumed.

use backend_api::run::Host;

use crate::error::ModelError;
use crate::runtime::sequence::{Saving, Sequence};
use crate::runtime::session::Session;

/// Saver of a generation.
pub(crate) struct Saver {
    saving: Saving,
    last_ms: f64,
    /// Number of generated tokens in the last snapshot.
    last: Option<usize>,
    /// Whether reading the device failed: it may have memory for the text, but not for a copy.
    failed: bool,
}

impl Saver {
    pub fn new(saving: Saving, now_ms: f64) -> Saver {
        Saver { saving, last_ms: now_ms, last: None, failed: false }
    }

    /// Returns whether it is time for another snapshot of a text with so many generated tokens.
    pub fn is_due(&self, generated: usize, now_ms: f64) -> bool {
        !self.failed
            && self.last != Some(generated)
            && now_ms - self.last_ms >= self.saving.every_ms
            && self.saving.sink.is_ready()
    }

    /// Saves a sequence whose states a session has.
    ///
    /// *Errors*: the device was lost. Other failures end the saving, not the generation.
    pub async fn save(
        &mut self,
        session: &mut Session,
        sequence: &Sequence,
        host: &dyn Host,
    ) -> Result<(), ModelError> {
        if self.failed || sequence.prompt_tokens() == 0 {
            return Ok(());
        }
        match session.export(sequence.text(), self.saving.sink.position(), host).await {
            Ok(mut snapshot) => {
                snapshot.set_sampling(sequence.options.sampling);
                sequence.request().into_iter().for_each(|request| snapshot.set_request(request));
                self.saving.sink.take(snapshot);
            }
            Err(ModelError::Backend(lost @ backend_api::Error::Lost(_))) => return Err(lost.into()),
            Err(_) => self.failed = true,
        }
        (self.last_ms, self.last) = (host.now_ms(), Some(sequence.tokens().len()));
        Ok(())
    }
}
