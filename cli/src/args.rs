//! The command line. Its contracts are stable: others script against them.

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

/// One language model file, any GPU a browser has.
///
/// Without a command: the probe report, then a story from the built-in model.
#[derive(Debug, Parser)]
#[command(name = "anygpu", version, max_term_width = 110, args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Where the story is told.
    #[command(flatten)]
    pub device: DeviceArgs,
}

/// What a command takes that runs on a device.
#[derive(Debug, Args)]
pub struct OnDevice<A: Args + Debug> {
    /// What is its own.
    #[command(flatten)]
    pub args: A,
    /// Where to run.
    #[command(flatten)]
    pub device: DeviceArgs,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Say which backends this machine has, and which one would be chosen, and why
    Probe(OnDevice<ProbeArgs>),
    /// Continue a prompt, or answer it
    Generate(Box<OnDevice<GenerateArgs>>),
    /// Talk with a model in the terminal
    ///
    /// What is typed is answered; /help lists what else can be typed. Of a pipe each line is a turn, and the standard
    /// output has the answers and nothing else.
    Chat(Box<OnDevice<ChatArgs>>),
    /// Talk with a model, or have one prompt answered: `anygpu run MODEL [PROMPT]`
    ///
    /// Without a prompt it is `chat`. What is piped in follows the prompt, or is the prompt.
    Run(Box<OnDevice<RunArgs>>),
    /// The logits of a prompt
    Logits(OnDevice<LogitsArgs>),
    /// The embeddings of texts: vectors that point in like directions where texts mean like things
    Embed(OnDevice<EmbedArgs>),
    /// Text to token ids
    Tokenize {
        #[command(flatten)]
        model: ModelArgs,
        /// The text
        #[arg(long, allow_hyphen_values = true)]
        text: String,
        /// Add no tokens around the text, and take special tokens in it for ordinary text
        #[arg(long)]
        no_special: bool,
        /// {"tokens": [...]}
        #[arg(long, help_heading = "Output")]
        json: bool,
    },
    /// Token ids to text
    Detokenize {
        #[command(flatten)]
        model: ModelArgs,
        /// The ids
        #[arg(long, value_delimiter = ',', num_args = 0..)]
        tokens: Vec<u32>,
        /// Leave out special tokens
        #[arg(long)]
        no_special: bool,
        /// {"text": "..."}
        #[arg(long, help_heading = "Output")]
        json: bool,
    },
    /// Serve a model over HTTP, to clients of OpenAI's API
    Serve(Box<OnDevice<ServeArgs>>),
    /// Say what a model file is, and which backends of this machine would run it, without loading its weights
    Inspect(OnDevice<InspectArgs>),
    /// Fetch a model, or the rest of it, and keep it; `--model` does so, too
    Pull {
        /// https://..., or hf:OWNER/NAME with :QUANT or :FILE behind it
        #[arg(value_name = "MODEL")]
        model: Reference,
    },
    /// List the models that were fetched
    #[command(visible_alias = "list")]
    Ls {
        /// {"models": [{"model": "...", "bytes": N, "whole": true, "path": "...", "address": "..."}]}
        #[arg(long, help_heading = "Output")]
        json: bool,
    },
    /// Delete a model that was fetched
    Rm {
        /// As `ls` lists it, or as it was asked for
        #[arg(value_name = "MODEL")]
        model: Reference,
    },
    /// Measure prefill and decode
    Bench(OnDevice<BenchArgs>),
    /// One line for each dispatch or draw of a decode step
    Trace(OnDevice<TraceArgs>),
    /// Many machines as one
    #[command(subcommand)]
    Pool(PoolCommand),
    /// Write what a shell needs to complete this program's commands and options
    ///
    /// For bash: anygpu completions bash > ~/.local/share/bash-completion/completions/anygpu
    Completions {
        /// Which shell
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Write the manual page, or that of a command, in roff: `anygpu man generate | man -l -`
    Man {
        /// A command, such as generate or pool serve [default: all commands on one page]
        #[arg(value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// Find out what is fastest on this device, and keep it for the next time
    ///
    /// Runs a model with one value after another of each tunable of the backend. Results are the same with all of them. It
    /// is never needed: the defaults do everywhere.
    Tune(OnDevice<TuneArgs>),
}

impl Cli {
    /// Where it runs; none of a command that needs no device.
    pub fn device(&self) -> Option<&DeviceArgs> {
        Some(match &self.command {
            None => &self.device,
            Some(Command::Probe(on)) => &on.device,
            Some(Command::Generate(on)) => &on.device,
            Some(Command::Chat(on)) => &on.device,
            Some(Command::Run(on)) => &on.device,
            Some(Command::Logits(on)) => &on.device,
            Some(Command::Embed(on)) => &on.device,
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

/// Where to run. `--backend` and `--threads` may also stand in the environment, as `ANYGPU_BACKEND` and `ANYGPU_THREADS`.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Backend")]
pub struct DeviceArgs {
    /// auto (the fastest that proves itself), gpu (the best that is no CPU), or one by name: webgpu, webgl, cpu
    #[arg(long, env = "ANYGPU_BACKEND", value_parser = Choice::from_str, default_value = "auto")]
    pub backend: Choice,
    /// How WebGL keeps values: packed (four a texel), or r32f (one a texel), or bits (four as integers, works everywhere) [default: packed]
    #[arg(long, value_enum)]
    pub webgl_layout: Option<Layout>,
    /// Behave like a WebGL device whose textures are at most this wide and high
    #[arg(long, value_name = "TEXELS", value_parser = clap::value_parser!(u32).range(64..))]
    pub max_texture_size: Option<u32>,
    /// Behave like a WebGPU device whose bindings are at most this large
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(65536..))]
    pub max_binding: Option<u64>,
    /// What WebGPU multiplies several rows with quantised weights in: exactly (f32), or faster (int8)
    #[arg(long, value_name = "f32|int8", default_value = "f32")]
    pub products: Products,
    /// Threads of the CPU [default: as many as the machine runs at once]
    #[arg(long, value_name = "N", env = "ANYGPU_THREADS", value_parser = threads)]
    pub threads: Option<NonZeroUsize>,
    /// Where `tune` keeps what it found [default: anygpu/tuning.json among the user's cached files]
    #[arg(long, value_name = "FILE", env = "ANYGPU_TUNING")]
    pub tuning: Option<PathBuf>,
    /// Prove the backends anew, instead of using the one that was chosen last if neither it nor this program has changed
    #[arg(long)]
    pub prove: bool,
    /// Let drivers write to the standard error
    #[arg(long, env = "ANYGPU_DRIVER_LOG", value_parser = FalseyValueParser::new())]
    pub driver_log: bool,
}

/// More threads than any machine has cores for would be a slip.
fn threads(text: &str) -> Result<NonZeroUsize, String> {
    let number = text.parse().ok().filter(|n: &NonZeroUsize| n.get() <= 1024);
    number.ok_or_else(|| "give a number from 1 to 1024".into())
}

/// How to say what a machine has.
#[derive(Debug, Args)]
pub struct ProbeArgs {
    /// The report as JSON
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// How WebGL keeps values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Layout {
    /// Four a texel.
    Packed,
    /// One a texel.
    R32f,
    Bits,
}

/// Which model.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Model")]
pub struct ModelArgs {
    /// A GGUF file, of a split model any of its files; https://..., or hf:OWNER/NAME with :QUANT or :FILE behind it, which is
    /// fetched once and kept; or gab: the built-in story model
    #[arg(short, long, value_name = "MODEL", default_value = "gab")]
    pub model: Reference,
}

/// Which model, and how much of it.
#[derive(Debug, Clone, Args)]
pub struct LoadArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    #[command(flatten)]
    pub context: ContextArgs,
}

/// A model that drafts for it.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Model")]
pub struct DraftArgs {
    /// A small model with the same vocabulary that drafts for it: faster where it guesses right, and the text is the same
    #[arg(long, value_name = "MODEL")]
    pub draft: Option<Reference>,
}

/// How much of a text a model sees, and how that is kept.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Model")]
pub struct ContextArgs {
    /// Tokens that the context holds [default: what the model was trained for, at most 2048; serve: as much as there is memory for]
    #[arg(long, value_name = "TOKENS")]
    pub n_ctx: Option<usize>,
    /// What the KV cache holds: f32, f16 in half the memory of a GPU, q8_0 in about a quarter, or fewer bits down to about a
    /// seventh [default: f32; serve: f16]
    #[arg(long, value_name = "f32|f16|q8_0|q5_1|q5_0|q4_1|q4_0")]
    pub kv_cache: Option<KvCache>,
    /// Most memory that weights and states may take, such as 800M or 6G [default: states may take what suits the weights]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub max_memory: Option<u64>,
}

/// A number of bytes, perhaps with a K, M or G for thousands, millions or thousands of millions.
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

/// Which file to look at.
#[derive(Debug, Clone, Args)]
pub struct InspectArgs {
    /// A GGUF file, of a split model any of its files; https://..., hf:OWNER/NAME, or gab: the built-in story model
    #[arg(value_name = "MODEL")]
    pub file: Reference,
    #[command(flatten)]
    pub context: ContextArgs,
    /// {architecture, name, parameters, n_ctx_train, n_ctx, tokenizer, tensors: [...], rungs: [...]}
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// How to choose tokens.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Sampling")]
pub struct SamplingArgs {
    /// Always the likeliest token; the default unless a sampling option is given
    #[arg(long, conflicts_with_all = ["temperature", "top_k", "top_p", "seed"])]
    pub greedy: bool,
    /// Sample; higher is more surprising [default when sampling: 0.8]
    #[arg(long, allow_hyphen_values = true)]
    pub temperature: Option<f32>,
    /// Sample from this many candidates, at most 64 [default when sampling: 40]
    #[arg(long)]
    pub top_k: Option<u32>,
    /// Sample from the likeliest candidates that reach this probability [default when sampling: 0.95]
    #[arg(long, allow_hyphen_values = true)]
    pub top_p: Option<f32>,
    /// The same seed gives the same text [default when sampling: 0]
    #[arg(long)]
    pub seed: Option<u64>,
}

/// What to do about a text that outgrows the context.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Text")]
pub struct OverflowArgs {
    /// When prompt and --max-tokens do not fit the context: error (refuse), stop (end with the context), or shift (drop old tokens and go on)
    #[arg(long, value_name = "error|stop|shift", default_value = "error")]
    pub overflow: Overflow,
    /// With --overflow shift: tokens at the beginning that are never dropped [default: the token that begins a text; with --chat what the template begins with]
    #[arg(long, value_name = "N")]
    pub keep: Option<usize>,
}

/// What to generate.
#[derive(Debug, Args)]
pub struct GenerateArgs {
    #[command(flatten)]
    pub load: LoadArgs,
    #[command(flatten)]
    pub draft: DraftArgs,
    /// The prompt, or what to do with a text that is piped in or in --file, which then follows it
    #[arg(value_name = "PROMPT", conflicts_with_all = ["prompt", "instruction"], help_heading = "Text")]
    pub words: Option<String>,
    /// The same as PROMPT, which may begin with a hyphen here
    #[arg(
        short = 'p',
        value_name = "PROMPT",
        allow_hyphen_values = true,
        conflicts_with = "prompt",
        help_heading = "Text"
    )]
    pub instruction: Option<String>,
    /// The whole text to continue, or - for what the standard input has; with --chat the message to answer
    #[arg(long, value_name = "TEXT|-", allow_hyphen_values = true, help_heading = "Text")]
    pub prompt: Option<String>,
    /// The same from a file, without a line break at its end
    #[arg(long, value_name = "FILE", conflicts_with = "prompt", help_heading = "Text")]
    pub file: Option<PathBuf>,
    /// Wrap the prompt in the model's chat template
    #[arg(long, conflicts_with = "load_session", help_heading = "Text")]
    pub chat: bool,
    /// With --chat: what the model is told before, such as who it is and how it answers
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, requires = "chat", help_heading = "Text")]
    pub system: Option<String>,
    #[command(flatten)]
    pub template: TemplateArgs,
    /// With --chat: functions that the model may call, in the shape of OpenAI's API; --json tells the calls
    #[arg(long, value_name = "JSON|FILE", allow_hyphen_values = true, requires = "chat", value_parser = template::tools, help_heading = "Text")]
    pub tools: Option<Tools>,
    /// With --tools: whether the model calls them: auto, none, required, or the name of the one that it must call
    #[arg(long, value_name = "CHOICE", requires = "tools", conflicts_with = "FormatArgs", value_parser = template::choice, help_heading = "Text")]
    pub tool_choice: Option<ToolChoice>,
    /// End after this many tokens [default: 256, or as many as the context has room for]
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
    /// Give log probabilities with so many of the likeliest tokens for each place, at most 20, in the shape of OpenAI's API
    #[arg(long, value_name = "N", requires = "json")]
    pub logprobs: Option<usize>,
    #[command(flatten)]
    pub session: SessionArgs,
    /// Save so often while the text is generated, too: what a process that is killed had saved is not lost; 0 is after each token
    #[arg(long, value_name = "SECONDS", requires = "save_session", value_parser = seconds, help_heading = "Sessions")]
    pub save_every: Option<f64>,
    /// End where this text would appear; may be given several times
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, help_heading = "Text")]
    pub stop: Vec<String>,
    /// Go on where the model would end
    #[arg(long, help_heading = "Text")]
    pub ignore_eos: bool,
    /// Decode steps in flight before their tokens are read; by default as many as take a few milliseconds
    #[arg(long, value_name = "STEPS", help_heading = "Backend")]
    pub fetch_interval: Option<usize>,
    /// Draft so many tokens at most, from what the text has already or by --draft's model, and verify them in one step, which
    /// is faster where they are right and changes no text; 0 is none; by default as many as suit the backend
    #[arg(long, value_name = "TOKENS", help_heading = "Backend")]
    pub draft_max: Option<usize>,
    /// One JSON object with the tokens, the text, times and counters, at the end
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// Whose logits.
#[derive(Debug, Args)]
pub struct LogitsArgs {
    #[command(flatten)]
    pub load: LoadArgs,
    #[command(flatten)]
    pub input: PromptArgs,
    #[command(flatten)]
    pub session: SessionArgs,
    /// How many of the best ids to give
    #[arg(long, value_name = "N", default_value_t = 10, help_heading = "Output")]
    pub top: usize,
    /// Write the logits of all positions: float32 [tokens, vocab]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub npy: Option<PathBuf>,
    /// {"prompt_tokens": [...], "top": [[id, logit], ...]} of the last position
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// What to embed.
#[derive(Debug, Args)]
pub struct EmbedArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    /// Tokens that a text may have [default: what the model was trained for, at most 2048]
    #[arg(long, value_name = "TOKENS")]
    pub n_ctx: Option<usize>,
    #[command(flatten)]
    pub input: TextArgs,
    /// How the vectors of a text's tokens become one: mean, cls (the first), last, or none [default: what the file says]
    #[arg(long, value_name = "none|mean|cls|last")]
    pub pooling: Option<Pooling>,
    /// Leave vectors as long as the model makes them, instead of bringing them to length 1
    #[arg(long)]
    pub raw: bool,
    /// Keep only so many numbers of each vector: for models that were trained for it
    #[arg(long, value_name = "N")]
    pub dimensions: Option<usize>,
    /// {"embedding": [...], "pooling": "mean"}; of several texts {"embeddings": [[...], ...], "pooling": "mean"}
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// What to measure.
#[derive(Debug, Args)]
pub struct BenchArgs {
    #[command(flatten)]
    pub load: LoadArgs,
    /// Tokens of the prompt: also the depth at which decoding begins
    #[arg(long, value_name = "TOKENS", default_value_t = 128)]
    pub prefill: usize,
    /// Tokens to decode after it
    #[arg(long, value_name = "TOKENS", default_value_t = 64)]
    pub decode: usize,
    /// Measurements, after one that is not counted
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    /// Decode steps in flight before their tokens are read; by default as many as take a few milliseconds
    #[arg(long, value_name = "STEPS")]
    pub fetch_interval: Option<usize>,
    /// Time single operators instead: so many queued, then one read
    #[arg(long, conflicts_with = "ablate")]
    pub ops: bool,
    /// Operators that --ops queues before a read
    #[arg(long, value_name = "N", default_value_t = QUEUED, value_parser = queued, requires = "ops")]
    pub queued: usize,
    /// Time the model with one design decision at a time switched off instead
    #[arg(long)]
    pub ablate: bool,
    /// Time loading in its stages, and the repacking of each weight format, instead
    #[arg(long = "load", conflicts_with_all = ["ops", "ablate"])]
    pub loading: bool,
    /// Time so many conversations that advance together, and one by itself, instead
    #[arg(long, value_name = "N", conflicts_with_all = ["ops", "ablate", "loading"])]
    pub conversations: Option<usize>,
    /// The measurements as JSON
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// What to tune for.
#[derive(Debug, Args)]
pub struct TuneArgs {
    #[command(flatten)]
    pub load: LoadArgs,
    /// Tokens of the prompt
    #[arg(long, value_name = "TOKENS", default_value_t = 64)]
    pub prefill: usize,
    /// Tokens to decode after it
    #[arg(long, value_name = "TOKENS", default_value_t = 32)]
    pub decode: usize,
    /// Runs of each value, after one that is not counted
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeat: u32,
    /// What was tried and what won, as JSON
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// A batch of operators: each is a node of one graph.
fn queued(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|n| (1..=1000).contains(n));
    number.ok_or_else(|| "give a number from 1 to 1000".into())
}

/// What to trace.
#[derive(Debug, Args)]
pub struct TraceArgs {
    #[command(flatten)]
    pub load: LoadArgs,
    /// One line for all blocks whose kernels are those of the block before
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    pub fold: bool,
    /// The kernels as JSON
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}
