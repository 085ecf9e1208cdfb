//! What lies between the marks of calls: where it ends, and how it is read. Whatever is not as it should be is no call.

use serde_json::{Map, Value};

use super::parts::ToolCall;
use super::python;
use super::tools::{Tool, find};

/// How calls are written between their marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    /// An object with a name and arguments, a list of them, or a name followed by its arguments.
    Json,
    /// `<function=NAME>`, and in it a `<parameter=NAME>` for each argument, whose text is as it is.
    Tags,
    /// As in Python: `[name(argument="value")]`. Models that were asked for JSON write that.
    Python,
}

impl Body {
    /// The calls, if there are any and all are of functions that there are.
    pub fn read(self, text: &str, tools: &[Tool]) -> Option<Vec<ToolCall>> {
        match self {
            Body::Json => json(text.trim(), tools),
            Body::Tags => tags(text.trim(), tools),
            Body::Python => match python::calls(text.trim()) {
                Some(calls) => {
                    let calls = calls.into_iter();
                    calls.map(|(name, arguments)| call(&name, &Value::Object(arguments), tools)).collect()
                }
                None => json(text.trim(), tools),
            },
        }
    }
}

/// Bytes before the arguments, if a name precedes them.
const MAX_NAME: usize = 256;

/// Looks for the end of a body in a text that grows; no byte is looked at twice.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Extent {
    begin: Option<usize>,
    scanned: usize,
    /// Whether it is of JSON or the like, in whose strings nothing ends.
    nested: bool,
    depth: usize,
    /// What ends the string that it is in.
    string: Option<u8>,
    escaped: bool,
    /// Whether strings may have single quotes.
    single: bool,
}

impl Extent {
    pub fn of(body: Body) -> Extent {
        Extent { single: body == Body::Python, ..Extent::default() }
    }

    /// Where the body ends, and where the text goes on after it: at a mark, or without one at the end of its JSON, which
    /// a name may precede.
    pub fn find(&mut self, text: &str, mark: &str) -> Option<(usize, usize)> {
        if self.begin.is_none() {
            let first = text.find(|c: char| !c.is_whitespace())?;
            self.nested = text[first..].starts_with(['{', '[']);
            let begin = if mark.is_empty() && !self.nested {
                let mut name = text[first..].char_indices().take(MAX_NAME + 1);
                match name.find(|(at, c)| *c == '{' || *at >= MAX_NAME)? {
                    (at, '{') => first + at,
                    // No function has such a name.
                    (at, _) => return Some((first + at, first + at)),
                }
            } else {
                first
            };
            self.nested |= mark.is_empty();
            (self.begin, self.scanned) = (Some(begin), begin);
        }
        for (at, byte) in text.bytes().enumerate().skip(self.scanned) {
            let rest = &text.as_bytes()[at..];
            if self.string.is_none() && !mark.is_empty() {
                if rest.starts_with(mark.as_bytes()) {
                    return Some((at, at + mark.len()));
                }
                if mark.as_bytes().starts_with(rest) {
                    return None;
                }
            }
            self.scanned = at + 1;
            if self.nested && self.closes(byte) && mark.is_empty() {
                return Some((at + 1, at + 1));
            }
        }
        None
    }

    /// Takes a byte of JSON; whether that ends what it began with.
    fn closes(&mut self, byte: u8) -> bool {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' if self.string.is_some() => self.escaped = true,
            _ if self.string == Some(byte) => self.string = None,
            _ if self.string.is_some() => {}
            b'"' => self.string = Some(byte),
            b'\'' if self.single => self.string = Some(byte),
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                return self.depth == 0;
            }
            _ => {}
        }
        false
    }
}

/// Whether a text begins as a call does that has no mark, if that is known by now.
pub(super) fn may_be_call(text: &str) -> Option<bool> {
    const FIRST: [&str; 3] = ["\"name\"", "\"type\"", "\"function\""];
    let Some(rest) = text.strip_prefix('{') else { return if text.is_empty() { None } else { Some(false) } };
    let key = rest.trim_start();
    if FIRST.iter().any(|first| key.starts_with(first)) {
        return Some(true);
    }
    if FIRST.iter().any(|first| first.starts_with(key)) { None } else { Some(false) }
}

fn json(body: &str, tools: &[Tool]) -> Option<Vec<ToolCall>> {
    if body.starts_with(['{', '[']) {
        return match serde_json::from_str(body).ok()? {
            Value::Array(calls) if !calls.is_empty() => calls.iter().map(|call| object(call, tools)).collect(),
            call => Some(vec![object(&call, tools)?]),
        };
    }
    // What Mistral puts between the two is in brackets.
    let (name, arguments) = body.split_at(body.find('{')?);
    let name = name.split('[').next()?.trim();
    Some(vec![call(name, &serde_json::from_str(arguments).ok()?, tools)?])
}

fn object(value: &Value, tools: &[Tool]) -> Option<ToolCall> {
    let value = value.get("function").filter(|function| function.is_object()).unwrap_or(value);
    let name = value.get("name").or(value.get("function"))?.as_str()?;
    let arguments = value.get("arguments").or(value.get("parameters")).unwrap_or(&Value::Null);
    call(name, arguments, tools)
}

/// The call of a function, if there is one of that name.
pub(super) fn call(name: &str, arguments: &Value, tools: &[Tool]) -> Option<ToolCall> {
    find(tools, name)?;
    let arguments = match arguments {
        Value::Object(_) => arguments.to_string(),
        Value::Null => "{}".into(),
        // Some write the object as a string.
        Value::String(text) => serde_json::from_str::<Map<String, Value>>(text).ok().map(|_| text.clone())?,
        _ => return None,
    };
    Some(ToolCall { name: name.into(), arguments })
}

fn tags(body: &str, tools: &[Tool]) -> Option<Vec<ToolCall>> {
    let (name, mut rest) = body.strip_prefix("<function=")?.split_once('>')?;
    let tool = find(tools, name.trim())?;
    let mut arguments = Map::new();
    loop {
        rest = rest.trim_start();
        if rest.trim_end() == "</function>" {
            return Some(vec![call(&tool.name, &Value::Object(arguments), tools)?]);
        }
        let (parameter, after) = rest.strip_prefix("<parameter=")?.split_once('>')?;
        let (text, after) = after.split_once("</parameter>")?;
        let text = text.strip_prefix('\n').unwrap_or(text);
        let text = text.strip_suffix('\n').unwrap_or(text);
        arguments.insert(parameter.trim().into(), tool.argument(parameter.trim(), text));
        rest = after;
    }
}
