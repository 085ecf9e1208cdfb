//! Digests that ranges of a file are checked with.

use crate::{ProtoError, Wire, check::Check, limits};

/// Digests of a file, one for each chunk. A model's digest is that of its encoded manifest: who knows it trusts no
/// mirror of the file.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Manifest {
    /// Bytes of the file.
    #[prost(uint64, tag = "1")]
    pub bytes: u64,
    /// Bytes of a chunk; the last may be shorter.
    #[prost(uint32, tag = "2")]
    pub chunk: u32,
    /// SHA-256 of each chunk, 32 bytes each.
    #[prost(bytes = "vec", tag = "3")]
    pub digests: Vec<u8>,
}

impl Manifest {
    /// Chunks of the file.
    pub fn chunks(&self) -> u64 {
        self.bytes.div_ceil(u64::from(self.chunk.max(1)))
    }

    /// The digest of a chunk.
    pub fn digest(&self, chunk: usize) -> Option<&[u8]> {
        self.digests.chunks_exact(limits::DIGEST_BYTES).nth(chunk)
    }
}

impl Wire for Manifest {
    const NAME: &'static str = "Manifest";
    const BYTES: usize = limits::MESSAGE_BYTES;

    fn check(&self) -> Result<(), ProtoError> {
        let check = Check(Self::NAME);
        check.holds("chunk", self.chunk >= limits::CHUNK_BYTES, "must be 65,536 bytes at least")?;
        let digests = (self.digests.len() / limits::DIGEST_BYTES) as u64;
        let whole = self.digests.len().is_multiple_of(limits::DIGEST_BYTES);
        check.holds("digests", whole && digests == self.chunks(), "must be 32 bytes for each chunk of the file")
    }
}
