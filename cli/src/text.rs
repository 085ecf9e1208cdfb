//! Texts from files and pipes, which may have any contents.

use anyhow::{Context, Result, anyhow, bail};
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::Path;

/// The name of the standard input in errors.
const STANDARD_INPUT: &str = "the standard input";

/// Size of the longest text. A longer one does not fit in any context.
pub const MOST_BYTES: u64 = 16 << 20;

/// Character at the beginning of some editors' files, which marks them as UTF-8.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Returns the text of the command line: `words`, the standard input if they are `-`, a file, or an empty text. A line
/// break at the end of what is read, which editors and shells add, is left out.
///
/// *Errors*: those of [`read`].
pub fn given(words: Option<&str>, file: Option<&Path>) -> Result<String> {
    match (words, file) {
        (Some("-"), _) => Ok(without_end(read(io::stdin().lock(), STANDARD_INPUT)?)),
        (Some(words), _) => Ok(words.into()),
        (None, Some(path)) => {
            let name = format!("{path:?}");
            Ok(without_end(read(File::open(path).with_context(|| format!("cannot open {name}"))?, &name)?))
        }
        (None, None) => Ok(String::new()),
    }
}

/// Returns an instruction, followed by the text that it is about: that of a file, or else of the standard input. Either
/// may be missing.
///
/// *Errors*: those of [`read`].
pub fn instructed(words: &str, file: Option<&Path>) -> Result<String> {
    let about = match (words, file) {
        ("-", None) => return given(Some("-"), None),
        (_, Some(_)) => given(None, file)?,
        (_, None) if io::stdin().is_terminal() => String::new(),
        (_, None) => given(Some("-"), None)?,
    };
    Ok(match (words.is_empty(), about.is_empty()) {
        (true, _) => about,
        (_, true) => words.into(),
        (false, false) => format!("{words}\n\n{about}"),
    })
}

/// Removes a line break at the end of a text.
fn without_end(mut text: String) -> String {
    if text.ends_with('\n') {
        text.pop();
        text.truncate(text.strip_suffix('\r').unwrap_or(&text).len());
    }
    text
}

/// Reads a text. `name` is the name of its source in errors.
///
/// *Errors*: the source cannot be read, is not UTF-8, or has more than [`MOST_BYTES`].
pub fn read(source: impl Read, name: &str) -> Result<String> {
    let mut bytes = Vec::new();
    source.take(MOST_BYTES + 1).read_to_end(&mut bytes).with_context(|| format!("cannot read {name}"))?;
    if bytes.len() as u64 > MOST_BYTES {
        bail!("{name} has more than {MOST_BYTES} bytes, which fit no context; give a shorter text");
    }
    utf8(bytes, name)
}

/// Converts bytes to text, without a byte order mark at the beginning.
///
/// *Errors*: the bytes are not UTF-8.
pub fn utf8(bytes: Vec<u8>, name: &str) -> Result<String> {
    let mut text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        anyhow!("{name} is not UTF-8: byte {at} belongs to no character; convert it to UTF-8")
    })?;
    if text.starts_with(BYTE_ORDER_MARK) {
        text.remove(0);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_or_too_long_is_refused() {
        assert_eq!(read(&b"a\xc3\xa9\n"[..], "it").unwrap(), "aé\n");
        assert_eq!(read(&b"\xef\xbb\xbfa\xef\xbb\xbf"[..], "it").unwrap(), "a\u{feff}");
        let message = |source: &mut dyn Read| read(source, "it").unwrap_err().to_string();
        assert!(message(&mut &b"abc\xff"[..]).contains("byte 3"));
        assert!(message(&mut io::repeat(b'a')).contains("more than 16777216 bytes"));
    }
}
