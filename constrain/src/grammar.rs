//! A compiled format, and the tokens that it allows next.

use std::cell::RefCell;
use std::fmt;
use std::future::ready;
use std::rc::Rc;

use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory};
use model::{AllowFuture, Constraint, MAX_CONSTRAINT, ModelError};

use crate::dead_ends;
use crate::error::FormatError;

/// Error of a format that an answer could begin and never finish.
pub(crate) const DEAD_END: &str = "a part of it leads to where nothing can follow";
/// Beginning of the library's error for a schema that no value follows.
pub(crate) const UNSATISFIABLE: &str = "Unsatisfiable schema";

/// A compiled format. It can be sent to the thread that generates, and cloned for further answers.
#[derive(Clone)]
pub struct Grammar {
    matcher: Matcher,
    source: String,
}

impl fmt::Debug for Grammar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Grammar({})", self.source)
    }
}

impl Grammar {
    pub(crate) fn new(factory: &ParserFactory, top: TopLevelGrammar, source: String) -> Result<Grammar, FormatError> {
        if source.len() > MAX_CONSTRAINT {
            return Err(FormatError::TooLarge { what: "bytes", found: source.len(), most: MAX_CONSTRAINT });
        }
        let parser = deep(|| {
            let parser = factory.create_parser(top).map_err(|error| reason(&error))?;
            match dead_ends::has_some(parser.parser.grammar(), factory.limits()) {
                Ok(false) => Ok(parser),
                Ok(true) => Err(FormatError::Grammar(DEAD_END.into())),
                Err(error) => Err(reason(&error)),
            }
        })??;
        let mut matcher = Matcher::new(Ok(parser));
        // The library warns about parts that it enforces incompletely.
        if let Some(warning) = matcher.grammar_warnings().first() {
            return Err(FormatError::Grammar(line(warning)));
        }
        // Computing the first mask finds formats without any answer, and formats that take too much work from the
        // start.
        matcher.compute_mask_or_eos().map_err(|error| reason(&error))?;
        Ok(Grammar { matcher, source })
    }

    /// Returns a constraint for one generation: [`GenerateOptions::constraint`](model::GenerateOptions::constraint).
    pub fn constraint(&self) -> Rc<dyn Constraint> {
        let at = RefCell::new(At { matcher: self.matcher.clone(), answer: Vec::new() });
        Rc::new(Held { grammar: self.clone(), at })
    }
}

/// Position of an answer in a grammar.
struct At {
    matcher: Matcher,
    answer: Vec<u32>,
}

impl At {
    /// Advances to a longer answer, which begins with this one.
    fn go_on(&mut self, answer: &[u32]) -> Result<(), ModelError> {
        let more = answer.get(self.answer.len()..).unwrap_or_default();
        self.matcher.consume_tokens(more).map_err(|error| failed(&error))?;
        self.answer.extend(more);
        Ok(())
    }
}

/// Constraint of one answer.
struct Held {
    grammar: Grammar,
    at: RefCell<At>,
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.grammar.fmt(f)
    }
}

impl Constraint for Held {
    fn allow<'a>(&'a self, answer: &'a [u32], tokens: &'a mut [u32]) -> AllowFuture<'a> {
        Box::pin(ready(self.allowed(answer, tokens)))
    }

    fn source(&self) -> &str {
        &self.grammar.source
    }
}

impl Held {
    fn allowed(&self, answer: &[u32], tokens: &mut [u32]) -> Result<bool, ModelError> {
        let mut at = self.at.borrow_mut();
        if !answer.starts_with(&at.answer) || at.matcher.is_error() {
            *at = At { matcher: self.grammar.matcher.clone(), answer: Vec::new() };
        }
        at.go_on(answer)?;
        if at.matcher.is_stopped() {
            return Ok(true);
        }
        let mask = at.matcher.compute_mask().map_err(|error| failed(&error))?;
        tokens.iter_mut().zip(mask.as_slice()).for_each(|(to, from)| *to = *from);
        at.matcher.is_accepting().map_err(|error| failed(&error))
    }
}

/// Stack size in bytes: several times what the deepest permitted format takes.
#[cfg(not(target_arch = "wasm32"))]
const STACK: usize = 16 << 20;

/// Runs work that needs more stack than the caller's thread may have.
#[cfg(not(target_arch = "wasm32"))]
fn deep<R: Send>(work: impl FnOnce() -> R + Send) -> Result<R, FormatError> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
        let ended = thread.map(|thread| thread.join());
        let failed = |why: &str| FormatError::Grammar(format!("{why}; ask again"));
        ended.map_err(|_| failed("the system gives no thread"))?.map_err(|_| failed("its grammar could not be made"))
    })
}

/// Runs the work. Without threads, the host bounds the stack.
#[cfg(target_arch = "wasm32")]
fn deep<R>(work: impl FnOnce() -> R) -> Result<R, FormatError> {
    Ok(work())
}

fn failed(error: &impl fmt::Display) -> ModelError {
    ModelError::Constraint(format!(
        "the answer cannot go on in the format that was asked for ({}); use a simpler format",
        line(&error.to_string())
    ))
}

pub(crate) fn reason(error: &impl fmt::Display) -> FormatError {
    FormatError::Grammar(line(&error.to_string()))
}

/// Errors of the library, by their beginnings, and helpful words for them.
const WORDS: [(&str, &str); 3] = [
    ("NoExtensionBias", "it leads to where no token of this model can follow"),
    ("oneOf constraints are not supported", "several alternatives of a oneOf may hold at once; use anyOf"),
    ("Internal", "the library failed; report this as a bug"),
];

/// Returns an error's message in one short line.
fn line(text: &str) -> String {
    if let Some((_, words)) = WORDS.iter().find(|(begin, _)| text.starts_with(begin)) {
        return (*words).into();
    }
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or("for no known reason");
    // The library draws an error in a regular expression below it, with the cause at the end.
    let cause = lines.find_map(|line| line.strip_prefix("error: "));
    let all = cause.map_or(first.to_owned(), |cause| format!("{first} {cause}"));
    let short: String = all.chars().take(200).collect();
    if short.len() < all.len() { short + "..." } else { short }
}
