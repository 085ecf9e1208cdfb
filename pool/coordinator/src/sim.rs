//! Simulated pools: many workers that come and go, and the coordinator's own code.
//!
//! Discrete events, one seed, no clock: the same [`Scenario`] gives the same [`Report`] on every machine. Workers are
//! speeds, links and lifetimes; what they are told comes from [`Coordinator`](crate::Coordinator), which cannot tell them from
//! real ones. Text is not computed: a token is a number, and that none is skipped is what the coordinator's own tests
//! are for.
//!
//! [`day`] simulates a pool under a load that follows the sun; [`churn`] the protocol by which a thesis measured the
//! availability of its pool.

mod chance;
mod churn;
mod day;
mod report;
mod scenario;
mod work;
mod world;

pub use churn::{Churn, Loss, Machines, churn, losses};
pub use day::day;
pub use report::{Quantiles, Report, STALL};
pub use scenario::{Failure, Scenario};
