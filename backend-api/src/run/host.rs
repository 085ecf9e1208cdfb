//! Services that the program around a backend provides: its event loop and its clock.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use crate::backend::{Backend, Profile, ReadId, StorageId};
use crate::error::Error;

/// The surrounding event loop. Everything here waits by letting the host do other things for a turn.
pub trait Host {
    /// Has the waker woken after the host's other work has had a turn: a browser posts a message to itself, a native
    /// program sleeps for a moment.
    fn wake_later(&self, waker: &Waker);

    /// Tells that what was waited for has come: the next wait begins anew.
    fn arrived(&self) {}

    /// A clock that never goes back.
    ///
    /// *Units*: milliseconds from any fixed moment.
    fn now_ms(&self) -> f64;
}

impl dyn Host + '_ {
    /// Lets the host do other things for a turn. Allocates nothing.
    pub fn turn(&self) -> Turn<'_> {
        Turn { host: self, asked: false }
    }
}

/// The future of [`turn`](trait.Host.html#method.turn).
pub struct Turn<'a> {
    host: &'a dyn Host,
    asked: bool,
}

impl Future for Turn<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.asked {
            return Poll::Ready(());
        }
        self.asked = true;
        self.host.wake_later(context.waker());
        Poll::Pending
    }
}

/// A program without an event loop: it sleeps for a moment where a browser would do other things.
#[cfg(not(target_arch = "wasm32"))]
#[derive(Debug, Clone, Copy)]
pub struct NativeHost(std::time::Instant);

#[cfg(not(target_arch = "wasm32"))]
impl Default for NativeHost {
    fn default() -> NativeHost {
        NativeHost(std::time::Instant::now())
    }
}

#[cfg(not(target_arch = "wasm32"))]
impl Host for NativeHost {
    fn wake_later(&self, waker: &Waker) {
        // Short against a decode step, long against a poll.
        std::thread::sleep(std::time::Duration::from_micros(50));
        waker.wake_by_ref();
    }

    fn now_ms(&self) -> f64 {
        self.0.elapsed().as_secs_f64() * 1e3
    }
}

/// Waits until all programs that were compiled are [ready](Backend::ready).
///
/// *Errors*: the device was lost.
pub async fn ready(backend: &dyn Backend, host: &dyn Host) -> Result<(), Error> {
    while !backend.ready()? {
        host.turn().await;
    }
    Ok(())
}

/// Waits for a read that was begun.
///
/// *Errors*: `out` has another length than the rows read; the device was lost.
pub async fn finish_read(backend: &dyn Backend, read: ReadId, out: &mut [u8], host: &dyn Host) -> Result<(), Error> {
    while !backend.try_read(read, out)? {
        host.turn().await;
    }
    host.arrived();
    Ok(())
}

/// Waits for the times of a step's kernels.
///
/// *Units*: milliseconds.
///
/// *Errors*: the device was lost.
pub async fn finish_profile(mut profile: Box<dyn Profile>, host: &dyn Host) -> Result<Vec<f64>, Error> {
    loop {
        if let Some(times) = profile.try_read()? {
            return Ok(times);
        }
        host.turn().await;
    }
}

/// Reads rows of a storage as they are after all steps submitted so far.
///
/// *Errors*: rows out of range; `out` has another length than the rows; the device was lost.
pub async fn read_rows(
    backend: &dyn Backend,
    id: StorageId,
    first: usize,
    rows: usize,
    out: &mut [u8],
    host: &dyn Host,
) -> Result<(), Error> {
    let read = backend.read(id, first, rows)?;
    finish_read(backend, read, out, host).await
}
