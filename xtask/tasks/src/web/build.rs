//! The modules: Rust to WebAssembly, and the JavaScript that belongs to it.

use super::oldest;
use crate::{process, progress, release, root};
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use wasm_bindgen_cli_support::Bindgen;
use xtask::toolchain::{TARGET, Toolchain};

/// A module.
pub struct Module {
    /// Its package.
    pub package: &'static str,
    /// Its name in the folder of a build.
    pub name: &'static str,
    /// Whether the engine is in it. If not, it has no use for threads or SIMD: all browsers get the build for older ones. And it
    /// is built by itself: what it asks of crates that both have, such as all tables of Unicode, would be in the others, too.
    has_engine: bool,
    /// Whether all builds have it, and not that for browsers of today alone.
    pub everywhere: bool,
}

/// All of them.
pub const MODULES: &[Module] = &[
    Module { package: "bindings", name: "bindings", has_engine: true, everywhere: true },
    Module { package: "bindings-conformance", name: "conformance", has_engine: true, everywhere: true },
    Module { package: "bindings-constrain", name: "constrain", has_engine: false, everywhere: true },
    Module { package: "bindings-pool", name: "pool", has_engine: true, everywhere: false },
];

/// A build of the modules.
struct Build {
    /// Browsers that it is for, in words.
    title: &'static str,
    /// Its folder in `js/wasm`.
    folder: &'static str,
    /// The compiler's flags, instead of those of the workspace.
    flags: Option<&'static [&'static str]>,
    /// Whether the oldest browsers must be able to run it.
    is_for_oldest: bool,
    /// Whether it has threads. It takes a standard library of its own.
    has_threads: bool,
}

impl Build {
    /// Returns the modules of the build.
    fn modules(&self) -> impl Iterator<Item = &'static Module> {
        let is_usual = self.folder.is_empty();
        let suits = |module: &&Module| module.has_engine || self.is_for_oldest;
        MODULES.iter().filter(suits).filter(move |module| is_usual || module.everywhere)
    }
}

const BUILDS: &[Build] = &[
    Build { title: "browsers of today", folder: "", flags: None, is_for_oldest: false, has_threads: false },
    // What `js/src/module/build-choice.js` asks a browser for. Without them the border to JavaScript is another one, so that
    // this build has its own JavaScript too.
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
        has_threads: false,
    },
    // What `js/src/module/start-threads.js` asks a page for. The linker is told what a shared memory takes, since compilers
    // differ in what they tell it themselves.
    Build {
        title: "pages that may have threads",
        folder: "threads",
        flags: Some(&[
            "-Ctarget-feature=+simd128,+atomics,+bulk-memory,+mutable-globals",
            "-Clink-arg=--shared-memory",
            "-Clink-arg=--import-memory",
            // All that 32 bits address, as in the other builds. A browser that cannot set so much apart gets those.
            "-Clink-arg=--max-memory=4294967296",
            "-Clink-arg=--export=__wasm_init_tls",
            "-Clink-arg=--export=__tls_size",
            "-Clink-arg=--export=__tls_align",
            "-Clink-arg=--export=__tls_base",
            "-Clink-arg=--export=__heap_base",
        ]),
        is_for_oldest: false,
        has_threads: true,
    },
];

/// Where the modules are built.
pub struct Place {
    /// The workspace.
    pub root: PathBuf,
    /// Folder that compilers write to.
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

    /// Returns the folder that a toolchain writes to: each has its own, or they would undo each other's work.
    pub fn target(&self, toolchain: Toolchain) -> PathBuf {
        match toolchain {
            Toolchain::InUse => self.target.clone(),
            Toolchain::Debian => self.target.join("wasm-debian"),
        }
    }

    /// Returns the flags that make modules the same wherever they are built: messages of panics name the file, and
    /// crates of the registry lie in another folder on each machine.
    fn remaps(&self, toolchain: Toolchain) -> Result<Vec<String>> {
        let registry: BTreeSet<PathBuf> = release::of_registry(self.cargo(toolchain))?;
        let folders = registry.iter().map(|folder| (folder.as_path(), "crates"));
        let all = folders.chain([(self.root.as_path(), "anygpu")]);
        Ok(all.map(|(folder, name)| format!("--remap-path-prefix={}={name}", folder.display())).collect())
    }
}

/// Builds the modules into `js/wasm`. What was there stays until all of it has been built. Without `threads`, which take long to
/// build, the modules for today take the place of those that have them.
pub fn run(toolchain: Toolchain, place: &Place, threads: bool) -> Result<()> {
    let folder = place.modules();
    let partial = folder.with_extension("partial");
    if partial.exists() {
        fs::remove_dir_all(&partial).with_context(|| format!("cannot remove {}", partial.display()))?;
    }
    for build in BUILDS {
        if build.has_threads && !threads {
            println!("without threads (--threads builds them): what is for browsers of today takes their place");
            for module in build.modules() {
                copy(&partial, module.name, &partial.join(build.folder))?;
            }
            continue;
        }
        println!("compiling for {TARGET}: {}", build.title);
        let modules = compile(toolchain, build, place)?;
        progress::during("generating bindings", || generate(&modules, &partial.join(build.folder), build))?;
        for module in build.modules().filter(|module| !module.has_engine) {
            copy(&partial.join(build.folder), module.name, &partial)?;
        }
    }
    super::replace(&partial, &folder)
}

/// Copies a module and its JavaScript.
fn copy(from: &Path, name: &str, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot make the folder {}", to.display()))?;
    for end in [".js", ".d.ts", "_bg.wasm", "_bg.wasm.d.ts"] {
        let file = format!("{name}{end}");
        fs::copy(from.join(&file), to.join(&file)).with_context(|| format!("cannot copy {file}"))?;
    }
    Ok(())
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
    let remaps = place.remaps(toolchain)?;
    for has_engine in [true, false] {
        let packages: Vec<&str> =
            build.modules().filter(|module| module.has_engine == has_engine).map(|module| module.package).collect();
        // Without the engine, of these a few types remain, which do not deserve minutes of optimization.
        let hardly_used: &[&str] = if has_engine { &[] } else { &["anygpu-backend-api", "anygpu-model"] };
        if !packages.is_empty() {
            compile_together(&packages, hardly_used, place.cargo(toolchain), &target, &remaps, build, toolchain)?;
        }
    }
    Ok(target.join(TARGET).join("wasm"))
}

/// Compiles packages that may share what they need.
fn compile_together(
    packages: &[&str],
    hardly_used: &[&str],
    mut cargo: Command,
    target: &Path,
    remaps: &[String],
    build: &Build,
    toolchain: Toolchain,
) -> Result<()> {
    match build.flags {
        // Of the variables and settings for flags, this comes first.
        Some(flags) => {
            let all: Vec<&str> = flags.iter().copied().chain(remaps.iter().map(String::as_str)).collect();
            cargo.env("CARGO_ENCODED_RUSTFLAGS", all.join("\x1f"));
        }
        // Beside those of the workspace.
        None => {
            cargo.arg("--config").arg(format!("target.{TARGET}.rustflags = {}", serde_json::to_string(remaps)?));
        }
    }
    if build.has_threads && toolchain == Toolchain::InUse {
        cargo.env("RUSTC_BOOTSTRAP", "1").arg("-Zbuild-std=std,panic_abort");
    }
    for package in hardly_used {
        cargo.args(["--config", &format!("profile.wasm.package.{package}.opt-level=0")]);
    }
    let status = cargo
        .args(["build", "--locked", "--profile", "wasm", "--target", TARGET])
        .args(packages.iter().flat_map(|package| ["--package", package]))
        .arg("--target-dir")
        .arg(target)
        .status()
        .context("cannot start cargo")?;
    if !status.success() {
        bail!("the modules do not compile for {TARGET} (the messages are above)");
    }
    Ok(())
}

/// Makes the JavaScript of the modules, and the modules that it loads.
fn generate(modules: &Path, folder: &Path, build: &Build) -> Result<()> {
    for Module { package, name, .. } in build.modules() {
        let module = modules.join(package.replace('-', "_")).with_extension("wasm");
        Bindgen::new()
            .input_path(&module)
            .out_name(name)
            .web(true)?
            .typescript(true)
            .remove_name_section(true)
            .remove_producers_section(true)
            // On a page's own thread a module that trapped has to be started anew in place. There it has no threads.
            .reset_state_function(!build.has_threads)
            .generate(folder)
            .with_context(|| format!("wasm-bindgen refuses {}", module.display()))?;
        if build.is_for_oldest {
            oldest::check(&folder.join(format!("{name}_bg.wasm")))?;
        }
    }
    Ok(())
}
