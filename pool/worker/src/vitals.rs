//! How a worker does, for those who do not wait for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Numbers that a worker writes while it works, and its transport reads for heartbeats.
#[derive(Debug, Clone, Default)]
pub struct Vitals(Arc<Numbers>);

#[derive(Debug, Default)]
struct Numbers {
    block_micros: AtomicU32,
    sessions: AtomicU32,
    bytes: AtomicU64,
}

impl Vitals {
    /// Median time of a row through a block; 0 until a stage was loaded.
    ///
    /// *Units*: microseconds.
    pub fn block_micros(&self) -> u32 {
        self.0.block_micros.load(Ordering::Relaxed)
    }

    /// Texts that are held.
    pub fn sessions(&self) -> u32 {
        self.0.sessions.load(Ordering::Relaxed)
    }

    /// What the weights of the stage take, in the file.
    ///
    /// *Units*: bytes.
    pub fn bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn loaded(&self, block_micros: u32, bytes: u64) {
        self.0.block_micros.store(block_micros, Ordering::Relaxed);
        self.0.bytes.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn holds(&self, sessions: usize) {
        self.0.sessions.store(sessions as u32, Ordering::Relaxed);
    }
}
