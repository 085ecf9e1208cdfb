//! The command line. Its contracts are stable, because scripts rely on them.

mod adjust;
mod chat;
mod format;
pub mod pool;
mod serve;
mod session;
mod template;
mod text;

pub use adjust::AdjustArgs;
pub use chat::{ChatArgs, RunArgs, TalkArgs};
pub use format::FormatArgs;
pub use serve::{HttpArgs, ServeArgs};
pub use session::SessionArgs;
pub use template::{TemplateArgs, Tools};
pub use text::{PromptArgs, TextArgs};

use crate::models::Reference;
use anygpu::bench::QUEUED;
use anygpu::{Choice, KvCache, Overflow, Pooling, Products, ToolChoice};
use clap::builder::FalseyValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use pool::PoolCommand;
use session::seconds;
use std::fmt::Debug;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;

/// Run GGUF language models on any GPU that a browser has.
///
/// Without a command, prints the probe report and then a story by the built-in model.
#[derive(Debug, Parser)]
#[command(name = "anygpu", version, max_term_width = 110, args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// The command to run.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The device that runs the story.
    #[command(flatten)]
    pub device: DeviceArgs,
}

/// The arguments of a command that runs on a device.
#[derive(Debug, Args)]
pub struct OnDevice<A: Args + Debug> {
    /// The command's own arguments.
    #[command(flatten)]
    pub args: A,
    /// The device to run on.
    #[command(flatten)]
    pub device: DeviceArgs,
}

/// The command to run.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show which backends this machine has, which one would be chosen, and why
    Probe(OnDevice<ProbeArgs>),
    /// Continue a prompt, or answer it
    Generate(Box<OnDevice<GenerateArgs>>),
    /// Talk with a model in the terminal
    ///
    /// Type a message to get an answer; /help lists the commands. If the standard input is a pipe, each line is one
    /// turn and only answers are written to the standard output.
    Chat(Box<OnDevice<ChatArgs>>),
    /// Talk with a model, or answer one prompt: `anygpu run MODEL [PROMPT]`
    ///
    /// Without a prompt, this is `chat`. Text that is piped in follows the prompt, or is the prompt.
    Run(Box<OnDevice<RunArgs>>),
    /// Print the logits of a prompt
    Logits(OnDevice<LogitsArgs>),
    /// Compute embeddings: vectors whose similarity reflects similarity of meaning
    Embed(OnDevice<EmbedArgs>),
    /// Rank documents by how well they answer a query, by a reranker
    Rerank(OnDevice<RerankArgs>),
    /// Convert text to token ids
    Tokenize {
        #[command(flatten)]
        model: ModelArgs,
        /// The text to tokenize
        #[arg(long, allow_hyphen_values = true)]
        text: String,
        /// Add no special tokens around the text, and read special tokens in it as ordinary text
        #[arg(long)]
        no_special: bool,
        /// Print JSON: {"tokens": [...]}
        #[arg(long, help_heading = "Output")]
        json: bool,
    },
    /// Convert token ids to text
    Detokenize {
        #[command(flatten)]
        model: ModelArgs,
        /// The token ids, separated by commas
        #[arg(long, value_delimiter = ',', num_args = 0..)]
        tokens: Vec<u32>,
        /// Leave out special tokens
        #[arg(long)]
        no_special: bool,
        /// Print JSON: {"text": "..."}
        #[arg(long, help_heading = "Output")]
        json: bool,
    },
    /// Serve a model over HTTP, for clients of OpenAI's API
    Serve(Box<OnDevice<ServeArgs>>),
    /// Describe a model file, and show which backends of this machine would run it, without loading its weights
    Inspect(OnDevice<InspectArgs>),
    /// Download a model, or the rest of it, and keep it; `--model` does this as well
    Pull {
        /// A URL (https://...), or hf:OWNER/NAME[:QUANT or :FILE]
        #[arg(value_name = "MODEL")]
        model: Reference,
    },
    /// List the downloaded models
    #[command(visible_alias = "list")]
    Ls {
        /// Print JSON: {"models": [{"model": "...", "bytes": N, "whole": true, "path": "...", "address": "..."}]}
        #[arg(long, help_heading = "Output")]
        json: bool,
    },
    /// Delete a downloaded model
    Rm {
        /// The model's name, as `ls` lists it or as it was requested
        #[arg(value_name = "MODEL")]
        model: Reference,
    },
    /// Measure the speed of prefill and decode
    Bench(OnDevice<BenchArgs>),
    /// List the dispatches or draws of a decode step, one on each line
    Trace(OnDevice<TraceArgs>),
    /// Run one model on many machines
    #[command(subcommand)]
    Pool(PoolCommand),
    /// Print a script with which a shell completes this program's commands and options
    ///
    /// For bash: anygpu completions bash > ~/.local/share/bash-completion/completions/anygpu
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Print the manual page, or that of one command, in roff: `anygpu man generate | man -l -`
    Man {
        /// A command, such as generate or pool serve [default: all commands on one page]
        #[arg(value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// Find the fastest settings for this device, and save them
    ///
    /// Runs a model with each value of each tunable of the backend. Tunables do not change results. Tuning is never
    /// needed: the defaults work everywhere.
    Tune(OnDevice<TuneArgs>),
}

impl Cli {
    /// Returns the device arguments, or `None` if the command does not need a device.
    pub fn device(&self) -> Option<&DeviceArgs> {
        Some(match &self.command {
            None => &self.device,
            Some(Command::Probe(on)) => &on.device,
            Some(Command::Generate(on)) => &on.device,
            Some(Command::Chat(on)) => &on.device,
            Some(Command::Run(on)) => &on.device,
            Some(Command::Logits(on)) => &on.device,
            Some(Command::Embed(on)) => &on.device,
            Some(Command::Rerank(on)) => &on.device,
            Some(Command::Serve(on)) => &on.device,
            Some(Command::Inspect(on)) => &on.device,
            Some(Command::Bench(on)) => &on.device,
            Some(Command::Trace(on)) => &on.device,
            Some(Command::Tune(on)) => &on.device,
            Some(Command::Pool(PoolCommand::Work(on))) => &on.device,
            Some(
                Command::Tokenize { .. }
                | Command::Detokenize { .. }
                | Command::Pull { .. }
                | Command::Ls { .. }
                | Command::Rm { .. }
                | Command::Pool(_)
                | Command::Completions { .. }
                | Command::Man { .. },
            ) => return None,
        })
    }
}

/// The device to run on. The environment variables `ANYGPU_BACKEND` and `ANYGPU_THREADS` also set `--backend` and
/// `--threads`.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Backend")]
pub struct DeviceArgs {
    /// auto (the fastest that passes its self-test), gpu (the best GPU backend), or one by name: webgpu, webgl, cpu
    #[arg(long, env = "ANYGPU_BACKEND", value_parser = Choice::from_str, default_value = "auto")]
    pub backend: Choice,
    /// How WebGL stores values: packed (four in a texel), r32f (one in a texel), or bits (four as integers, works
    /// everywhere) [default: packed]
    #[arg(long, value_enum)]
    pub webgl_layout: Option<Layout>,
    /// Behave like a WebGL device whose textures are at most this wide and high
    #[arg(long, value_name = "TEXELS", value_parser = clap::value_parser!(u32).range(64..))]
    pub max_texture_size: Option<u32>,
    /// Behave like a WebGPU device whose buffer bindings are at most this large
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(65536..))]
    pub max_binding: Option<u64>,
    /// Precision of prompt matmuls with quantised weights on WebGPU: f32 (exact) or int8 (faster, less accurate)
    #[arg(long, value_name = "f32|int8", default_value = "f32")]
    pub products: Products,
    /// Number of CPU threads [default: as many as the machine runs at once]
    #[arg(long, value_name = "N", env = "ANYGPU_THREADS", value_parser = threads)]
    pub threads: Option<NonZeroUsize>,
    /// File that `tune` saves its results in [default: anygpu/tuning.json in the user's cache folder]
    #[arg(long, value_name = "FILE", env = "ANYGPU_TUNING")]
    pub tuning: Option<PathBuf>,
    /// Run the self-tests of the backends again, instead of reusing the last choice while neither it nor this program
    /// has changed
    #[arg(long)]
    pub prove: bool,
    /// Let GPU drivers write to the standard error
    #[arg(long, env = "ANYGPU_DRIVER_LOG", value_parser = FalseyValueParser::new())]
    pub driver_log: bool,
}

/// Parses a number of threads. More than 1,024, which no machine has cores for, counts as a mistake.
fn threads(text: &str) -> Result<NonZeroUsize, String> {
    let number = text.parse().ok().filter(|n: &NonZeroUsize| n.get() <= 1024);
    number.ok_or_else(|| "give a number from 1 to 1024".into())
}

/// Parses a number of results.
fn positive(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "give a whole number above 0".into())
}

/// The arguments of `probe`.
#[derive(Debug, Args)]
pub struct ProbeArgs {
    /// Print the report as JSON
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// The ways in which WebGL stores values in textures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Layout {
    /// Four values in a texel.
    Packed,
    /// One value in a texel.
    R32f,
    /// Four values in a texel, as integers: works everywhere.
    Bits,
}

/// The model to run.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Model")]
pub struct ModelArgs {
    /// A GGUF file (for a split model, any part), a URL or hf:OWNER/NAME[:QUANT or :FILE], which is downloaded once and
    /// kept, or gab (the built-in story model)
    #[arg(short, long, value_name = "MODEL", default_value = "gab")]
    pub model: Reference,
}

/// The model, and the size of its context.
#[derive(Debug, Clone, Args)]
pub struct LoadArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    #[command(flatten)]
    pub context: ContextArgs,
}

/// The draft model.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Model")]
pub struct DraftArgs {
    /// A small draft model with the same vocabulary, for speculative decoding: faster where its drafts are right, and
    /// the text does not change
    #[arg(long, value_name = "MODEL")]
    pub draft: Option<Reference>,
}

/// The size of the context, and the memory that it takes.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Model")]
pub struct ContextArgs {
    /// Size of the context in tokens [default: what the model was trained for, at most 2048; serve: as much as fits in
    /// memory]
    #[arg(long, value_name = "TOKENS")]
    pub n_ctx: Option<usize>,
    /// Take the memory for so many tokens of the KV cache at once, at most the whole context, so that a long text cannot run
    /// out of memory late [default: it grows with the text]
    #[arg(long, value_name = "TOKENS")]
    pub capacity: Option<usize>,
    /// Data type of the KV cache: f32, f16 (half the memory on a GPU), q8_0 (about a quarter), or fewer bits (down to
    /// about a seventh) [default: f32; serve: f16 where the model allows it]
    #[arg(long, value_name = "f32|f16|q8_0|q5_1|q5_0|q4_1|q4_0")]
    pub kv_cache: Option<KvCache>,
    /// Most memory for weights and states (such as the KV cache), for example 800M or 6G [default: the weights, plus
    /// 512 MiB or four times the weights for states, whichever is larger]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub max_memory: Option<u64>,
}

/// Parses a number of bytes, which may end with K, M or G for thousands, millions or billions.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(['K', 'M', 'G', 'k', 'm', 'g']);
    let factor = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" => Some(1),
        "K" => Some(1_000),
        "M" => Some(1_000_000),
        "G" => Some(1_000_000_000u64),
        _ => None,
    };
    let bytes = factor.and_then(|factor| digits.parse::<u64>().ok()?.checked_mul(factor));
    bytes.ok_or_else(|| "give a number of bytes, such as 800M or 6G".into())
}

/// The arguments of `inspect`.
#[derive(Debug, Clone, Args)]
pub struct InspectArgs {
    /// A GGUF file (for a split model, any part), a URL, hf:OWNER/NAME[:QUANT or :FILE], or gab (the built-in story
    /// model)
    #[arg(value_name = "MODEL")]
    pub file: Reference,
    #[command(flatten)]
    pub context: ContextArgs,
    /// Print JSON: {architecture, name, parameters, n_ctx_train, n_ctx, tokenizer, tensors: [...], rungs: [...]}
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// The sampling options.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Sampling")]
pub struct SamplingArgs {
    /// Always choose the likeliest token; the default unless a sampling option is given
    #[arg(long, conflicts_with_all = ["temperature", "top_k", "top_p", "seed"])]
    pub greedy: bool,
    /// Sample at this temperature; higher is more random [default when sampling: 0.8]
    #[arg(long, allow_hyphen_values = true)]
    pub temperature: Option<f32>,
    /// Sample from this many candidates, at most 64 [default when sampling: 40]
    #[arg(long)]
    pub top_k: Option<u32>,
    /// Sample from the likeliest candidates whose probabilities add up to this [default when sampling: 0.95]
    #[arg(long, allow_hyphen_values = true)]
    pub top_p: Option<f32>,
    /// Seed for sampling: one seed gives one text [default when sampling: 0]
    #[arg(long)]
    pub seed: Option<u64>,
}

/// The handling of a text that outgrows the context.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Text")]
pub struct OverflowArgs {
    /// When prompt and --max-tokens do not fit the context: error (refuse), stop (end when the context is full), or
    /// shift (drop old tokens and continue)
    #[arg(long, value_name = "error|stop|shift", default_value = "error")]
    pub overflow: Overflow,
    /// With --overflow shift: number of tokens at the beginning that are never dropped [default: the token that begins
    /// a text (BOS); with --chat, what the template begins with]
    #[arg(long, value_name = "N")]
    pub keep: Option<usize>,
}

/// The arguments of `generate`.
#[derive(Debug, Args)]
pub struct GenerateArgs {
    #[command(flatten)]
    pub load: LoadArgs,
    #[command(flatten)]
    pub draft: DraftArgs,
    /// The prompt, or an instruction for a text that is piped in or in --file, which then follows it
    #[arg(value_name = "PROMPT", conflicts_with_all = ["prompt", "instruction"], help_heading = "Text")]
    pub words: Option<String>,
    /// PROMPT as an option, so that it may begin with a hyphen
    #[arg(
        short = 'p',
        value_name = "PROMPT",
        allow_hyphen_values = true,
        conflicts_with = "prompt",
        help_heading = "Text"
    )]
    pub instruction: Option<String>,
    /// The whole text to continue, or - to read it from the standard input; with --chat, the message to answer
    #[arg(long, value_name = "TEXT|-", allow_hyphen_values = true, help_heading = "Text")]
    pub prompt: Option<String>,
    /// Read the text from a file; a line break at its end is left out
    #[arg(long, value_name = "FILE", conflicts_with = "prompt", help_heading = "Text")]
    pub file: Option<PathBuf>,
    /// Wrap the prompt in the model's chat template
    #[arg(long, conflicts_with = "load_session", help_heading = "Text")]
    pub chat: bool,
    /// With --chat: the system prompt, such as who the model is and how it answers
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, requires = "chat", help_heading = "Text")]
    pub system: Option<String>,
    #[command(flatten)]
    pub template: TemplateArgs,
    /// With --chat: functions that the model may call, in the format of OpenAI's API; --json reports the calls
    #[arg(long, value_name = "JSON|FILE", allow_hyphen_values = true, requires = "chat", value_parser = template::tools, help_heading = "Text")]
    pub tools: Option<Tools>,
    /// With --tools: whether the model calls functions: auto, none, required, or the name of the one that it must call
    #[arg(long, value_name = "CHOICE", requires = "tools", conflicts_with = "FormatArgs", value_parser = template::choice, help_heading = "Text")]
    pub tool_choice: Option<ToolChoice>,
    /// Generate at most this many tokens [default: 256, or as many as the context has room for]
    #[arg(long, value_name = "N", help_heading = "Text")]
    pub max_tokens: Option<usize>,
    #[command(flatten)]
    pub overflow: OverflowArgs,
    #[command(flatten)]
    pub sampling: SamplingArgs,
    #[command(flatten)]
    pub adjust: AdjustArgs,
    #[command(flatten)]
    pub format: FormatArgs,
    /// With --json: report log probabilities and this many of the likeliest tokens at each position, at most 20, in the
    /// format of OpenAI's API
    #[arg(long, value_name = "N", requires = "json")]
    pub logprobs: Option<usize>,
    #[command(flatten)]
    pub session: SessionArgs,
    /// Also save at this interval while the text is generated, so that a killed process loses little; 0 saves after
    /// each token
    #[arg(long, value_name = "SECONDS", requires = "save_session", value_parser = seconds, help_heading = "Sessions")]
    pub save_every: Option<f64>,
    /// End where this text would appear; may be given several times
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, help_heading = "Text")]
    pub stop: Vec<String>,
    /// Continue where the model would end
    #[arg(long, help_heading = "Text")]
    pub ignore_eos: bool,
    /// Decode steps that are submitted before their tokens are read [default: as many as take a few milliseconds]
    #[arg(long, value_name = "STEPS", help_heading = "Backend")]
    pub fetch_interval: Option<usize>,
    /// Speculative decoding: draft at most this many tokens, by prompt lookup or with the model of --draft, and verify
    /// them in one step. It is faster where drafts are right, and the text does not change; 0 turns it off [default: as
    /// many as suit the backend]
    #[arg(long, value_name = "TOKENS", help_heading = "Backend")]
    pub draft_max: Option<usize>,
    /// Print one JSON object at the end, with the tokens, the text, times and counters
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// The arguments of `logits`.
#[derive(Debug, Args)]
pub struct LogitsArgs {
    #[command(flatten)]
    pub load: LoadArgs,
    #[command(flatten)]
    pub input: PromptArgs,
    #[command(flatten)]
    pub session: SessionArgs,
    /// How many of the best token ids to print
    #[arg(long, value_name = "N", default_value_t = 10, help_heading = "Output")]
    pub top: usize,
    /// Write the logits of all positions to a NumPy file: float32 [tokens, vocab]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub npy: Option<PathBuf>,
    /// Print JSON for the last position: {"prompt_tokens": [...], "top": [[id, logit], ...]}
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// The arguments of `embed`.
#[derive(Debug, Args)]
pub struct EmbedArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    /// Most tokens of a text [default: what the model was trained for, at most 2048]
    #[arg(long, value_name = "TOKENS")]
    pub n_ctx: Option<usize>,
    #[command(flatten)]
    pub input: TextArgs,
    /// How the vectors of a text's tokens are pooled into one: mean, cls (the first), last, or none; or rank, for the
    /// scores of a reranker [default: what the file says]
    #[arg(long, value_name = "none|mean|cls|last|rank")]
    pub pooling: Option<Pooling>,
    /// Do not normalize vectors to length 1
    #[arg(long)]
    pub raw: bool,
    /// Keep only the first N numbers of each vector, for models that were trained for it
    #[arg(long, value_name = "N")]
    pub dimensions: Option<usize>,
    /// Print JSON: {"embedding": [...], "pooling": "mean"}, or for several texts {"embeddings": [[...], ...],
    /// "pooling": "mean"}; of a reranker {"scores": [...], "pooling": "rank"}
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// The arguments of `rerank`.
#[derive(Debug, Args)]
pub struct RerankArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    /// Most tokens of a query with a document [default: what the model was trained for, at most 2048]
    #[arg(long, value_name = "TOKENS")]
    pub n_ctx: Option<usize>,
    /// The query, or - to read it from the standard input
    #[arg(long, value_name = "TEXT|-", allow_hyphen_values = true, help_heading = "Text")]
    pub query: String,
    /// A document; may be given several times
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, help_heading = "Text")]
    #[arg(required_unless_present = "documents", conflicts_with = "documents")]
    pub document: Vec<String>,
    /// A file with a document on each line, or - to read them from the standard input
    #[arg(long, value_name = "FILE|-", help_heading = "Text")]
    pub documents: Option<PathBuf>,
    /// Print only the best N
    #[arg(long, value_name = "N", value_parser = positive, help_heading = "Output")]
    pub top_n: Option<NonZeroUsize>,
    /// Print JSON: {"results": [{"index": 2, "relevance_score": 0.98}, ...]}, the best first
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// The arguments of `bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    #[command(flatten)]
    pub load: LoadArgs,
    /// Tokens that the context has before the prompt, which are not measured
    #[arg(long, value_name = "TOKENS", default_value_t = 0, conflicts_with_all = ["ops", "loading", "conversations"])]
    pub depth: usize,
    /// Tokens of the prompt, after which decoding begins
    #[arg(long, value_name = "TOKENS", default_value_t = 128)]
    pub prefill: usize,
    /// Tokens to decode after the prompt
    #[arg(long, value_name = "TOKENS", default_value_t = 64)]
    pub decode: usize,
    /// Number of measurements, after a first one that does not count
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    /// Decode steps that are submitted before their tokens are read [default: as many as take a few milliseconds]
    #[arg(long, value_name = "STEPS")]
    pub fetch_interval: Option<usize>,
    /// Measure single operators instead: queue several, then read one result
    #[arg(long, conflicts_with = "ablate")]
    pub ops: bool,
    /// Operators that --ops queues before it reads a result
    #[arg(long, value_name = "N", default_value_t = QUEUED, value_parser = queued, requires = "ops")]
    pub queued: usize,
    /// Measure the model with one design decision at a time switched off instead
    #[arg(long)]
    pub ablate: bool,
    /// Measure the stages of loading and the repacking of each weight format instead
    #[arg(long = "load", conflicts_with_all = ["ops", "ablate"])]
    pub loading: bool,
    /// Measure N conversations that run together, and one alone, instead
    #[arg(long, value_name = "N", conflicts_with_all = ["ops", "ablate", "loading"])]
    pub conversations: Option<usize>,
    /// Print the measurements as JSON
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// The arguments of `tune`.
#[derive(Debug, Args)]
pub struct TuneArgs {
    #[command(flatten)]
    pub load: LoadArgs,
    /// Tokens of the prompt
    #[arg(long, value_name = "TOKENS", default_value_t = 64)]
    pub prefill: usize,
    /// Tokens to decode after the prompt
    #[arg(long, value_name = "TOKENS", default_value_t = 32)]
    pub decode: usize,
    /// Number of runs for each value, after a first one that does not count
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeat: u32,
    /// Print what was tried and what won as JSON
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// Parses the number of operators in a batch. It is bounded, because all of them are nodes of one graph.
fn queued(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|n| (1..=1000).contains(n));
    number.ok_or_else(|| "give a number from 1 to 1000".into())
}

/// Parses a number of tokens that is not 0.
fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| "give a number of at least 1".into())
}

/// The arguments of `trace`.
#[derive(Debug, Args)]
pub struct TraceArgs {
    #[command(flatten)]
    pub load: LoadArgs,
    /// Trace a prompt of so many tokens instead of a decode step
    #[arg(long, value_name = "TOKENS", value_parser = at_least_one)]
    pub prefill: Option<usize>,
    /// Tokens that the context has before that [default: a few]
    #[arg(long, value_name = "TOKENS")]
    pub depth: Option<usize>,
    /// Print one line for all blocks that have the same kernels as the block before
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    pub fold: bool,
    /// Print the kernels as JSON
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}
