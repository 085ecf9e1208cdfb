//! The modules: Rust to WebAssembly, and the JavaScript that belongs to it.

use super::oldest;
use super::toolchain::{TARGET, Toolchain};
use crate::{process, progress, root};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use wasm_bindgen_cli_support::Bindgen;

/// A module: its package, and its name in the folder of a build.
const MODULES: &[(&str, &str)] = &[("bindings", "bindings"), ("bindings-conformance", "conformance")];

/// A build of the modules.
struct Build {
    /// Whom it is for, in words.
    title: &'static str,
    /// Its folder in `js/wasm`.
    folder: &'static str,
    /// The compiler's flags, instead of those of the workspace.
    flags: Option<&'static [&'static str]>,
    /// Whether the oldest browsers must be able to run it.
    is_for_oldest: bool,
}

const BUILDS: &[Build] = &[
    Build { title: "browsers of today", folder: "", flags: None, is_for_oldest: false },
    // What `js/src/build.js` asks a browser for. Without them the border to JavaScript is another one, so that this build has
    // its own JavaScript too.
    Build {
        title: "older browsers",
        folder: "older",
        flags: Some(&[
            "-Ctarget-feature=-simd128,-reference-types,-multivalue",
            // The compiled standard library says that it has these features, and makes no use of them. wasm-bindgen goes by
            // what the linked module says.
            "-Clink-arg=--no-check-features",
            "-Clink-arg=--features=bulk-memory,mutable-globals,nontrapping-fptoint,sign-ext",
        ]),
        is_for_oldest: true,
    },
];

/// Builds the modules into `js/wasm`. What was there stays until all of it has been built.
pub fn run(toolchain: Toolchain) -> Result<()> {
    let js = root().join("js");
    let (partial, folder) = (js.join("wasm.partial"), js.join("wasm"));
    if partial.exists() {
        fs::remove_dir_all(&partial).with_context(|| format!("cannot remove {}", partial.display()))?;
    }
    for build in BUILDS {
        println!("compiling for {TARGET}: {}", build.title);
        let modules = compile(toolchain, build)?;
        progress::during("generating bindings", || generate(&modules, &partial.join(build.folder), build))?;
    }
    super::replace(&partial, &folder)
}

/// Compiles all modules into one folder, which all builds share.
fn compile(toolchain: Toolchain, build: &Build) -> Result<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let (mut cargo, target) = match toolchain {
        Toolchain::InUse => (Command::new(process::cargo()), target),
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
    if let Some(flags) = build.flags {
        // Of the variables and settings for flags, this comes first.
        cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    }
    let status = cargo
        .args(["build", "--profile", "wasm", "--target", TARGET])
        .args(MODULES.iter().flat_map(|(package, _)| ["--package", package]))
        .arg("--target-dir")
        .arg(&target)
        .current_dir(root())
        .stdin(Stdio::null())
        .status()
        .context("cannot start cargo")?;
    if !status.success() {
        bail!("the modules do not compile for {TARGET} (the messages are above)");
    }
    Ok(target.join(TARGET).join("wasm"))
}

/// Makes the JavaScript of the modules, and the modules that it loads.
fn generate(modules: &Path, folder: &Path, build: &Build) -> Result<()> {
    for (package, name) in MODULES {
        let module = modules.join(package.replace('-', "_")).with_extension("wasm");
        Bindgen::new()
            .input_path(&module)
            .out_name(name)
            .web(true)?
            .typescript(true)
            .remove_name_section(true)
            .remove_producers_section(true)
            // On a page's own thread a module that trapped has to be started anew in place.
            .reset_state_function(true)
            .generate(folder)
            .with_context(|| format!("wasm-bindgen refuses {}", module.display()))?;
        if build.is_for_oldest {
            oldest::check(&folder.join(format!("{name}_bg.wasm")))?;
        }
    }
    Ok(())
}
