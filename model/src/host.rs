//! What the program that embeds a model provides: its event loop and its clock.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use backend_api::{Backend, Error, ReadId, StorageId};

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
