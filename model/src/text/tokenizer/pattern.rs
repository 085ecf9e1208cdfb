//! Expressions of tokenizers, as automata that are built as far as texts need them: linear time on any text.

use std::ops::Range;
use std::sync::Arc;

use regex_automata::hybrid::regex::{Cache, Regex};
use regex_automata::util::pool::Pool;
use regex_automata::util::syntax;

use super::TokenizerError;

/// Maker of a cache for a search.
type MakeCache = Box<dyn Fn() -> Cache + Send + Sync>;

/// Compiled expressions, which are searched for at once.
#[derive(Debug)]
pub(super) struct Pattern {
    regex: Arc<Regex>,
    caches: Pool<Cache, MakeCache>,
}

impl Pattern {
    /// Compiles expressions. Of two that match at one place, the first counts.
    ///
    /// *Errors*: one does not compile.
    pub fn new(expressions: &[&str]) -> Result<Pattern, TokenizerError> {
        let regex = Regex::builder()
            .syntax(syntax::Config::new().utf8(false))
            .build_many(expressions)
            .map_err(|e| TokenizerError::Expression(e.to_string()))?;
        let regex = Arc::new(regex);
        let of = Arc::clone(&regex);
        let make: MakeCache = Box::new(move || of.create_cache());
        Ok(Pattern { regex, caches: Pool::new(make) })
    }

    /// Finds the first match: which expression it is of, and where it lies.
    pub fn find(&self, text: &[u8]) -> Option<(usize, Range<usize>)> {
        let found = self.regex.find(&mut self.caches.get(), text)?;
        Some((found.pattern().as_usize(), found.range()))
    }

    /// Finds all matches, one after another. None is empty.
    pub fn find_all(&self, text: &str) -> impl Iterator<Item = Range<usize>> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let (_, found) = self.find(&text.as_bytes()[at..])?;
            let range = at + found.start..at + found.end;
            at = range.end;
            Some(range)
        })
    }
}
