//! The standard output and the standard error. Results go to the one and nothing else does; a reader who has gone away
//! is no error.

use crate::wrap::Wrap;
use anstyle::{AnsiColor, Style};
use console::Term;
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, Write};

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

/// What a model says, as it comes. On a terminal lines end between words, and nothing commands it; elsewhere the text is as
/// it is.
pub struct Words {
    wrap: Wrap,
    terminal: Term,
    is_aside: bool,
}

impl Words {
    /// Words for the standard output.
    pub fn said() -> Words {
        Words { wrap: Wrap::new(), terminal: Term::stdout(), is_aside: false }
    }

    /// Words for the standard error, beside something else.
    pub fn thought() -> Words {
        Words { wrap: Wrap::new(), terminal: Term::stderr(), is_aside: true }
    }

    /// Shows what comes next, but for a word that may not be whole.
    ///
    /// *Errors*: as [`text`]; none of the standard error.
    pub fn push(&mut self, words: &str) -> io::Result<()> {
        if !self.terminal.is_term() {
            return self.show(words);
        }
        let shown = self.wrap.push(&harmless(words), width(&self.terminal));
        self.show(&shown)
    }

    /// Shows what was held back. What comes then is at the beginning of a line.
    ///
    /// *Errors*: as [`Self::push`].
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

/// The columns of a terminal; one of unknown size has no end.
fn width(terminal: &Term) -> usize {
    terminal.size_checked().map_or(usize::MAX, |(_, columns)| columns.into())
}

/// Whole lines for the standard error. On a terminal they end between words.
fn lines(text: &str) -> Cow<'_, str> {
    let terminal = Term::stderr();
    if !terminal.is_term() {
        return text.into();
    }
    let (mut wrap, width) = (Wrap::new(), width(&terminal));
    let begin = wrap.push(text, width);
    (begin + &wrap.finish(width)).into()
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
    let _ = writeln!(io::stderr().lock(), "{}", lines(line));
}

/// The same about what went wrong, on one line whatever a driver's message looks like.
pub fn error(error: &anyhow::Error) {
    let message = format!("{error:#}");
    let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = lines(&format!("error: {line}")).replacen("error:", &format!("{ERROR}error:{ERROR:#}"), 1);
    let _ = writeln!(anstream::stderr().lock(), "{line}");
}

/// Writes lines beside something else to the standard error.
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
