//! Threads: natively a pool that belongs to a backend; in the build for pages that may have threads one that belongs to the
//! module. In other browsers there are none, and parts are computed in turn.

#[cfg(not(target_arch = "wasm32"))]
#[path = "threads/native.rs"]
mod pool;
#[cfg(all(target_arch = "wasm32", target_feature = "atomics"))]
#[path = "threads/shared.rs"]
mod pool;
#[cfg(all(target_arch = "wasm32", not(target_feature = "atomics")))]
#[path = "threads/alone.rs"]
mod pool;

#[cfg(all(target_arch = "wasm32", target_feature = "atomics"))]
pub use pool::{compute, share};
use std::num::NonZeroUsize;

/// Multiply-adds that a part has at least. They take a core some 10 µs, while handing a part to a thread that is awake
/// takes 1 or 2, and waking one that sleeps takes up to 50.
const LEAST_WORK: usize = 1 << 16;

/// Parts for each thread: when one thread is held up, others take what it has not begun.
const PARTS_PER_THREAD: usize = 2;

/// The number of parts to cut `work` multiply-adds into, of which `units` can be told apart.
pub(crate) fn parts(threads: usize, units: usize, work: usize) -> usize {
    if threads == 1 { 1 } else { (work / LEAST_WORK).min(threads * PARTS_PER_THREAD).min(units).max(1) }
}

/// Calls `work` for parts of `len` values of `out`, the last of which may be shorter, with the number of the part and
/// `scratch_len` values of scratch memory of its own. In any order and, within [`Threads::enter`], at the same time.
pub(crate) fn for_each_part(
    out: &mut [f32],
    len: usize,
    scratch: &mut [f32],
    scratch_len: usize,
    work: impl Fn(usize, &mut [f32], &mut [f32]) + Sync,
) {
    #[cfg(any(not(target_arch = "wasm32"), target_feature = "atomics"))]
    if out.len() > len {
        return pool::for_each_part(out, len, scratch, scratch_len, work);
    }
    for (index, (out, scratch)) in out.chunks_mut(len).zip(scratch.chunks_mut(scratch_len)).enumerate() {
        work(index, out, scratch);
    }
}

/// The threads of a backend.
#[derive(Debug)]
pub(crate) struct Threads {
    pool: Option<pool::Pool>,
    /// Why there are fewer than were wanted.
    refused: Option<String>,
}

impl Threads {
    /// So many threads, by default as many as the machine runs at once; or fewer, if no others can be started.
    pub fn new(wanted: Option<NonZeroUsize>) -> Threads {
        let (pool, refused) = pool::open(wanted);
        Threads { pool, refused }
    }

    /// The caller's thread alone.
    pub fn one() -> Threads {
        Threads { pool: None, refused: None }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.pool.as_ref().map_or(1, pool::Pool::count)
    }

    /// Runs something on one of the threads, so that the others share in its parts.
    pub fn enter<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match &self.pool {
            Some(pool) => pool.enter(work),
            None => work(),
        }
    }

    /// How many there are, for reports; with the reason where more were wanted.
    pub fn describe(&self) -> String {
        match &self.refused {
            Some(why) => format!("{}; {why}", self.count()),
            None => self.count().to_string(),
        }
    }
}
