//! Calls with literals as arguments, in the syntax of Python and of Gemma. They are converted to JSON.

use serde_json::Value;

use super::json::is_sound;

/// Deepest nesting of lists and maps. The parser is recursive.
const MAX_NESTING: usize = 32;

/// Quotation mark of Gemma's strings.
pub(super) const QUOTE: &str = "<|\"|>";

/// Parses a list of calls in Python's syntax, `[name(argument="value")]`. Returns names and arguments.
pub(super) fn python(text: &str) -> Option<Vec<(String, String)>> {
    let mut reader = Reader { rest: text, nesting: 0, bare_keys: false };
    reader.expect('[')?;
    let calls = reader.list(']', |reader| {
        let name = reader.name()?;
        reader.expect('(')?;
        let arguments = reader.list(')', |reader| {
            let name = reader.name()?;
            reader.expect('=')?;
            reader.member(&name)
        })?;
        Some((name, object(&arguments)))
    })?;
    (reader.rest.trim().is_empty() && !calls.is_empty()).then_some(calls)
}

/// Parses a call in Gemma's syntax, `call:name{argument:value}`. Returns its name and arguments.
pub(super) fn gemma(text: &str) -> Option<(String, String)> {
    let mut reader = Reader { rest: text.strip_prefix("call:")?, nesting: 0, bare_keys: true };
    let name = reader.name()?;
    let arguments = reader.peek().filter(|c| *c == '{').and_then(|_| reader.value())?;
    reader.rest.trim().is_empty().then_some((name, arguments))
}

/// Joins members to a JSON object.
pub(super) fn object(members: &[String]) -> String {
    format!("{{{}}}", members.join(","))
}

/// Makes a member of a JSON object; `value` is JSON.
pub(super) fn member(key: &str, value: &str) -> String {
    format!("{}:{value}", Value::from(key))
}

struct Reader<'t> {
    rest: &'t str,
    nesting: usize,
    /// Whether map keys may be written without quotes.
    bare_keys: bool,
}

impl<'t> Reader<'t> {
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    fn expect(&mut self, c: char) -> Option<()> {
        self.peek().filter(|next| *next == c)?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(())
    }

    /// Takes the longest run of such characters; nothing if it is empty.
    fn run(&mut self, is: impl Fn(char) -> bool) -> Option<&'t str> {
        self.peek();
        let (run, rest) = self.rest.split_at(self.rest.find(|c| !is(c)).unwrap_or(self.rest.len()));
        self.rest = rest;
        Some(run).filter(|run| !run.is_empty())
    }

    fn name(&mut self) -> Option<String> {
        self.run(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-')).map(Into::into)
    }

    /// Parses items between commas, up to the closing character.
    fn list<T>(&mut self, close: char, item: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut items = Vec::new();
        loop {
            if self.expect(close).is_some() {
                return Some(items);
            }
            if !items.is_empty() {
                self.expect(',')?;
                if self.expect(close).is_some() {
                    return Some(items);
                }
            }
            items.push(item(self)?);
        }
    }

    /// Parses a value, and makes a member with this key.
    fn member(&mut self, key: &str) -> Option<String> {
        Some(member(key, &self.value()?))
    }

    fn key(&mut self) -> Option<String> {
        match self.peek()? {
            quote @ ('"' | '\'') => self.string(quote),
            _ if !self.bare_keys => None,
            '<' => self.quoted(),
            _ => self.name(),
        }
    }

    /// Parses a string of Gemma, which does not have escapes.
    fn quoted(&mut self) -> Option<String> {
        let (text, rest) = self.rest.strip_prefix(QUOTE)?.split_once(QUOTE)?;
        self.rest = rest;
        Some(text.into())
    }

    /// Parses a value and returns it as JSON.
    fn value(&mut self) -> Option<String> {
        match self.peek()? {
            quote @ ('"' | '\'') => self.string(quote).map(|text| Value::from(text).to_string()),
            '<' => self.quoted().map(|text| Value::from(text).to_string()),
            open @ ('[' | '{') => {
                self.nesting += 1;
                if self.nesting > MAX_NESTING {
                    return None;
                }
                self.expect(open)?;
                let value = if open == '[' {
                    format!("[{}]", self.list(']', Reader::value)?.join(","))
                } else {
                    let pair = |reader: &mut Self| {
                        let key = reader.key()?;
                        reader.expect(':')?;
                        reader.member(&key)
                    };
                    object(&self.list('}', pair)?)
                };
                self.nesting -= 1;
                Some(value)
            }
            _ => match self.run(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))? {
                "True" | "true" => Some("true".into()),
                "False" | "false" => Some("false".into()),
                "None" | "null" => Some("null".into()),
                // The number is copied as written, so it is not rounded.
                number => is_sound(number).then(|| number.into()),
            },
        }
    }

    fn string(&mut self, quote: char) -> Option<String> {
        self.expect(quote)?;
        let (mut text, mut chars) = (String::new(), self.rest.chars());
        loop {
            match chars.next()? {
                '\\' => match chars.next()? {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    'r' => text.push('\r'),
                    c @ ('\\' | '"' | '\'') => text.push(c),
                    c => text.extend(['\\', c]),
                },
                c if c == quote => break,
                c => text.push(c),
            }
        }
        self.rest = chars.as_str();
        Some(text)
    }
}
