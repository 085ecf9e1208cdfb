//! Python and its pip, which fetch what other projects publish as packages.

use anyhow::{Context, Result, bail};
use std::io::ErrorKind;
use std::process::{Command, Stdio};

/// A Python that has pip.
///
/// *Errors*: there is none; the message says what to install.
pub fn find() -> Result<&'static str> {
    let mut found = false;
    for name in ["python3", "python"] {
        let quiet = |args: &[&str]| {
            Command::new(name).args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()
        };
        match quiet(&["-m", "pip", "--version"]) {
            Ok(status) if status.success() => return Ok(name),
            Ok(_) => found = true,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| format!("cannot start {name}")),
        }
    }
    if found {
        bail!("Python has no pip, which fetches packages. Install it (Debian: apt-get install python3-pip)");
    }
    bail!("Python is missing; its pip fetches packages. Install it (Debian: apt-get install python3 python3-pip)");
}
