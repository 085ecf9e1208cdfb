//! The options for sessions in files.

use clap::Args;
use std::path::PathBuf;

/// The files that sessions are read from and written to.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Sessions")]
pub struct SessionArgs {
    /// Save the text and its computed state, to continue later, on this backend or another
    #[arg(long, value_name = "FILE")]
    pub save_session: Option<PathBuf>,
    /// Continue a saved text; the prompt follows it. Without a prompt, a text that was interrupted continues with its
    /// own options
    #[arg(long, value_name = "FILE")]
    pub load_session: Option<PathBuf>,
}

/// Parses an interval in seconds, which may be 0.
pub fn seconds(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|n| (0.0..=86_400.0).contains(n));
    number.ok_or_else(|| "give seconds from 0 to 86400, such as 0.5".into())
}
