//! Shader files as programs hold them: without the lines that are comments alone. Those are a fifth of the text, which pages
//! download and drivers read.

/// The code of a shader file, by a path as `include_str!` has it.
#[macro_export]
macro_rules! shader_file {
    ($path:expr) => {{
        const TEXT: &str = include_str!($path);
        const CODE: [u8; $crate::shader::code_len(TEXT)] = $crate::shader::code(TEXT);
        $crate::shader::text(&CODE)
    }};
}

/// Bytes of a file's code.
pub const fn code_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut at, mut len) = (0, 0);
    while at < bytes.len() {
        let end = line_end(bytes, at);
        if !is_comment(bytes, at) {
            len += end - at;
        }
        at = end;
    }
    len
}

/// A file's code, of as many bytes as [`code_len`] says.
pub const fn code<const LEN: usize>(text: &str) -> [u8; LEN] {
    let bytes = text.as_bytes();
    let mut code = [0; LEN];
    let (mut at, mut len) = (0, 0);
    while at < bytes.len() {
        let end = line_end(bytes, at);
        let kept = !is_comment(bytes, at);
        while at < end {
            if kept {
                code[len] = bytes[at];
                len += 1;
            }
            at += 1;
        }
    }
    code
}

/// Code as text again: whole lines of a text were left out of it.
pub const fn text(code: &'static [u8]) -> &'static str {
    match core::str::from_utf8(code) {
        Ok(text) => text,
        Err(_) => panic!("whole lines were left out"),
    }
}

/// Where the next line begins.
const fn line_end(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() && bytes[at] != b'\n' {
        at += 1;
    }
    if at < bytes.len() { at + 1 } else { at }
}

/// Whether the line that begins there is a comment, and nothing for the assembler.
const fn is_comment(bytes: &[u8], mut at: usize) -> bool {
    while at < bytes.len() && bytes[at] == b' ' {
        at += 1;
    }
    let slashes = at + 1 < bytes.len() && bytes[at] == b'/' && bytes[at + 1] == b'/';
    slashes && !(at + 2 < bytes.len() && bytes[at + 2] == b'!')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_left_out_and_the_rest_stays() {
        const TEXT: &str = "// first\n//!if A\n  a // b\n    // c \u{e9}\n\n//!end\n/ d\n//";
        const CODE: [u8; code_len(TEXT)] = code(TEXT);
        assert_eq!(text(&CODE), "//!if A\n  a // b\n\n//!end\n/ d\n");
        const EMPTY: [u8; code_len("")] = code("");
        assert_eq!(text(&EMPTY), "");
    }
}
