//! Sessions in files.

use crate::output;
use anygpu::{Snapshot, SnapshotSink};
use anyhow::{Context, Result};
use std::cell::RefCell;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
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
    replace(path, &snapshot.to_bytes()).with_context(|| format!("cannot save the session to {path:?}"))
}

/// Writes a file aside, and swaps it in once it is on the disk.
///
/// *Errors*: it cannot be written.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".part");
    let aside = PathBuf::from(aside);
    let write = || {
        let mut file = File::create(&aside)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&aside, path)
    };
    let written = write();
    if written.is_err() {
        // The first error is what counts.
        let _ = fs::remove_file(&aside);
    }
    written
}

/// A file that a text is saved to while it is generated: a log, to which each snapshot adds what is new. Whoever reads it
/// leaves out a last record that was cut off.
pub struct Log {
    path: PathBuf,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    /// Positions that the file has; 0 if it is to be written as a whole.
    position: usize,
    /// Bytes of the record that the file begins with, and of those behind it.
    whole: usize,
    added: usize,
    /// Whether it was told that the file cannot be written.
    told: bool,
}

impl Log {
    /// In a file, which is left alone until the first snapshot.
    pub fn new(path: PathBuf) -> Log {
        Log { path, state: RefCell::default() }
    }

    fn add(&self, bytes: &[u8]) -> io::Result<()> {
        OpenOptions::new().append(true).open(&self.path)?.write_all(bytes)
    }
}

impl SnapshotSink for Log {
    fn position(&self) -> usize {
        self.state.borrow().position
    }

    fn is_ready(&self) -> bool {
        true
    }

    fn take(&self, snapshot: Snapshot) {
        let bytes = snapshot.to_bytes();
        let is_whole = snapshot.header().from == 0;
        let written = if is_whole { replace(&self.path, &bytes) } else { self.add(&bytes) };
        let mut state = self.state.borrow_mut();
        match &written {
            Ok(()) if is_whole => (state.whole, state.added) = (bytes.len(), 0),
            Ok(()) => state.added += bytes.len(),
            Err(error) if !state.told => {
                state.told = true;
                output::note(&format!("\ncannot save to {:?} ({error}); the text goes on", self.path));
            }
            Err(_) => {}
        }
        // A log that has become long is written anew, and so is one whose end may be half a record.
        let goes_on = written.is_ok() && state.added <= state.whole;
        state.position = if goes_on { snapshot.header().position } else { 0 };
    }
}
