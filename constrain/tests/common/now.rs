//! What is there at once.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// What a future gives that waits for nothing.
pub fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("bytes in memory are there at once"),
    }
}
