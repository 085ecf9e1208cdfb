//! The clock that `llguidance` asks for in browsers. The crate of this name is without a maintainer; `[patch.crates-io]` puts this
//! one in its place.
#![forbid(unsafe_code)]

pub use web_time::Instant;
