//! Calls of functions in what a model says, as its family writes them.

use std::mem::replace;
use std::sync::Arc;

use super::bodies::{self, Body, Extent};
use super::demanded::{self, Written};
use super::parts::Part;
use super::thoughts::{partial, tell};
use super::tools::Tool;

/// A way in which families write calls.
#[derive(Debug, PartialEq)]
pub(super) struct Syntax {
    /// The texts that all stand in the templates that prescribe it.
    template: &'static [&'static str],
    /// What a call, or a list of them, begins with: one of these.
    begins: &'static [&'static str],
    /// Whether an answer may begin with the object of a call without any mark.
    bare: bool,
    /// What it ends with; if that is empty, with its JSON.
    end: &'static str,
    /// How what lies between is written.
    body: Body,
    /// How calls are written that are demanded, where that is known.
    pub written: Option<&'static Written>,
}

/// All of them. The first whose texts a template has is its own.
static SYNTAXES: [Syntax; 8] = [
    // Qwen3-Coder, Qwen 3.5
    Syntax {
        template: &["<tool_call>", "<function="],
        begins: &["<tool_call>"],
        bare: false,
        end: "</tool_call>",
        body: Body::Tags,
        written: None,
    },
    // Hermes, Qwen 2.5 and 3, SmolLM3, Granite 4
    Syntax {
        template: &["<tool_call>"],
        begins: &["<tool_call>"],
        bare: false,
        end: "</tool_call>",
        body: Body::Json,
        written: Some(&demanded::MARKED),
    },
    // Mistral from 2025 on
    Syntax {
        template: &["[TOOL_CALLS]", "[ARGS]"],
        begins: &["[TOOL_CALLS]"],
        bare: false,
        end: "",
        body: Body::Json,
        written: Some(&demanded::MISTRAL),
    },
    // Mistral before
    Syntax {
        template: &["[TOOL_CALLS]"],
        begins: &["[TOOL_CALLS]"],
        bare: false,
        end: "",
        body: Body::Json,
        written: Some(&demanded::MISTRAL_LIST),
    },
    // Granite 3 (without the end), Phi-4
    Syntax {
        template: &["<|tool_call|>"],
        begins: &["<|tool_call|>"],
        bare: false,
        end: "<|/tool_call|>",
        body: Body::Json,
        written: Some(&demanded::LIST),
    },
    // LFM2
    Syntax {
        template: &["<|tool_list_start|>"],
        begins: &["<|tool_call_start|>"],
        bare: false,
        end: "<|tool_call_end|>",
        body: Body::Python,
        written: None,
    },
    // LFM2.5
    Syntax {
        template: &["<|tool_call_start|>"],
        begins: &["<|tool_call_start|>"],
        bare: false,
        end: "<|tool_call_end|>",
        body: Body::Python,
        written: None,
    },
    // Llama 3.1 to 3.3
    Syntax {
        template: &["<|start_header_id|>", "\"parameters\""],
        begins: &["<|python_tag|>"],
        bare: true,
        end: "",
        body: Body::Json,
        written: Some(&demanded::BARE),
    },
];

impl Syntax {
    /// The one that a template prescribes.
    pub fn of(template: &str) -> Option<&'static Syntax> {
        SYNTAXES.iter().find(|syntax| syntax.template.iter().all(|text| template.contains(text)))
    }

    /// What stands around calls.
    pub fn marks(&self) -> impl Iterator<Item = &'static str> {
        self.begins.iter().copied().chain([self.end]).filter(|mark| !mark.is_empty())
    }
}

/// Where in a text it is.
#[derive(Debug, Clone, PartialEq)]
enum State {
    /// In what is said. A call, or white space before one, may have begun.
    Saying,
    /// After what a call begins with, white space before that included.
    Calling { begin: String, extent: Extent },
}

/// Tells calls from what else is said in a text that comes in pieces. White space beside calls is dropped.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Calls {
    syntax: &'static Syntax,
    tools: Arc<[Tool]>,
    /// How many more are wanted.
    wanted: usize,
    state: State,
    held: String,
    /// Whether nothing was said since the beginning, or since the last call.
    fresh: bool,
    called: bool,
}

impl Calls {
    pub fn new(syntax: &'static Syntax, tools: Arc<[Tool]>, wanted: usize) -> Calls {
        Calls { syntax, tools, wanted, state: State::Saying, held: String::new(), fresh: true, called: false }
    }

    /// Takes a piece, and gives what is certain by now.
    pub fn push(&mut self, piece: &str, on_part: &mut dyn FnMut(Part)) {
        self.held += piece;
        while self.step(on_part) {}
    }

    /// Goes one step on; whether there may be another.
    fn step(&mut self, on_part: &mut dyn FnMut(Part)) -> bool {
        match &mut self.state {
            State::Saying => self.saying(on_part),
            State::Calling { extent, .. } => {
                let found = extent.find(&self.held, self.syntax.end);
                if let Some((body, end)) = found {
                    self.ended(body, end, on_part);
                }
                found.is_some()
            }
        }
    }

    fn saying(&mut self, on_part: &mut dyn FnMut(Part)) -> bool {
        if self.syntax.bare && self.fresh {
            // Llama separates calls with semicolons.
            let between = |c: char| c.is_whitespace() || (self.called && c == ';');
            let text = self.held.trim_start_matches(between);
            match bodies::may_be_call(text) {
                Some(true) => {
                    self.call(self.held.len() - text.len());
                    return true;
                }
                Some(false) => {}
                None => return false,
            }
        }
        let first = self.syntax.begins.iter().filter_map(|mark| Some((self.held.find(mark)?, *mark))).min();
        if let Some((at, begin)) = first {
            self.say(at, on_part);
            self.call(self.held.find(begin).unwrap_or(0) + begin.len());
            return true;
        }
        let begun = self.syntax.begins.iter().map(|mark| partial(&self.held, mark)).max().unwrap_or(0);
        self.say(self.held.len() - begun, on_part);
        false
    }

    /// A call may have begun; so many bytes of what is held lead to it.
    fn call(&mut self, begin: usize) {
        let begin = self.held.drain(..begin).collect();
        self.state = State::Calling { begin, extent: Extent::of(self.syntax.body) };
    }

    /// Says what is held up to a place, but for white space at its end, which stays.
    fn say(&mut self, end: usize, on_part: &mut dyn FnMut(Part)) {
        let said = self.held[..end].trim_end().len();
        if said > 0 {
            tell(Part::Said, &self.held[..said], on_part);
            self.held.drain(..said);
            self.fresh = false;
        }
    }

    /// A call may end here.
    fn ended(&mut self, body: usize, end: usize, on_part: &mut dyn FnMut(Part)) {
        let State::Calling { begin, .. } = replace(&mut self.state, State::Saying) else { return };
        match self.syntax.body.read(&self.held[..body], &self.tools) {
            Some(calls) => {
                let calls = calls.into_iter().take(self.wanted);
                self.wanted -= calls.len();
                calls.map(Part::Call).for_each(on_part);
                (self.fresh, self.called) = (true, true);
            }
            None => {
                tell(Part::Said, &begin, on_part);
                tell(Part::Said, &self.held[..end], on_part);
                self.fresh = false;
            }
        }
        self.held.drain(..end);
    }

    /// Gives what was held back at the end of the text.
    pub fn finish(&mut self, on_part: &mut dyn FnMut(Part)) {
        if matches!(self.state, State::Calling { .. }) {
            // Where only the mark of its end is missing, it is whole.
            self.ended(self.held.len(), self.held.len(), on_part);
        }
        let rest = if self.called { self.held.trim_end() } else { &self.held };
        tell(Part::Said, rest, on_part);
        self.held.clear();
    }
}
