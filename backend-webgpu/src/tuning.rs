//! The kernels' tunables, with defaults that do on any device: none changes what is computed.

/// Invocations of a workgroup of the matrix-vector kernels.
pub const VEC_WG: usize = 64;
/// Invocations that are enough to hide the latency of weights; with more rows than that, fewer share a row.
pub const VEC_INVOCATIONS: usize = 32_768;
/// Rows of x and of weights in a tile of the matrix-matrix kernel.
pub const TILE: (usize, usize) = (32, 64);
/// Invocations of an attention workgroup; as many keys are scored at a time.
pub const ATTENTION_WG: usize = 128;
/// Parts that one query's keys are cut into at most.
pub const SPLITS: usize = 32;
/// Invocations of a workgroup that scores such a part, and the fewest keys of one.
pub const SPLIT_WG: usize = 64;
/// Vectors of four of a value head up to which values are loaded before their weights are known.
pub const SPLIT_EARLY: usize = 16;
/// Invocations of a workgroup that joins them, each of which does so for itself.
pub const PARTS_WG: usize = 256;
/// Parts that are loaded at a time when they are joined.
pub const SPLIT_JOIN: usize = 4;
/// Invocations that search a row.
pub const SEARCH_WG: usize = 256;
/// Loads that each of them has under way.
pub const SEARCH_LOADS: usize = 8;
/// Invocations that share a row of a norm or a softmax.
pub const ROW_WG: usize = 64;
/// Invocations of a workgroup of elementwise kernels.
pub const WG: usize = 64;
