//! Between a pool's coordinator and its broker: messages of workers become [`Event`](crate::Event)s, and
//! [`Action`](crate::Action)s become messages to them.
//!
//! Like the coordinator it has no clock and no I/O: whoever runs it brings messages and the time, and sends what comes
//! out. Names of workers, leases and what was asked are known here alone.

mod checks;
mod compare;
mod dispatcher;
mod picture;
mod said;
mod times;
mod traces;

pub use dispatcher::{Dispatcher, Out, Served};
pub use picture::{Picture, PicturedChain, PicturedStage};
pub use said::NotTaken;
pub use times::Times;
pub use traces::{Stage, Trace};
