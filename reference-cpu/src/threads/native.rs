//! Natively a backend starts threads of its own.

use rayon::prelude::{IndexedParallelIterator, ParallelIterator, ParallelSliceMut};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::num::NonZeroUsize;

/// Threads beside the caller's, which waits for them.
#[derive(Debug)]
pub(super) struct Pool(ThreadPool);

/// A pool of so many threads, if it is more than one; or why there is none.
pub(super) fn open(wanted: Option<NonZeroUsize>) -> (Option<Pool>, Option<String>) {
    let wanted = wanted.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    if wanted == 1 {
        return (None, None);
    }
    let name = |index| format!("anygpu cpu {index}");
    match ThreadPoolBuilder::new().num_threads(wanted).thread_name(name).build() {
        Ok(pool) => (Some(Pool(pool)), None),
        Err(error) => (None, Some(format!("{wanted} could not be started: {error}"))),
    }
}

impl Pool {
    pub fn count(&self) -> usize {
        self.0.current_num_threads()
    }

    pub fn enter<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.0.install(work)
    }
}

/// Several parts, each by whichever thread comes first.
pub(super) fn for_each_part(
    out: &mut [f32],
    len: usize,
    scratch: &mut [f32],
    scratch_len: usize,
    work: impl Fn(usize, &mut [f32], &mut [f32]) + Sync,
) {
    let parts = out.par_chunks_mut(len).zip(scratch.par_chunks_mut(scratch_len)).enumerate();
    parts.for_each(|(index, (out, scratch))| work(index, out, scratch));
}
