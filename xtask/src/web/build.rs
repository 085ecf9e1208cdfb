//! The modules: Rust to WebAssembly, and the JavaScript that belongs to it.

use super::oldest;
use super::toolchain::{TARGET, Toolchain};
use crate::{process, progress, release, root};
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use wasm_bindgen_cli_support::Bindgen;

/// A module: its package, and its name in the folder of a build.
pub const MODULES: &[(&str, &str)] = &[("bindings", "bindings"), ("bindings-conformance", "conformance")];

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

/// Where the modules are built.
pub struct Place {
    /// The workspace.
    pub root: PathBuf,
    /// What compilers write to.
    pub target: PathBuf,
    /// Cargo's own folder, if it is another one than usual.
    pub cargo_home: Option<PathBuf>,
}

impl Place {
    /// This workspace.
    pub fn here() -> Place {
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
        Place { root: root(), target, cargo_home: None }
    }

    /// The folder of the modules.
    pub fn modules(&self) -> PathBuf {
        self.root.join("js").join("wasm")
    }

    /// The toolchain's cargo, before its arguments.
    pub fn cargo(&self, toolchain: Toolchain) -> Command {
        let mut cargo = match toolchain {
            Toolchain::InUse => Command::new(process::cargo()),
            Toolchain::Debian => {
                let mut cargo = Command::new("/usr/bin/cargo");
                cargo.arg("--config").arg(self.root.join("xtask").join("wasm-debian.toml"));
                // These name the compiler in use.
                cargo.env_remove("RUSTC").env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
                cargo
            }
        };
        if let Some(home) = &self.cargo_home {
            cargo.env("CARGO_HOME", home);
        }
        cargo.current_dir(&self.root).stdin(Stdio::null());
        cargo
    }

    /// What a toolchain writes to: each has its own, or they would undo each other's work.
    pub fn target(&self, toolchain: Toolchain) -> PathBuf {
        match toolchain {
            Toolchain::InUse => self.target.clone(),
            Toolchain::Debian => self.target.join("wasm-debian"),
        }
    }

    /// What makes modules the same wherever they are built: messages of panics name the file, and crates of the
    /// registry lie in another folder on each machine.
    fn remaps(&self, toolchain: Toolchain) -> Result<Vec<String>> {
        let registry: BTreeSet<PathBuf> = release::of_registry(self.cargo(toolchain))?;
        let folders = registry.iter().map(|folder| (folder.as_path(), "crates"));
        let all = folders.chain([(self.root.as_path(), "anygpu")]);
        Ok(all.map(|(folder, name)| format!("--remap-path-prefix={}={name}", folder.display())).collect())
    }
}

/// Builds the modules into `js/wasm`. What was there stays until all of it has been built.
pub fn run(toolchain: Toolchain, place: &Place) -> Result<()> {
    let folder = place.modules();
    let partial = folder.with_extension("partial");
    if partial.exists() {
        fs::remove_dir_all(&partial).with_context(|| format!("cannot remove {}", partial.display()))?;
    }
    for build in BUILDS {
        println!("compiling for {TARGET}: {}", build.title);
        let modules = compile(toolchain, build, place)?;
        progress::during("generating bindings", || generate(&modules, &partial.join(build.folder), build))?;
    }
    super::replace(&partial, &folder)
}

/// Compiles all modules into one folder.
fn compile(toolchain: Toolchain, build: &Build, place: &Place) -> Result<PathBuf> {
    if toolchain == Toolchain::Debian {
        println!("using Debian's compiler; the first build compiles the standard library too");
    }
    let mut target = place.target(toolchain);
    // Where paths are replaced, cargo names what it makes alike whatever the other flags are.
    if !build.folder.is_empty() {
        target.push(format!("wasm-{}", build.folder));
    }
    let mut cargo = place.cargo(toolchain);
    let remaps = place.remaps(toolchain)?;
    match build.flags {
        // Of the variables and settings for flags, this comes first.
        Some(flags) => {
            let all: Vec<&str> = flags.iter().copied().chain(remaps.iter().map(String::as_str)).collect();
            cargo.env("CARGO_ENCODED_RUSTFLAGS", all.join("\x1f"));
        }
        // Beside those of the workspace.
        None => {
            cargo.arg("--config").arg(format!("target.{TARGET}.rustflags = {}", serde_json::to_string(&remaps)?));
        }
    }
    let status = cargo
        .args(["build", "--locked", "--profile", "wasm", "--target", TARGET])
        .args(MODULES.iter().flat_map(|(package, _)| ["--package", package]))
        .arg("--target-dir")
        .arg(&target)
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
