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
/// *Errors*: the file cannot be read, or is not a session.
pub fn read(path: &Path) -> Result<Snapshot> {
    let shown = || format!("cannot load the session {path:?}");
    let bytes = fs::read(path).with_context(shown)?;
    Snapshot::from_bytes(&bytes).with_context(shown)
}

/// Writes a session to a file. The old contents stay until the new ones are complete.
///
/// *Errors*: the file cannot be written.
pub fn write(path: &Path, snapshot: &Snapshot) -> Result<()> {
    replace(path, &snapshot.to_bytes()).with_context(|| format!("cannot save the session to {path:?}"))
}

/// Replaces a file atomically: writes a temporary file, and renames it once it is on the disk.
///
/// *Errors*: the file cannot be written.
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
        // The first error is the one to report.
        let _ = fs::remove_file(&aside);
    }
    written
}

/// File that a text is saved to while it is generated. It is a log: each snapshot appends what is new. Readers ignore a
/// last record that was cut off.
pub struct Log {
    path: PathBuf,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    /// Number of positions in the file; 0 if the file must be written as a whole.
    position: usize,
    /// Bytes of the first record, and of all records after it.
    whole: usize,
    added: usize,
    /// Whether the user was told that the file cannot be written.
    told: bool,
}

impl Log {
    /// Creates a log. The file does not change before the first snapshot.
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
        // A log is rewritten when it has become long, and when its end may be half a record.
        let goes_on = written.is_ok() && state.added <= state.whole;
        state.position = if goes_on { snapshot.header().position } else { 0 };
    }
}
