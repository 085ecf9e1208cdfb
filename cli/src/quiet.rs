//! Keeps drivers from writing to the terminal.
//!
//! Graphics drivers write warnings to the standard error, whose lines nothing tells from ours afterwards; taking it from
//! them would take it from whoever else writes to it meanwhile. But they can be told to be silent in their environment. It
//! must be right before they are loaded, and a process may not change its own without `unsafe`. So the program begins
//! again in the right one, as the same process.

#[cfg(unix)]
use std::{env, ffi::OsString, os::unix::process::CommandExt, process::Command};

/// What silences which driver, where the user has not set it.
#[cfg(unix)]
const SILENT: &[(&str, &str)] = &[
    // Mesa's Vulkan layer looks for a Wayland display there, and libwayland complains unless there is an absolute path.
    // Nothing can be found in this one.
    ("XDG_RUNTIME_DIR", "/dev/null"),
    // Mesa's EGL warns of devices that it may not open.
    ("EGL_LOG_LEVEL", "fatal"),
    // Some of Mesa's Vulkan drivers warn that nobody has tested them for conformance.
    ("MESA_VK_IGNORE_CONFORMANCE_WARNING", "true"),
];

/// Begins again with silent drivers, unless they are silent already. Where that is not possible they are heard.
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
    // Returns only if it fails, and then everything but the silence works.
    let _ = Command::new(program).arg0(name).args(args).envs(missing).exec();
}

/// Elsewhere drivers are not known to write to the terminal.
#[cfg(not(unix))]
pub fn drivers() {}
