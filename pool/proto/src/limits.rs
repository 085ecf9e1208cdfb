//! Bounds of messages. Everything that is decoded is checked against them.

/// Bytes of a message that carries a payload, which is also what the broker is told to let through (`max_payload`).
pub const MESSAGE_BYTES: usize = 8 << 20;
/// Bytes of a message without a payload.
pub const CONTROL_BYTES: usize = 64 << 10;
/// Blocks of a model.
pub const BLOCKS: u32 = 1024;
/// Rows of one step: a chunk of a prompt.
pub const ROWS: u32 = 4096;
/// Numbers of a row of activations.
pub const WIDTH: u32 = 65_536;
/// Positions of a session.
pub const CONTEXT: u32 = 1 << 20;
/// Sessions that a worker holds states for.
pub const SESSIONS: u32 = 256;
/// Stages of a chain.
pub const STAGES: usize = 64;
/// Ranges that a worker says it has cached.
pub const CACHED: usize = 256;
/// Bytes of an address of a model.
pub const ADDRESS_BYTES: usize = 2048;
/// Bytes of a subject, a worker's name or a lease.
pub const NAME_BYTES: usize = 128;
/// Bytes of a failure's explanation.
pub const DETAIL_BYTES: usize = 1024;
/// Bytes of a SHA-256 digest.
pub const DIGEST_BYTES: usize = 32;
/// The smallest chunk of a manifest, so that a large file has not too many.
pub const CHUNK_BYTES: u32 = 64 << 10;
