//! What a conversation takes.

use super::{ContextArgs, DraftArgs, FormatArgs, LoadArgs, ModelArgs, SamplingArgs, TemplateArgs};
use crate::models::Reference;
use anygpu::Overflow;
use clap::Args;

/// With whom to talk, and how.
#[derive(Debug, Args)]
pub struct ChatArgs {
    #[command(flatten)]
    pub load: LoadArgs,
    #[command(flatten)]
    pub talk: TalkArgs,
}

/// With whom to talk, the model first.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// A GGUF file, of a split model any of its files; https://..., or hf:OWNER/NAME with :QUANT or :FILE behind it, which is
    /// fetched once and kept
    pub model: Reference,
    /// The message to answer, of one or more words [default: a conversation]
    #[arg(value_name = "PROMPT")]
    pub prompt: Vec<String>,
    #[command(flatten)]
    pub context: ContextArgs,
    #[command(flatten)]
    pub talk: TalkArgs,
}

impl RunArgs {
    /// The model, as the other commands name it.
    pub fn load(&self) -> LoadArgs {
        LoadArgs { model: ModelArgs { model: self.model.clone() }, context: self.context.clone() }
    }
}

/// How to talk.
#[derive(Debug, Args)]
pub struct TalkArgs {
    #[command(flatten)]
    pub draft: DraftArgs,
    /// What the model is told before the conversation: who it is, how it answers
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, help_heading = "Text")]
    pub system: Option<String>,
    #[command(flatten)]
    pub template: TemplateArgs,
    /// End an answer after this many tokens
    #[arg(long, value_name = "N", default_value_t = 1024, help_heading = "Text")]
    pub max_tokens: usize,
    /// When the conversation outgrows the context: shift (the oldest turns are left out), stop (the answer ends there), or error
    #[arg(long, value_name = "shift|stop|error", default_value = "shift", help_heading = "Text")]
    pub overflow: Overflow,
    #[command(flatten)]
    pub sampling: SamplingArgs,
    #[command(flatten)]
    pub format: FormatArgs,
    /// Keep nothing of what is typed for the next conversation's arrow keys
    #[arg(long, help_heading = "Sessions")]
    pub no_history: bool,
}
