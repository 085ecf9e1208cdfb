//! The options for texts and prompts.

use crate::text;
use anyhow::Result;
use clap::Args;
use std::path::{Path, PathBuf};

/// One or more texts, or the tokens of one.
#[derive(Debug, Args)]
#[command(next_help_heading = "Text")]
#[group(required = true, multiple = false)]
pub struct TextArgs {
    /// A text, or - to read it from the standard input; may be given several times
    #[arg(long, value_name = "TEXT|-", allow_hyphen_values = true)]
    pub text: Vec<String>,
    /// A file with a text; a line break at its end is left out; may be given several times
    #[arg(long, value_name = "FILE")]
    pub file: Vec<PathBuf>,
    /// A text as token ids
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    pub tokens: Option<Vec<u32>>,
}

impl TextArgs {
    /// Returns all texts.
    ///
    /// *Errors*: those of [`text::given`].
    pub fn texts(&self) -> Result<Vec<String>> {
        let given = self.text.iter().map(|text| text::given(Some(text), None));
        given.chain(self.file.iter().map(|file| text::given(None, Some(file)))).collect()
    }
}

/// A prompt as text or as tokens.
#[derive(Debug, Args)]
#[command(next_help_heading = "Text")]
#[group(required = true, multiple = false)]
pub struct PromptArgs {
    /// The prompt as text, or - to read it from the standard input
    #[arg(long, value_name = "TEXT|-", allow_hyphen_values = true)]
    pub prompt: Option<String>,
    /// A file with the prompt; a line break at its end is left out
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The prompt as token ids
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    pub tokens: Option<Vec<u32>>,
}

impl PromptArgs {
    /// Returns the prompt as text.
    ///
    /// *Errors*: those of [`text::given`].
    pub fn text(&self) -> Result<String> {
        text::given(self.prompt.as_deref(), self.file.as_deref().map(Path::new))
    }
}
