//! Systems that we cannot run: what is built for them has the right types, at least.

use crate::web::Place;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use xtask::toolchain::{self, System};

/// The command line, which depends on all libraries, and the programs that show how these are used.
const PACKAGES: &[&str] = &["anygpu-cli", "anygpu-examples"];

/// Checks the types for a system.
///
/// *Errors*: there is no compiler for it, or something does not have the right types there.
pub fn run(system: System) -> Result<()> {
    let target = system.target();
    let (place, toolchain) = (Place::here(), toolchain::checks(target)?);
    let mut cargo = place.cargo(toolchain);
    // The modules' profile and folder, where macros and build scripts are compiled already.
    cargo.args(["check", "--locked", "--profile", "wasm", "--target", target]);
    cargo.arg("--target-dir").arg(place.target(toolchain));
    cargo.args(PACKAGES.iter().flat_map(|package| ["--package", package]));
    // ring has C in it, and nothing here compiles C for these systems. Nothing is linked either, so that what a compiler
    // which does nothing leaves out is not missed.
    let name = target.replace('-', "_");
    let archiver = archiver(&place.target(toolchain))?;
    cargo.env(format!("CC_{name}"), "true").env(format!("AR_{name}"), archiver).env("SDKROOT", "/");
    if !cargo.status().context("cannot start cargo")?.success() {
        bail!("the types are not right for {target} (the messages are above)");
    }
    Ok(())
}

/// Writes a program that archives nothing: the library that a Windows linker would be given is there, and empty.
fn archiver(folder: &Path) -> Result<PathBuf> {
    let path = folder.join("archive-nothing");
    fs::create_dir_all(folder)?;
    fs::write(&path, "#!/bin/sh\nfor word; do case $word in -out:*) : > \"${word#-out:}\" ;; esac; done\n")?;
    #[cfg(unix)]
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    Ok(path)
}
