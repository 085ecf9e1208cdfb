//! How a worker does, for those who do not wait for it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anygpu_pool_proto::Range;

/// Numbers that a worker writes while it works, and its transport reads for heartbeats.
#[derive(Debug, Clone, Default)]
pub struct Vitals(Arc<Numbers>);

#[derive(Debug, Default)]
struct Numbers {
    block_micros: AtomicU32,
    sessions: AtomicU32,
    bytes: AtomicU64,
    part: Mutex<Option<(Vec<u8>, Range)>>,
}

impl Vitals {
    /// Median time of a row through a block, of the stage that was measured last; 0 until one was.
    ///
    /// *Units*: microseconds.
    pub fn block_micros(&self) -> u32 {
        self.0.block_micros.load(Ordering::Relaxed)
    }

    /// Texts that are held.
    pub fn sessions(&self) -> u32 {
        self.0.sessions.load(Ordering::Relaxed)
    }

    /// Returns the size of the stage's weights in the file.
    ///
    /// *Units*: bytes.
    pub fn bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// The digest of the model that it has weights of, and the ranges that they are of: what a
    /// [`Hello`](anygpu_pool_proto::Hello) says is cached.
    pub fn cached(&self) -> (Vec<u8>, Vec<Range>) {
        let part = self.0.part.lock().unwrap_or_else(PoisonError::into_inner).clone();
        part.map_or_else(Default::default, |(model, range)| (model, vec![range]))
    }

    /// Records the time of a block at a stage; 0 if nothing was measured.
    pub(crate) fn measured(&self, block_micros: u32) {
        if block_micros > 0 {
            self.0.block_micros.store(block_micros, Ordering::Relaxed);
        }
    }

    /// Weights of a range of a model, by its digest, or none; and their bytes.
    pub(crate) fn has(&self, part: Option<(Vec<u8>, Range)>, bytes: u64) {
        *self.0.part.lock().unwrap_or_else(PoisonError::into_inner) = part;
        self.0.bytes.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn holds(&self, sessions: usize) {
        self.0.sessions.store(sessions as u32, Ordering::Relaxed);
    }
}
