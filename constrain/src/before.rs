//! Grammar of the text before a constrained answer: reasoning, and a header with control tokens.

use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::TokTrie;
use model::Preface;
use serde_json::Value;

use crate::error::FormatError;

/// Writer of texts for a grammar. Marks that are single tokens are written as tokens.
pub(crate) struct Texts<'m> {
    marks: Vec<(&'m str, u32)>,
}

impl<'m> Texts<'m> {
    /// Creates a writer for a model's tokens. Those of the marks that are not tokens are written as text.
    pub fn new(marks: impl Iterator<Item = &'m String>, tokens: &TokTrie) -> Texts<'m> {
        Texts { marks: marks.filter_map(|mark| Some((mark.as_str(), tokens.get_special_token(mark)?))).collect() }
    }

    /// Writes a text: tokens for its marks, and strings between them.
    pub fn literal(&self, text: &str) -> String {
        match self.first(text) {
            Some((at, mark, id)) => {
                let [before, behind] = [&text[..at], &text[at + mark.len()..]].map(|part| self.literal(part));
                format!("{before} <[{id}]> {behind}")
            }
            None if text.is_empty() => String::new(),
            None => quoted(text),
        }
    }

    /// Finds the first mark of a text: its position, the mark and its token id.
    fn first(&self, text: &str) -> Option<(usize, &'m str, u32)> {
        self.marks.iter().filter_map(|(mark, id)| Some((text.find(mark)?, *mark, *id))).min()
    }

    /// Writes the rules for reasoning, and the beginning of an answer that may have some. Any text up to the end mark
    /// is reasoning.
    pub fn thoughts(&self, begin: &str, end: &str, thinking: bool) -> (String, String) {
        let ended = match self.first(end) {
            Some((0, ..)) => format!("thoughts: /(?s:.)*/ {} BREAK?\n", self.literal(end)),
            _ => format!("thoughts: until BREAK?\nuntil[lazy]: UNTIL\nUNTIL: /(?s:.)*/ {}\n", quoted(end)),
        };
        let rules = ended + "BREAK: /[ \\n]{1,4}/\n";
        (rules, if thinking { "thoughts".into() } else { format!("({} thoughts)?", self.literal(begin)) })
    }
}

/// Quotes a text as JSON does.
pub(crate) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Name of the answer's grammar.
const ANSWER: &str = "answer";

/// Adds the rules of the text before an answer to the answer's grammar.
///
/// *Errors*: the answer has several grammars, as one that already has such rules; a header whose marks are not tokens.
pub(crate) fn grammar(
    preface: &Preface,
    mut answer: TopLevelGrammar,
    tokens: &TokTrie,
) -> Result<TopLevelGrammar, FormatError> {
    let [grammar] = &mut answer.grammars[..] else {
        return Err(FormatError::Grammar("there is text before its answer twice".into()));
    };
    grammar.name = Some(ANSWER.into());
    let marks = preface.thoughts.iter().flat_map(|(begin, end)| [begin, end]).chain(&preface.marks);
    let texts = Texts::new(marks, tokens);
    // If the marks were ordinary text, the reasoning could contain the header and the answer.
    if !preface.header.is_empty() && texts.first(&preface.header).is_none() {
        return Err(FormatError::Grammar(
            "the vocabulary has no tokens for the marks of the channel before an answer".into(),
        ));
    }
    let (rules, thoughts) = match &preface.thoughts {
        Some((begin, end)) => texts.thoughts(begin, end, preface.thinking),
        None => (String::new(), String::new()),
    };
    let start = format!("start: {thoughts} {} @{ANSWER}\n{rules}", texts.literal(&preface.header));
    answer.grammars.insert(0, TopLevelGrammar::from_lark(start).grammars.remove(0));
    Ok(answer)
}
