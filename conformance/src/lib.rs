//! Holds every backend to the CPU reference, operator by operator.
//!
//! The [cases](suite::cases) are the operators' own; [`run::check`] runs one on a backend and on the reference and
//! [compares](backend_api::compare). Nothing in this library knows which backends there are, a file or a clock, so that it runs in
//! browsers as it does natively; the program in `runner` opens what the machine has.
#![forbid(unsafe_code)]

pub mod expect;
pub mod parts;
pub mod report;
pub mod run;
pub mod suite;
pub mod variants;
