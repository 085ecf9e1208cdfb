//! Settings of graphics drivers: they keep them from crashing and from writing to the terminal.
//!
//! They are environment variables, which must be set before a driver is loaded, and a process cannot change its own environment
//! without `unsafe`. So the program executes itself again, in the same process, with these variables.

#[cfg(unix)]
use std::{env, ffi::OsString, os::unix::process::CommandExt, process::Command};

/// Variables that keep drivers from crashing, unless the user has set them.
#[cfg(unix)]
const SAFE: &[(&str, &str)] = &[
    // With threads, Mesa's software GPU may free a fence while the thread that signals it still writes to it, which damages
    // the heap (docs/decisions/0027-tests.md).
    ("LP_NUM_THREADS", "0"),
];

/// Variables that silence drivers, unless the user has set them. Redirecting the standard error would also hide what others
/// write to it.
#[cfg(unix)]
const SILENT: &[(&str, &str)] = &[
    // Mesa's Vulkan layer looks for a Wayland display in this folder, and libwayland prints an error unless it is an
    // absolute path. Nothing can be found in /dev/null.
    ("XDG_RUNTIME_DIR", "/dev/null"),
    // Mesa's EGL warns about devices that it may not open.
    ("EGL_LOG_LEVEL", "fatal"),
    // Some of Mesa's Vulkan drivers warn that they were never tested for conformance.
    ("MESA_VK_IGNORE_CONFORMANCE_WARNING", "true"),
];

/// Executes the program again with these settings, unless it has them already. If that fails, drivers are as they are.
#[cfg(unix)]
pub fn set_up(silent: bool) {
    let unset = |(name, _): &&(&str, &str)| env::var_os(name).is_none_or(|value| value.is_empty());
    let silent = if silent { SILENT } else { &[] };
    let missing: Vec<_> = SAFE.iter().chain(silent).filter(unset).copied().collect();
    let Ok(program) = env::current_exe() else { return };
    if missing.is_empty() {
        return;
    }
    let mut args = env::args_os();
    let name = args.next().unwrap_or_else(|| OsString::from("anygpu"));
    // This returns only if it fails.
    let _ = Command::new(program).arg0(name).args(args).envs(missing).exec();
}

/// Does nothing: on other systems no driver is known to need it.
#[cfg(not(unix))]
pub fn set_up(_silent: bool) {}
