//! Finding, or setting up, a compiler for a target that is not this machine.

use crate::process;
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The target of the page.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// Rustup may have to download 30 MB, or to notice that there is no network.
const RUSTUP_LIMIT: Duration = Duration::from_secs(120);

/// File that shows that a compiler has the source of the standard library.
const SOURCE: &str = "lib/rustlib/src/rust/library/std/Cargo.toml";

/// Debian's compiler: what it consists of, and the package of each.
const DEBIAN: &[(&str, &str)] = &[
    ("/usr/bin/rustc", "rustc-web"),
    ("/usr/bin/cargo", "cargo-web"),
    (SOURCE, "rust-web-src"),
    ("/usr/bin/wasm-ld-19", "lld-19"),
];

/// Which compiler to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Choice {
    /// The first that is there or can be set up.
    Auto,
    /// The one that builds the rest of the workspace, with its wasm32 target.
    Rustup,
    /// Debian's packages, which compile the standard library from its source.
    Debian,
}

/// A system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum System {
    /// Windows on x86-64.
    Windows,
    /// macOS on processors by Arm.
    Macos,
}

impl System {
    /// The target that most of its users have. Of Windows it is Microsoft's, since the other one takes a tool of MinGW to
    /// compile the standard library.
    pub fn target(self) -> &'static str {
        match self {
            System::Windows => "x86_64-pc-windows-msvc",
            System::Macos => "aarch64-apple-darwin",
        }
    }
}

/// A compiler that can build for wasm32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Toolchain {
    /// The one in use, with a compiled standard library.
    InUse,
    /// Debian's, which compiles the standard library too.
    Debian,
}

impl Toolchain {
    /// The version of its compiler, which is that of the standard library, too.
    pub fn version(self) -> Result<String> {
        let rustc = match self {
            Toolchain::InUse => rustc(),
            Toolchain::Debian => "/usr/bin/rustc".into(),
        };
        let said = print(Command::new(rustc).arg("--version")).unwrap_or_default();
        // Such as `rustc 1.90.0 (1159e78c4 2025-09-14)`.
        said.split(' ').nth(1).map(str::to_owned).with_context(|| format!("rustc does not say its version: {said:?}"))
    }
}

/// The compiler in use.
fn rustc() -> OsString {
    std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())
}

/// A compiler that can check types for another target: the one in use if it has the standard library for that, or else
/// Debian's, which compiles it from its source.
///
/// *Errors*: there is none; the message says how to get one.
pub fn checks(target: &str) -> Result<Toolchain> {
    if has_std_for(target) {
        return Ok(Toolchain::InUse);
    }
    match missing_packages() {
        missing if missing.is_empty() => Ok(Toolchain::Debian),
        missing => bail!(
            "there is no standard library for {target}: run `rustup target add {target}`, or install Debian's packages {}",
            missing.join(", ")
        ),
    }
}

/// Finds a compiler, and tries to set it up; on request with the source of the standard library, which threads take one of
/// their own of.
///
/// *Errors*: there is none; the message has the commands for each way to get one.
pub fn find(choice: Choice, source: bool) -> Result<Toolchain> {
    let mut reasons = Vec::new();
    if choice != Choice::Debian {
        match in_use(source) {
            Ok(()) => return Ok(Toolchain::InUse),
            Err(reason) => reasons.push(reason),
        }
    }
    if choice != Choice::Rustup {
        match missing_packages() {
            missing if missing.is_empty() => return Ok(Toolchain::Debian),
            missing => reasons.push(format!("Debian's compiler lacks the packages {}", missing.join(", "))),
        }
    }
    bail!(
        "there is no compiler for {TARGET} ({}); either of these sets one up:\n  \
         rustup target add {TARGET}; rustup component add rust-src\n  \
         apt-get install --no-install-recommends rustc-web cargo-web rust-web-src lld-19    (Debian, as root)",
        reasons.join("; ")
    );
}

/// Makes sure that the compiler in use has the target's standard library, and its source if that is needed. The reason if it
/// has not.
fn in_use(source: bool) -> Result<(), String> {
    set_up("a standard library for it", has_std, &["target", "add", TARGET])?;
    if source {
        set_up("the source of the standard library", has_source, &["component", "add", "rust-src"])?;
    }
    Ok(())
}

/// Has rustup fetch a part of the compiler in use that is not there.
fn set_up(part: &str, is_there: fn() -> bool, fetch: &[&str]) -> Result<(), String> {
    if is_there() {
        return Ok(());
    }
    if process::which("rustup").is_none() {
        return Err(format!("the compiler in use lacks {part}, and there is no rustup to fetch it"));
    }
    println!("fetching {part}: rustup {}", fetch.join(" "));
    let mut rustup = Command::new("rustup");
    rustup.args(fetch).stdin(Stdio::null());
    match process::run_within(&mut rustup, RUSTUP_LIMIT) {
        Ok(Some(status)) if status.success() && is_there() => Ok(()),
        Ok(Some(_)) => Err(format!("rustup could not fetch {part}")),
        Ok(None) => Err(format!("rustup did not fetch {part} within {} s", RUSTUP_LIMIT.as_secs())),
        Err(error) => Err(format!("rustup could not be started: {error}")),
    }
}

/// Whether the compiler in use has a compiled standard library for the page's target.
fn has_std() -> bool {
    has_std_for(TARGET)
}

/// Whether the compiler in use has a compiled standard library for a target.
pub fn has_std_for(target: &str) -> bool {
    let folder = print(Command::new(rustc()).args(["--print", "target-libdir", "--target", target]));
    folder.is_some_and(|folder| Path::new(&folder).is_dir())
}

/// Whether it has the source of the standard library.
fn has_source() -> bool {
    let sysroot = print(Command::new(rustc()).args(["--print", "sysroot"])).unwrap_or_default();
    Path::new(&sysroot).join(SOURCE).is_file()
}

/// Debian's packages that are not installed.
fn missing_packages() -> Vec<&'static str> {
    let sysroot = print(Command::new("/usr/bin/rustc").args(["--print", "sysroot"])).unwrap_or_default();
    let is_there = |path: &str| PathBuf::from(&sysroot).join(path).is_file();
    DEBIAN.iter().filter(|(path, _)| !is_there(path)).map(|(_, package)| *package).collect()
}

/// Returns the output of a command, if it succeeds.
fn print(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
