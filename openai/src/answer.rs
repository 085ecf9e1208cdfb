//! Answers and their chunks: what the choices have in common.

use crate::choice::{Choice, Ended};
use crate::request::random;
use serde_json::{Map, Value, json};

/// The API of a request for text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Conversations: `/v1/chat/completions`.
    Chat,
    /// Texts that go on: `/v1/completions`.
    Text,
}

impl Shape {
    /// Returns the kind of the object of a whole answer.
    pub fn whole(self) -> &'static str {
        if self == Shape::Chat { "chat.completion" } else { "text_completion" }
    }

    /// Returns the kind of the object of a chunk.
    pub fn part(self) -> &'static str {
        if self == Shape::Chat { "chat.completion.chunk" } else { "text_completion" }
    }

    /// Returns the first choice of a stream, if that is one without text.
    pub fn first(self) -> Option<Value> {
        (self == Shape::Chat).then(|| json!({ "delta": { "role": "assistant", "content": "", "refusal": null } }))
    }

    /// Returns the last choice of a stream.
    pub fn last(self) -> Value {
        if self == Shape::Chat { json!({ "delta": {} }) } else { json!({ "text": "" }) }
    }
}

/// Fields that all chunks of an answer share.
#[derive(Debug)]
pub struct Head {
    shape: Shape,
    id: String,
    created: u64,
    model: String,
    fingerprint: String,
}

impl Head {
    /// Begins an answer of a model. `fingerprint` names what computes it.
    ///
    /// *Units*: `created` in seconds since 1970.
    pub fn new(shape: Shape, created: u64, model: String, fingerprint: String) -> Head {
        let prefix = if shape == Shape::Chat { "chatcmpl" } else { "cmpl" };
        Head { shape, id: format!("{prefix}-{:016x}{:016x}", random(), random()), created, model, fingerprint }
    }

    /// Returns the API of the request.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns an answer or a chunk with these choices.
    pub fn object(&self, object: &str, choices: Value) -> Map<String, Value> {
        let Head { id, created, model, fingerprint, .. } = self;
        let fields = [
            ("id", json!(id)),
            ("object", json!(object)),
            ("created", json!(created)),
            ("model", json!(model)),
            ("system_fingerprint", json!(fingerprint)),
            ("choices", choices),
        ];
        fields.map(|(name, value)| (name.to_owned(), value)).into_iter().collect()
    }

    /// Returns a chunk with one choice.
    pub fn chunk(&self, choice: Value) -> Map<String, Value> {
        self.object(self.shape.part(), json!([choice]))
    }
}

/// Returns the `usage` of a response: the tokens of all prompts, each counted once for its `n` choices, and those of
/// all choices.
pub fn usage(choices: &[Choice], n: usize) -> Value {
    let sum = |count: fn(&Ended) -> usize| {
        choices.iter().filter_map(|choice| choice.ended.as_ref()).map(count).sum::<usize>()
    };
    let of_prompts = |count: fn(&Ended) -> usize| {
        let least = |choices: &[Choice]| {
            choices.iter().filter_map(|choice| choice.ended.as_ref()).map(count).min().unwrap_or(0)
        };
        choices.chunks(n.max(1)).map(least).sum::<usize>()
    };
    let prompt = of_prompts(|ended| ended.prompt_tokens);
    // Later choices of a prompt reuse what the first one computed, so the least count is that of the first.
    let cached = of_prompts(|ended| ended.cached_tokens);
    let completion = sum(|ended| ended.completion_tokens);
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "cached_tokens": cached,
        "prompt_tokens_details": { "cached_tokens": cached, "audio_tokens": 0 },
        "completion_tokens_details": {
            "reasoning_tokens": choices.iter().map(Choice::thought_tokens).sum::<usize>(),
            "audio_tokens": 0,
            "accepted_prediction_tokens": sum(|ended| ended.accepted_tokens),
            "rejected_prediction_tokens": sum(|ended| ended.drafted_tokens - ended.accepted_tokens),
        },
    })
}

/// Returns the times of the slowest choice, as an extension of OpenAI's API.
pub fn timings(choices: &[Choice]) -> Value {
    let longest = |time: fn(&Ended) -> f64| {
        choices.iter().filter_map(|choice| choice.ended.as_ref()).map(time).fold(0.0, f64::max)
    };
    json!({
        "queue_ms": longest(|ended| ended.queue_ms),
        "prefill_ms": longest(|ended| ended.prefill_ms),
        "decode_ms": longest(|ended| ended.decode_ms),
    })
}
