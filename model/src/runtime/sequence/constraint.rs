//! Constraints on answers (structured output): tokens that cannot come next are masked on the device before one is
//! chosen. Formats such as JSON schemas are implemented in a separate crate.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;

use crate::error::ModelError;

/// Result of [`Constraint::allow`]: whether the answer may end.
pub type AllowFuture<'a> = Pin<Box<dyn Future<Output = Result<bool, ModelError>> + 'a>>;

/// Constraint on an answer: decides which tokens may come next.
pub trait Constraint: Debug {
    /// Sets the bits of the tokens that may follow `answer`: bit `id % 32` of word `id / 32`. All bits are clear at
    /// first. Returns whether the answer may end there. The bits of end-of-generation tokens are ignored. The call may
    /// wait, for example for another thread in a browser.
    ///
    /// The result must depend only on the answer, so that an interrupted one can be resumed. State of earlier calls may
    /// be cached.
    ///
    /// *Errors*: an answer that violates the constraint; a format that takes too much memory or time.
    fn allow<'a>(&'a self, answer: &'a [u32], tokens: &'a mut [u32]) -> AllowFuture<'a>;

    /// Returns the source of the constraint, in a form that its crate can compile again. It is saved with snapshots,
    /// and has at most [`MAX_CONSTRAINT`] bytes.
    fn source(&self) -> &str;
}

/// Most bytes of a constraint's source.
pub const MAX_CONSTRAINT: usize = 256 << 10;
