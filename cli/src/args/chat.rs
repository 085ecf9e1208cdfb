//! What a conversation takes.

use super::{DraftArgs, FormatArgs, LoadArgs, SamplingArgs, TemplateArgs};
use anygpu::Overflow;
use clap::Args;

/// With whom to talk, and how.
#[derive(Debug, Args)]
pub struct ChatArgs {
    #[command(flatten)]
    pub load: LoadArgs,
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
