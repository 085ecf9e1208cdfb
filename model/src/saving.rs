//! Saving a text while it is generated, so that whoever finds it can go on in the middle of the sentence.

use std::fmt;
use std::rc::Rc;

use backend_api::run::Host;

use crate::error::ModelError;
use crate::generate::Finish;
use crate::request::{GenerateOptions, SavedRequest};
use crate::session::Session;
use crate::snapshot::Snapshot;

/// Takes snapshots of a text that is being generated.
pub trait SnapshotSink {
    /// The position up to which an earlier snapshot has the text: rows before it are left out of the next one.
    fn position(&self) -> usize;

    /// Whether it can take another one now; the first and the last one of a generation come in any case.
    fn is_ready(&self) -> bool;

    /// Takes one.
    fn take(&self, snapshot: Snapshot);
}

/// How a text is saved while it is generated: what was asked at once, then what is new at intervals, and how it ended.
#[derive(Clone)]
pub struct Saving {
    /// From one snapshot to the next, at least: the device is read, and waits meanwhile.
    ///
    /// *Units*: milliseconds.
    pub every_ms: f64,
    /// Receiver of the snapshots.
    pub sink: Rc<dyn SnapshotSink>,
}

impl fmt::Debug for Saving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Saving").field("every_ms", &self.every_ms).finish_non_exhaustive()
    }
}

/// The saving of one generation.
pub(crate) struct Saver<'a> {
    saving: &'a Saving,
    options: &'a GenerateOptions,
    /// The prompt as it was asked, without what was generated.
    prompt: Vec<u32>,
    last_ms: f64,
    /// Generated tokens that the last snapshot has.
    last: Option<usize>,
    /// Whether the device refused to be read: it has memory for the text, but for no copy of it.
    failed: bool,
}

impl<'a> Saver<'a> {
    /// Starts saving a text that begins with tokens that are there, followed by a prompt.
    pub fn new(
        saving: &'a Saving,
        there: &[u32],
        prompt: &[u32],
        options: &'a GenerateOptions,
        now_ms: f64,
    ) -> Saver<'a> {
        let mut prompt = [there, prompt].concat();
        prompt.truncate(prompt.len().saturating_sub(options.done.len()));
        Saver { saving, options, prompt, last_ms: now_ms, last: None, failed: false }
    }

    /// Whether it is time for another snapshot, once there are so many tokens: of the same text one is enough.
    pub fn is_due(&self, generated: usize, now_ms: f64) -> bool {
        !self.failed
            && self.last != Some(generated)
            && now_ms - self.last_ms >= self.saving.every_ms
            && self.saving.sink.is_ready()
    }

    /// Saves the text with these tokens behind the prompt.
    ///
    /// *Errors*: the device was lost. Other failures end the saving, not the generation.
    pub async fn save(
        &mut self,
        session: &mut Session,
        generated: &[u32],
        finish: Option<Finish>,
        host: &dyn Host,
    ) -> Result<(), ModelError> {
        if self.failed || self.prompt.is_empty() {
            return Ok(());
        }
        let text = [&self.prompt[..], generated].concat();
        match session.export(&text, self.saving.sink.position(), host).await {
            Ok(mut snapshot) => {
                snapshot.set_sampling(self.options.sampling);
                snapshot.set_request(SavedRequest::of(self.options, self.prompt.len(), finish));
                self.saving.sink.take(snapshot);
            }
            Err(ModelError::Backend(lost @ backend_api::Error::Lost(_))) => return Err(lost.into()),
            Err(_) => self.failed = true,
        }
        (self.last_ms, self.last) = (host.now_ms(), Some(generated.len()));
        Ok(())
    }
}
