//! The rows of the list: what they say, typed.

use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::io::Read;

/// The list, as llama.cpp's own generators made it, with the columns that are named in [`COLUMNS`].
const LIST: &[u8] = include_bytes!("../../../peer/test-backend-ops.tsv.br");
/// More bytes than the list has.
const MOST: u64 = 64 << 20;
const COLUMNS: &str = "set\top\tparams\twhole_graph\tnmse_threshold\tsrcs\top_bytes\top_flops\twebgpu_rule_32k";

/// An operand: the name of its type and its dimensions, innermost first.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    pub kind: String,
    pub dims: [usize; 4],
}

impl Source {
    /// Its dimensions, outermost first.
    pub fn shape(&self) -> [usize; 4] {
        let [a, b, c, d] = self.dims;
        [d, c, b, a]
    }
}

/// A case of the list.
#[derive(Debug, Clone)]
pub struct Row {
    /// The operator's name there.
    pub op: String,
    /// All that is particular, as it is printed there.
    pub text: String,
    /// Parameters by name.
    params: BTreeMap<String, String>,
    /// Whether several operators are run and only the last result is compared.
    pub whole_graph: bool,
    /// The largest NMSE that passes there.
    pub threshold: f64,
    /// Operands.
    pub sources: Vec<Source>,
    /// Bytes of operands and results.
    pub bytes: u64,
    /// Floating-point operations, where the list counts them.
    pub flops: u64,
    /// Whether llama.cpp's WebGPU backend says that it supports the case.
    pub webgpu: bool,
}

impl Row {
    /// A parameter as it is written; empty if there is none.
    pub fn text_of(&self, name: &str) -> &str {
        self.params.get(name).map_or("", String::as_str)
    }

    /// A parameter that is a number; 0 if there is none.
    pub fn number<T: std::str::FromStr + Default>(&self, name: &str) -> T {
        self.text_of(name).parse().unwrap_or_default()
    }

    /// A parameter that is a list of numbers.
    pub fn list(&self, name: &str) -> Vec<usize> {
        let inner = self.text_of(name).trim_matches(['[', ']']);
        inner.split(',').filter_map(|number| number.parse().ok()).collect()
    }

    /// Whether a parameter has this value or is not there.
    pub fn plain(&self, name: &str, usual: &str) -> bool {
        self.params.get(name).is_none_or(|value| value == usual)
    }
}

/// Takes `name=value` pairs apart; commas within brackets do not separate.
fn params(text: &str) -> BTreeMap<String, String> {
    let (mut out, mut depth, mut start) = (BTreeMap::new(), 0, 0);
    let ends = text.char_indices().chain([(text.len(), ',')]);
    for (at, c) in ends {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            ',' if depth == 0 => {
                let (name, value) = text[start..at].split_once('=').unwrap_or((&text[start..at], ""));
                out.insert(name.to_owned(), value.to_owned());
                start = at + 1;
            }
            _ => {}
        }
    }
    out
}

fn source(text: &str) -> Result<Source> {
    let (kind, dims) = text.split_once('[').context("an operand has no dimensions")?;
    let dims: Vec<usize> = dims
        .trim_end_matches(']')
        .split(',')
        .map(|dim| dim.parse())
        .collect::<Result<_, _>>()
        .context("a dimension")?;
    let dims = dims.try_into().ok().context("an operand has other than four dimensions")?;
    Ok(Source { kind: kind.to_owned(), dims })
}

fn row(line: &str) -> Result<Option<Row>> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [set, op, text, whole, threshold, sources, bytes, flops, webgpu] = fields[..] else {
        anyhow::bail!("it has {} columns", fields.len());
    };
    if set != "eval" {
        return Ok(None);
    }
    let sources = sources.split(';').filter(|s| !s.is_empty()).map(source).collect::<Result<_>>()?;
    Ok(Some(Row {
        op: op.to_owned(),
        text: text.to_owned(),
        params: params(text),
        whole_graph: whole == "1",
        threshold: threshold.parse().context("its threshold")?,
        sources,
        bytes: bytes.parse().context("its bytes")?,
        flops: flops.parse().context("its operations")?,
        webgpu: webgpu == "1",
    }))
}

/// All cases that are compared, in the order of the list; those for measuring time are left out.
///
/// *Errors*: the list is damaged.
pub fn rows() -> Result<Vec<Row>> {
    let mut text = String::new();
    brotli::Decompressor::new(LIST, 4096).take(MOST).read_to_string(&mut text).context("the list cannot be read")?;
    let mut lines = text.lines();
    ensure!(lines.next() == Some(COLUMNS), "the list has other columns than {COLUMNS:?}");
    let mut rows = Vec::new();
    for (at, line) in lines.enumerate() {
        rows.extend(row(line).with_context(|| format!("row {} of the list", at + 1))?);
    }
    Ok(rows)
}
