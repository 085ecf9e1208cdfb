//! The bindings: Rust to WebAssembly, and the JavaScript that belongs to it.

use super::toolchain::{TARGET, Toolchain};
use crate::{progress, root};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use wasm_bindgen_cli_support::Bindgen;

/// Builds `js/bindings` into `js/wasm`. What was there stays until all of it has been built.
pub fn run(toolchain: Toolchain) -> Result<()> {
    let module = compile(toolchain)?;
    progress::during("generating bindings", || generate(module))
}

fn compile(toolchain: Toolchain) -> Result<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let (mut cargo, target) = match toolchain {
        Toolchain::InUse => (Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())), target),
        Toolchain::Debian => {
            println!("using Debian's compiler; the first build compiles the standard library too");
            let mut cargo = Command::new("/usr/bin/cargo");
            cargo.arg("--config").arg(root().join("xtask").join("wasm-debian.toml"));
            // These name the compiler in use.
            cargo.env_remove("RUSTC").env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
            // Each compiler has its own folder, or they would undo each other's work.
            (cargo, target.join("wasm-debian"))
        }
    };
    println!("compiling for {TARGET}");
    let status = cargo
        .args(["build", "--profile", "wasm", "--package", "bindings", "--target", TARGET, "--target-dir"])
        .arg(&target)
        .current_dir(root())
        .stdin(Stdio::null())
        .status()
        .context("cannot start cargo")?;
    if !status.success() {
        bail!("the bindings do not compile for {TARGET} (the messages are above)");
    }
    Ok(target.join(TARGET).join("wasm").join("bindings.wasm"))
}

fn generate(module: PathBuf) -> Result<()> {
    let js = root().join("js");
    let (partial, folder) = (js.join("wasm.partial"), js.join("wasm"));
    if partial.exists() {
        fs::remove_dir_all(&partial).with_context(|| format!("cannot remove {}", partial.display()))?;
    }
    Bindgen::new()
        .input_path(&module)
        .web(true)?
        .typescript(true)
        .remove_name_section(true)
        .remove_producers_section(true)
        .generate(&partial)
        .with_context(|| format!("wasm-bindgen refuses {}", module.display()))?;
    super::replace(&partial, &folder)
}
