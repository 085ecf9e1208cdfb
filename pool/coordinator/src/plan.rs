//! Which worker of a pool computes which blocks of a model.
//!
//! Plans take all blocks of a model for alike, and the price of a hop depends on one worker alone. So it does not matter in which
//! order workers stand, only how many blocks each has; a chain is found exactly, by dynamic programming over workers
//! ([`fastest`]), where orders would have to be searched otherwise. Pure: no clock, no I/O, no chance.

mod chain;
mod deal;
mod input;
mod latency;
mod throughput;

pub use chain::{Chain, Stage};
pub use deal::{Deal, Spare, deal};
pub use input::{Aim, Model, Worker};
pub use latency::{fastest, states};
pub use throughput::busiest;
