//! Sessions in files.

use anygpu::Snapshot;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// Reads a session from a file.
///
/// *Errors*: the file cannot be read, or holds no session.
pub fn read(path: &Path) -> Result<Snapshot> {
    let shown = || format!("cannot load the session {path:?}");
    let bytes = fs::read(path).with_context(shown)?;
    Snapshot::from_bytes(&bytes).with_context(shown)
}

/// Writes a session to a file, which stays as it was until all is written.
///
/// *Errors*: the file cannot be written.
pub fn write(path: &Path, snapshot: &Snapshot) -> Result<()> {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".part");
    let aside = PathBuf::from(aside);
    let written = fs::write(&aside, snapshot.to_bytes()).and_then(|()| fs::rename(&aside, path));
    if written.is_err() {
        // The first error is what counts.
        let _ = fs::remove_file(&aside);
    }
    written.with_context(|| format!("cannot save the session to {path:?}"))
}
