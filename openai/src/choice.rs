//! A choice of an answer while it is generated.

use crate::answer::Shape;
use anygpu::{Finish, LogProbEntry, Part, Parts, TokenEntry, ToolCall};
use serde_json::{Map, Value, json};
use std::hash::{BuildHasher, RandomState};

/// Counts and times of a choice that has ended.
#[derive(Debug, Clone)]
pub struct Ended {
    /// Reason for the end.
    pub finish: Finish,
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Prompt tokens that were reused from earlier requests.
    pub cached_tokens: usize,
    /// New tokens.
    pub completion_tokens: usize,
    /// Tokens that were drafted (speculative decoding).
    pub drafted_tokens: usize,
    /// Drafted tokens that the model accepted.
    pub accepted_tokens: usize,
    /// Time from the request to its first turn.
    ///
    /// *Units*: milliseconds, as all times here.
    pub queue_ms: f64,
    /// Time from the first turn to the first token.
    pub prefill_ms: f64,
    /// Time from the first token to the last.
    pub decode_ms: f64,
}

/// A choice: the parser of its parts, and the text so far.
#[derive(Debug)]
pub struct Choice {
    index: usize,
    shape: Shape,
    parts: Parts,
    said: String,
    thought: String,
    calls: Vec<Value>,
    /// Log probabilities that were not sent yet.
    log_probs: Vec<LogProbEntry>,
    /// Number of characters before these tokens, and the bytes of an incomplete character after them.
    offset: usize,
    partial: Vec<u8>,
    thought_tokens: usize,
    pub(crate) ended: Option<Ended>,
}

impl Choice {
    /// Begins a choice. `parts` tells the parts of its text apart.
    pub fn new(index: usize, shape: Shape, parts: Parts) -> Choice {
        let (said, thought) = (String::new(), String::new());
        let (calls, log_probs) = (Vec::new(), Vec::new());
        Choice {
            index,
            shape,
            parts,
            said,
            thought,
            calls,
            log_probs,
            offset: 0,
            partial: Vec::new(),
            thought_tokens: 0,
            ended: None,
        }
    }

    /// Returns the API of the request.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns whether the choice has ended.
    pub fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Returns the number of reasoning tokens.
    pub fn thought_tokens(&self) -> usize {
        self.thought_tokens
    }

    /// Adds a piece of the text. Returns the deltas for a stream, in the format of OpenAI's API.
    pub fn take(&mut self, text: &str, is_token: bool, log_prob: Option<LogProbEntry>) -> Vec<Value> {
        let parts = self.parts.push(text);
        self.thought_tokens += usize::from(is_token && self.parts.is_thinking());
        self.log_probs.extend(log_prob);
        parts.into_iter().map(|part| self.add(part)).collect()
    }

    /// Ends the text. Returns the last deltas.
    pub fn end(&mut self, ended: Ended) -> Vec<Value> {
        self.ended = Some(ended);
        self.parts.finish().into_iter().map(|part| self.add(part)).collect()
    }

    fn add(&mut self, part: Part) -> Value {
        match part {
            Part::Said(text) => {
                let delta = match self.shape {
                    Shape::Chat => json!({ "delta": { "content": text } }),
                    Shape::Text => json!({ "text": text }),
                };
                self.said += &text;
                delta
            }
            Part::Thought(text) => {
                let delta = json!({ "delta": { "reasoning_content": text } });
                self.thought += &text;
                delta
            }
            Part::Call(ToolCall { name, arguments }) => {
                let function = json!({ "name": name, "arguments": arguments });
                let call = json!({ "id": id(), "type": "function", "function": function });
                let mut delta = call.clone();
                delta["index"] = json!(self.calls.len());
                self.calls.push(call);
                json!({ "delta": { "tool_calls": [delta] } })
            }
            Part::Arguments(more) => {
                if let Some(Value::String(arguments)) =
                    self.calls.last_mut().map(|call| &mut call["function"]["arguments"])
                {
                    *arguments += &more;
                }
                let index = self.calls.len().saturating_sub(1);
                json!({ "delta": { "tool_calls": [{ "index": index, "function": { "arguments": more } }] } })
            }
        }
    }

    /// Returns the finish reason of OpenAI's API.
    pub fn finish(&self) -> &'static str {
        match self.ended.as_ref().map(|ended| ended.finish) {
            Some(Finish::Length) => "length",
            _ if !self.calls.is_empty() => "tool_calls",
            _ => "stop",
        }
    }

    /// Adds the index, the new log probabilities and the finish reason to a choice.
    pub fn dress(&mut self, mut choice: Value, finish: Option<&str>) -> Value {
        choice["index"] = json!(self.index);
        choice["logprobs"] = self.log_probs();
        choice["finish_reason"] = json!(finish);
        choice
    }

    /// Returns the complete choice.
    pub fn whole(&mut self) -> Value {
        let choice = match self.shape {
            Shape::Text => json!({ "text": self.said }),
            Shape::Chat => {
                // An answer that only calls tools does not have content.
                let content = (!self.said.is_empty() || self.calls.is_empty()).then_some(&self.said);
                let mut message = json!({ "role": "assistant", "content": content, "refusal": null });
                if !self.thought.is_empty() {
                    message["reasoning_content"] = json!(self.thought);
                }
                if !self.calls.is_empty() {
                    message["tool_calls"] = json!(self.calls);
                }
                json!({ "message": message })
            }
        };
        let finish = self.finish();
        self.dress(choice, Some(finish))
    }

    /// Returns the character offset of a token. A token that continues a character has the offset of that character.
    fn offset_of(&mut self, bytes: &[u8]) -> usize {
        let at = self.offset;
        self.partial.extend(bytes);
        let mut whole = 0;
        for chunk in self.partial.utf8_chunks() {
            self.offset += chunk.valid().chars().count();
            whole += chunk.valid().len();
            let invalid = chunk.invalid();
            let may_go_on = whole + invalid.len() == self.partial.len()
                && std::str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none());
            if !invalid.is_empty() && !may_go_on {
                self.offset += 1;
                whole += invalid.len();
            }
        }
        self.partial.drain(..whole);
        at
    }

    /// Takes the log probabilities that were not sent yet, as JSON.
    fn log_probs(&mut self) -> Value {
        let entries = std::mem::take(&mut self.log_probs);
        match self.shape {
            _ if entries.is_empty() => Value::Null,
            Shape::Chat => json!({ "content": entries, "refusal": null }),
            Shape::Text => {
                let offsets: Vec<usize> = entries.iter().map(|entry| self.offset_of(&entry.chosen.bytes)).collect();
                let likeliest = |entry: &LogProbEntry| -> Map<String, Value> {
                    let all = entry.top_logprobs.iter().chain([&entry.chosen]);
                    all.map(|token| (named(token), json!(token.logprob))).collect()
                };
                let chosen = || entries.iter().map(|entry| &entry.chosen);
                json!({
                    "tokens": chosen().map(named).collect::<Vec<_>>(),
                    "token_logprobs": chosen().map(|token| token.logprob).collect::<Vec<_>>(),
                    "top_logprobs": entries.iter().map(likeliest).collect::<Vec<_>>(),
                    "text_offset": offsets,
                })
            }
        }
    }
}

/// Returns the text of a token, or its bytes if they are not whole characters: many such tokens have the same text.
fn named(token: &TokenEntry) -> String {
    if !token.token.contains(char::REPLACEMENT_CHARACTER) {
        return token.token.clone();
    }
    token.bytes.iter().fold("bytes:".into(), |name, byte| format!("{name}\\x{byte:02x}"))
}

/// Returns a random id for a tool call: nine letters and digits, which Mistral's templates require.
fn id() -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnopqrstuvwxyz2345679";
    let number = RandomState::new().hash_one(0);
    (0..9).map(|at| char::from(LETTERS[(number >> (5 * at)) as usize % LETTERS.len()])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_those_of_characters() {
        let mut choice = Choice::new(0, Shape::Text, Parts::default());
        let tokens: [&[u8]; 7] = [b"Hi ", b"\xf0\x9f", b"\x98\x8a", b"!", b"\xff", "\u{e4}b".as_bytes(), b"c"];
        assert_eq!(tokens.map(|bytes| choice.offset_of(bytes)), [0, 3, 3, 4, 5, 6, 8]);
    }

    /// Removes the ids of calls, which are random.
    fn without_ids(mut value: Value) -> Value {
        for object in ["delta", "message"] {
            let calls = value.pointer_mut(&format!("/{object}/tool_calls")).and_then(Value::as_array_mut);
            for call in calls.into_iter().flatten() {
                call.as_object_mut().map(|call| call.remove("id"));
            }
        }
        value
    }

    /// A page makes its answers itself, since they outlive the module that computes them. Its test reads the same file.
    #[test]
    fn answers_are_those_of_pages() {
        let known: Value = serde_json::from_str(include_str!("../tests/answers.json")).unwrap();
        let token = |name: &str, logprob, bytes: &[u8]| TokenEntry { token: name.into(), logprob, bytes: bytes.into() };
        let part = |part: &Value| {
            let text = |part: &Value| part.as_str().unwrap().to_owned();
            let (name, value) = part.as_object().unwrap().iter().next().unwrap();
            match &name[..] {
                "thought" => Part::Thought(text(value)),
                "said" => Part::Said(text(value)),
                "arguments" => Part::Arguments(text(value)),
                _ => Part::Call(ToolCall { name: text(&value["name"]), arguments: text(&value["arguments"]) }),
            }
        };
        for (name, shape, finish) in [("chat", Shape::Chat, Finish::Stop), ("text", Shape::Text, Finish::Length)] {
            let known = &known[name];
            let parts: Vec<Part> = match shape {
                Shape::Chat => known["parts"].as_array().unwrap().iter().map(part).collect(),
                Shape::Text => ["a", "b", "c"].map(|text| Part::Said(text.into())).into(),
            };
            let said = |choice: &mut Choice, (part, text): (&Part, char)| {
                let chosen = token(&text.to_string(), -0.5, &[text as u8]);
                let top = [chosen.clone(), token("\u{fffd}", -1.5, &[0xe2, 0x80])];
                let top_logprobs = if shape == Shape::Text { top.to_vec() } else { Vec::new() };
                choice.log_probs.push(LogProbEntry { chosen, top_logprobs });
                choice.add(part.clone())
            };
            let tokens = || parts.iter().zip('a'..);
            let ended = Ended {
                finish,
                prompt_tokens: if shape == Shape::Chat { 8 } else { 1 },
                cached_tokens: 1,
                completion_tokens: parts.len(),
                drafted_tokens: 5,
                accepted_tokens: 3,
                queue_ms: 0.0,
                prefill_ms: 0.0,
                decode_ms: 0.0,
            };

            let mut choice = Choice::new(0, shape, Parts::default());
            let mut choices: Vec<Value> = shape.first().map(|first| choice.dress(first, None)).into_iter().collect();
            for one in tokens() {
                let delta = said(&mut choice, one);
                choices.push(without_ids(choice.dress(delta, None)));
            }
            choice.end(ended.clone());
            let finish = choice.finish();
            choices.push(choice.dress(shape.last(), Some(finish)));
            assert_eq!(Value::from(choices), known["choices"], "{name}");

            let mut choice = Choice::new(0, shape, Parts::default());
            tokens().for_each(|one| drop(said(&mut choice, one)));
            choice.end(ended);
            choice.thought_tokens = usize::from(shape == Shape::Chat);
            assert_eq!(without_ids(choice.whole()), known["whole"], "{name}");
            assert_eq!(crate::usage(&[choice], 1), known["usage"], "{name}");
        }
    }

    #[test]
    fn ids_are_what_mistral_takes() {
        let ids = [id(), id()];
        assert!(ids[0] != ids[1]);
        assert!(ids.iter().all(|id| id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric())), "{ids:?}");
    }
}
