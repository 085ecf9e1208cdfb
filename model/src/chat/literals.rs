//! Calls of functions with literals as arguments, as Python and as Gemma write them. What they stand for is written as JSON.

use serde_json::Value;

use super::json::is_sound;

/// Lists and maps in each other. What reads them calls itself once for each.
const MAX_NESTING: usize = 32;

/// Around the strings of Gemma.
pub(super) const QUOTE: &str = "<|\"|>";

/// The calls of a list in Python, `[name(argument="value")]`: names and arguments; none if it is anything else.
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

/// The call that Gemma writes, `call:name{argument:value}`: name and arguments.
pub(super) fn gemma(text: &str) -> Option<(String, String)> {
    let mut reader = Reader { rest: text.strip_prefix("call:")?, nesting: 0, bare_keys: true };
    let name = reader.name()?;
    let arguments = reader.peek().filter(|c| *c == '{').and_then(|_| reader.value())?;
    reader.rest.trim().is_empty().then_some((name, arguments))
}

/// An object of members that are written as JSON.
pub(super) fn object(members: &[String]) -> String {
    format!("{{{}}}", members.join(","))
}

/// A member of an object, whose value is written as JSON.
pub(super) fn member(key: &str, value: &str) -> String {
    format!("{}:{value}", Value::from(key))
}

struct Reader<'t> {
    rest: &'t str,
    nesting: usize,
    /// Whether keys of maps may stand without quotes.
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

    /// What goes on as long as characters are such.
    fn run(&mut self, is: impl Fn(char) -> bool) -> Option<&'t str> {
        self.peek();
        let (run, rest) = self.rest.split_at(self.rest.find(|c| !is(c)).unwrap_or(self.rest.len()));
        self.rest = rest;
        Some(run).filter(|run| !run.is_empty())
    }

    fn name(&mut self) -> Option<String> {
        self.run(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-')).map(Into::into)
    }

    /// Items with commas between them, up to what closes the list.
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

    /// The member of this key, whose value comes.
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

    /// A string of Gemma, in which nothing is escaped.
    fn quoted(&mut self) -> Option<String> {
        let (text, rest) = self.rest.strip_prefix(QUOTE)?.split_once(QUOTE)?;
        self.rest = rest;
        Some(text.into())
    }

    /// A value, as JSON writes it.
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
                // As it is written, so that it is not rounded.
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
