//! Thoughts of reasoning models: text between two marks, which is not part of the answer's text.

use super::parts::Part;

/// Marks around the thoughts of a family.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Marks {
    pub begin: &'static str,
    pub end: &'static str,
    /// Texts within the marks, or within the family's other markup, that may be single tokens.
    pub tokens: &'static [&'static str],
    /// Whether thoughts may also begin after text. This needs a begin mark that is a control token.
    anywhere: bool,
}

impl Marks {
    /// Makes marks of thoughts that come before all text.
    const fn before_text(begin: &'static str, end: &'static str, tokens: &'static [&'static str]) -> Marks {
        Marks { begin, end, tokens, anywhere: false }
    }
}

/// Marks of all families but gpt-oss.
static ALL: [Marks; 4] = [
    // Qwen 3, DeepSeek R1 and its distillations, SmolLM3, Granite 3.3, Phi-4, LFM2.5, OLMo 3, Falcon-H1R
    Marks::before_text("<think>", "</think>", &["<think>", "</think>"]),
    // Magistral, Ministral 3
    Marks::before_text("[THINK]", "[/THINK]", &["[THINK]", "[/THINK]"]),
    // Seed
    Marks::before_text("<seed:think>", "</seed:think>", &["<seed:think>", "</seed:think>"]),
    // Gemma 4
    Marks { begin: "<|channel>thought", end: "<channel|>", tokens: &["<|channel>", "<channel|>"], anywhere: true },
];

/// Marks of gpt-oss in answers that are constrained to a format; [`super::harmony`] parses all other answers.
pub(super) static HARMONY: Marks = Marks {
    begin: "<|channel|>analysis<|message|>",
    end: "<|end|><|start|>assistant",
    tokens: &super::harmony::MARKS,
    anywhere: false,
};

impl Marks {
    /// Finds the marks that occur in a template, which removes earlier thoughts or begins the next ones.
    pub fn of(template: &str) -> Option<&'static Marks> {
        ALL.iter().find(|marks| template.contains(marks.end) || template.contains(marks.begin))
    }
}

/// Tags around the answer's text, which some reasoning models write.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrapper {
    begin: &'static str,
    end: &'static str,
}

/// Tags of all families: Granite 3.3.
static WRAPPERS: [Wrapper; 1] = [Wrapper { begin: "<response>", end: "</response>" }];

impl Wrapper {
    /// Finds the tags that occur in a template.
    pub fn of(template: &str) -> Option<&'static Wrapper> {
        WRAPPERS.iter().find(|wrapper| template.contains(wrapper.begin) && template.contains(wrapper.end))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Beginning of the answer, where thoughts may follow.
    Begin,
    /// White space at the beginning of thoughts.
    Waking,
    Thinking,
    /// White space between thoughts and text, or after the end tag.
    Between,
    Saying,
    /// White space after the begin tag.
    Unwrapping,
    /// Text that an end tag may end.
    Wrapped,
}

/// Parser that separates thoughts from text which streams in. White space around thoughts and tags is dropped.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Thoughts {
    marks: Option<&'static Marks>,
    wrapper: Option<&'static Wrapper>,
    state: State,
    held: String,
}

impl Thoughts {
    /// Makes a parser of an answer to `prompt`, of which the end suffices: some templates begin the thoughts
    /// themselves.
    pub fn after(prompt: &str, marks: Option<&'static Marks>, wrapper: Option<&'static Wrapper>) -> Thoughts {
        let state = match marks {
            None => State::Saying,
            Some(marks) if prompt.trim_end().ends_with(marks.begin) => State::Waking,
            Some(_) => State::Begin,
        };
        Thoughts { marks, wrapper, state, held: String::new() }
    }

    /// Returns whether the answer is within its thoughts.
    pub fn is_thinking(&self) -> bool {
        matches!(self.state, State::Waking | State::Thinking)
    }

    /// Takes a piece of the text, and gives `on_part` the parts that are final by now.
    pub fn push(&mut self, piece: &str, on_part: &mut dyn FnMut(Part)) {
        self.held += piece;
        let Some(marks) = self.marks else { return self.say(self.held.len(), on_part) };
        while self.step(marks, on_part) {}
    }

    /// Makes one step; returns whether another one may follow.
    fn step(&mut self, marks: &Marks, on_part: &mut dyn FnMut(Part)) -> bool {
        match self.state {
            State::Begin | State::Between => self.opening(marks),
            State::Waking | State::Unwrapping => {
                let begin = self.held.trim_start();
                if begin.is_empty() {
                    return false;
                }
                self.held = begin.into();
                self.state = if self.state == State::Waking { State::Thinking } else { State::Wrapped };
                true
            }
            State::Thinking => self.until(marks.end, Part::Thought, State::Between, on_part),
            State::Wrapped => match self.wrapper {
                Some(wrapper) => self.until(wrapper.end, Part::Said, State::Between, on_part),
                None => false,
            },
            State::Saying if marks.anywhere => {
                let begin = self.held.find(marks.begin);
                self.say(begin.unwrap_or(self.held.len() - partial(&self.held, marks.begin)), on_part);
                if begin.is_some() {
                    self.held.drain(..marks.begin.len());
                    self.state = State::Waking;
                }
                begin.is_some()
            }
            State::Saying => {
                self.say(self.held.len(), on_part);
                false
            }
        }
    }

    /// Looks for a begin mark or tag; without one, text begins.
    fn opening(&mut self, marks: &Marks) -> bool {
        let begin = self.held.trim_start();
        let tag = self.wrapper.map(|wrapper| (wrapper.begin, State::Unwrapping));
        let openings = || [(marks.begin, State::Waking)].into_iter().chain(tag);
        if let Some((mark, next)) = openings().find(|(mark, _)| begin.starts_with(mark)) {
            self.held = begin[mark.len()..].into();
            self.state = next;
            return true;
        }
        if openings().any(|(mark, _)| mark.starts_with(begin)) {
            return false;
        }
        if self.state == State::Between {
            self.held = begin.into();
        }
        self.state = State::Saying;
        true
    }

    /// Returns text up to a mark, without the white space before the mark.
    fn until(&mut self, mark: &str, part: fn(String) -> Part, next: State, on_part: &mut dyn FnMut(Part)) -> bool {
        let end = self.held.find(mark);
        let sure = end.unwrap_or(self.held.len() - partial(&self.held, mark));
        // White space may turn out to stand before the mark.
        let sure = self.held[..sure].trim_end().len();
        tell(part, &self.held[..sure], on_part);
        self.held.drain(..end.map_or(sure, |end| end + mark.len()));
        if end.is_some() {
            self.state = next;
        }
        end.is_some()
    }

    fn say(&mut self, end: usize, on_part: &mut dyn FnMut(Part)) {
        tell(Part::Said, &self.held[..end], on_part);
        self.held.drain(..end);
    }

    /// Ends the text, and returns the held rest.
    pub fn finish(&mut self, on_part: &mut dyn FnMut(Part)) {
        match self.state {
            State::Waking | State::Thinking => tell(Part::Thought, self.held.trim_end(), on_part),
            State::Between => tell(Part::Said, self.held.trim_start(), on_part),
            State::Begin | State::Saying | State::Unwrapping | State::Wrapped => tell(Part::Said, &self.held, on_part),
        }
        self.held.clear();
    }
}

/// Returns the length of the longest end of a text that may be the beginning of a mark.
pub(super) fn partial(text: &str, mark: &str) -> usize {
    (1..mark.len()).rev().find(|n| mark.is_char_boundary(*n) && text.ends_with(&mark[..*n])).unwrap_or(0)
}

pub(super) fn tell(part: fn(String) -> Part, text: &str, on_part: &mut dyn FnMut(Part)) {
    if !text.is_empty() {
        on_part(part(text.into()));
    }
}
