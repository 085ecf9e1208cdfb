//! The programs of the workspace.

use crate::{process, root};
use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::Command;

/// Builds a program of the workspace as it is now, and returns its place.
/// The packages of the tests are named beside it: by itself it would have other features of what it depends on, and all of
/// that would be compiled once more.
pub fn built(name: &str) -> Result<PathBuf> {
    let status = Command::new(process::cargo())
        .args(["build", "--quiet", "--release", "--workspace", "--exclude", "anygpu-viewer", "--bin", name])
        .current_dir(root())
        .status()
        .context("cannot start cargo")?;
    if !status.success() {
        bail!("{name} cannot be built");
    }
    Ok(path(name))
}

/// Returns the place of a program that was built.
pub fn path(name: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    target.join("release").join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
}
