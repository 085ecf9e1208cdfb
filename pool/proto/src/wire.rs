//! Encoding and decoding, with bounds.

use prost::Message;

use crate::{ProtoError, check::Check, limits};

/// A message that goes over the wire.
///
/// *Errors*: [`from_wire`](Wire::from_wire) refuses what is longer than the kind of message may be before it reads any of
/// it, what is malformed, and what [`check`](Wire::check) refuses. It takes memory in proportion to the bytes given.
pub trait Wire: Message + Default {
    /// The message's name in `pool.proto`.
    const NAME: &'static str;
    /// Bytes that it may have.
    const BYTES: usize = limits::CONTROL_BYTES;

    /// Whether lengths are within bounds, and fields agree with each other.
    fn check(&self) -> Result<(), ProtoError>;

    /// The message that `bytes` are.
    fn from_wire(bytes: &[u8]) -> Result<Self, ProtoError> {
        Check(Self::NAME).at_most("its length", bytes.len() as u64, Self::BYTES as u64)?;
        let message = Self::decode(bytes)
            .map_err(|cause| ProtoError::Malformed { message: Self::NAME, cause: cause.to_string() })?;
        message.check()?;
        Ok(message)
    }

    /// The message's bytes; refused where the receiver would refuse them.
    fn to_wire(&self) -> Result<Vec<u8>, ProtoError> {
        self.check()?;
        Check(Self::NAME).at_most("its length", self.encoded_len() as u64, Self::BYTES as u64)?;
        Ok(self.encode_to_vec())
    }
}
