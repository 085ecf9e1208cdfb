//! A format as a grammar, and what it allows next.

use std::cell::RefCell;
use std::fmt;
use std::future::ready;
use std::rc::Rc;

use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory};
use model::{AllowFuture, Constraint, MAX_CONSTRAINT, ModelError};

use crate::dead_ends;
use crate::error::FormatError;

/// Error of a format that an answer could begin in, and not finish.
pub(crate) const DEAD_END: &str = "a part of it leads to where nothing can follow";
/// Words of the library for a schema that no value follows.
pub(crate) const UNSATISFIABLE: &str = "Unsatisfiable schema";

/// A format, ready to be held to. It can be sent to the thread that generates, and clones are for other answers.
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
        // A part that is only half held to is a warning there.
        if let Some(warning) = matcher.grammar_warnings().first() {
            return Err(FormatError::Grammar(line(warning)));
        }
        // What nothing follows is found now, and what takes too much work from the beginning.
        matcher.compute_mask_or_eos().map_err(|error| reason(&error))?;
        Ok(Grammar { matcher, source })
    }

    /// What a generation is held to: [`GenerateOptions::constraint`](model::GenerateOptions::constraint).
    pub fn constraint(&self) -> Rc<dyn Constraint> {
        let at = RefCell::new(At { matcher: self.matcher.clone(), answer: Vec::new() });
        Rc::new(Held { grammar: self.clone(), at })
    }
}

/// Where an answer is in a grammar.
struct At {
    matcher: Matcher,
    answer: Vec<u32>,
}

impl At {
    /// Goes on to an answer that begins with this one.
    fn go_on(&mut self, answer: &[u32]) -> Result<(), ModelError> {
        let more = answer.get(self.answer.len()..).unwrap_or_default();
        self.matcher.consume_tokens(more).map_err(|error| failed(&error))?;
        self.answer.extend(more);
        Ok(())
    }
}

/// An answer that is held to a grammar.
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

/// Stack for the deepest format that is taken on, several times over.
#[cfg(not(target_arch = "wasm32"))]
const STACK: usize = 16 << 20;

/// Does what takes more stack than threads of other people's may have.
#[cfg(not(target_arch = "wasm32"))]
fn deep<R: Send>(work: impl FnOnce() -> R + Send) -> Result<R, FormatError> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
        let ended = thread.map(|thread| thread.join());
        let failed = |why: &str| FormatError::Grammar(format!("{why}; ask again"));
        ended.map_err(|_| failed("the system gives no thread"))?.map_err(|_| failed("its grammar could not be made"))
    })
}

/// Where there are no threads, the host bounds the stack.
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

/// Errors of the library, and the same in words that help here.
const WORDS: [(&str, &str); 3] = [
    ("NoExtensionBias", "it leads to where no token of this model can follow"),
    ("oneOf constraints are not supported", "several alternatives of a oneOf may hold at once; use anyOf"),
    ("Internal", "the library failed; report this as a bug"),
];

/// What an error says, in one line that is not long.
fn line(text: &str) -> String {
    if let Some((_, words)) = WORDS.iter().find(|(begin, _)| text.starts_with(begin)) {
        return (*words).into();
    }
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or("for no known reason");
    // That of a regular expression is drawn below it, with the cause at the end.
    let cause = lines.find_map(|line| line.strip_prefix("error: "));
    let all = cause.map_or(first.to_owned(), |cause| format!("{first} {cause}"));
    let short: String = all.chars().take(200).collect();
    if short.len() < all.len() { short + "..." } else { short }
}
