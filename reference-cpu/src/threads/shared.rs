//! On pages that may have threads these are workers, which share the memory of the module. Workers start by messages, so
//! that whoever wants some has to wait for turns of the event loop: the package starts them, and then says how many came.
//!
//! The caller's thread is one of them, and waits in rayon's joins. Pages must not wait, so that theirs never shares.

use rayon::prelude::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
use rayon::{ThreadBuilder, ThreadPool, ThreadPoolBuilder, Yield};
use std::hint::spin_loop;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The threads of the module, once they were started; or why there are fewer than were wanted.
static STARTED: OnceLock<(Option<ThreadPool>, Option<String>)> = OnceLock::new();

/// Threads that workers that came have to run.
static SEATS: Mutex<Vec<ThreadBuilder>> = Mutex::new(Vec::new());

/// Makes the calling thread and `others`, which call [`compute`] from now on, the threads of every [`Cpu`](crate::Cpu)
/// that is opened later. `refused`: why there are no more. The first call is the one that counts.
pub fn share(others: usize, refused: Option<String>) {
    let seat = |thread| {
        SEATS.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        Ok(())
    };
    STARTED.get_or_init(|| {
        if others == 0 {
            return (None, refused);
        }
        let all = ThreadPoolBuilder::new().num_threads(others + 1).use_current_thread().spawn_handler(seat).build();
        match all {
            Ok(pool) => (Some(pool), refused),
            Err(error) => (None, Some(format!("{} could not be joined: {error}", others + 1))),
        }
    });
}

/// Computes what the thread that shares has for it, for as long as the worker lives.
pub fn compute() {
    let seat = SEATS.lock().unwrap_or_else(PoisonError::into_inner).pop();
    if let Some(seat) = seat {
        seat.run();
    }
}

/// The threads of the module.
#[derive(Debug)]
pub(super) struct Pool(&'static ThreadPool);

pub(super) fn open(wanted: Option<NonZeroUsize>) -> (Option<Pool>, Option<String>) {
    match STARTED.get() {
        Some((pool, refused)) if wanted.is_none_or(|wanted| wanted.get() > 1) => {
            (pool.as_ref().map(Pool), refused.clone())
        }
        _ => (None, None),
    }
}

impl Pool {
    pub fn count(&self) -> usize {
        self.0.current_num_threads()
    }

    /// The others stay awake while there is work: between two operators they would fall asleep, and a browser takes up
    /// to 50 µs to wake one of them.
    pub fn enter<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        let (awake, done) = (AtomicUsize::new(0), AtomicBool::new(false));
        self.0.in_place_scope(|scope| {
            scope.spawn_broadcast(|_, thread| {
                // Whoever comes late may have come in the middle of a part, which has to go on. The caller's thread has the work.
                if thread.index() == 0 || awake.fetch_add(1, Ordering::SeqCst) >= LATE {
                    return;
                }
                let mut in_vain = 0;
                while in_vain < LOOKS / LOOKS_OF_A_SEARCH && !done.load(Ordering::Acquire) {
                    match rayon::yield_now() {
                        Some(Yield::Executed) => in_vain = 0,
                        _ => in_vain += 1,
                    }
                }
            });
            let others = self.count() - 1;
            look_until(|| awake.load(Ordering::SeqCst) == others);
            awake.fetch_add(LATE, Ordering::SeqCst);
            let result = work();
            done.store(true, Ordering::Release);
            result
        })
    }
}

/// Added to the count of threads that are awake once no more are waited for.
const LATE: usize = 1 << 16;

/// How often a thread looks for something before it gives up, and perhaps sleeps: some 100 µs. On a machine that has others to
/// run, whoever is waited for may need the very core that looks.
const LOOKS: usize = 1 << 17;

/// Cost of a search for work, in looks at a number.
const LOOKS_OF_A_SEARCH: usize = 64;

/// Looks for something for a while.
fn look_until(found: impl Fn() -> bool) {
    for _ in 0..LOOKS {
        if found() {
            return;
        }
        spin_loop();
    }
}

/// Several parts, each by whichever thread comes first. Who has no more of them stays awake for a while until all are done, for
/// the same reason.
pub(super) fn for_each_part(
    out: &mut [f32],
    len: usize,
    scratch: &mut [f32],
    scratch_len: usize,
    work: impl Fn(usize, &mut [f32], &mut [f32]) + Sync,
) {
    let left = AtomicUsize::new(out.len().div_ceil(len));
    let parts = Mutex::new(out.chunks_mut(len).zip(scratch.chunks_mut(scratch_len)).enumerate());
    let next = || parts.lock().unwrap_or_else(PoisonError::into_inner).next();
    (0..rayon::current_num_threads()).into_par_iter().with_max_len(1).for_each(|_| {
        while let Some((index, (out, scratch))) = next() {
            work(index, out, scratch);
            left.fetch_sub(1, Ordering::Release);
        }
        look_until(|| left.load(Ordering::Acquire) == 0);
    });
}
