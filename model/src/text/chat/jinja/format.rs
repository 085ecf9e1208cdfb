//! String formatting: Python's `%`, which is also the filter `format`, and `str.format`.
//!
//! *Source*: <https://docs.python.org/3/library/stdtypes.html#printf-style-string-formatting>,
//! <https://docs.python.org/3/library/string.html#format-string-syntax>.

use super::Fault;
use super::budget::{Budget, CELL};
use super::machine::Given;
use super::text::{self, Text};
use super::value::{Map, Value};
use super::{numbers, subscript};

/// Largest width and precision. A larger one is a mistake or an attack.
const MAX_SIZE: usize = 1000;

/// Format of a value.
#[derive(Debug, Clone, Default)]
struct Spec {
    /// Character that fills the width, if not a space.
    fill: Option<char>,
    /// Alignment: `<`, `>`, `^`, or `=` (fills between the sign and the digits).
    align: Option<char>,
    /// `+` or a space, before numbers that are not negative.
    plus: Option<char>,
    alternate: bool,
    width: usize,
    /// Separator of thousands.
    group: Option<char>,
    precision: Option<usize>,
    kind: Option<char>,
}

/// Applies the filter `format`, with either named or positional arguments.
pub(super) fn filter(text: &str, given: &Given, budget: &mut Budget) -> Result<Value, Fault> {
    if given.named.is_empty() {
        return percent(text, &Value::tuple(given.positional.clone())?, budget);
    }
    if !given.positional.is_empty() {
        return Err(Fault::new("format takes named values or positional ones, not both"));
    }
    let mut map = Map::default();
    for (name, value) in &given.named {
        map.set(Value::Str(name.clone()), value.clone(), budget)?;
    }
    percent(text, &Value::map(map), budget)
}

/// Evaluates `text % value`.
pub(super) fn percent(text: &str, value: &Value, budget: &mut Budget) -> Result<Value, Fault> {
    budget.pay(text.len())?;
    let single = [value.clone()];
    let mut values = match value {
        Value::List(list) if list.is_tuple => list.iter(),
        _ => single.iter(),
    };
    let mut out = Text::new(budget);
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        out.push(&rest[..at])?;
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            out.push("%")?;
            rest = after;
            continue;
        }
        let named = match rest.strip_prefix('(') {
            None => None,
            Some(inner) => {
                let (name, after) = inner.split_once(')').ok_or_else(|| Fault::new("a name after % does not end"))?;
                rest = after;
                Some(subscript::index(value, &Value::str(name), out.budget)?)
            }
        };
        let mut next = || values.next().cloned().ok_or_else(|| Fault::new("% has more places than values"));
        let mut spec = Spec::default();
        loop {
            match rest.chars().next() {
                Some('-') => spec.align = Some('<'),
                Some('0') if spec.align.is_none() => (spec.fill, spec.align) = (Some('0'), Some('=')),
                Some('0') => {}
                Some('+') => spec.plus = Some('+'),
                Some(' ') => spec.plus = spec.plus.or(Some(' ')),
                Some('#') => spec.alternate = true,
                _ => break,
            }
            rest = &rest[1..];
        }
        if spec.align == Some('<') {
            spec.fill = None;
        }
        spec.width = size(&mut rest, &mut next)?.unwrap_or(0);
        if let Some(after) = rest.strip_prefix('.') {
            rest = after;
            spec.precision = Some(size(&mut rest, &mut next)?.unwrap_or(0));
        }
        rest = rest.trim_start_matches(['h', 'l', 'L']);
        let kind = rest.chars().next().ok_or_else(|| Fault::new("a text ends after %"))?;
        rest = &rest[kind.len_utf8()..];
        let value = match named {
            Some(value) => value,
            None => next()?,
        };
        let value = match (kind, &value) {
            ('d' | 'i' | 'u', Value::Float(_)) => numbers::to_int(&value, Value::None, out.budget)?,
            _ => value,
        };
        spec.kind = Some(if matches!(kind, 'i' | 'u') { 'd' } else { kind });
        spec.align = spec.align.or(Some('>'));
        spec.write(&value, &mut out)?;
    }
    out.push(rest)?;
    let (text, is_mapping) = (out.out, matches!(value, Value::Map(_)));
    if values.next().is_some() && !is_mapping {
        return Err(Fault::new("% has more values than places"));
    }
    Ok(Value::Str(text.into()))
}

/// Parses a width or precision of a `%` field; `*` takes the next value.
fn size(rest: &mut &str, next: &mut impl FnMut() -> Result<Value, Fault>) -> Result<Option<usize>, Fault> {
    if let Some(after) = rest.strip_prefix('*') {
        *rest = after;
        return bounded(numbers::count(next()?.as_int()?)).map(Some);
    }
    digits(rest)
}

/// Parses a number at the beginning of a text, and removes it.
fn digits(rest: &mut &str) -> Result<Option<usize>, Fault> {
    let (number, after) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len()));
    *rest = after;
    if number.is_empty() { Ok(None) } else { bounded(number.parse().unwrap_or(usize::MAX)).map(Some) }
}

fn bounded(size: usize) -> Result<usize, Fault> {
    if size > MAX_SIZE { Err(Fault::new(format!("a field is wider than {MAX_SIZE}"))) } else { Ok(size) }
}

/// Evaluates `text.format(...)`.
pub(super) fn braces(text: &str, given: &Given, budget: &mut Budget) -> Result<Value, Fault> {
    budget.pay(text.len())?;
    let mut out = Text::new(budget);
    let (mut rest, mut counted) = (text, 0);
    while let Some(at) = rest.find(['{', '}']) {
        out.push(&rest[..at])?;
        let (brace, after) = rest[at..].split_at(1);
        if let Some(after) = after.strip_prefix(brace) {
            out.push(brace)?;
            rest = after;
            continue;
        }
        let (field, after) = match after.split_once('}') {
            Some((field, after)) if brace == "{" && !field.contains('{') => (field, after),
            _ => return Err(Fault::new("braces of a format are not in pairs, or within each other")),
        };
        rest = after;
        let (field, spec) = field.split_once(':').unwrap_or((field, ""));
        let (field, conversion) = field.split_once('!').unwrap_or((field, ""));
        let value = found(field, given, &mut counted, out.budget)?;
        let value = match conversion {
            "" => value,
            "s" => Value::Str(text::shown(&value, out.budget)?.into()),
            "r" => Value::Str(text::represented(&value, out.budget)?.into()),
            other => return Err(Fault::new(format!("a format has no conversion !{other}"))),
        };
        Spec::read(spec)?.write(&value, &mut out)?;
    }
    out.push(rest)?;
    Ok(Value::Str(out.out.into()))
}

/// Returns the value of a field such as `0`, `name` or `0.role[key]`. A field without a name takes the next positional
/// value.
fn found(field: &str, given: &Given, counted: &mut usize, budget: &mut Budget) -> Result<Value, Fault> {
    let (name, mut path) = field.split_at(field.find(['.', '[']).unwrap_or(field.len()));
    let missing = || Fault::new(format!("a format has no value for {{{field}}}"));
    let value = match name.parse::<usize>() {
        Ok(at) => given.positional.get(at),
        Err(_) if name.is_empty() => {
            *counted += 1;
            given.positional.get(*counted - 1)
        }
        Err(_) => given.get(usize::MAX, name),
    };
    let mut value = value.ok_or_else(missing)?.clone();
    while !path.is_empty() {
        budget.pay(CELL)?;
        let (key, after) = match path.strip_prefix('[') {
            Some(inner) => inner.split_once(']').ok_or_else(missing)?,
            None => {
                let inner = path.strip_prefix('.').ok_or_else(missing)?;
                inner.split_at(inner.find(['.', '[']).unwrap_or(inner.len()))
            }
        };
        let key = key.parse().map_or_else(|_| Value::str(key), Value::Int);
        value = subscript::index(&value, &key, budget)?;
        path = after;
    }
    Ok(value)
}

impl Spec {
    /// Parses the format after a field's colon.
    fn read(text: &str) -> Result<Spec, Fault> {
        let mut spec = Spec::default();
        let mut rest = text;
        let is_align = |c: &char| matches!(c, '<' | '>' | '^' | '=');
        let mut begin = rest.chars();
        match (begin.next(), begin.next().filter(is_align)) {
            (fill, Some(align)) => {
                (spec.fill, spec.align) = (fill, Some(align));
                rest = begin.as_str();
            }
            (Some(align), None) if is_align(&align) => {
                spec.align = Some(align);
                rest = &rest[1..];
            }
            _ => {}
        }
        let mut accept = |signs: &[char]| {
            let sign = rest.chars().next().filter(|c| signs.contains(c))?;
            rest = &rest[1..];
            Some(sign)
        };
        spec.plus = accept(&['+', '-', ' ']).filter(|sign| *sign != '-');
        spec.alternate = accept(&['#']).is_some();
        if accept(&['0']).is_some() {
            spec.fill = spec.fill.or(Some('0'));
            spec.align = spec.align.or(Some('='));
        }
        spec.width = digits(&mut rest)?.unwrap_or(0);
        if let Some(group) = rest.chars().next().filter(|c| matches!(c, ',' | '_')) {
            spec.group = Some(group);
            rest = &rest[1..];
        }
        if let Some(after) = rest.strip_prefix('.') {
            rest = after;
            spec.precision = Some(digits(&mut rest)?.ok_or_else(|| Fault::new("a format lacks its precision"))?);
        }
        let mut kinds = rest.chars();
        spec.kind = kinds.next();
        if kinds.next().is_some() { Err(Fault::new(format!("a format cannot be {text:?}"))) } else { Ok(spec) }
    }

    fn write(&self, value: &Value, out: &mut Text<'_>) -> Result<(), Fault> {
        let refused = |kind: char| Fault::new(format!("{} cannot be written as {kind:?}", value.kind()));
        let of_float = |kind: char| numbers::float(value).ok_or_else(|| refused(kind));
        match (self.kind, value) {
            (Some('s'), _) | (None, Value::Str(_)) => {
                let text = text::shown(value, out.budget)?;
                self.text(&text, out)
            }
            (Some('r'), _) => {
                let text = text::represented(value, out.budget)?;
                self.text(&text, out)
            }
            (None, Value::Float(float)) if self.precision.is_none() => self.number(&text::float(*float), out),
            (None, Value::Int(_)) => self.integer(value, 'd', out),
            (None, _) if self.precision.is_none() && self.plus.is_none() => {
                let text = text::shown(value, out.budget)?;
                self.text(&text, out)
            }
            (Some('c'), Value::Int(code)) => {
                let c = u32::try_from(*code).ok().and_then(char::from_u32).ok_or_else(|| refused('c'))?;
                self.text(c.encode_utf8(&mut [0; 4]), out)
            }
            (Some('c'), Value::Str(_)) => {
                let text = text::shown(value, out.budget)?;
                self.text(&text, out)
            }
            (Some(kind @ ('d' | 'x' | 'X' | 'o' | 'b')), _) => self.integer(value, kind, out),
            (Some(kind @ ('f' | 'F')), _) => {
                let text = format!("{:.*}", self.precision.unwrap_or(6), of_float(kind)?);
                self.number(&text, out)
            }
            (Some('%'), _) => {
                let text = format!("{:.*}%", self.precision.unwrap_or(6), 100.0 * of_float('%')?);
                self.number(&text, out)
            }
            (Some(kind @ ('e' | 'E' | 'g' | 'G')), _) => {
                let text = scientific(of_float(kind)?, self.precision.unwrap_or(6), kind.eq_ignore_ascii_case(&'g'));
                self.number(&if kind.is_uppercase() { text.to_uppercase() } else { text }, out)
            }
            (kind, _) => Err(refused(kind.unwrap_or('.'))),
        }
    }

    fn text(&self, text: &str, out: &mut Text<'_>) -> Result<(), Fault> {
        let text: String = text.chars().take(self.precision.unwrap_or(usize::MAX)).collect();
        // `%` fills text with spaces even if zeros are asked for.
        let spec = Spec { fill: self.fill.filter(|_| self.align != Some('=')), ..self.clone() };
        spec.padded("", &text, '<', out)
    }

    fn integer(&self, value: &Value, kind: char, out: &mut Text<'_>) -> Result<(), Fault> {
        let (value, prefix) = (value.as_int()?, if self.alternate { kind } else { 'd' });
        let magnitude = value.unsigned_abs();
        let digits = match kind {
            'x' => format!("{magnitude:x}"),
            'X' => format!("{magnitude:X}"),
            'o' => format!("{magnitude:o}"),
            'b' => format!("{magnitude:b}"),
            _ => magnitude.to_string(),
        };
        let sign = if value < 0 { "-" } else { "" };
        let digits = format!("{digits:0>width$}", width = self.precision.unwrap_or(0));
        let prefix = if prefix == 'd' { String::new() } else { format!("0{prefix}") };
        self.number(&format!("{sign}{prefix}{digits}"), out)
    }

    /// Writes a number, with its sign first.
    fn number(&self, text: &str, out: &mut Text<'_>) -> Result<(), Fault> {
        let (sign, digits) = match text.strip_prefix('-') {
            Some(digits) => ("-".to_owned(), digits),
            None => (self.plus.map(String::from).unwrap_or_default(), text),
        };
        let (whole, fraction) = digits.split_at(digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len()));
        let Some(group) = self.group else { return self.padded(&sign, digits, '>', out) };
        let mut grouped = String::new();
        for (i, digit) in whole.chars().enumerate() {
            if i > 0 && (whole.len() - i).is_multiple_of(3) {
                grouped.push(group);
            }
            grouped.push(digit);
        }
        self.padded(&sign, &(grouped + fraction), '>', out)
    }

    fn padded(&self, sign: &str, text: &str, align: char, out: &mut Text<'_>) -> Result<(), Fault> {
        let missing = self.width.saturating_sub(sign.chars().count() + text.chars().count());
        let fill = |count: usize| String::from(self.fill.unwrap_or(' ')).repeat(count);
        let (before, between, after) = match self.align.unwrap_or(align) {
            '<' => (0, 0, missing),
            '^' => (missing / 2, 0, missing - missing / 2),
            '=' if !sign.is_empty() || align == '>' => (0, missing, 0),
            _ => (missing, 0, 0),
        };
        [&fill(before), sign, &fill(between), text, &fill(after)].iter().try_for_each(|part| out.push(part))
    }
}

/// Writes a float with an exponent. If `shorter` is set, it writes none where that is shorter, and drops trailing
/// zeros.
fn scientific(value: f64, precision: usize, shorter: bool) -> String {
    if !value.is_finite() {
        return text::float(value);
    }
    let digits = if shorter { precision.max(1) - 1 } else { precision };
    let text = format!("{value:.digits$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let power: i64 = exponent.parse().unwrap_or(0);
    let bare = |text: &str| match text.contains('.') && shorter {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if shorter && (-4..=digits as i64).contains(&power) {
        return bare(&format!("{value:.*}", numbers::count(digits as i64 - power)));
    }
    let sign = if power < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", bare(mantissa), power.abs())
}
