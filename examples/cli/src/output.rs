//! The standard output and the standard error. Results go to the one and nothing else does; a reader who has gone away
//! is no error.

use serde::Serialize;
use std::io::{self, Write};

/// Writes text at once.
///
/// *Errors*: those of the standard output, among them a closed pipe.
pub fn text(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Writes one object on one line.
///
/// *Errors*: as [`text`].
pub fn json(value: &impl Serialize) -> io::Result<()> {
    let mut json = serde_json::to_string(value)?;
    json.push('\n');
    text(&json)
}

/// Whether an error is only that nobody reads the output any more (`anygpu | head -1`).
pub fn reader_left(error: &anyhow::Error) -> bool {
    let kind = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    kind == Some(io::ErrorKind::BrokenPipe)
}

/// Writes a line to the standard error. Where nobody can read that, it is not said, and the exit code tells as much.
pub fn note(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}
