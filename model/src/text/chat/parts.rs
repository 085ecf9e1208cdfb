//! Parser of answers: separates thoughts, text and calls.

use serde::Serialize;

use super::calls::Calls;
use super::harmony::Harmony;
use super::thoughts::Thoughts;

/// A part of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Reasoning, which is not part of the text for the user.
    Thought(String),
    /// Text for the user.
    Said(String),
    /// The beginning of a call that the model makes. More of its arguments may follow.
    Call(ToolCall),
    /// More of the last call's arguments.
    Arguments(String),
}

/// A function call that the model makes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolCall {
    /// The name, which is one of the conversation's tools.
    pub name: String,
    /// The arguments: a JSON object, as the model writes it. The object is incomplete if the answer was cut off.
    pub arguments: String,
}

/// Splits an answer into its parts while its text streams in, in pieces of any size. Text that may yet become another
/// part is held back. Calls that are malformed or unfinished are returned as text.
#[derive(Debug, Clone, PartialEq)]
pub struct Parts(Way);

/// Markup of a model family.
#[derive(Debug, Clone, PartialEq)]
enum Way {
    /// Thoughts come first, between marks, and calls are within the text.
    Marked {
        thoughts: Thoughts,
        calls: Option<Calls>,
    },
    Harmony(Harmony),
}

impl Default for Parts {
    /// Makes a parser that returns all text as [`Part::Said`].
    fn default() -> Parts {
        Parts::marked(Thoughts::after("", None, None), None)
    }
}

impl Parts {
    pub(super) fn marked(thoughts: Thoughts, calls: Option<Calls>) -> Parts {
        Parts(Way::Marked { thoughts, calls })
    }

    pub(super) fn harmony(harmony: Harmony) -> Parts {
        Parts(Way::Harmony(harmony))
    }

    /// Returns whether the answer is within its thoughts.
    pub fn is_thinking(&self) -> bool {
        match &self.0 {
            Way::Marked { thoughts, .. } => thoughts.is_thinking(),
            Way::Harmony(harmony) => harmony.is_thinking(),
        }
    }

    /// Takes the next piece of the text, and returns the parts that are final by now.
    pub fn push(&mut self, text: &str) -> Vec<Part> {
        let mut told = Vec::new();
        match &mut self.0 {
            Way::Marked { thoughts, calls } => {
                thoughts.push(text, &mut |part| pass(part, calls, &mut told));
            }
            Way::Harmony(harmony) => harmony.push(text, &mut |part| told.push(part)),
        }
        told
    }

    /// Ends the answer, and returns the parts that were held back.
    pub fn finish(&mut self) -> Vec<Part> {
        let mut told = Vec::new();
        match &mut self.0 {
            Way::Marked { thoughts, calls } => {
                thoughts.finish(&mut |part| pass(part, calls, &mut told));
                if let Some(calls) = calls {
                    calls.finish(&mut |part| told.push(part));
                }
            }
            Way::Harmony(harmony) => harmony.finish(&mut |part| told.push(part)),
        }
        told
    }
}

/// Passes a part on, and looks for calls in text for the user.
fn pass(part: Part, calls: &mut Option<Calls>, told: &mut Vec<Part>) {
    match (part, calls) {
        (Part::Said(text), Some(calls)) => calls.push(&text, &mut |part| told.push(part)),
        (part, _) => told.push(part),
    }
}
