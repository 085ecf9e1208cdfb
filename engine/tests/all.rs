//! Tests in one program, as each more takes ten seconds to link. Those of whole models, which are chosen by name, and that of
//! costs, which counts allocations of its whole process, have their own.

mod backends;
mod constrained;
mod drivers;
mod finite;
mod long;
mod noise;
mod overflow;
mod parts;
mod remembered;
mod sampling;
mod select;
mod shapes;
mod stages;
mod streams;
mod tuning;
mod watch;

/// The story model.
static GAB: &[u8] = include_bytes!("../../models/gab-q4_0.gguf");
