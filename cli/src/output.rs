//! The standard output and the standard error. Results go to the one and nothing else does; a reader who has gone away
//! is no error.

use anstyle::{AnsiColor, Style};
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

/// Of what is wrong, as clap writes it.
const ERROR: Style = AnsiColor::Red.on_default().bold();
/// Of what is said beside something else.
pub const ASIDE: Style = Style::new().dimmed();

/// Writes text at once.
///
/// *Errors*: those of the standard output, among them a closed pipe.
pub fn text(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Writes what a model said at once. What would command a terminal does not reach one.
///
/// *Errors*: as [`text`].
pub fn said(words: &str) -> io::Result<()> {
    text(&if io::stdout().is_terminal() { harmless(words) } else { words.into() })
}

/// A text without control characters but for line breaks and tabs.
fn harmless(text: &str) -> Cow<'_, str> {
    let commands = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if text.contains(commands) { text.replace(commands, "").into() } else { text.into() }
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

/// The same about what went wrong, on one line whatever a driver's message looks like.
pub fn error(error: &anyhow::Error) {
    let message = format!("{error:#}");
    let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let _ = writeln!(anstream::stderr().lock(), "{ERROR}error:{ERROR:#} {line}");
}

/// Writes a part of what is said beside something else to the standard error.
pub fn aside(words: &str) {
    let mut out = anstream::stderr().lock();
    let _ = write!(out, "{ASIDE}{}{ASIDE:#}", harmless(words)).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_does_not_command_a_terminal() {
        assert_eq!(harmless("a\u{1b}[2Jb\tc\r\n\u{9b}d\u{7}"), "a[2Jb\tc\nd");
        assert!(matches!(harmless("plain\n"), Cow::Borrowed(_)));
    }
}
