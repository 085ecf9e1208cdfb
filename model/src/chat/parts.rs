//! The parts of an answer: what is thought, what is said, and what is called.

use serde::Serialize;

use super::calls::Calls;
use super::harmony::Harmony;
use super::thoughts::Thoughts;

/// A part of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Thought: no part of what the user is told.
    Thought(String),
    /// Said.
    Said(String),
    /// A function that the model wants to be called. Its arguments may go on.
    Call(ToolCall),
    /// More of the arguments of the last call.
    Arguments(String),
}

/// A function that the model wants to be called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolCall {
    /// Its name, which is one of those that the conversation has.
    pub name: String,
    /// Its arguments: an object as JSON, as the model writes it. It is no whole object where the answer was cut off.
    pub arguments: String,
}

/// Tells the parts of an answer apart while its text comes, in pieces of any size. What may yet turn out to be another
/// part is held back; calls that are malformed or never end are said.
#[derive(Debug, Clone, PartialEq)]
pub struct Parts(Way);

/// How a family marks parts.
#[derive(Debug, Clone, PartialEq)]
enum Way {
    /// Thoughts come first, between marks, and calls stand in what is said.
    Marked {
        thoughts: Thoughts,
        calls: Option<Calls>,
    },
    Harmony(Harmony),
}

impl Default for Parts {
    /// All is said.
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

    /// Whether it is in the midst of thoughts.
    pub fn is_thinking(&self) -> bool {
        match &self.0 {
            Way::Marked { thoughts, .. } => thoughts.is_thinking(),
            Way::Harmony(harmony) => harmony.is_thinking(),
        }
    }

    /// Takes a piece of the text, and gives what is certain by now.
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

    /// Gives what was held back at the end of the text.
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

/// Looks for calls in what is said.
fn pass(part: Part, calls: &mut Option<Calls>, told: &mut Vec<Part>) {
    match (part, calls) {
        (Part::Said(text), Some(calls)) => calls.push(&text, &mut |part| told.push(part)),
        (part, _) => told.push(part),
    }
}
