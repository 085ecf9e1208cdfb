//! A pool by a NATS server: the coordinator, and workers that are native processes.
//!
//! [`coordinate`] carries what a [`Dispatcher`](anygpu_pool::dispatch::Dispatcher) sends and is told, and answers what is
//! [asked](anygpu::handle::elsewhere). [`work`] carries what a [`Worker`](anygpu_pool_worker::Worker) is told. Neither knows
//! more of messages than who takes them.
#![forbid(unsafe_code)]

mod connect;
mod coordinate;
mod ears;
mod error;
mod facts;
mod grant;
mod presence;
mod server;
mod texts;
mod work;

pub use connect::reachable;
pub use coordinate::{Coordinating, Telling, coordinate};
pub use error::PoolError;
pub use facts::{load, random};
pub use server::{Server, Users};
pub use work::{Note, Working, work};
