//! What native programs need besides: a clock, and waiting at the outermost edge.

use std::future::Future;
use std::task::Waker;
use std::time::{Duration, Instant};

use model::Host;

/// Short against a decode step, long against a poll.
const NAP: Duration = Duration::from_micros(50);

/// A program without an event loop: it sleeps for a moment where a browser would do other things.
#[derive(Debug, Clone, Copy)]
pub struct NativeHost(Instant);

impl Default for NativeHost {
    fn default() -> NativeHost {
        NativeHost(Instant::now())
    }
}

impl Host for NativeHost {
    fn wake_later(&self, waker: &Waker) {
        std::thread::sleep(NAP);
        waker.wake_by_ref();
    }

    fn now_ms(&self) -> f64 {
        self.0.elapsed().as_secs_f64() * 1e3
    }
}

/// Waits for a future. For the outermost edge of native programs only.
pub fn block_on<F: Future>(future: F) -> F::Output {
    pollster::block_on(future)
}
