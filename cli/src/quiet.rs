//! Keeps drivers from writing to the terminal.
//!
//! Graphics drivers write warnings to the standard error, where they cannot be told from the program's own lines.
//! Redirecting the standard error would also hide what others write to it. But environment variables silence the
//! drivers. They must be set before a driver is loaded, and a process cannot change its own environment without
//! `unsafe`. So the program executes itself again, in the same process, with these variables.

#[cfg(unix)]
use std::{env, ffi::OsString, os::unix::process::CommandExt, process::Command};

/// Variables that silence drivers, unless the user has set them.
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

/// Executes the program again with silent drivers, unless they are silent already. If that fails, drivers print their
/// warnings.
#[cfg(unix)]
pub fn drivers() {
    let unset = |(name, _): &&(&str, &str)| env::var_os(name).is_none_or(|value| value.is_empty());
    let missing: Vec<_> = SILENT.iter().filter(unset).copied().collect();
    let Ok(program) = env::current_exe() else { return };
    if missing.is_empty() {
        return;
    }
    let mut args = env::args_os();
    let name = args.next().unwrap_or_else(|| OsString::from("anygpu"));
    // This returns only if it fails. Then everything works, but drivers are not silent.
    let _ = Command::new(program).arg0(name).args(args).envs(missing).exec();
}

/// Does nothing: on other systems drivers are not known to write to the terminal.
#[cfg(not(unix))]
pub fn drivers() {}
