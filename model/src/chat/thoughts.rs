//! Answers of models that think before they speak: what lies between two marks is no part of what is said.

use super::parts::Part;

/// What thoughts lie between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Marks {
    pub begin: &'static str,
    pub end: &'static str,
}

/// Those that families have.
const ALL: [Marks; 2] = [Marks { begin: "<think>", end: "</think>" }, Marks { begin: "[THINK]", end: "[/THINK]" }];

impl Marks {
    /// Those that a template names: it takes earlier thoughts away, or begins the next ones.
    pub fn of(template: &str) -> Option<Marks> {
        ALL.into_iter().find(|marks| template.contains(marks.end) || template.contains(marks.begin))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It is not known yet whether there are thoughts.
    Begin,
    /// The white space at the beginning of thoughts.
    Waking,
    Thinking,
    /// The white space between thoughts and answer.
    Between,
    Saying,
}

/// Tells thoughts from what is said in a text that comes in pieces. White space around thoughts is dropped.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Thoughts {
    marks: Option<Marks>,
    state: State,
    held: String,
}

impl Thoughts {
    /// Of an answer to a prompt that ends so: some templates begin the thoughts themselves.
    pub fn after(prompt: &str, marks: Option<Marks>) -> Thoughts {
        let state = match marks {
            None => State::Saying,
            Some(marks) if prompt.trim_end().ends_with(marks.begin) => State::Waking,
            Some(_) => State::Begin,
        };
        Thoughts { marks, state, held: String::new() }
    }

    /// Whether it is in the midst of thoughts.
    pub fn is_thinking(&self) -> bool {
        matches!(self.state, State::Waking | State::Thinking)
    }

    /// Takes a piece, and gives what is certain by now.
    pub fn push(&mut self, piece: &str, on_part: &mut dyn FnMut(Part)) {
        self.held += piece;
        let Some(marks) = self.marks else { return self.say(on_part) };
        loop {
            let before = self.state;
            self.step(marks, on_part);
            if self.state == before {
                return;
            }
        }
    }

    fn step(&mut self, marks: Marks, on_part: &mut dyn FnMut(Part)) {
        let begin = self.held.trim_start();
        match self.state {
            State::Begin if begin.starts_with(marks.begin) => {
                self.held = begin[marks.begin.len()..].into();
                self.state = State::Waking;
            }
            State::Begin | State::Waking | State::Between if begin.is_empty() => {}
            State::Begin if marks.begin.starts_with(begin) => {}
            State::Begin => self.state = State::Saying,
            State::Waking => {
                self.held = begin.into();
                self.state = State::Thinking;
            }
            State::Between => {
                self.held = begin.into();
                self.state = State::Saying;
            }
            State::Thinking => {
                let end = self.held.find(marks.end);
                let sure = end.unwrap_or(self.held.len() - partial(&self.held, marks.end));
                // White space may turn out to be the last.
                let sure = self.held[..sure].trim_end().len();
                tell(Part::Thought, &self.held[..sure], on_part);
                self.held.drain(..end.map_or(sure, |end| end + marks.end.len()));
                if end.is_some() {
                    self.state = State::Between;
                }
            }
            State::Saying => self.say(on_part),
        }
    }

    fn say(&mut self, on_part: &mut dyn FnMut(Part)) {
        tell(Part::Said, &self.held, on_part);
        self.held.clear();
    }

    /// Gives what was held back at the end of the text.
    pub fn finish(&mut self, on_part: &mut dyn FnMut(Part)) {
        match self.state {
            State::Waking | State::Thinking => tell(Part::Thought, self.held.trim_end(), on_part),
            State::Between => {}
            State::Begin | State::Saying => tell(Part::Said, &self.held, on_part),
        }
        self.held.clear();
    }
}

/// How many bytes at the end of a text may be the beginning of a mark.
pub(super) fn partial(text: &str, mark: &str) -> usize {
    (1..mark.len()).rev().find(|n| mark.is_char_boundary(*n) && text.ends_with(&mark[..*n])).unwrap_or(0)
}

pub(super) fn tell(part: fn(String) -> Part, text: &str, on_part: &mut dyn FnMut(Part)) {
    if !text.is_empty() {
        on_part(part(text.into()));
    }
}
