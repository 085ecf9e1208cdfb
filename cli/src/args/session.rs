//! Sessions in files.

use clap::Args;
use std::path::PathBuf;

/// Where a text comes from and goes to.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Sessions")]
pub struct SessionArgs {
    /// Save the text and what was computed of it, to go on later, also on another backend
    #[arg(long, value_name = "FILE")]
    pub save_session: Option<PathBuf>,
    /// Go on with a text that was saved; the prompt follows it. Without one, a text that was broken off goes on as it was asked
    #[arg(long, value_name = "FILE")]
    pub load_session: Option<PathBuf>,
}

/// A time between two things, which may be none.
pub fn seconds(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|n| (0.0..=86_400.0).contains(n));
    number.ok_or_else(|| "give seconds from 0 to 86400, such as 0.5".into())
}
