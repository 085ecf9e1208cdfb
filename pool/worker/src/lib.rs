//! A worker of a pool: it has a stage of a model, and states of the texts that pass through it.
//!
//! [`Worker::deliver`] takes a message that came to one of the worker's subjects, and says what is to be sent: to the
//! stage that follows, to whoever watches, and as the answer. It has no transport: natively it lives on a
//! [thread of its own](Thread) beside a client of the broker, in browsers within the page's worker.
#![forbid(unsafe_code)]

mod checked;
mod failure;
mod guess;
mod held;
mod identity;
mod loaded;
#[cfg(not(target_arch = "wasm32"))]
mod thread;
mod vitals;
mod worker;

pub use checked::{Chunks, GotFuture, PutFuture};
pub use failure::Refused;
pub use guess::guess;
pub use identity::name;
pub use loaded::{Models, OpenFuture, Opened};
#[cfg(not(target_arch = "wasm32"))]
pub use thread::{Delivery, Thread};
pub use vitals::Vitals;
pub use worker::{Message, Worker};
