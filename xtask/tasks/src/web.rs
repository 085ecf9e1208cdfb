//! The page and the JavaScript package: built, assembled, measured, served.

mod build;
pub mod dist;
mod oldest;
mod reproduce;
pub mod serve;
pub mod size;

pub use build::{MODULES, Place};
pub use reproduce::run as reproduce;

use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use xtask::toolchain;

/// Builds everything into `dist`, threads if asked for.
pub fn build(choice: toolchain::Choice, threads: bool) -> Result<()> {
    let toolchain = toolchain::find(choice, threads)?;
    build::run(toolchain, &Place::here(), threads)?;
    dist::assemble(&toolchain.version()?)
}

/// Serves `dist` until the process is interrupted.
pub fn serve(port: Option<u16>) -> Result<()> {
    let server = serve::Server::start(port, None, false)?;
    println!("serving dist at http://{}/   (Ctrl-C ends it)", server.address());
    server.wait_for_interrupt()?;
    println!("stopped");
    Ok(())
}

/// Replaces an old folder by a finished one.
fn replace(new: &Path, old: &Path) -> Result<()> {
    if old.exists() {
        fs::remove_dir_all(old).with_context(|| format!("cannot remove {}", old.display()))?;
    }
    fs::rename(new, old).with_context(|| format!("cannot move {} to {}", new.display(), old.display()))
}
