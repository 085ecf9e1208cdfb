//! The native end of asynchronous code: where a program that has nothing else to do waits.

use model::Host;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

/// How long to leave the processor to the driver before a read is asked for again. A software GPU needs it more than we.
const NAP: Duration = Duration::from_micros(50);

/// A clock, and naps between polls.
#[derive(Debug)]
pub struct Native(Instant);

impl Native {
    /// A clock that begins now.
    pub fn new() -> Native {
        Native(Instant::now())
    }
}

impl Host for Native {
    fn wake_later(&self, waker: &Waker) {
        thread::sleep(NAP);
        waker.wake_by_ref();
    }

    fn now_ms(&self) -> f64 {
        self.0.elapsed().as_secs_f64() * 1000.0
    }
}

/// Waits for a future that polls by itself, as all that is built on [`Host`] does.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}
