//! Pooling: how an embedding model combines the vectors of a text's tokens.

use std::fmt;
use std::str::FromStr;

use super::keys::Keys;
use crate::error::ModelError;

/// Pooling of the vectors of a text's tokens into one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pooling {
    /// No pooling: a vector for each token.
    None,
    /// The mean of all vectors.
    Mean,
    /// The first vector, of the class token (CLS).
    Cls,
    /// The last vector, which depends on all tokens if attention is causal.
    Last,
    /// Scores of a classifier, which reads one of these.
    Rank,
}

impl Pooling {
    /// All kinds, in the order of their numbers in files.
    pub const ALL: [Pooling; 5] = [Pooling::None, Pooling::Mean, Pooling::Cls, Pooling::Last, Pooling::Rank];

    /// Returns the name in options and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Pooling::None => "none",
            Pooling::Mean => "mean",
            Pooling::Cls => "cls",
            Pooling::Last => "last",
            Pooling::Rank => "rank",
        }
    }

    /// Reads the pooling of a file. Without an entry, an encoder does not pool, and a language model is not an
    /// embedding model.
    ///
    /// *Errors*: an unknown kind.
    pub(super) fn read(keys: &Keys<'_>, makes_no_text: bool) -> Result<Option<Pooling>, ModelError> {
        let key = "pooling_type";
        match keys.get::<u32>(key)? {
            None | Some(0) => Ok(makes_no_text.then_some(Pooling::None)),
            Some(kind) => match Pooling::ALL.get(kind as usize) {
                Some(pooling) => Ok(Some(*pooling)),
                None => Err(keys.wrong(key, format!("a pooling of the kind {kind} is not known"))),
            },
        }
    }
}

impl FromStr for Pooling {
    type Err = String;

    fn from_str(text: &str) -> Result<Pooling, String> {
        let known = Pooling::ALL.into_iter().find(|pooling| pooling.name() == text);
        known.ok_or_else(|| format!("a pooling of {text:?} is not known; choose none, mean, cls, last or rank"))
    }
}

impl fmt::Display for Pooling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
