//! Requests in the formats of OpenAI's API: their fields, and the engine's options that these become.

use crate::answer::Shape;
use crate::error::Refusal;
use crate::fields::Kind::{Boolean, Checked, Count, Integer, Number, Object, OneOf, Seed, Such, Text};
use crate::fields::Rule::{Ignored, Noted, Only, Use};
use crate::fields::{Notes, Table, check, integer, refused};
use crate::format::{self, check_format};
use crate::messages;
use crate::rerank::RERANK;
use anygpu::{Adjust, ChatOptions, GenerateOptions, MAX_TOP, Message, Overflow, Sampling, TopK};
use serde_json::{Map, Value};
use std::hash::{BuildHasher, RandomState};

/// Upper bound of lengths and counts.
pub const MOST: u64 = u32::MAX as u64;
/// Least `top_p`. The engine requires more than 0, and the likeliest of its 64 candidates never has less than this.
const LEAST_TOP_P: f64 = 1.0 / (1 << 24) as f64;
/// Most texts of a request, as in OpenAI's API.
pub const MOST_TEXTS: usize = 2048;

/// Most answers to one prompt (`n`), as in OpenAI's API.
const MOST_ANSWERS: u64 = 128;

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
    ("stop", Use(Such("a string that is not empty, or at most 64 of them", is_stop))),
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
    ("logit_bias", Use(Checked("an object of token ids and numbers from -100 to 100", check_biases))),
    ("response_format", Use(Checked("text, json_object, or json_schema with a schema", check_format))),
    ("guided_json", Use(Such("a schema as an object, or as its text", format::is_schema))),
    ("guided_regex", Use(Text)),
    ("guided_choice", Use(Such("1 to 1024 strings that are not empty", format::are_choices))),
    ("structured_outputs", Use(Object(format::STRUCTURED))),
    ("json_schema", Use(Such("a schema as an object", Value::is_object))),
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
    ("messages", Use(Checked("an array with at least one message", messages::check_messages))),
    ("logprobs", Use(Boolean)),
    ("top_logprobs", Use(Integer(0, MAX_TOP as u64))),
    ("tools", Use(Checked("an array of at most 128 tools", messages::check_tools))),
    ("tool_choice", Use(Checked("none, auto, required, or a function", messages::check_choice))),
    ("parallel_tool_calls", Use(Boolean)),
    ("functions", Only(&["[]"], RENAMED)),
    ("function_call", Only(&["\"none\"", "\"auto\""], RENAMED)),
    ("modalities", Only(&["[\"text\"]"], "answers are text")),
    ("audio", Only(&[], "answers are text; leave it out")),
    ("reasoning_effort", Use(Text)),
    ("chat_template_kwargs", Use(Such("an object of at most 32 values", messages::are_variables))),
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
    ("prompt", Use(Checked("a string, an array of token ids, or an array of either", check_texts))),
    ("best_of", Only(&["1"], "one answer is made at a time; leave it out")),
    ("echo", Only(&["false"], "answers do not repeat the prompt; put it before them")),
    ("logprobs", Use(Checked("an integer from 0 to 20, or false", check_logprobs))),
    ("suffix", Only(&["\"\""], "nothing is filled in; leave it out")),
];

/// Fields of an embeddings request.
const EMBEDDING: Table = &[
    ("input", Use(Checked("a string, an array of token ids, or an array of either", check_texts))),
    ("model", Use(Text)),
    ("encoding_format", Use(OneOf(&["float", "base64"]))),
    ("dimensions", Use(Integer(1, MOST))),
    ("normalize", Use(Boolean)),
    ("user", Ignored),
];

/// All tables, by the object that has the fields.
pub const FIELDS: &[(&str, Table)] = &[
    ("requests for text", COMMON),
    ("requests for an answer in a conversation", CHAT),
    ("requests to continue a text", TEXT),
    ("requests for embeddings", EMBEDDING),
    ("requests to rank documents", RERANK),
    ("messages", messages::MESSAGE),
];

/// Input of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Prompt {
    /// A text; an empty one stands for the token that begins a text (BOS).
    Text(String),
    /// The tokens of a text.
    Tokens(Vec<u32>),
    /// A conversation; the model writes the next turn.
    Chat(Vec<Message>),
    /// A query and a document, for a reranker.
    Pair(String, String),
}

fn is_stop(value: &Value) -> bool {
    let sound = |text: &Value| text.as_str().is_some_and(|text| !text.is_empty());
    match value {
        Value::Array(texts) => texts.len() <= 64 && texts.iter().all(sound),
        text => sound(text),
    }
}

/// Checks the number of likeliest tokens to report at each position. Some clients send false for none.
fn check_logprobs(name: &str, value: &Value, notes: &Notes) -> Result<(), Refusal> {
    if *value == false { Ok(()) } else { Integer(0, MAX_TOP as u64).check(name, value, notes) }
}

/// Parses token ids and their biases. The engine checks how many there may be.
fn biases(name: &str, value: &Value, notes: &Notes) -> Result<Vec<(u32, f32)>, Refusal> {
    let biases = value.as_object().ok_or_else(|| refused(name, "an object of token ids and numbers", value))?;
    let bias = |(id, bias): (&String, &Value)| {
        let path = format!("{name}.{id}");
        let id = id.parse().map_err(|_| refused(name, "an object of token ids and numbers", value))?;
        Number(-100.0, 100.0).check(&path, bias, notes)?;
        Ok((id, bias.as_f64().unwrap_or_default() as f32))
    };
    biases.iter().map(bias).collect()
}

fn check_biases(name: &str, value: &Value, notes: &Notes) -> Result<(), Refusal> {
    biases(name, value, notes).map(|_| ())
}

/// Parses a prompt: a text, or its tokens. A byte order mark at the beginning of a text is removed.
fn text(name: &str, value: &Value) -> Result<Prompt, Refusal> {
    if let Value::String(text) = value {
        return Ok(Prompt::Text(text.strip_prefix('\u{feff}').unwrap_or(text).to_owned()));
    }
    let id = |id: &Value| u32::try_from(integer(id)?).ok();
    let tokens = value.as_array().and_then(|ids| ids.iter().map(id).collect());
    tokens.map(Prompt::Tokens).ok_or_else(|| refused(name, "a string or an array of token ids", value))
}

/// Parses one or more prompts. An array of numbers is a single prompt.
fn texts(name: &str, value: &Value) -> Result<Vec<Prompt>, Refusal> {
    let is_list = |values: &&Vec<Value>| values.first().is_some_and(|first| first.is_string() || first.is_array());
    match value.as_array().filter(is_list) {
        None => Ok(vec![text(name, value)?]),
        Some(values) if values.len() > MOST_TEXTS => {
            Err(Refusal::new(format!("{name} can have {MOST_TEXTS} texts, not {}", values.len())).about(name))
        }
        Some(values) => values.iter().enumerate().map(|(at, value)| text(&format!("{name}[{at}]"), value)).collect(),
    }
}

fn check_texts(name: &str, value: &Value, _: &Notes) -> Result<(), Refusal> {
    texts(name, value).map(|_| ())
}

/// Fields of a valid request.
pub struct Sound<'v>(pub &'v Map<String, Value>);

impl Sound<'_> {
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// Returns an integer, or `None` also for -1, which means no limit.
    fn integer(&self, name: &str) -> Option<u64> {
        integer(self.get(name)?).and_then(|number| u64::try_from(number).ok())
    }

    pub fn size(&self, name: &str) -> Option<usize> {
        self.integer(name).and_then(|number| usize::try_from(number).ok())
    }

    fn number(&self, name: &str) -> Option<f64> {
        self.get(name)?.as_f64()
    }

    pub fn is_true(&self, name: &str) -> bool {
        self.get(name).and_then(Value::as_bool).unwrap_or(false)
    }

    pub fn string(&self, name: &str) -> Option<&str> {
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

    fn overflow(&self) -> Option<Overflow> {
        self.string("overflow").and_then(|name| name.parse().ok())
    }

    fn answer(&self, seed: u64) -> AnswerOptions {
        AnswerOptions {
            max_tokens: self.max_tokens(),
            overflow: self.overflow(),
            sampling: self.sampling(seed),
            adjust: self.adjust(),
            log_probs: self.log_probs(),
            ignore_eos: self.is_true("ignore_eos"),
            stop: self.stop(),
            fetch_interval: self.size("fetch_interval"),
            draft_max: self.size("draft_max"),
            keep: self.size("keep"),
        }
    }
}

/// Options of one answer, without a format.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerOptions {
    /// Most new tokens.
    pub max_tokens: Option<usize>,
    /// Policy for a full context.
    pub overflow: Option<Overflow>,
    /// Choice of tokens.
    pub sampling: Sampling,
    /// Adjustments of their probabilities.
    pub adjust: Adjust,
    /// Number of the likeliest tokens to report at each position, if log probabilities are reported.
    pub log_probs: Option<usize>,
    /// Whether the answer goes on after tokens that end it.
    pub ignore_eos: bool,
    /// Texts that end the answer.
    pub stop: Vec<String>,
    /// Number of steps between reads.
    pub fetch_interval: Option<usize>,
    /// Most tokens that are drafted at once.
    pub draft_max: Option<usize>,
    /// Number of first tokens that stay when the context is full, if the request has it.
    pub keep: Option<usize>,
}

impl AnswerOptions {
    /// Sets the engine's options, except for the number of tokens to keep.
    pub fn set(self, options: &mut GenerateOptions) {
        options.max_tokens = self.max_tokens;
        options.overflow = self.overflow.unwrap_or(options.overflow);
        options.sampling = self.sampling;
        options.adjust = self.adjust;
        options.log_probs = self.log_probs;
        options.stop_tokens = self.ignore_eos.then(Vec::new);
        options.stop = self.stop;
        options.fetch_interval = self.fetch_interval.or(options.fetch_interval);
        options.draft_max = self.draft_max;
    }
}

/// Returns an unpredictable number: a hash with a random key.
pub fn random() -> u64 {
    RandomState::new().hash_one(0)
}

/// A request for text.
pub struct TextRequest {
    fields: Map<String, Value>,
    /// Its prompts; a conversation is one.
    pub prompts: Vec<Prompt>,
    /// Options of the conversation.
    pub chat: ChatOptions,
    /// Number of answers to each prompt.
    pub n: usize,
    /// Name of the model.
    pub model: Option<String>,
    /// The user on whose behalf the client asks.
    pub user: Option<String>,
    /// Whether the answer comes in chunks.
    pub stream: bool,
    /// Whether a last chunk has the usage.
    pub include_usage: bool,
    /// Format of the answer, if not text.
    pub format: Option<format::Asked>,
    /// The conversation, if its answer must call tools or follow a format.
    pub held: Option<(Vec<Message>, ChatOptions)>,
}

impl TextRequest {
    /// Reads and validates a request.
    ///
    /// *Errors*: a field is invalid; the error names it.
    pub fn read(shape: Shape, value: &Value, notes: &Notes) -> Result<TextRequest, Refusal> {
        let own = if shape == Shape::Chat { CHAT } else { TEXT };
        let sound = Sound(check("", value, &[COMMON, own], notes)?);
        let prompts = match shape {
            Shape::Chat if sound.get("messages").is_none() => {
                return Err(refused("messages", "an array with at least one message", &Value::Null));
            }
            Shape::Chat if sound.get("top_logprobs").is_some_and(|top| *top != 0) && !sound.is_true("logprobs") => {
                return Err(Refusal::new("top_logprobs needs logprobs to be true").about("top_logprobs"));
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
            return Err(Refusal::new(message).about(field));
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

    /// Returns the overflow policy, if the request has one, and the number of tokens that must fit after the prompt.
    pub fn room(&self) -> (Option<Overflow>, usize) {
        let sound = Sound(&self.fields);
        let neutral = GenerateOptions { max_tokens: sound.max_tokens(), ..GenerateOptions::default() };
        (sound.overflow(), neutral.most())
    }

    /// Returns the seed of the first answer: that of the request, or else `usual`; -1 stands for the `random` one.
    pub fn seed(&self, usual: u64, random: u64) -> u64 {
        match Sound(&self.fields).get("seed").and_then(integer) {
            None => usual,
            Some(-1) => random,
            Some(seed) => seed as u64,
        }
    }

    /// Returns the options for an answer with this seed.
    pub fn answer(&self, seed: u64) -> AnswerOptions {
        Sound(&self.fields).answer(seed)
    }
}

/// A request for embeddings.
pub struct EmbedRequest {
    /// Its texts.
    pub texts: Vec<Prompt>,
    /// Number of values of a vector, if fewer than the model's.
    pub dimensions: Option<usize>,
    /// Whether vectors are made to have length 1.
    pub normalize: bool,
    /// Name of the model.
    pub model: Option<String>,
    /// Whether vectors come as base64.
    pub base64: bool,
}

impl EmbedRequest {
    /// Reads and validates a request.
    ///
    /// *Errors*: a field is invalid; the error names it.
    pub fn read(value: &Value, notes: &Notes) -> Result<EmbedRequest, Refusal> {
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
