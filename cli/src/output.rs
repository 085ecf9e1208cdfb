//! Output. Only results go to the standard output, and everything else goes to the standard error. A closed standard
//! output is not an error.

use crate::wrap::Wrap;
use anstyle::{AnsiColor, Style};
use console::Term;
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, Write};

/// Style of the word `error:`, as clap writes it.
const ERROR: Style = AnsiColor::Red.on_default().bold();
/// Style of remarks, such as reasoning and the program's own messages in a conversation.
pub const ASIDE: Style = Style::new().dimmed();

/// Writes text and flushes it.
///
/// *Errors*: those of the standard output, among them a closed pipe.
pub fn text(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// A model's text while it is generated. A terminal gets lines that end between words, and no control characters;
/// anything else gets the text unchanged.
pub struct Words {
    wrap: Wrap,
    terminal: Term,
    is_aside: bool,
}

impl Words {
    /// Creates the output of an answer, on the standard output.
    pub fn said() -> Words {
        Words { wrap: Wrap::new(), terminal: Term::stdout(), is_aside: false }
    }

    /// Creates the output of reasoning, on the standard error.
    pub fn thought() -> Words {
        Words { wrap: Wrap::new(), terminal: Term::stderr(), is_aside: true }
    }

    /// Writes the next piece. A word that may be incomplete is held back.
    ///
    /// *Errors*: those of [`text`]. Errors of the standard error are ignored.
    pub fn push(&mut self, words: &str) -> io::Result<()> {
        if !self.terminal.is_term() {
            return self.show(words);
        }
        let shown = self.wrap.push(&harmless(words), width(&self.terminal));
        self.show(&shown)
    }

    /// Writes what was held back. The next text starts at the beginning of a line.
    ///
    /// *Errors*: those of [`Self::push`].
    pub fn end(&mut self) -> io::Result<()> {
        let shown = self.wrap.finish(width(&self.terminal));
        self.wrap = Wrap::new();
        self.show(&shown)
    }

    fn show(&self, words: &str) -> io::Result<()> {
        match (words, self.is_aside) {
            ("", _) => {}
            (_, true) => styled(words),
            (_, false) => text(words)?,
        }
        Ok(())
    }
}

/// Returns the columns of a terminal. A terminal of unknown size counts as infinitely wide.
fn width(terminal: &Term) -> usize {
    terminal.size_checked().map_or(usize::MAX, |(_, columns)| columns.into())
}

/// Wraps complete lines for the standard error between words, if that is a terminal.
fn lines(text: &str) -> Cow<'_, str> {
    let terminal = Term::stderr();
    if !terminal.is_term() {
        return text.into();
    }
    let (mut wrap, width) = (Wrap::new(), width(&terminal));
    let begin = wrap.push(text, width);
    (begin + &wrap.finish(width)).into()
}

/// Removes control characters except line breaks and tabs.
fn harmless(text: &str) -> Cow<'_, str> {
    let commands = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if text.contains(commands) { text.replace(commands, "").into() } else { text.into() }
}

/// Writes an object as JSON, on one line.
///
/// *Errors*: those of [`text`].
pub fn json(value: &impl Serialize) -> io::Result<()> {
    let mut json = serde_json::to_string(value)?;
    json.push('\n');
    text(&json)
}

/// Returns whether an error only means that the output was closed, as in `anygpu | head -1`.
pub fn reader_left(error: &anyhow::Error) -> bool {
    let kind = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    kind == Some(io::ErrorKind::BrokenPipe)
}

/// Writes a line to the standard error. If that is closed, only the exit code reports the problem.
pub fn note(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", lines(line));
}

/// Writes an error to the standard error, on one line even if a driver's message has several.
pub fn error(error: &anyhow::Error) {
    let message = format!("{error:#}");
    let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = lines(&format!("error: {line}")).replacen("error:", &format!("{ERROR}error:{ERROR:#}"), 1);
    let _ = writeln!(anstream::stderr().lock(), "{line}");
}

/// Writes a remark to the standard error.
pub fn aside(words: &str) {
    styled(&lines(words));
}

fn styled(words: &str) {
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
