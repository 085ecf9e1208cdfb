//! The arguments of `chat` and `run`.

use super::{ContextArgs, DraftArgs, FormatArgs, LoadArgs, ModelArgs, SamplingArgs, TemplateArgs};
use crate::models::Reference;
use anygpu::Overflow;
use clap::Args;

/// The arguments of `chat`.
#[derive(Debug, Args)]
pub struct ChatArgs {
    #[command(flatten)]
    pub load: LoadArgs,
    #[command(flatten)]
    pub talk: TalkArgs,
}

/// The arguments of `run`, which begin with the model.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// A GGUF file (for a split model, any part), or a URL or hf:OWNER/NAME[:QUANT or :FILE], which is downloaded once
    /// and kept
    pub model: Reference,
    /// The message to answer, in one or more words [default: a conversation]
    #[arg(value_name = "PROMPT")]
    pub prompt: Vec<String>,
    #[command(flatten)]
    pub context: ContextArgs,
    #[command(flatten)]
    pub talk: TalkArgs,
}

impl RunArgs {
    /// Returns the model and its context in the form that other commands have.
    pub fn load(&self) -> LoadArgs {
        LoadArgs { model: ModelArgs { model: self.model.clone() }, context: self.context.clone() }
    }
}

/// The options of a conversation.
#[derive(Debug, Args)]
pub struct TalkArgs {
    #[command(flatten)]
    pub draft: DraftArgs,
    /// The system prompt, such as who the model is and how it answers
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, help_heading = "Text")]
    pub system: Option<String>,
    #[command(flatten)]
    pub template: TemplateArgs,
    /// End an answer after this many tokens
    #[arg(long, value_name = "N", default_value_t = 1024, help_heading = "Text")]
    pub max_tokens: usize,
    /// When the conversation outgrows the context: shift (leave out the oldest turns), stop (end the answer there), or
    /// error
    #[arg(long, value_name = "shift|stop|error", default_value = "shift", help_heading = "Text")]
    pub overflow: Overflow,
    #[command(flatten)]
    pub sampling: SamplingArgs,
    #[command(flatten)]
    pub format: FormatArgs,
    /// Do not save what is typed for the arrow keys of later conversations
    #[arg(long, help_heading = "Sessions")]
    pub no_history: bool,
}
