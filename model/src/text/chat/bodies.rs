//! Bodies of calls, between their marks: finding the end, and parsing. A malformed body is not a call.

use serde_json::{Map, Value};

use super::json::{self, compact};
use super::literals;
use super::parts::ToolCall;
use super::tools::{Tool, find};

/// Syntax of a call's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    /// A JSON object with a name and arguments, a list of such objects, or a name followed by its arguments.
    Json,
    /// `<function=NAME>`, which contains a `<parameter=NAME>` with plain text for each argument.
    Tags,
    /// Python's syntax: `[name(argument="value")]`. Models that were asked for JSON write JSON instead.
    Python,
    /// `call:name{argument:value}`, with marks around strings.
    Gemma,
}

impl Body {
    /// Parses a body. Returns its calls; nothing if it is malformed or calls an unknown function.
    pub fn read(self, text: &str, tools: &[Tool]) -> Option<Vec<ToolCall>> {
        match self {
            Body::Json => objects(text.trim(), tools),
            Body::Tags => tags(text.trim(), tools),
            Body::Python => match literals::python(text.trim()) {
                Some(calls) => calls.into_iter().map(|(name, arguments)| called(name, arguments, tools)).collect(),
                None => objects(text.trim(), tools),
            },
            Body::Gemma => {
                let (name, arguments) = literals::gemma(text.trim())?;
                Some(vec![called(name, arguments, tools)?])
            }
        }
    }
}

/// Makes a call; nothing if the function is unknown.
fn called(name: String, arguments: String, tools: &[Tool]) -> Option<ToolCall> {
    find(tools, &name).map(|_| ToolCall { name, arguments })
}

/// Most bytes of a name before its arguments.
const MAX_NAME: usize = 256;

/// Search for the end of a body in a text that grows. It looks at each byte once.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Extent {
    begin: Option<usize>,
    scanned: usize,
    /// Whether the body is JSON or similar: it does not end within strings.
    nested: bool,
    depth: usize,
    /// Quote that ends the current string.
    string: Option<u8>,
    escaped: bool,
    /// Whether strings may have single quotes.
    single: bool,
}

impl Extent {
    pub fn of(body: Body) -> Extent {
        Extent { single: body == Body::Python, ..Extent::default() }
    }

    /// Returns the end of the body, and the position where the text continues: after the mark or, if the mark is empty,
    /// at the end of the JSON, which a name may precede.
    pub fn find(&mut self, text: &str, mark: &str) -> Option<(usize, usize)> {
        if self.begin.is_none() {
            let first = text.find(|c: char| !c.is_whitespace())?;
            self.nested = text[first..].starts_with(['{', '[']);
            let begin = if mark.is_empty() && !self.nested {
                let mut name = text[first..].char_indices().take(MAX_NAME + 1);
                match name.find(|(at, c)| *c == '{' || *at >= MAX_NAME)? {
                    (at, '{') => first + at,
                    // No function has such a long name.
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

    /// Takes a byte of JSON; returns whether it ends the outermost object or list.
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

/// Returns whether a text begins like a call without a mark; nothing if more of it is needed.
pub(super) fn may_be_call(text: &str) -> Option<bool> {
    const FIRST: [&str; 3] = ["\"name\"", "\"type\"", "\"function\""];
    let Some(rest) = text.strip_prefix('{') else { return if text.is_empty() { None } else { Some(false) } };
    let key = rest.trim_start();
    if FIRST.iter().any(|first| key.starts_with(first)) {
        return Some(true);
    }
    if FIRST.iter().any(|first| first.starts_with(key)) { None } else { Some(false) }
}

/// Returns the name before a call's arguments, and their position. Some families have further fields in brackets
/// between the two.
pub(super) fn named(text: &str) -> Option<(&str, usize)> {
    let at = text.bytes().take(MAX_NAME).position(|byte| byte == b'{')?;
    Some((text[..at].split('[').next()?.trim(), at))
}

fn objects(body: &str, tools: &[Tool]) -> Option<Vec<ToolCall>> {
    if body.starts_with('[') {
        let calls = json::elements(body).filter(|calls| !calls.is_empty())?;
        return calls.into_iter().map(|call| object(call, tools)).collect();
    }
    if body.starts_with('{') {
        return Some(vec![object(body, tools)?]);
    }
    let (name, at) = named(body)?;
    json::is_sound(&body[at..]).then_some(())?;
    Some(vec![called(name.into(), arguments(&body[at..])?, tools)?])
}

/// Returns the value of a key; if it occurs several times, the last one.
fn member<'t>(members: &[(String, &'t str)], key: &str) -> Option<&'t str> {
    members.iter().rfind(|(name, _)| name == key).map(|(_, value)| *value)
}

/// Parses an object as a call.
pub(super) fn object(text: &str, tools: &[Tool]) -> Option<ToolCall> {
    let mut members = json::members(text)?;
    if let Some(function) = member(&members, "function").filter(|function| function.starts_with('{')) {
        members = json::members(function)?;
    }
    let name: String = serde_json::from_str(member(&members, "name").or(member(&members, "function"))?).ok()?;
    let given = member(&members, "arguments").or(member(&members, "parameters")).unwrap_or("null");
    called(name, arguments(given)?, tools)
}

/// Returns the arguments as a JSON object.
fn arguments(value: &str) -> Option<String> {
    match value.as_bytes().first()? {
        b'{' => Some(compact(value)),
        b'n' => Some("{}".into()),
        // Some models write the object as a string.
        b'"' => {
            let text: String = serde_json::from_str(value).ok()?;
            serde_json::from_str::<Map<String, Value>>(&text).ok().map(|_| text)
        }
        _ => None,
    }
}

fn tags(body: &str, tools: &[Tool]) -> Option<Vec<ToolCall>> {
    let (name, mut rest) = body.strip_prefix("<function=")?.split_once('>')?;
    let tool = find(tools, name.trim())?;
    let mut arguments = Vec::new();
    loop {
        rest = rest.trim_start();
        if rest.trim_end() == "</function>" {
            return Some(vec![ToolCall { name: tool.name.clone(), arguments: literals::object(&arguments) }]);
        }
        let (parameter, after) = rest.strip_prefix("<parameter=")?.split_once('>')?;
        let (text, after) = after.split_once("</parameter>")?;
        let text = text.strip_prefix('\n').unwrap_or(text);
        let text = text.strip_suffix('\n').unwrap_or(text);
        arguments.push(literals::member(parameter.trim(), &tool.argument(parameter.trim(), text)));
        rest = after;
    }
}
