//! Function calls within a model's text, in each family's syntax.

use std::mem::replace;
use std::sync::Arc;

use super::bodies::{self, Body, Extent};
use super::demanded::{self, Written};
use super::json::{self, Compact, Stop};
use super::literals;
use super::parts::{Part, ToolCall};
use super::thoughts::{partial, tell};
use super::tools::{Tool, find};

/// Call syntax of a model family.
#[derive(Debug, PartialEq)]
pub(super) struct Syntax {
    /// Texts that all occur in templates which prescribe this syntax.
    template: &'static [&'static str],
    /// Marks that begin a call, or a list of calls.
    begins: &'static [&'static str],
    /// Whether an answer may begin with a call's object, without a mark.
    bare: bool,
    /// Mark that ends it; if empty, it ends with its JSON.
    end: &'static str,
    /// Syntax between the marks.
    body: Body,
    /// Format of required calls, if it is supported.
    pub written: Option<&'static Written>,
}

/// Syntax of Hermes, Qwen 2.5 and 3, SmolLM3 and Granite 4.
const HERMES: Syntax = Syntax {
    template: &["<tool_call>"],
    begins: &["<tool_call>"],
    bare: false,
    end: "</tool_call>",
    body: Body::Json,
    written: Some(&demanded::MARKED),
};

/// All syntaxes. A template's syntax is the first one whose texts it contains.
static SYNTAXES: [Syntax; 9] = [
    // Qwen3-Coder, Qwen 3.5
    Syntax {
        template: &["<tool_call>", "<function="],
        begins: &["<tool_call>"],
        bare: false,
        end: "</tool_call>",
        body: Body::Tags,
        written: None,
    },
    HERMES,
    // Mistral from 2025 on
    Syntax {
        template: &["[TOOL_CALLS]", "[ARGS]"],
        begins: &["[TOOL_CALLS]"],
        bare: false,
        end: "",
        body: Body::Json,
        written: Some(&demanded::MISTRAL),
    },
    // Mistral before 2025
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
    // Gemma 4
    Syntax {
        template: &["<|tool_call>", "call:"],
        begins: &["<|tool_call>"],
        bare: false,
        end: "<tool_call|>",
        body: Body::Gemma,
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
    /// Returns the syntax that a template prescribes.
    pub fn of(template: &str) -> Option<&'static Syntax> {
        SYNTAXES.iter().find(|syntax| syntax.template.iter().all(|text| template.contains(text)))
    }

    /// Returns the syntax that [`told`](super::told) prescribes.
    pub fn told() -> &'static Syntax {
        static TOLD: Syntax = HERMES;
        &TOLD
    }

    /// Returns the marks around calls and within them.
    pub fn marks(&self) -> impl Iterator<Item = &'static str> {
        let inner = if self.body == Body::Gemma { literals::QUOTE } else { "" };
        self.begins.iter().copied().chain([self.end, inner]).filter(|mark| !mark.is_empty())
    }
}

/// Position of the parser in the text.
#[derive(Debug, Clone, PartialEq)]
enum State {
    /// Within text. White space at its end, or a call's mark, may have begun.
    Saying,
    /// After a begin mark, which is kept with the white space before it.
    Calling { begin: String, extent: Extent },
    /// Within the arguments of a call that was already returned.
    Arguments { object: Compact, place: Place, wanted: bool },
    /// After the arguments, up to the end of the object that contains them.
    Behind { rest: Compact, list: bool },
    /// After a call. In a list, another one may follow.
    Ended { list: bool },
    /// Within a list of calls, before the next one.
    Another { extent: Extent },
}

/// Position of a call's arguments.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Place {
    /// Whether they are in an object with the name.
    object: bool,
    /// Whether that object is in a list of calls.
    list: bool,
}

/// Parser that separates calls from text which streams in. White space beside calls is dropped.
///
/// A call with JSON arguments is returned once its name and the beginning of its arguments are there; any other call
/// when it has ended. Everything that turns out not to be a call is returned as text, unchanged.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Calls {
    syntax: &'static Syntax,
    tools: Arc<[Tool]>,
    /// Number of further calls to return.
    wanted: usize,
    /// Whether the answer is constrained to calls, so that an unfinished one is not returned as text.
    demanded: bool,
    state: State,
    held: String,
    /// Whether there was no text since the beginning, or since the last call.
    fresh: bool,
    called: bool,
}

impl Calls {
    pub fn new(syntax: &'static Syntax, tools: Arc<[Tool]>, wanted: usize, demanded: bool) -> Calls {
        let (state, held) = (State::Saying, String::new());
        Calls { syntax, tools, wanted, demanded, state, held, fresh: true, called: false }
    }

    /// Takes a piece of the text, and gives `on_part` the parts that are final by now.
    pub fn push(&mut self, piece: &str, on_part: &mut dyn FnMut(Part)) {
        self.held += piece;
        while self.step(on_part) {}
    }

    /// Makes one step; returns whether another one may follow.
    fn step(&mut self, on_part: &mut dyn FnMut(Part)) -> bool {
        match &mut self.state {
            State::Saying => self.saying(on_part),
            State::Calling { .. } => self.calling(on_part),
            State::Arguments { object, place, wanted } => {
                let (text, end) = object.take(&self.held);
                if *wanted {
                    tell(Part::Arguments, &text, on_part);
                }
                let Place { object, list } = *place;
                self.held.drain(..end.unwrap_or(self.held.len()));
                if end.is_some() {
                    self.state =
                        if object { State::Behind { rest: Compact::within(), list } } else { State::Ended { list } };
                }
                end.is_some()
            }
            State::Behind { rest, list } => {
                let list = *list;
                let (_, end) = rest.take(&self.held);
                self.held.drain(..end.unwrap_or(self.held.len()));
                if end.is_some() {
                    self.state = State::Ended { list };
                }
                end.is_some()
            }
            State::Ended { list } => {
                let list = *list;
                self.after(list)
            }
            State::Another { .. } => self.another(on_part),
        }
    }

    /// Returns the next call of a list as soon as it is unambiguous.
    fn another(&mut self, on_part: &mut dyn FnMut(Part)) -> bool {
        let list = true;
        match self.begun(&self.held) {
            Ok((call, at)) => {
                self.begin(call, at, Place { object: true, list }, on_part);
                true
            }
            Err(Stop::Pending) => false,
            Err(Stop::Other) => {
                let State::Another { extent } = &mut self.state else { return false };
                let Some((end, _)) = extent.find(&self.held, "") else { return false };
                match bodies::object(self.held[..end].trim(), &self.tools) {
                    Some(call) => self.take(vec![call], on_part),
                    None => tell(Part::Said, &self.held[..end], on_part),
                }
                self.held.drain(..end);
                self.state = State::Ended { list };
                true
            }
        }
    }

    fn saying(&mut self, on_part: &mut dyn FnMut(Part)) -> bool {
        if self.syntax.bare && self.fresh {
            // Llama separates calls by semicolons.
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

    /// Begins a possible call after the first `begin` bytes of the held text, which include its mark.
    fn call(&mut self, begin: usize) {
        let begin = self.held.drain(..begin).collect();
        self.state = State::Calling { begin, extent: Extent::of(self.syntax.body) };
    }

    /// Parses a possible call, and returns it as soon as it is unambiguous.
    fn calling(&mut self, on_part: &mut dyn FnMut(Part)) -> bool {
        let text = self.held.trim_start();
        let skipped = self.held.len() - text.len();
        let list = text.starts_with('[');
        let begun = match text.as_bytes().first() {
            None => Err(Stop::Pending),
            Some(_) if self.syntax.body != Body::Json => Err(Stop::Other),
            Some(b'{' | b'[') => {
                self.begun(&text[usize::from(list)..]).map(|(call, at)| (call, at + usize::from(list)))
            }
            // In Mistral's syntax, the name comes first, and further fields in brackets.
            Some(_) => match bodies::named(text) {
                Some((name, at)) if find(&self.tools, name).is_some() => Ok((name.to_owned(), at)),
                _ => Err(Stop::Other),
            },
        };
        match begun {
            Ok((name, at)) => {
                let object = text.starts_with(['{', '[']);
                self.begin(name, skipped + at, Place { object, list }, on_part);
                true
            }
            Err(Stop::Pending) => false,
            Err(Stop::Other) => {
                let State::Calling { extent, .. } = &mut self.state else { return false };
                let found = extent.find(&self.held, self.syntax.end);
                if let Some((body, end)) = found {
                    self.ended(body, end, on_part);
                }
                found.is_some()
            }
        }
    }

    /// Returns the function of a call object whose arguments have begun, and their position.
    fn begun(&self, text: &str) -> Result<(String, usize), Stop> {
        let (name, at) = json::header(text)?;
        if find(&self.tools, &name).is_some() { Ok((name, at)) } else { Err(Stop::Other) }
    }

    /// Returns a call whose arguments begin at `at` in the held text.
    fn begin(&mut self, name: String, at: usize, place: Place, on_part: &mut dyn FnMut(Part)) {
        let wanted = self.wanted > 0;
        self.take(vec![ToolCall { name, arguments: String::new() }], on_part);
        self.held.drain(..at);
        self.state = State::Arguments { object: Compact::default(), place, wanted };
    }

    /// Returns calls, up to the number that is wanted.
    fn take(&mut self, calls: Vec<ToolCall>, on_part: &mut dyn FnMut(Part)) {
        let calls = calls.into_iter().take(self.wanted);
        self.wanted -= calls.len();
        calls.map(Part::Call).for_each(on_part);
        (self.fresh, self.called) = (true, true);
    }

    /// Continues after a call: with the next one of a list, or after the end mark.
    fn after(&mut self, list: bool) -> bool {
        let text = self.held.trim_start();
        let skipped = self.held.len() - text.len();
        let end = self.syntax.end;
        let (next, bytes) = match text.as_bytes().first() {
            None if !end.is_empty() || list => return false,
            Some(b',') if list => (State::Another { extent: Extent::default() }, 1),
            Some(b']') if list => (State::Ended { list: false }, 1),
            Some(_) if !end.is_empty() && text.starts_with(end) => (State::Saying, end.len()),
            Some(_) if !end.is_empty() && end.starts_with(text) => return false,
            _ => {
                self.state = State::Saying;
                return true;
            }
        };
        self.held.drain(..skipped + bytes);
        self.state = next;
        true
    }

    /// Returns the held text up to `end` as text. White space at its end stays held.
    fn say(&mut self, end: usize, on_part: &mut dyn FnMut(Part)) {
        let said = self.held[..end].trim_end().len();
        if said > 0 {
            tell(Part::Said, &self.held[..said], on_part);
            self.held.drain(..said);
            self.fresh = false;
        }
    }

    /// Ends a possible call: returns its calls, or its text if it is malformed.
    fn ended(&mut self, body: usize, end: usize, on_part: &mut dyn FnMut(Part)) {
        let State::Calling { begin, .. } = replace(&mut self.state, State::Saying) else { return };
        match self.syntax.body.read(&self.held[..body], &self.tools) {
            Some(calls) => self.take(calls, on_part),
            None => {
                tell(Part::Said, &begin, on_part);
                tell(Part::Said, &self.held[..end], on_part);
                self.fresh = false;
            }
        }
        self.held.drain(..end);
    }

    /// Ends the text, and returns the held rest.
    pub fn finish(&mut self, on_part: &mut dyn FnMut(Part)) {
        match self.state {
            // This is an unfinished call or mark.
            _ if self.demanded => self.held.clear(),
            // A call is whole if only its end mark is missing.
            State::Calling { .. } => self.ended(self.held.len(), self.held.len(), on_part),
            State::Ended { .. } if self.syntax.end.starts_with(self.held.trim_start()) => self.held.clear(),
            State::Saying
            | State::Arguments { .. }
            | State::Behind { .. }
            | State::Ended { .. }
            | State::Another { .. } => {}
        }
        let rest = if self.called { self.held.trim_end() } else { &self.held };
        tell(Part::Said, rest, on_part);
        self.held.clear();
    }
}
