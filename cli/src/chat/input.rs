//! Input of a conversation: a person at a terminal, or a pipe.

use super::commands::{HELP, is_whole};
use crate::output;
use crate::text::{self, MOST_BYTES};
use crate::tune;
use anyhow::{Result, bail};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Behavior, Config, Context, Editor, Helper};
use std::fs;
use std::io::{self, BufRead, IsTerminal, Read};
use std::path::PathBuf;

/// Number of lines in the history file.
const KEPT: usize = 1000;

/// The next input.
pub enum Next {
    /// One or more lines that belong together.
    Lines(String),
    /// Ctrl-C.
    Interrupt,
    /// The end of the input.
    End,
}

/// The source of lines.
pub enum Input {
    /// A terminal, and its history file if there is one.
    Terminal(Box<Editor<Lines, DefaultHistory>>, Option<PathBuf>),
    /// A pipe or file.
    Pipe,
}

impl Input {
    /// Opens the standard input. Lines of earlier conversations are available unless `history` is false.
    ///
    /// *Errors*: the terminal cannot be used.
    pub fn new(history: bool) -> Result<Input> {
        if !io::stdin().is_terminal() {
            return Ok(Input::Pipe);
        }
        // The prompt belongs on the terminal, even if answers go elsewhere.
        let behavior = if io::stdout().is_terminal() { Behavior::Stdio } else { Behavior::PreferTerm };
        let config = Config::builder().max_history_size(KEPT)?.history_ignore_dups(true)?.behavior(behavior).build();
        let mut editor = Editor::with_config(config)?;
        editor.set_helper(Some(Lines));
        let file = if history { tune::folder().ok().map(|folder| folder.join("chat-history")) } else { None };
        if let Some(file) = &file {
            // The file does not exist at first.
            let _ = editor.load_history(file);
        }
        Ok(Input::Terminal(Box::new(editor), file))
    }

    /// Returns whether the input is a terminal.
    pub fn is_terminal(&self) -> bool {
        matches!(self, Input::Terminal(..))
    }

    /// Reads the next lines.
    ///
    /// *Errors*: they cannot be read, are not UTF-8, or are too many.
    pub fn next(&mut self) -> Result<Next> {
        let (editor, file) = match self {
            Input::Terminal(editor, file) => (editor, file),
            Input::Pipe => return piped(),
        };
        let lines = match editor.readline("> ") {
            Ok(lines) => lines,
            Err(ReadlineError::Interrupted) => return Ok(Next::Interrupt),
            Err(ReadlineError::Eof) => return Ok(Next::End),
            Err(error) => return Err(error.into()),
        };
        if !lines.trim().is_empty() {
            editor.add_history_entry(lines.as_str())?;
            if let Some(path) = file {
                let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
                if let Err(error) = folder.map_err(Into::into).and_then(|()| editor.append_history(path)) {
                    output::note(&format!("note: what is typed is not kept in {} ({error})", path.display()));
                    *file = None;
                }
            }
        }
        Ok(Next::Lines(lines))
    }
}

/// Reads the next lines of a pipe.
fn piped() -> Result<Next> {
    let mut lines = Vec::new();
    let mut input = io::stdin().lock();
    loop {
        let left = (MOST_BYTES + 1).saturating_sub(lines.len() as u64);
        let read = input.by_ref().take(left).read_until(b'\n', &mut lines)?;
        if lines.len() as u64 > MOST_BYTES {
            bail!("a message of the standard input has more than {MOST_BYTES} bytes; send shorter ones");
        }
        if read == 0 && lines.is_empty() {
            return Ok(Next::End);
        }
        let so_far = lines.strip_suffix(b"\n").unwrap_or(&lines);
        let so_far = so_far.strip_suffix(b"\r").unwrap_or(so_far);
        if read == 0 || is_whole(&String::from_utf8_lossy(so_far)) {
            return Ok(Next::Lines(text::utf8(so_far.to_vec(), "a message of the standard input")?));
        }
    }
}

/// Editing of lines: completion of commands, and messages of several lines.
pub struct Lines;

impl Validator for Lines {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if is_whole(context.input()) { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

impl Completer for Lines {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        let typed = &line[..at];
        let commands = HELP.iter().filter_map(|(name, _)| name.split(' ').next());
        let fits = |name: &&str| name.starts_with('/') && typed.starts_with('/') && name.starts_with(typed);
        Ok((0, commands.filter(fits).map(str::to_owned).collect()))
    }
}

impl Hinter for Lines {
    type Hint = String;
}

impl Highlighter for Lines {}

impl Helper for Lines {}
