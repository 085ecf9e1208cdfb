//! The tokens of a model, as a tree of bytes.

use std::fmt;
use std::sync::Arc;

use llguidance::ParserFactory;
use llguidance::api::{ParserLimits, TopLevelGrammar};
use llguidance::earley::SlicedBiasComputer;
use llguidance::toktrie::{ApproximateTokEnv, InferenceCapabilities, TokEnv, TokRxInfo, TokTrie};
use model::Tokenizer;
use serde_json::Value;

use crate::error::FormatError;
use crate::format::Format;
use crate::grammar::{DEAD_END, Grammar, UNSATISFIABLE, reason};
use crate::schema;
use crate::{before, calls};

/// Most bytes of a token. Longer ones are never chosen in a format, because the tree has at most 1,024 levels.
const MAX_TOKEN: usize = 1000;
/// Most bytes of all tokens, for which the tree has room.
const MAX_BYTES: usize = (1 << 22) - 4096;
/// Most bytes of a regular expression.
const MAX_REGEX: usize = 4096;
/// First byte of tokens that are not text.
const NO_TEXT: u8 = TokTrie::SPECIAL_TOKEN_MARKER;

/// Returns the limits of a grammar's cost: about 100 MB of memory, and about 20 ms for a token by the library's
/// description of its fuel.
fn limits() -> ParserLimits {
    ParserLimits {
        max_items_in_row: 2000,
        initial_lexer_fuel: 1_000_000,
        step_lexer_fuel: 200_000,
        step_max_items: 50_000,
        max_lexer_states: 50_000,
        max_grammar_size: 200_000,
        precompute_large_lexemes: true,
        verbose_errors: false,
    }
}

/// The tokens of a model, for compiling grammars. Creating it takes 0.1 s for 50,000 tokens and 1 s for 260,000. Clones
/// share it, also between threads.
#[derive(Clone)]
pub struct Vocabulary(Arc<ParserFactory>);

impl fmt::Debug for Vocabulary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vocabulary({} tokens)", self.0.tok_env().tok_trie().vocab_size())
    }
}

impl Vocabulary {
    /// Creates the vocabulary of a tokenizer.
    ///
    /// *Errors*: the tokens have more bytes than those of any known tokenizer.
    pub fn new(tokenizer: &Tokenizer) -> Result<Vocabulary, FormatError> {
        Vocabulary::of_words((0..tokenizer.vocab_len() as u32).map(|id| tokenizer.word(id)).collect())
    }

    /// Creates a vocabulary of words in the form of [`Tokenizer::word`].
    ///
    /// *Errors*: the words have more bytes than those of any known tokenizer.
    pub fn of_words(mut words: Vec<Vec<u8>>) -> Result<Vocabulary, FormatError> {
        words.iter_mut().filter(|word| word.len() > MAX_TOKEN).for_each(Vec::clear);
        let bytes: usize = words.iter().map(Vec::len).sum();
        if bytes > MAX_BYTES {
            return Err(FormatError::Vocabulary(format!("its tokens have {bytes} bytes, and may have {MAX_BYTES}")));
        }
        // The tree needs a token for the end of a text. It is an extra one that no model has, because this type does
        // not know which tokens end a text.
        let end = words.len() as u32;
        words.push([&[NO_TEXT], &b"<|end|>"[..]].concat());
        let info = TokRxInfo::new(words.len() as u32, end);
        let env: TokEnv = Arc::new(ApproximateTokEnv::new(TokTrie::from(&info, &words)));
        let slices = SlicedBiasComputer::json_slices();
        let mut factory =
            ParserFactory::new(&env, InferenceCapabilities::default(), &slices).map_err(|e| reason(&e))?;
        *factory.quiet().limits_mut() = limits();
        Ok(Vocabulary(Arc::new(factory)))
    }

    /// Compiles a format to a grammar. It takes a few milliseconds, and up to a second for hostile formats, so servers
    /// should do it on another thread.
    ///
    /// *Errors*: a format that cannot be enforced, or that exceeds the limits.
    pub fn grammar(&self, format: &Format) -> Result<Grammar, FormatError> {
        let made = Grammar::new(&self.0, self.top(format)?, format.source());
        match (format.schema_of(), made) {
            (Some(schema), Err(FormatError::Grammar(why))) if is_impossible(&why) => Err(self.blame(schema, why)),
            (_, made) => made,
        }
    }

    fn top(&self, format: &Format) -> Result<TopLevelGrammar, FormatError> {
        let tokens = || self.0.tok_env().tok_trie();
        Ok(match format {
            Format::Object => schema::grammar(&serde_json::json!({ "type": "object" }))?,
            Format::Schema(value) => schema::grammar(value)?,
            Format::Regex(regex) if regex.len() > MAX_REGEX => {
                return Err(FormatError::TooLarge { what: "bytes", found: regex.len(), most: MAX_REGEX });
            }
            Format::Regex(regex) => TopLevelGrammar::from_regex(regex),
            Format::Calls(form) => calls::grammar(form, tokens())?,
            Format::After(preface, format) => before::grammar(preface, self.top(format)?, tokens())?,
        })
    }

    /// Finds the first inner schema that no answer follows, for the error.
    fn blame(&self, schema: &Value, why: String) -> FormatError {
        let parts = schema::parts(schema).unwrap_or_default();
        let impossible = |(place, part): &(String, Value)| match Grammar::new(
            &self.0,
            TopLevelGrammar::from_json_schema(part.clone()),
            String::new(),
        ) {
            Err(FormatError::Grammar(why)) if is_impossible(&why) => Some((place.clone(), why)),
            _ => None,
        };
        let (place, why) = parts.iter().find_map(impossible).unwrap_or_else(|| ("#".into(), why));
        FormatError::Schema { place, why: format!("allows no answer ({why}); change it or leave it out") }
    }
}

/// Returns whether an error says that no answer follows a schema.
fn is_impossible(why: &str) -> bool {
    why == DEAD_END || why.contains(UNSATISFIABLE)
}
