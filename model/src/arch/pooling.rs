//! How an embedding model makes one vector of a text.

use std::fmt;
use std::str::FromStr;

use super::keys::Keys;
use crate::error::ModelError;

/// Pooling of the vectors that a model makes of the tokens of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pooling {
    /// All of them are kept.
    None,
    /// Their mean.
    Mean,
    /// The first, of a token that stands for the whole text.
    Cls,
    /// The last, which has seen all others where attention is causal.
    Last,
}

impl Pooling {
    /// All ways, in the order of their numbers in files.
    pub const ALL: [Pooling; 4] = [Pooling::None, Pooling::Mean, Pooling::Cls, Pooling::Last];

    /// Its name in options and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Pooling::None => "none",
            Pooling::Mean => "mean",
            Pooling::Cls => "cls",
            Pooling::Last => "last",
        }
    }

    /// Reads the pooling of a file; a model that makes no text does not pool unless the file says so.
    ///
    /// *Errors*: a way that is not known, or that makes no vector.
    pub(super) fn read(keys: &Keys<'_>, makes_no_text: bool) -> Result<Option<Pooling>, ModelError> {
        let key = "pooling_type";
        match keys.get::<u32>(key)? {
            None | Some(0) => Ok(makes_no_text.then_some(Pooling::None)),
            Some(1) => Ok(Some(Pooling::Mean)),
            Some(2) => Ok(Some(Pooling::Cls)),
            Some(3) => Ok(Some(Pooling::Last)),
            Some(4) => Err(keys.wrong(key, "pooling of the kind rank scores pairs of texts, which is not supported")),
            Some(other) => Err(keys.wrong(key, format!("a pooling of the kind {other} is not known"))),
        }
    }
}

impl FromStr for Pooling {
    type Err = String;

    fn from_str(text: &str) -> Result<Pooling, String> {
        let known = Pooling::ALL.into_iter().find(|pooling| pooling.name() == text);
        known.ok_or_else(|| format!("a pooling of {text:?} is not known; choose none, mean, cls or last"))
    }
}

impl fmt::Display for Pooling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
