//! The checks that messages are made of.

use crate::{ProtoError, limits};

/// The checks of one kind of message.
pub(crate) struct Check(pub &'static str);

impl Check {
    /// `got` may be `limit` and no more.
    pub fn at_most(&self, field: &'static str, got: u64, limit: u64) -> Result<(), ProtoError> {
        if got <= limit { Ok(()) } else { Err(ProtoError::TooMuch { message: self.0, field, got, limit }) }
    }

    /// `good` must hold of the field, else it `problem`.
    pub fn holds(&self, field: &'static str, good: bool, problem: &'static str) -> Result<(), ProtoError> {
        if good { Ok(()) } else { Err(ProtoError::Invalid { message: self.0, field, problem }) }
    }

    /// A SHA-256 digest.
    pub fn digest(&self, field: &'static str, digest: &[u8]) -> Result<(), ProtoError> {
        self.holds(field, digest.len() == limits::DIGEST_BYTES, "must be a SHA-256 digest of 32 bytes")
    }

    /// A part of a subject: a worker's name or a lease.
    pub fn name(&self, field: &'static str, name: &str) -> Result<(), ProtoError> {
        self.at_most(field, name.len() as u64, limits::NAME_BYTES as u64)?;
        let good = |c: u8| c.is_ascii_alphanumeric() || c == b'-' || c == b'_';
        self.holds(field, !name.is_empty() && name.bytes().all(good), "must be of letters, digits, - and _")
    }

    /// A subject without wildcards.
    pub fn subject(&self, field: &'static str, subject: &str) -> Result<(), ProtoError> {
        self.at_most(field, subject.len() as u64, limits::NAME_BYTES as u64)?;
        subject.split('.').try_for_each(|part| self.name(field, part))
    }

    /// Rows [from, to) of a session.
    pub fn rows(&self, field: &'static str, from: u32, to: u32) -> Result<(), ProtoError> {
        self.at_most(field, to.into(), limits::CONTEXT.into())?;
        self.holds(field, from < to, "must begin before it ends")
    }
}
