//! Answers of models that think before they speak: what lies between two marks is no part of what is said.

use super::parts::Part;

/// Marks around the thoughts of a family.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Marks {
    pub begin: &'static str,
    pub end: &'static str,
    /// Parts of them, or of what else answers have, that may be tokens of their own.
    pub tokens: &'static [&'static str],
    /// Whether thoughts may begin behind text, too: only where a control token says so.
    anywhere: bool,
}

impl Marks {
    /// Marks of thoughts that stand before all text, each of which may be one token.
    const fn before_text(begin: &'static str, end: &'static str, tokens: &'static [&'static str]) -> Marks {
        Marks { begin, end, tokens, anywhere: false }
    }
}

/// Those that families have.
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

/// Marks of gpt-oss, as answers have them that are held to a format; [`super::harmony`] reads all that there may be.
pub(super) static HARMONY: Marks = Marks {
    begin: "<|channel|>analysis<|message|>",
    end: "<|end|><|start|>assistant",
    tokens: &super::harmony::MARKS,
    anywhere: false,
};

impl Marks {
    /// Those that a template names: it takes earlier thoughts away, or begins the next ones.
    pub fn of(template: &str) -> Option<&'static Marks> {
        ALL.iter().find(|marks| template.contains(marks.end) || template.contains(marks.begin))
    }
}

/// Tags around what is said, which some models write where they think.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrapper {
    begin: &'static str,
    end: &'static str,
}

/// Those that families have: Granite 3.3.
static WRAPPERS: [Wrapper; 1] = [Wrapper { begin: "<response>", end: "</response>" }];

impl Wrapper {
    /// That which a template names.
    pub fn of(template: &str) -> Option<&'static Wrapper> {
        WRAPPERS.iter().find(|wrapper| template.contains(wrapper.begin) && template.contains(wrapper.end))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It is not known yet whether there are thoughts.
    Begin,
    /// The white space at the beginning of thoughts.
    Waking,
    Thinking,
    /// The white space between thoughts and answer, and after the last tag.
    Between,
    Saying,
    /// The white space after the first tag.
    Unwrapping,
    /// Text that a tag ends.
    Wrapped,
}

/// Tells thoughts from what is said in a text that comes in pieces. White space around thoughts and tags is dropped.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Thoughts {
    marks: Option<&'static Marks>,
    wrapper: Option<&'static Wrapper>,
    state: State,
    held: String,
}

impl Thoughts {
    /// Of an answer to a prompt that ends so: some templates begin the thoughts themselves.
    pub fn after(prompt: &str, marks: Option<&'static Marks>, wrapper: Option<&'static Wrapper>) -> Thoughts {
        let state = match marks {
            None => State::Saying,
            Some(marks) if prompt.trim_end().ends_with(marks.begin) => State::Waking,
            Some(_) => State::Begin,
        };
        Thoughts { marks, wrapper, state, held: String::new() }
    }

    /// Whether it is in the midst of thoughts.
    pub fn is_thinking(&self) -> bool {
        matches!(self.state, State::Waking | State::Thinking)
    }

    /// Takes a piece, and gives what is certain by now.
    pub fn push(&mut self, piece: &str, on_part: &mut dyn FnMut(Part)) {
        self.held += piece;
        let Some(marks) = self.marks else { return self.say(self.held.len(), on_part) };
        while self.step(marks, on_part) {}
    }

    /// Goes one step on; whether there may be another.
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

    /// Looks for a mark or a tag before anything is said.
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

    /// Tells what stands before a mark, without the white space before that.
    fn until(&mut self, mark: &str, part: fn(String) -> Part, next: State, on_part: &mut dyn FnMut(Part)) -> bool {
        let end = self.held.find(mark);
        let sure = end.unwrap_or(self.held.len() - partial(&self.held, mark));
        // White space may turn out to be the last.
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

    /// Gives what was held back at the end of the text.
    pub fn finish(&mut self, on_part: &mut dyn FnMut(Part)) {
        match self.state {
            State::Waking | State::Thinking => tell(Part::Thought, self.held.trim_end(), on_part),
            State::Between => tell(Part::Said, self.held.trim_start(), on_part),
            State::Begin | State::Saying | State::Unwrapping | State::Wrapped => tell(Part::Said, &self.held, on_part),
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
