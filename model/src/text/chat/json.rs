//! JSON in calls: parsed while it streams in. Numbers are copied as written, so they are not rounded.

use serde::de::IgnoredAny;

/// Reason why parsing stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The text may continue.
    Pending,
    /// The text is something else.
    Other,
}

/// Most bytes before the arguments of a call: they are parsed again with each piece.
const MAX_HEADER: usize = 4096;

struct Scanner<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Scanner<'t> {
    /// Returns the next byte that is not white space.
    fn peek(&mut self) -> Result<u8, Stop> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        self.text.as_bytes().get(self.at).copied().ok_or(Stop::Pending)
    }

    fn byte(&mut self, byte: u8) -> Result<(), Stop> {
        if self.peek()? != byte {
            return Err(Stop::Other);
        }
        self.at += 1;
        Ok(())
    }

    fn string(&mut self) -> Result<String, Stop> {
        self.peek()?;
        let begin = self.at;
        self.byte(b'"')?;
        let mut escaped = false;
        let ends = |byte: u8| {
            let is_end = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            is_end
        };
        let length = self.text.as_bytes()[self.at..].iter().copied().position(ends).ok_or(Stop::Pending)?;
        self.at += length + 1;
        serde_json::from_str(&self.text[begin..self.at]).map_err(|_| Stop::Other)
    }

    /// Returns a value as it is written, from valid JSON.
    fn value(&mut self) -> Result<&'t str, Stop> {
        self.peek()?;
        let begin = self.at;
        let (mut nesting, bytes) = (Nesting::default(), self.text.as_bytes());
        while let Some(byte) = bytes.get(self.at) {
            if nesting.depth == 0 && !nesting.string && matches!(byte, b',' | b'}' | b']') {
                break;
            }
            nesting.take(*byte);
            self.at += 1;
        }
        Ok(self.text[begin..self.at].trim_end())
    }
}

/// Nesting of a position in JSON.
#[derive(Debug, Clone, Default, PartialEq)]
struct Nesting {
    depth: usize,
    string: bool,
    escaped: bool,
}

impl Nesting {
    fn take(&mut self, byte: u8) {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' if self.string => self.escaped = true,
            b'"' => self.string = !self.string,
            _ if self.string => {}
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }
}

/// Returns the name of a call whose arguments are an object after it, and the position where that begins.
pub(super) fn header(text: &str) -> Result<(String, usize), Stop> {
    let mut scanner = Scanner { text, at: 0 };
    let mut read = || {
        let mut name = None;
        scanner.byte(b'{')?;
        loop {
            let key = scanner.string()?;
            scanner.byte(b':')?;
            match &*key {
                "name" | "function" => name = Some(scanner.string()?),
                "arguments" | "parameters" => {
                    let is_object = scanner.peek()? == b'{';
                    return name.filter(|_| is_object).map(|name| (name, scanner.at)).ok_or(Stop::Other);
                }
                _ => drop(scanner.string()?),
            }
            scanner.byte(b',')?;
        }
    };
    read().map_err(|stop| if text.len() > MAX_HEADER { Stop::Other } else { stop })
}

/// Returns whether a text is valid JSON.
pub(super) fn is_sound(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Returns the keys of an object, and its values as they are written.
pub(super) fn members(text: &str) -> Option<Vec<(String, &str)>> {
    let mut scanner = Scanner { text, at: 0 };
    let mut members = Vec::new();
    is_sound(text).then_some(())?;
    scanner.byte(b'{').ok()?;
    while scanner.peek() != Ok(b'}') {
        let key = scanner.string().ok()?;
        scanner.byte(b':').ok()?;
        members.push((key, scanner.value().ok()?));
        let _ = scanner.byte(b',');
    }
    Some(members)
}

/// Returns the values of a list as they are written.
pub(super) fn elements(text: &str) -> Option<Vec<&str>> {
    let mut scanner = Scanner { text, at: 0 };
    let mut elements = Vec::new();
    is_sound(text).then_some(())?;
    scanner.byte(b'[').ok()?;
    while scanner.peek() != Ok(b']') {
        elements.push(scanner.value().ok()?);
        let _ = scanner.byte(b',');
    }
    Some(elements)
}

/// Compactor of an object that streams in. It drops white space outside strings, and escapes control characters in
/// strings.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Compact(Nesting);

impl Compact {
    /// Makes a compactor for the rest of an object that has begun.
    pub fn within() -> Compact {
        Compact(Nesting { depth: 1, ..Nesting::default() })
    }

    /// Takes more of the text. Returns the compacted part that belongs to the object, and the object's end if it is in
    /// the text.
    pub fn take(&mut self, text: &str) -> (String, Option<usize>) {
        let mut taken = String::with_capacity(text.len());
        for (at, c) in text.char_indices() {
            match c {
                _ if !self.0.string && c.is_ascii_whitespace() => continue,
                '\n' => taken += "\\n",
                '\r' => taken += "\\r",
                '\t' => taken += "\\t",
                c if c < ' ' => taken += &format!("\\u{:04x}", u32::from(c)),
                c => taken.push(c),
            }
            // All other characters have no meaning for the nesting.
            self.0.take(u8::try_from(c).unwrap_or(0));
            if self.0.depth == 0 {
                return (taken, Some(at + c.len_utf8()));
            }
        }
        (taken, None)
    }
}

/// Returns a value without white space outside strings.
pub(super) fn compact(text: &str) -> String {
    let mut nesting = Nesting::default();
    let stays = |c: &char| {
        let stays = nesting.string || !c.is_ascii_whitespace();
        nesting.take(u8::try_from(*c).unwrap_or(0));
        stays
    };
    text.chars().filter(stays).collect()
}
