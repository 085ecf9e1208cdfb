//! Requests of JavaScript for a generation, and their answers.

use anygpu::{
    Adjust, ChatOptions, ChatTemplate, Engine, GenerateOptions, Generation, Overflow, Overflowed, Sampling,
    SavedRequest, Stats, ToolChoice, TopK,
};
use anygpu_openai::AnswerOptions;
use bindings_common::error::coded;
use bindings_common::{engine_error as error, json};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use wasm_bindgen::prelude::JsValue;

/// How to generate.
#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    max_tokens: Option<usize>,
    temperature: Option<f32>,
    top_k: Option<u32>,
    top_p: Option<f32>,
    #[serde(default, with = "seeds")]
    seed: Option<u64>,
    /// Adjustments of the probabilities of tokens.
    #[serde(default, skip_serializing_if = "Adjust::is_neutral")]
    adjust: Adjust,
    /// Has log probabilities told, with so many of the likeliest tokens for each place.
    log_probs: Option<usize>,
    #[serde(default)]
    stop: Vec<String>,
    #[serde(default)]
    ignore_eos: bool,
    fetch_interval: Option<usize>,
    draft_max: Option<usize>,
    overflow: Option<String>,
    keep: Option<usize>,
    /// How many tokens stay where others make room, unless `keep` says.
    usual_keep: Option<usize>,
    /// Tokens of an answer that was broken off: the prompt ends with them.
    #[serde(default)]
    done: Vec<u32>,
    /// How many of the last of them were never told.
    #[serde(default)]
    untold: usize,
    /// The name of the text that it belongs to.
    #[serde(default)]
    pub session: String,
    /// Has steps be watched: of what kernels make, matrices of so many elements at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watch: Option<usize>,
    /// How often the text is saved, in milliseconds, if it is.
    pub save_every: Option<f64>,
    /// Options of a conversation besides its messages. Only answers with these are split into reasoning, calls and
    /// content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat: Option<Conversation>,
    /// Constraint of the answer, in the form that the module of formats reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_to: Option<String>,
    /// Text of `done` that JavaScript already has.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub told: String,
}

/// Seeds as text: JavaScript's numbers are not exact above 2^53.
mod seeds {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    pub fn serialize<S: Serializer>(seed: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
        seed.map(|seed| seed.to_string()).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| text.parse()).transpose().map_err(D::Error::custom)
    }
}

/// Options of a conversation besides its messages.
#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Conversation {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    one_call: Option<bool>,
    /// Whether the answer must call tools.
    demanded: bool,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    variables: BTreeMap<String, Value>,
}

impl From<ChatOptions> for Conversation {
    fn from(options: ChatOptions) -> Conversation {
        let demanded = options.tool_choice.demands();
        let ChatOptions { tools, tool_choice, one_call, variables, .. } = options;
        let tools = if tool_choice == ToolChoice::None { Vec::new() } else { tools };
        let one_call = one_call.filter(|_| !tools.is_empty());
        Conversation { tools, one_call, demanded, variables }
    }
}

impl Conversation {
    /// The model's template for it, where the answer may be held to a format or to calls.
    pub fn template(self, engine: &Engine, is_held: bool) -> Result<ChatTemplate, JsValue> {
        let held = is_held && !self.demanded;
        let tool_choice = if self.demanded { ToolChoice::Required } else { ToolChoice::Auto };
        let options = ChatOptions { held, ..self.options(tool_choice) };
        chat_template(engine)?.with(&options).map_err(|e| error::engine(&e.into()))
    }

    pub fn options(self, tool_choice: ToolChoice) -> ChatOptions {
        let Conversation { tools, one_call, variables, .. } = self;
        ChatOptions { tools, tool_choice, one_call, variables, held: false }
    }
}

/// The chat template of a model's file.
///
/// *Errors*: the file does not have one, or has one that cannot be used.
pub fn chat_template(engine: &Engine) -> Result<&ChatTemplate, JsValue> {
    if engine.metadata().value("tokenizer.chat_template").is_none() {
        let message = "the file has no chat template, so this model cannot chat; send a prompt to completions, or load a \
                       model that chats";
        return Err(coded("template", message).into());
    }
    engine.chat().map_err(|e| error::engine(&e))
}

impl Request {
    /// From JSON.
    pub fn read(text: &str) -> Result<Request, JsValue> {
        serde_json::from_str(text).map_err(error::options)
    }

    /// Makes the request for an answer of a request of OpenAI's API; seeds come with each.
    pub fn asked(answer: AnswerOptions, chat: Option<ChatOptions>) -> Request {
        let AnswerOptions { max_tokens, overflow, sampling, adjust, log_probs, .. } = answer;
        let mut all = Request {
            max_tokens,
            overflow: overflow.map(|overflow| overflow.name().into()),
            keep: answer.keep,
            stop: answer.stop,
            ignore_eos: answer.ignore_eos,
            adjust,
            log_probs,
            fetch_interval: answer.fetch_interval,
            draft_max: answer.draft_max,
            chat: chat.map(Conversation::from),
            ..Request::default()
        };
        all.sample(sampling);
        all.seed = None;
        all
    }

    fn sample(&mut self, sampling: Sampling) {
        if let Sampling::Random { temperature, top_k, top_p, seed } = sampling {
            let given = (Some(temperature), Some(top_k), Some(top_p), Some(seed));
            (self.temperature, self.top_k, self.top_p, self.seed) = given;
        }
    }

    /// Makes the request that goes on with a generation that was saved.
    pub fn saved(request: &SavedRequest, sampling: Sampling) -> Request {
        let mut all = Request {
            max_tokens: request.max_tokens.map(|tokens| usize::try_from(tokens).unwrap_or(usize::MAX)),
            overflow: Some(request.overflow.clone()),
            keep: request.keep,
            stop: request.stop.clone(),
            ignore_eos: request.stop_tokens.is_some(),
            adjust: request.adjust.clone(),
            held_to: request.constraint.clone(),
            log_probs: request.log_probs,
            ..Request::default()
        };
        all.sample(sampling);
        all
    }

    /// How many tokens of an answer the prompt ends with.
    pub fn done(&self) -> usize {
        self.done.len()
    }

    /// For a prompt of which so many tokens usually stay.
    pub fn options(self, engine: &Engine, kept: usize) -> Result<GenerateOptions, JsValue> {
        let sampling = match self.temperature {
            None | Some(0.0) => Sampling::Greedy,
            Some(temperature) => Sampling::Random {
                temperature,
                // More than the device can keep means as many as it can.
                top_k: self.top_k.filter(|k| *k as usize <= TopK::MAX).unwrap_or(0),
                top_p: self.top_p.unwrap_or(1.0),
                seed: self.seed.unwrap_or(0),
            },
        };
        let overflow: Overflow = self.overflow.as_deref().unwrap_or("error").parse().map_err(error::options)?;
        let overflow = overflow.keeping(self.keep, self.usual_keep.unwrap_or(kept));
        let defaults = engine.generate_options();
        Ok(GenerateOptions {
            max_tokens: self.max_tokens.or(defaults.max_tokens),
            overflow: overflow.map_err(|e| error::engine(&e.into()))?,
            sampling,
            adjust: self.adjust,
            log_probs: self.log_probs,
            stop_tokens: self.ignore_eos.then(Vec::new),
            stop: self.stop,
            fetch_interval: self.fetch_interval.or(defaults.fetch_interval),
            draft_max: self.draft_max,
            done: self.done,
            untold: self.untold,
            ..defaults
        })
    }
}

/// Answer of a generation.
#[derive(Serialize)]
struct Answer<'a> {
    prompt_tokens: usize,
    cached_tokens: usize,
    tokens: &'a [u32],
    text: &'a str,
    finish: &'static str,
    prefill_ms: f64,
    decode_ms_per_token: f64,
    steady_steps: usize,
    steady: Counters,
    drafted_tokens: usize,
    accepted_tokens: usize,
    thought_tokens: usize,
    overflow: Option<Overflowed>,
}

/// [`Stats`] for JSON.
#[derive(Serialize)]
pub struct Counters {
    dispatches: u64,
    submits: u64,
    objects: u64,
    uploaded: u64,
    read_back: u64,
    memory: u64,
}

impl From<Stats> for Counters {
    fn from(stats: Stats) -> Counters {
        let Stats { dispatches, submits, objects, uploaded, read_back, memory } = stats;
        Counters { dispatches, submits, objects, uploaded, read_back, memory }
    }
}

/// Returns the answer of a generation as JSON, and the number of its reasoning tokens.
pub fn answer(prompt_tokens: usize, generation: &Generation, thought_tokens: usize) -> Result<String, JsValue> {
    json(&Answer {
        prompt_tokens,
        cached_tokens: generation.cached_tokens,
        tokens: &generation.tokens,
        text: &generation.text,
        finish: generation.finish.name(),
        prefill_ms: generation.prefill_ms,
        decode_ms_per_token: generation.decode_ms_per_token,
        steady_steps: generation.steady_steps,
        steady: generation.steady.into(),
        drafted_tokens: generation.drafted_tokens,
        accepted_tokens: generation.accepted_tokens,
        thought_tokens,
        overflow: generation.overflow,
    })
}
