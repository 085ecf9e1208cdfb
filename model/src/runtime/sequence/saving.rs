//! Options of saving a text while it is generated.

use std::fmt;
use std::rc::Rc;

use super::snapshot::Snapshot;

/// Receiver of snapshots of a text that is being generated.
pub trait SnapshotSink {
    /// Returns the end of the earlier snapshots: rows before it are omitted in the next one.
    fn position(&self) -> usize;

    /// Returns whether it can take another snapshot now. The first and the last one of a generation are sent in any
    /// case.
    fn is_ready(&self) -> bool;

    /// Takes a snapshot.
    fn take(&self, snapshot: Snapshot);
}

/// Options of saving: the request is saved at once, new tokens at intervals, and the end when it comes.
#[derive(Clone)]
pub struct Saving {
    /// Least time from one snapshot to the next: the device is read, and idles meanwhile.
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
