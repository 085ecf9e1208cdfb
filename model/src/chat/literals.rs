//! Calls of functions as Python writes them, with literals as arguments.

use serde_json::{Map, Value};

/// Lists and maps in each other. What reads them calls itself once for each.
const MAX_NESTING: usize = 32;

/// The calls of a list, each a name and its arguments; none if it is anything else.
pub(super) fn calls(text: &str) -> Option<Vec<(String, Map<String, Value>)>> {
    let mut reader = Reader { rest: text, nesting: 0 };
    reader.expect('[')?;
    let calls = reader.list(']', |reader| {
        let name = reader.name()?;
        reader.expect('(')?;
        let arguments = reader.list(')', |reader| {
            let name = reader.name()?;
            reader.expect('=')?;
            Some((name, reader.value()?))
        })?;
        Some((name, arguments.into_iter().collect()))
    })?;
    (reader.rest.trim().is_empty() && !calls.is_empty()).then_some(calls)
}

struct Reader<'t> {
    rest: &'t str,
    nesting: usize,
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

    fn value(&mut self) -> Option<Value> {
        match self.peek()? {
            quote @ ('"' | '\'') => self.string(quote).map(Value::String),
            open @ ('[' | '{') => {
                self.nesting += 1;
                if self.nesting > MAX_NESTING {
                    return None;
                }
                self.expect(open)?;
                let value = if open == '[' {
                    Value::Array(self.list(']', Reader::value)?)
                } else {
                    let pair = |reader: &mut Self| {
                        let quote = reader.peek().filter(|c| matches!(c, '"' | '\''))?;
                        let key = reader.string(quote)?;
                        reader.expect(':')?;
                        Some((key, reader.value()?))
                    };
                    Value::Object(self.list('}', pair)?.into_iter().collect())
                };
                self.nesting -= 1;
                Some(value)
            }
            _ => match self.run(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))? {
                "True" | "true" => Some(Value::Bool(true)),
                "False" | "false" => Some(Value::Bool(false)),
                "None" | "null" => Some(Value::Null),
                number => serde_json::from_str(number).ok().filter(Value::is_number),
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
