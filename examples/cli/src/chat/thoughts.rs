//! Answers of models that think before they speak: what lies between `<think>` and `</think>` is no part of the answer.

const BEGIN: &str = "<think>";
const END: &str = "</think>";

/// What a part of an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Thought.
    Thought,
    /// Said.
    Said,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It is not known yet whether there are thoughts.
    Begin,
    Thinking,
    /// The white space between thoughts and answer.
    Between,
    Saying,
}

/// Tells thoughts from what is said in a text that comes in pieces.
pub struct Thoughts {
    state: State,
    held: String,
}

impl Thoughts {
    /// Of an answer to a prompt that ends so: some templates begin the thoughts themselves.
    pub fn after(prompt: &str) -> Thoughts {
        let state = if prompt.trim_end().ends_with(BEGIN) { State::Thinking } else { State::Begin };
        Thoughts { state, held: String::new() }
    }

    /// Takes a piece, and gives what is certain by now.
    pub fn push(&mut self, piece: &str, on_part: &mut dyn FnMut(Part, &str)) {
        self.held += piece;
        loop {
            let before = self.state;
            self.step(on_part);
            if self.state == before {
                return;
            }
        }
    }

    fn step(&mut self, on_part: &mut dyn FnMut(Part, &str)) {
        let begin = self.held.trim_start();
        match self.state {
            State::Begin if begin.starts_with(BEGIN) => {
                self.held = begin[BEGIN.len()..].into();
                self.state = State::Thinking;
            }
            State::Begin | State::Between if begin.is_empty() => {}
            State::Begin if BEGIN.starts_with(begin) => {}
            State::Begin => self.state = State::Saying,
            State::Between => {
                self.held = begin.into();
                self.state = State::Saying;
            }
            State::Thinking => {
                let end = self.held.find(END);
                // A part of the end may have come.
                let cut = |n: &usize| self.held.ends_with(&END[..*n]);
                let sure = end.unwrap_or_else(|| self.held.len() - (1..END.len()).rev().find(cut).unwrap_or(0));
                tell(Part::Thought, &self.held[..sure], on_part);
                self.held.drain(..sure + if end.is_some() { END.len() } else { 0 });
                if end.is_some() {
                    self.state = State::Between;
                }
            }
            State::Saying => {
                tell(Part::Said, &self.held, on_part);
                self.held.clear();
            }
        }
    }

    /// Gives what was held back at the end of the text.
    pub fn finish(self, on_part: &mut dyn FnMut(Part, &str)) {
        match self.state {
            State::Thinking => tell(Part::Thought, &self.held, on_part),
            State::Between => {}
            State::Begin | State::Saying => tell(Part::Said, &self.held, on_part),
        }
    }
}

fn tell(part: Part, text: &str, on_part: &mut dyn FnMut(Part, &str)) {
    if !text.is_empty() {
        on_part(part, text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Thoughts and answer of a text in pieces of so many bytes.
    fn parts(prompt: &str, text: &str, bytes: usize) -> (String, String) {
        let (mut thoughts, mut thought, mut said) = (Thoughts::after(prompt), String::new(), String::new());
        let mut take = |part: Part, text: &str| match part {
            Part::Thought => thought += text,
            Part::Said => said += text,
        };
        for piece in text.as_bytes().chunks(bytes) {
            thoughts.push(std::str::from_utf8(piece).unwrap(), &mut take);
        }
        thoughts.finish(&mut take);
        (thought, said)
    }

    #[test]
    fn thoughts_are_told_from_answers_however_they_come() {
        let prompt = "<|im_start|>assistant\n";
        for bytes in 1..40 {
            let cases = [
                (prompt, "<think>\nhm <b>\n</think>\n\nYes.", "\nhm <b>\n", "Yes."),
                (prompt, " \n<think></think>Yes.", "", "Yes."),
                (prompt, "Yes <think> no </think>.", "", "Yes <think> no </think>."),
                (prompt, "<thin", "", "<thin"),
                (prompt, "<think>hm </thi", "hm </thi", ""),
                (prompt, "<think>hm</think>\n", "hm", ""),
                (prompt, "  so", "", "  so"),
                ("assistant\n<think>\n", "hm</think>\nYes.", "hm", "Yes."),
                ("assistant\n<think>\n\n</think>\n\n", "Yes.", "", "Yes."),
                (prompt, "", "", ""),
            ];
            for (prompt, text, thought, said) in cases {
                assert_eq!(parts(prompt, text, bytes), (thought.into(), said.into()), "{text:?} by {bytes}");
            }
        }
    }
}
