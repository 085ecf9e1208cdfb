//! Processors by Arm, emulated: their instructions are run as on one, though nothing is learnt of their speed.

use crate::process::{cargo, which};
use crate::root;
use crate::toolchain::has_std_for;
use anyhow::{Context, Result, bail};
use std::process::Command;

/// Target that the tests are compiled for.
const TARGET: &str = "aarch64-unknown-linux-gnu";

/// Linker and emulator, and Debian's packages for both.
const LINKER: &str = "aarch64-linux-gnu-gcc";
const EMULATOR: &str = "qemu-aarch64";
const PACKAGES: &str = "apt-get install --no-install-recommends gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user";

/// Where Debian's packages have the system's libraries for it.
const LIBRARIES: &str = "/usr/aarch64-linux-gnu";

/// Names a program that is missing, and how to install it.
pub fn lacks() -> Option<String> {
    if !has_std_for(TARGET) {
        return Some(format!("a standard library for {TARGET} (rustup target add {TARGET})"));
    }
    let missing = [LINKER, EMULATOR].into_iter().find(|program| which(program).is_none())?;
    Some(format!("{missing} ({PACKAGES})"))
}

/// Runs the tests of the CPU's kernels.
///
/// *Errors*: something is missing, or a test fails.
pub fn run() -> Result<()> {
    if let Some(missing) = lacks() {
        bail!("this is missing: {missing}");
    }
    let mut tests = Command::new(cargo());
    tests.args(["test", "--release", "-p", "anygpu-reference-cpu", "--lib", "--target", TARGET, "--", "--show-output"]);
    tests.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", LINKER);
    tests.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", format!("{EMULATOR} -L {LIBRARIES}"));
    if !tests.current_dir(root()).status().context("cannot start cargo")?.success() {
        bail!("a test failed (the messages are above)");
    }
    Ok(())
}
