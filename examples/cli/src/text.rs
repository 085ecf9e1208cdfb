//! Texts from files and pipes, which may hold anything.

use anyhow::{Context, Result, anyhow, bail};
use std::io::Read;

/// Longer ones fit no context.
pub const MOST_BYTES: u64 = 16 << 20;

/// A text whose source has a name in errors.
///
/// *Errors*: it cannot be read, is not UTF-8, or has more than [`MOST_BYTES`].
pub fn read(source: impl Read, name: &str) -> Result<String> {
    let mut bytes = Vec::new();
    source.take(MOST_BYTES + 1).read_to_end(&mut bytes).with_context(|| format!("cannot read {name}"))?;
    if bytes.len() as u64 > MOST_BYTES {
        bail!("{name} has more than {MOST_BYTES} bytes, which fit no context; give a shorter text");
    }
    utf8(bytes, name)
}

/// Bytes as text.
///
/// *Errors*: they are not UTF-8.
pub fn utf8(bytes: Vec<u8>, name: &str) -> Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        anyhow!("{name} is not UTF-8: byte {at} belongs to no character; convert it to UTF-8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_or_too_long_is_refused() {
        assert_eq!(read(&b"a\xc3\xa9\n"[..], "it").unwrap(), "aé\n");
        let message = |source: &mut dyn Read| read(source, "it").unwrap_err().to_string();
        assert!(message(&mut &b"abc\xff"[..]).contains("byte 3"));
        assert!(message(&mut std::io::repeat(b'a')).contains("more than 16777216 bytes"));
    }
}
