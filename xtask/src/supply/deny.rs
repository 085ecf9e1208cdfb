//! cargo-deny, at one version, built once into `target/tools`.

use crate::{process, root};
use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The version that reads `deny.toml`. What packages of Python have is too old for the package ids of cargo since 1.77.
const VERSION: &str = "0.20.2";

/// Licences, duplicates and sources, which need no more than the registry.
pub fn policy() -> Result<bool> {
    check(&["check", "bans", "licenses", "sources"])
}

/// RustSec's advisories.
pub fn advisories() -> Result<bool> {
    if !check(&["fetch", "db"])? {
        bail!(
            "RustSec's advisories cannot be fetched (the message is above), so that nothing is known of the crates; run \
             `cargo xtask supply --advisories` where github.com can be reached"
        );
    }
    check(&["check", "--disable-fetch", "advisories"])
}

fn check(args: &[&str]) -> Result<bool> {
    let program = program()?;
    let mut command = Command::new(&program);
    command.args(args).current_dir(root()).stdin(Stdio::null());
    let status = command.status().with_context(|| format!("cannot start {}", program.display()))?;
    Ok(status.success())
}

/// The program, which is built unless it is there: in a minute on two cores, since nobody waits for how fast it runs.
fn program() -> Result<PathBuf> {
    let folder = root().join("target").join("tools").join(format!("cargo-deny-{VERSION}"));
    let program = folder.join("bin").join(format!("cargo-deny{}", std::env::consts::EXE_SUFFIX));
    if program.is_file() {
        return Ok(program);
    }
    println!("building cargo-deny {VERSION}");
    let status = Command::new(process::cargo())
        .args(["install", "--quiet", "--locked", "--debug", "--no-track", "cargo-deny", "--version", VERSION, "--root"])
        .arg(&folder)
        .current_dir(root())
        .stdin(Stdio::null())
        .status()
        .context("cannot start cargo")?;
    if !status.success() || !program.is_file() {
        bail!("cargo could not build cargo-deny {VERSION} (the message is above); does it reach the registry?");
    }
    Ok(program)
}
