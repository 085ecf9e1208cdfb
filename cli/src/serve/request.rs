//! Requests in the formats of OpenAI's API: their fields, and the engine's options that these become. The npm package
//! has similar tables.

use super::error::ApiError;
use super::fields::Kind::{Boolean, Checked, Count, Integer, Number, Object, OneOf, Seed, Text};
use super::fields::Rule::{Ignored, Noted, Only, Use};
use super::fields::{Notes, Table, check, integer, refused};
use super::format::{self, check_format};
use super::messages;
use anygpu::handle::{Encoded, Generate, Prompt};
use anygpu::{Adjust, ChatOptions, GenerateOptions, MAX_TOP, Message, Overflow, Sampling, TopK};
use serde_json::{Map, Value};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// Upper bound of lengths and counts.
const MOST: u64 = u32::MAX as u64;
/// Least `top_p`. The engine requires more than 0, and the likeliest of its 64 candidates never has less than this.
const LEAST_TOP_P: f64 = 1.0 / (1 << 24) as f64;
/// Most texts of a request, as in OpenAI's API.
const MOST_TEXTS: usize = 2048;

/// Most answers to one prompt (`n`).
const MOST_ANSWERS: u64 = 16;

const RENAMED: &str = "its name is tools, and tool_choice";
const NO_GRAMMARS: &str = "grammars are not read; use response_format, guided_regex or guided_choice";
const NO_FILTERS: &str = "the choice of tokens cannot be held to that; leave it out, or use logit_bias";

/// Fields of both kinds of text requests.
const COMMON: Table = &[
    ("model", Use(Text)),
    ("max_tokens", Use(Count(1, MOST))),
    ("max_completion_tokens", Use(Count(1, MOST))),
    ("temperature", Use(Number(0.0, 100.0))),
    ("top_k", Use(Count(0, MOST))),
    ("top_p", Use(Number(0.0, 1.0))),
    ("seed", Use(Seed)),
    ("stop", Use(Checked(check_stop))),
    ("stream", Use(Boolean)),
    ("stream_options", Use(Object(&[("include_usage", Use(Boolean)), ("include_obfuscation", Ignored)]))),
    ("ignore_eos", Use(Boolean)),
    ("fetch_interval", Use(Integer(1, 64))),
    ("draft_max", Use(Integer(0, MOST))),
    ("overflow", Use(OneOf(&Overflow::NAMES))),
    ("keep", Use(Integer(0, MOST))),
    ("n", Use(Integer(1, MOST_ANSWERS))),
    ("presence_penalty", Use(Number(-2.0, 2.0))),
    ("frequency_penalty", Use(Number(-2.0, 2.0))),
    ("repetition_penalty", Use(Number(0.01, 100.0))),
    ("repeat_penalty", Use(Number(0.01, 100.0))),
    ("min_p", Use(Number(0.0, 1.0))),
    ("logit_bias", Use(Checked(check_biases))),
    ("response_format", Use(Checked(check_format))),
    ("guided_json", Use(Checked(format::check_schema_or_text))),
    ("guided_regex", Use(Text)),
    ("guided_choice", Use(Checked(format::check_choices))),
    ("structured_outputs", Use(Object(format::STRUCTURED))),
    ("json_schema", Use(Checked(format::check_schema))),
    ("regex", Use(Text)),
    ("guided_grammar", Only(&["\"\""], NO_GRAMMARS)),
    ("grammar", Only(&["\"\""], NO_GRAMMARS)),
    ("ebnf", Only(&["\"\""], NO_GRAMMARS)),
    ("format", Only(&["\"\""], "its name is response_format")),
    ("logits_processors", Only(&["[]"], NO_FILTERS)),
    ("allowed_token_ids", Only(&["[]"], NO_FILTERS)),
    ("bad_words", Only(&["[]"], NO_FILTERS)),
    ("min_tokens", Only(&["0"], "answers end where the model ends them; leave it out, or use ignore_eos")),
    ("stop_token_ids", Only(&["[]"], "its name is stop, and it has the texts of tokens")),
    ("cache_control", Ignored),
    ("user", Ignored),
    ("metadata", Ignored),
    ("prompt_cache_key", Ignored),
];

/// Further fields of a chat request.
const CHAT: Table = &[
    ("messages", Use(Checked(messages::check_messages))),
    ("logprobs", Use(Boolean)),
    ("top_logprobs", Use(Integer(0, MAX_TOP as u64))),
    ("tools", Use(Checked(messages::check_tools))),
    ("tool_choice", Use(Checked(messages::check_choice))),
    ("parallel_tool_calls", Use(Boolean)),
    ("functions", Only(&["[]"], RENAMED)),
    ("function_call", Only(&["\"none\"", "\"auto\""], RENAMED)),
    ("modalities", Only(&["[\"text\"]"], "answers are text")),
    ("audio", Only(&[], "answers are text; leave it out")),
    ("reasoning_effort", Use(Text)),
    ("chat_template_kwargs", Use(Checked(messages::check_variables))),
    ("verbosity", Noted(&["\"medium\""], "is not a setting of the model: messages may ask for it")),
    ("web_search_options", Only(&[], "nothing is looked up; leave it out")),
    ("moderation", Only(&[], "nothing is moderated; leave it out")),
    ("service_tier", Noted(&["\"auto\"", "\"default\""], "is always the default one")),
    ("store", Noted(&["false"], "cannot be: answers are not kept")),
    ("prediction", Ignored),
    ("prompt_cache_options", Ignored),
    ("prompt_cache_retention", Ignored),
    ("safety_identifier", Ignored),
    ("cache_prompt", Ignored),
    ("id_slot", Ignored),
];

/// Further fields of a completion request.
const TEXT: Table = &[
    ("prompt", Use(Checked(check_texts))),
    ("best_of", Only(&["1"], "one answer is made at a time; leave it out")),
    ("echo", Only(&["false"], "answers do not repeat the prompt; put it before them")),
    ("logprobs", Use(Checked(check_logprobs))),
    ("suffix", Only(&["\"\""], "nothing is filled in; leave it out")),
];

/// Fields of an embeddings request.
const EMBEDDING: Table = &[
    ("input", Use(Checked(check_texts))),
    ("model", Use(Text)),
    ("encoding_format", Use(OneOf(&["float", "base64"]))),
    ("dimensions", Use(Integer(1, MOST))),
    ("normalize", Use(Boolean)),
    ("user", Ignored),
];

fn check_stop(name: &str, value: &Value, _: &Notes) -> Result<(), ApiError> {
    let sound = |text: &Value| text.as_str().is_some_and(|text| !text.is_empty());
    let all = match value {
        Value::Array(texts) => texts.len() <= 64 && texts.iter().all(sound),
        text => sound(text),
    };
    if all { Ok(()) } else { Err(refused(name, "a string that is not empty, or at most 64 of them", value)) }
}

/// Checks the number of likeliest tokens to report at each position. Some clients send false for none.
fn check_logprobs(name: &str, value: &Value, notes: &Notes) -> Result<(), ApiError> {
    if *value == false { Ok(()) } else { Integer(0, MAX_TOP as u64).check(name, value, notes) }
}

/// Parses token ids and their biases. The engine checks how many there may be.
fn biases(name: &str, value: &Value, notes: &Notes) -> Result<Vec<(u32, f32)>, ApiError> {
    let biases = value.as_object().ok_or_else(|| refused(name, "an object of token ids and numbers", value))?;
    let bias = |(id, bias): (&String, &Value)| {
        let path = format!("{name}.{id}");
        let id = id.parse().map_err(|_| refused(name, "an object of token ids and numbers", value))?;
        Number(-100.0, 100.0).check(&path, bias, notes)?;
        Ok((id, bias.as_f64().unwrap_or_default() as f32))
    };
    biases.iter().map(bias).collect()
}

fn check_biases(name: &str, value: &Value, notes: &Notes) -> Result<(), ApiError> {
    biases(name, value, notes).map(|_| ())
}

/// Parses a prompt: a text, or its tokens. A byte order mark at the beginning of a text is removed.
fn text(name: &str, value: &Value) -> Result<Prompt, ApiError> {
    if let Value::String(text) = value {
        return Ok(Prompt::Text(text.strip_prefix('\u{feff}').unwrap_or(text).to_owned()));
    }
    let id = |id: &Value| u32::try_from(integer(id)?).ok();
    let tokens = value.as_array().and_then(|ids| ids.iter().map(id).collect());
    tokens.map(Prompt::Tokens).ok_or_else(|| refused(name, "a string or an array of token ids", value))
}

/// Parses one or more prompts. An array of numbers is a single prompt.
fn texts(name: &str, value: &Value) -> Result<Vec<Prompt>, ApiError> {
    let is_list = |values: &&Vec<Value>| values.first().is_some_and(|first| first.is_string() || first.is_array());
    match value.as_array().filter(is_list) {
        None => Ok(vec![text(name, value)?]),
        Some(values) if values.len() > MOST_TEXTS => {
            Err(ApiError::request(format!("{name} can have {MOST_TEXTS} texts, not {}", values.len())).about(name))
        }
        Some(values) => values.iter().enumerate().map(|(at, value)| text(&format!("{name}[{at}]"), value)).collect(),
    }
}

fn check_texts(name: &str, value: &Value, _: &Notes) -> Result<(), ApiError> {
    texts(name, value).map(|_| ())
}

/// Fields of a valid request.
struct Sound<'v>(&'v Map<String, Value>);

impl Sound<'_> {
    fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// Returns an integer, or `None` also for -1, which means no limit.
    fn integer(&self, name: &str) -> Option<u64> {
        integer(self.get(name)?).and_then(|number| u64::try_from(number).ok())
    }

    fn size(&self, name: &str) -> Option<usize> {
        self.integer(name).and_then(|number| usize::try_from(number).ok())
    }

    fn number(&self, name: &str) -> Option<f64> {
        self.get(name)?.as_f64()
    }

    fn is_true(&self, name: &str) -> bool {
        self.get(name).and_then(Value::as_bool).unwrap_or(false)
    }

    fn string(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    /// Returns the sampling method. Without a temperature it is greedy, as everywhere in anygpu.
    fn sampling(&self, seed: u64) -> Sampling {
        match self.number("temperature") {
            None | Some(0.0) => Sampling::Greedy,
            Some(temperature) => Sampling::Random {
                temperature: temperature as f32,
                // A `top_k` above the device's limit means the limit.
                top_k: self.integer("top_k").filter(|k| *k <= TopK::MAX as u64).unwrap_or(0) as u32,
                top_p: self.number("top_p").unwrap_or(1.0).max(LEAST_TOP_P) as f32,
                seed,
            },
        }
    }

    fn stop(&self) -> Vec<String> {
        match self.get("stop") {
            Some(Value::String(stop)) => vec![stop.clone()],
            Some(Value::Array(stops)) => stops.iter().filter_map(Value::as_str).map(Into::into).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the adjustments of the logits.
    fn adjust(&self) -> Adjust {
        let neutral = Adjust::default();
        let number = |name, neutral| self.number(name).map_or(neutral, |number| number as f32);
        Adjust {
            // llama.cpp and ollama call it `repeat_penalty`.
            repetition_penalty: number("repetition_penalty", number("repeat_penalty", neutral.repetition_penalty)),
            presence_penalty: number("presence_penalty", neutral.presence_penalty),
            frequency_penalty: number("frequency_penalty", neutral.frequency_penalty),
            min_p: number("min_p", neutral.min_p),
            logit_bias: self
                .get("logit_bias")
                .and_then(|value| biases("logit_bias", value, &Notes::new(false)).ok())
                .unwrap_or_default(),
        }
    }

    /// Returns how many of the likeliest tokens to report, or `None` if log probabilities are not requested.
    fn log_probs(&self) -> Option<usize> {
        match self.get("logprobs")? {
            Value::Bool(told) => told.then(|| self.size("top_logprobs").unwrap_or(0)),
            _ => self.size("logprobs"),
        }
    }

    fn max_tokens(&self) -> Option<usize> {
        self.size("max_tokens").or(self.size("max_completion_tokens"))
    }

    /// Returns the overflow policy. Many clients ask for more tokens than any context holds, so by default an answer
    /// ends when the context is full.
    fn overflow(&self) -> Overflow {
        self.string("overflow").and_then(|name| name.parse().ok()).unwrap_or(Overflow::Stop)
    }

    /// Returns the request to the engine.
    fn generate(&self, prompt: Prompt, seed: u64) -> Generate {
        let (max_tokens, overflow) = (self.max_tokens(), self.overflow());
        let (sampling, adjust, stop) = (self.sampling(seed), self.adjust(), self.stop());
        let log_probs = self.log_probs();
        let ignore_eos = self.is_true("ignore_eos");
        let (fetch_interval, draft_max) = (self.size("fetch_interval"), self.size("draft_max"));
        let generate = Generate::new(prompt).with(move |options| {
            *options = GenerateOptions {
                max_tokens,
                overflow,
                sampling,
                adjust,
                log_probs,
                stop_tokens: ignore_eos.then(Vec::new),
                stop,
                fetch_interval: fetch_interval.or(options.fetch_interval),
                draft_max,
                ..options.clone()
            };
        });
        match self.size("keep") {
            Some(keep) => generate.keeping(keep),
            None => generate,
        }
    }
}

/// Returns an unpredictable number: a hash with a random key.
pub fn random() -> u64 {
    RandomState::new().hash_one(0)
}

/// The API of a text request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Chat,
    Text,
}

/// A request for text.
pub struct TextRequest {
    fields: Map<String, Value>,
    pub prompts: Vec<Prompt>,
    pub chat: ChatOptions,
    /// Number of answers to each prompt.
    pub n: usize,
    pub model: Option<String>,
    /// The user on whose behalf the client asks.
    pub user: Option<String>,
    pub stream: bool,
    pub include_usage: bool,
    pub format: Option<format::Asked>,
    /// The conversation, if its answer must call tools or follow a format.
    pub held: Option<(Vec<Message>, ChatOptions)>,
}

impl TextRequest {
    /// Reads and validates a request.
    ///
    /// *Errors*: a field is invalid; the error names it.
    pub fn read(shape: Shape, value: &Value, notes: &Notes) -> Result<TextRequest, ApiError> {
        let own = if shape == Shape::Chat { CHAT } else { TEXT };
        let sound = Sound(check("", value, &[COMMON, own], notes)?);
        let prompts = match shape {
            Shape::Chat if sound.get("messages").is_none() => {
                return Err(refused("messages", "an array with at least one message", &Value::Null));
            }
            Shape::Chat if sound.get("top_logprobs").is_some_and(|top| *top != 0) && !sound.is_true("logprobs") => {
                return Err(ApiError::request("top_logprobs needs logprobs to be true").about("top_logprobs"));
            }
            Shape::Chat => vec![Prompt::Chat(messages::messages(&value["messages"]))],
            Shape::Text => match value.get("prompt") {
                None => return Err(refused("prompt", "a string or an array of token ids", &Value::Null)),
                Some(Value::Null) => vec![Prompt::Text(String::new())],
                Some(prompt) => texts("prompt", prompt)?,
            },
        };
        let include_usage = sound.get("stream_options").is_some_and(|options| options["include_usage"] == true);
        let mut chat = messages::options(sound.0)?;
        let demands = chat.tool_choice.demands();
        let format = format::Asked::read(sound.0)?;
        chat.held = format.is_some();
        let held = match &prompts[..] {
            [Prompt::Chat(messages)] if demands || format.is_some() => Some((messages.clone(), chat.clone())),
            _ => None,
        };
        if let Some(format) = format.as_ref().filter(|_| demands) {
            let field = format.field;
            let message = format!("an answer cannot be held to {field} and to calls at once; leave one of them out");
            return Err(ApiError::request(message).about(field));
        }
        Ok(TextRequest {
            prompts,
            chat,
            n: sound.size("n").unwrap_or(1),
            model: sound.string("model").map(Into::into),
            user: sound.string("user").map(Into::into),
            stream: sound.is_true("stream"),
            include_usage,
            format,
            held,
            fields: sound.0.clone(),
        })
    }

    /// Returns the overflow policy, and the number of tokens that must fit after the prompt.
    pub fn room(&self) -> (Overflow, usize) {
        let sound = Sound(&self.fields);
        let neutral = GenerateOptions { max_tokens: sound.max_tokens(), ..GenerateOptions::default() };
        (sound.overflow(), neutral.most())
    }

    /// Returns the requests to the engine: `n` answers for each prompt, one after the other.
    pub fn generate(&self, prompts: &[Arc<Encoded>]) -> Vec<Generate> {
        let sound = Sound(&self.fields);
        // Each answer has its own seed: that of the request, and those after it. Without a seed, the first one is
        // random.
        let seed = sound.get("seed").and_then(integer).filter(|seed| *seed != -1);
        let seed = seed.map_or_else(random, |seed| seed as u64);
        let seeds = || (0..self.n as u64).map(move |at| seed.wrapping_add(at));
        let answers = |prompt: &Arc<Encoded>| {
            let prompt = Prompt::Encoded(prompt.clone());
            seeds().map(|seed| sound.generate(prompt.clone(), seed)).collect::<Vec<_>>()
        };
        prompts.iter().flat_map(answers).collect()
    }
}

/// A request for embeddings.
pub struct EmbedRequest {
    pub texts: Vec<Prompt>,
    pub dimensions: Option<usize>,
    pub normalize: bool,
    pub model: Option<String>,
    pub base64: bool,
}

impl EmbedRequest {
    /// Reads and validates a request.
    ///
    /// *Errors*: a field is invalid; the error names it.
    pub fn read(value: &Value, notes: &Notes) -> Result<EmbedRequest, ApiError> {
        let sound = Sound(check("", value, &[EMBEDDING], notes)?);
        let expected = "a string, an array of token ids, or an array of either";
        let input = sound.get("input").ok_or_else(|| refused("input", expected, &Value::Null))?;
        Ok(EmbedRequest {
            texts: texts("input", input)?,
            dimensions: sound.size("dimensions"),
            normalize: sound.get("normalize").is_none_or(|normalize| normalize == true),
            model: sound.string("model").map(Into::into),
            base64: sound.string("encoding_format") == Some("base64"),
        })
    }
}
