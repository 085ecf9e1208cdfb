//! Lexer of templates, with Jinja2's white-space rules as `transformers` configures them: the line break after a block
//! is dropped (`trim_blocks`), and so is the indentation before it (`lstrip_blocks`).

use std::sync::Arc;

use super::Fault;

/// Most bytes of a name. Longer ones have no use.
const MAX_NAME: usize = 128;

/// Operators, longer ones first.
const OPERATORS: &[&str] = &[
    "**", "//", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "<", ">", "=", "(", ")", "[", "]", "{", "}", ",",
    ":", ".", "|",
];

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// Text outside tags.
    Text(Arc<str>),
    /// `{{`
    Output,
    /// `}}`
    OutputEnd,
    /// `{%`
    Block,
    /// `%}`
    BlockEnd,
    Name(Arc<str>),
    Str(Arc<str>),
    Int(i64),
    Float(f64),
    Operator(&'static str),
}

/// A token and the line on which it begins.
pub(super) type Placed = (Token, u32);

/// Splits a template into tokens.
pub(super) fn tokens(source: &str) -> Result<Vec<Placed>, (Fault, u32)> {
    let unix = source.replace("\r\n", "\n").replace('\r', "\n");
    let source = unix.strip_suffix('\n').unwrap_or(&unix);
    let mut lexer = Lexer { source, at: 0, line: 1, out: Vec::new() };
    match lexer.template() {
        Ok(()) => Ok(lexer.out),
        Err(fault) => Err((fault, lexer.line)),
    }
}

/// White space that is dropped after a tag.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Trim {
    Nothing,
    LineBreak,
    All,
}

struct Lexer<'s> {
    source: &'s str,
    at: usize,
    line: u32,
    out: Vec<Placed>,
}

impl<'s> Lexer<'s> {
    fn template(&mut self) -> Result<(), Fault> {
        let mut trim = Trim::Nothing;
        while self.at < self.source.len() {
            let begin = self.after(trim);
            let rest = &self.source[begin..];
            let opens = |at: &usize| matches!(rest.as_bytes().get(at + 1), Some(b'{' | b'%' | b'#'));
            let tag = rest.match_indices('{').map(|(at, _)| at).find(opens);
            let end = tag.map_or(self.source.len(), |tag| begin + tag);
            let opening = self.source[end..].get(..2).unwrap_or_default();
            let sign = self.source.as_bytes().get(end + 2).copied();
            self.text(begin, end, opening, sign);
            self.skip(end);
            trim = match opening {
                "{#" => self.comment()?,
                "{%" => self.block()?,
                "{{" => self.output()?,
                _ => Trim::Nothing,
            };
        }
        Ok(())
    }

    /// Returns where the text after a tag begins.
    fn after(&self, trim: Trim) -> usize {
        let rest = &self.source[self.at..];
        self.at
            + match trim {
                Trim::Nothing => 0,
                Trim::LineBreak => usize::from(rest.starts_with('\n')),
                Trim::All => rest.len() - rest.trim_start().len(),
            }
    }

    /// Adds the text before a tag, without the white space that the tag drops.
    fn text(&mut self, begin: usize, end: usize, opening: &str, sign: Option<u8>) {
        let mut text = &self.source[begin..end];
        if !opening.is_empty() && sign == Some(b'-') {
            text = text.trim_end();
        } else if matches!(opening, "{%" | "{#") && sign != Some(b'+') {
            let line = text.rfind('\n').map_or(0, |at| at + 1);
            let begins_line = line > 0 || begin == 0 || self.source[..begin].ends_with('\n');
            if begins_line && text[line..].trim_start().is_empty() {
                text = &text[..line];
            }
        }
        if !text.is_empty() {
            self.out.push((Token::Text(text.into()), self.line));
        }
    }

    /// Continues at a later position.
    fn skip(&mut self, to: usize) {
        self.line += self.source[self.at..to].matches('\n').count() as u32;
        self.at = to;
    }

    fn comment(&mut self) -> Result<Trim, Fault> {
        let Some(length) = self.source[self.at..].find("#}") else { return Err(Fault::new("a comment does not end")) };
        let end = self.at + length;
        let sign = if length > 2 { self.source.as_bytes()[end - 1] } else { 0 };
        self.skip(end + 2);
        Ok(after_block(sign))
    }

    fn output(&mut self) -> Result<Trim, Fault> {
        self.opening(Token::Output);
        self.tag("}}")?;
        let trim = if self.source.as_bytes()[self.at - 3] == b'-' { Trim::All } else { Trim::Nothing };
        self.out.push((Token::OutputEnd, self.line));
        Ok(trim)
    }

    fn block(&mut self) -> Result<Trim, Fault> {
        if let Some((from, to, end, trim)) = self.raw()? {
            let text = &self.source[from..to];
            if !text.is_empty() {
                self.out.push((Token::Text(text.into()), self.line));
            }
            self.skip(end);
            return Ok(trim);
        }
        self.opening(Token::Block);
        self.tag("%}")?;
        let sign = self.source.as_bytes()[self.at - 3];
        self.out.push((Token::BlockEnd, self.line));
        Ok(after_block(sign))
    }

    /// Skips `{{` or `{%` and its sign.
    fn opening(&mut self, token: Token) {
        self.out.push((token, self.line));
        let signed = matches!(self.source.as_bytes().get(self.at + 2), Some(b'-' | b'+'));
        self.at += 2 + usize::from(signed);
    }

    /// Finds the end of `{% raw %}`. Returns where its text begins and ends, where its end tag ends, and how that
    /// trims.
    fn raw(&self) -> Result<Option<(usize, usize, usize, Trim)>, Fault> {
        let Some((length, first)) = bare(&self.source[self.at..], "raw") else { return Ok(None) };
        let mut from = self.at + length;
        from += match after_block(first) {
            Trim::All => self.source[from..].len() - self.source[from..].trim_start().len(),
            _ => 0,
        };
        let mut tag = from;
        while let Some(next) = self.source[tag..].find("{%") {
            tag += next;
            if let Some((length, last)) = bare(&self.source[tag..], "endraw") {
                let signed = self.source.as_bytes()[tag + 2] == b'-';
                let text = &self.source[from..tag];
                let to = if signed { from + text.trim_end().len() } else { tag };
                return Ok(Some((from, to, tag + length, after_block(last))));
            }
            tag += 2;
        }
        Err(Fault::new("a raw block does not end"))
    }

    /// Reads the tokens of a tag up to its end.
    fn tag(&mut self, end: &str) -> Result<(), Fault> {
        // The end is not within the braces of a map.
        let mut braces = 0usize;
        loop {
            let rest = self.source[self.at..].trim_start();
            self.skip(self.source.len() - rest.len());
            let signed = rest.strip_prefix(['-', '+']).filter(|rest| rest.starts_with(end));
            if braces == 0 && (signed.is_some() || rest.starts_with(end)) {
                self.at += end.len() + usize::from(signed.is_some());
                return Ok(());
            }
            let Some(first) = rest.chars().next() else { return Err(Fault::new(format!("a tag lacks its end {end}"))) };
            let line = self.line;
            let token = match first {
                '"' | '\'' => self.string(rest, first)?,
                '0'..='9' => self.number(rest)?,
                c if c.is_alphabetic() || c == '_' => {
                    let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                    if length > MAX_NAME {
                        return Err(Fault::new(format!("a name has {length} bytes, above the limit of {MAX_NAME}")));
                    }
                    self.at += length;
                    Token::Name(rest[..length].into())
                }
                other => {
                    let operator = OPERATORS.iter().find(|operator| rest.starts_with(**operator));
                    let operator = operator.ok_or_else(|| Fault::new(format!("{other:?} means nothing here")))?;
                    match *operator {
                        "{" => braces += 1,
                        "}" => braces = braces.saturating_sub(1),
                        _ => {}
                    }
                    self.at += operator.len();
                    Token::Operator(operator)
                }
            };
            self.out.push((token, line));
        }
    }

    fn number(&mut self, rest: &str) -> Result<Token, Fault> {
        let digits = |from: usize| {
            let bytes = rest.as_bytes()[from..].iter();
            from + bytes.take_while(|b| b.is_ascii_digit() || **b == b'_').count()
        };
        let mut end = digits(0);
        let whole = end;
        let digit_at = |at: usize| rest.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
        if rest[end..].starts_with('.') && digit_at(end + 1) {
            end = digits(end + 1);
        }
        if rest[end..].starts_with(['e', 'E']) {
            let signed = usize::from(rest[end + 1..].starts_with(['+', '-']));
            if digit_at(end + 1 + signed) {
                end = digits(end + 1 + signed);
            }
        }
        self.at += end;
        let text = rest[..end].replace('_', "");
        let token = if end == whole { text.parse().ok().map(Token::Int) } else { text.parse().ok().map(Token::Float) };
        token.ok_or_else(|| Fault::new("a number is too large"))
    }

    /// Reads a string with Python's escapes.
    fn string(&mut self, rest: &str, quote: char) -> Result<Token, Fault> {
        let mut text = String::new();
        let mut chars = rest.char_indices();
        chars.next();
        while let Some((at, c)) = chars.next() {
            if c == quote {
                self.skip(self.at + at + 1);
                return Ok(Token::Str(text.into()));
            }
            if c != '\\' {
                text.push(c);
                continue;
            }
            let Some((_, escaped)) = chars.next() else { break };
            let digits = match escaped {
                'x' => 2,
                'u' => 4,
                'U' => 8,
                _ => 0,
            };
            match escaped {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                'r' => text.push('\r'),
                'b' => text.push('\u{8}'),
                'f' => text.push('\u{c}'),
                'v' => text.push('\u{b}'),
                'a' => text.push('\u{7}'),
                '0' => text.push('\0'),
                '\\' | '\'' | '"' => text.push(escaped),
                '\n' => {}
                _ if digits > 0 => {
                    let from = at + 2;
                    let code = rest.get(from..from + digits).and_then(|digits| u32::from_str_radix(digits, 16).ok());
                    // Half of a surrogate pair is not a character.
                    text.push(code.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER));
                    if code.is_some() {
                        chars.nth(digits - 1);
                    }
                }
                other => text.extend(['\\', other]),
            }
        }
        Err(Fault::new("a string does not end"))
    }
}

fn after_block(sign: u8) -> Trim {
    match sign {
        b'-' => Trim::All,
        b'+' => Trim::Nothing,
        _ => Trim::LineBreak,
    }
}

/// Checks whether a tag consists of this word. Returns its length, and the byte before its end.
fn bare(tag: &str, word: &str) -> Option<(usize, u8)> {
    let inner = tag.strip_prefix("{%")?;
    let inner = inner.strip_prefix(['-', '+']).unwrap_or(inner);
    let end = inner.trim_start().strip_prefix(word)?.trim_start();
    let sign = end.bytes().next().filter(|sign| matches!(sign, b'-' | b'+'));
    let rest = end[usize::from(sign.is_some())..].strip_prefix("%}")?;
    Some((tag.len() - rest.len(), sign.unwrap_or(0)))
}
