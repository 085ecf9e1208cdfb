//! Checks of dependencies: whether they may be used (`deny.toml`), and whether advisories name them.

mod deny;
mod npm;

use anyhow::Result;
use clap::Args;

/// Checks to make.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Check known advisories instead: RustSec's (from github.com) and npm's audits
    ///
    /// Fails if it cannot be asked, too: then nothing is known.
    #[arg(long)]
    pub advisories: bool,
}

/// Checks. True if all is well.
///
/// *Errors*: something that is needed cannot be had; the message says what.
pub fn run(options: &Options) -> Result<bool> {
    if !options.advisories {
        return deny::policy();
    }
    // The one says nothing of the other.
    let (crates, packages) = (deny::advisories(), npm::audit());
    let mut is_good = true;
    for checked in [crates, packages] {
        is_good &= checked.unwrap_or_else(|error| {
            eprintln!("error: {error:#}");
            false
        });
    }
    Ok(is_good)
}
