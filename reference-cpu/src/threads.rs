//! Threads: natively a pool that belongs to a backend. In browsers there are none, and parts are computed in turn.

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
    #[cfg(not(target_arch = "wasm32"))]
    if out.len() > len {
        use rayon::prelude::{IndexedParallelIterator, ParallelIterator, ParallelSliceMut};
        let parts = out.par_chunks_mut(len).zip(scratch.par_chunks_mut(scratch_len)).enumerate();
        return parts.for_each(|(index, (out, scratch))| work(index, out, scratch));
    }
    for (index, (out, scratch)) in out.chunks_mut(len).zip(scratch.chunks_mut(scratch_len)).enumerate() {
        work(index, out, scratch);
    }
}

/// The threads of a backend.
#[derive(Debug)]
pub(crate) struct Threads {
    #[cfg(not(target_arch = "wasm32"))]
    pool: Option<rayon::ThreadPool>,
    /// Why there is one thread where more were wanted.
    refused: Option<String>,
}

#[cfg(not(target_arch = "wasm32"))]
impl Threads {
    /// So many threads, by default as many as the machine runs at once; or one, if the system starts no others.
    pub fn new(wanted: Option<NonZeroUsize>) -> Threads {
        let wanted = wanted.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
        if wanted == 1 {
            return Threads::one();
        }
        let name = |index| format!("anygpu cpu {index}");
        match rayon::ThreadPoolBuilder::new().num_threads(wanted).thread_name(name).build() {
            Ok(pool) => Threads { pool: Some(pool), refused: None },
            Err(error) => Threads { pool: None, refused: Some(format!("{wanted} could not be started: {error}")) },
        }
    }

    /// The caller's thread alone.
    pub fn one() -> Threads {
        Threads { pool: None, refused: None }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.pool.as_ref().map_or(1, rayon::ThreadPool::current_num_threads)
    }

    /// Runs something on one of the threads, so that the others share in its parts.
    pub fn enter<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match &self.pool {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }
}

#[cfg(target_arch = "wasm32")]
impl Threads {
    /// The page's own: a browser has others only for pages with isolation headers.
    pub fn new(_: Option<NonZeroUsize>) -> Threads {
        Threads::one()
    }

    /// The caller's thread alone.
    pub fn one() -> Threads {
        Threads { refused: None }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        1
    }

    /// Runs something.
    pub fn enter<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        work()
    }
}

impl Threads {
    /// How many there are, for reports; with the reason where more were wanted.
    pub fn describe(&self) -> String {
        match &self.refused {
            Some(why) => format!("{}; {why}", self.count()),
            None => self.count().to_string(),
        }
    }
}
