//! Answers of gpt-oss (Harmony format): a sequence of messages. The header of each one names its channel and its
//! recipient.
//!
//! *Source*: <https://cookbook.openai.com/articles/openai-harmony>.

use std::sync::Arc;

use super::json::Compact;
use super::parts::{Part, ToolCall};
use super::thoughts::{partial, tell};
use super::tools::{Tool, find};

const START: &str = "<|start|>";
const CHANNEL: &str = "<|channel|>";
const MESSAGE: &str = "<|message|>";
const END: &str = "<|end|>";
/// Marks in answers.
pub(super) const MARKS: [&str; 5] = [START, CHANNEL, MESSAGE, END, "<|constrain|>"];

/// Header of a message for the user.
pub(super) const FINAL: &str = "<|channel|>final<|message|>";

/// Returns whether a template uses this format.
pub(super) fn is_of(template: &str) -> bool {
    template.contains(CHANNEL) && template.contains(MESSAGE)
}

/// Position of the parser in an answer.
#[derive(Debug, Clone, PartialEq)]
enum State {
    Header,
    Thinking,
    Saying,
    /// Before the arguments of a call of this function.
    Calling(String),
    /// Within the arguments.
    Arguments {
        object: Compact,
        wanted: bool,
    },
    /// After the arguments.
    Called,
}

/// Parser that separates the channels of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Harmony {
    tools: Arc<[Tool]>,
    /// Number of further calls to return.
    wanted: usize,
    state: State,
    held: String,
}

impl Harmony {
    /// Makes a parser of an answer, which begins within the first message's header.
    pub fn new(tools: Arc<[Tool]>, wanted: usize) -> Harmony {
        Harmony { tools, wanted, state: State::Header, held: String::new() }
    }

    pub fn is_thinking(&self) -> bool {
        self.state == State::Thinking
    }

    /// Takes a piece of the text, and gives `on_part` the parts that are final by now.
    pub fn push(&mut self, piece: &str, on_part: &mut dyn FnMut(Part)) {
        self.held += piece;
        while self.step(on_part) {}
    }

    /// Makes one step; returns whether another one may follow.
    fn step(&mut self, on_part: &mut dyn FnMut(Part)) -> bool {
        if self.state == State::Header {
            let Some(end) = self.held.find(MESSAGE) else { return false };
            self.state = self.goes(&self.held[..end]);
            self.held.drain(..end + MESSAGE.len());
            return true;
        }
        let end = [END, START].iter().filter_map(|mark| Some((self.held.find(mark)?, mark.len()))).min();
        let sure = end
            .map_or_else(|| self.held.len() - partial(&self.held, END).max(partial(&self.held, START)), |(end, _)| end);
        match &mut self.state {
            State::Calling(name) => {
                let name = name.clone();
                if self.held.trim_start().starts_with('{') {
                    self.call(name, on_part);
                    return true;
                }
                // Arguments that are not an object are returned as text.
                if self.held[..sure].trim().is_empty() && end.is_none() {
                    return false;
                }
                self.state = State::Saying;
                return true;
            }
            State::Arguments { object, wanted } => {
                let (text, ended) = object.take(&self.held[..sure]);
                if *wanted {
                    tell(Part::Arguments, &text, on_part);
                }
                if let Some(ended) = ended {
                    self.held.drain(..ended);
                    self.state = State::Called;
                    return true;
                }
            }
            State::Called => {}
            State::Thinking => tell(Part::Thought, &self.held[..sure], on_part),
            State::Saying | State::Header => tell(Part::Said, &self.held[..sure], on_part),
        }
        self.held.drain(..end.map_or(sure, |(end, mark)| end + mark));
        if end.is_some() {
            self.state = State::Header;
        }
        end.is_some()
    }

    /// Returns the state for a message with this header.
    fn goes(&self, header: &str) -> State {
        let word =
            |text: &str| text.split(|c: char| c.is_whitespace() || c == '<').next().unwrap_or_default().to_owned();
        let to = header.split_once("to=").map(|(_, to)| word(to)).unwrap_or_default();
        let to = to.strip_prefix("functions.").unwrap_or(&to);
        if find(&self.tools, to).is_some() {
            return State::Calling(to.into());
        }
        let channel = header.split_once(CHANNEL).map(|(_, channel)| word(channel)).unwrap_or_default();
        if channel == "analysis" { State::Thinking } else { State::Saying }
    }

    /// Returns a call whose arguments begin.
    fn call(&mut self, name: String, on_part: &mut dyn FnMut(Part)) {
        let wanted = self.wanted > 0;
        if wanted {
            self.wanted -= 1;
            on_part(Part::Call(ToolCall { name, arguments: String::new() }));
        }
        self.state = State::Arguments { object: Compact::default(), wanted };
    }

    /// Ends the text, and returns the held rest.
    pub fn finish(&mut self, on_part: &mut dyn FnMut(Part)) {
        match self.state {
            State::Arguments { .. } | State::Called => {}
            State::Thinking => tell(Part::Thought, &self.held, on_part),
            // An unfinished header is dropped.
            State::Header if self.held.contains("<|") => {}
            State::Header | State::Saying | State::Calling(_) => tell(Part::Said, &self.held, on_part),
        }
        self.held.clear();
    }
}
