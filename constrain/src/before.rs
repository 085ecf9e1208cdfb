//! The grammar of what stands before an answer that is held to a format: thoughts, and texts with marks in them.

use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::TokTrie;
use model::Preface;
use serde_json::Value;

use crate::error::FormatError;

/// Texts of a grammar, in which marks that are tokens of their own are written as such.
pub(crate) struct Texts<'m> {
    marks: Vec<(&'m str, u32)>,
}

impl<'m> Texts<'m> {
    /// Of a model's tokens, with such marks.
    pub fn new(marks: impl Iterator<Item = &'m String>, tokens: &TokTrie) -> Texts<'m> {
        Texts { marks: marks.filter_map(|mark| Some((mark.as_str(), tokens.get_special_token(mark)?))).collect() }
    }

    /// A text: marks, and strings between them.
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

    /// The first mark of a text.
    fn first(&self, text: &str) -> Option<(usize, &'m str, u32)> {
        self.marks.iter().filter_map(|(mark, id)| Some((text.find(mark)?, *mark, *id))).min()
    }

    /// The rule of thoughts, and how an answer begins that may have some. Any text up to what ends them is thought.
    pub fn thoughts(&self, begin: &str, end: &str, thinking: bool) -> (String, String) {
        let ended = match self.first(end) {
            Some((0, ..)) => format!("thoughts: /(?s:.)*/ {} BREAK?\n", self.literal(end)),
            _ => format!("thoughts: until BREAK?\nuntil[lazy]: UNTIL\nUNTIL: /(?s:.)*/ {}\n", quoted(end)),
        };
        let rules = ended + "BREAK: /[ \\n]{1,4}/\n";
        (rules, if thinking { "thoughts".into() } else { format!("({} thoughts)?", self.literal(begin)) })
    }
}

/// Quoted as JSON quotes texts.
pub(crate) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// The name of the answer's grammar.
const ANSWER: &str = "answer";

/// A grammar behind what may stand before the answer.
///
/// *Errors*: it is made of several, as one that has this before it already; a header whose marks are not tokens.
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
    // Where marks are text, reasoning could take in the header and the answer.
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
