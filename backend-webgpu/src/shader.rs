//! The assembler: makes the WGSL of a kernel from the files in `shaders/`.
//!
//! A file is WGSL with five kinds of lines that begin with `//!`: `include FILE` (each file once), `decoder NAME` (the
//! decoder of table NAME to floats, its identifiers prefixed), `integers NAME` (the same to integers and scales), and
//! `if FLAG` / `else` / `end`. Before it comes a head that is generated from the kernel: the parameter block `p`, the step
//! parameters `step`, and the bindings. At last whole words are replaced.

use crate::kernel::{Decoder, Kernel};
use backend_api::Format;
use std::fmt::Write;

macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        /// All files by name.
        const FILES: &[(&str, &str)] =
            &[$((concat!($name, ".wgsl"), include_str!(concat!("../shaders/", $name, ".wgsl")))),+];
    };
}

files! {
    "append", "argmax", "attention", "attention_split", "binary", "concat", "embed", "get_rows", "glu", "linear_block",
    "linear_qkv", "linear_tile", "linear_vec", "norm", "permute", "qkv_append", "rope", "sample", "slice", "softmax",
    "top_k", "unary",
    "lib/best", "lib/bytes", "lib/decode", "lib/group", "lib/index", "lib/keys", "lib/lanes", "lib/masking", "lib/parts",
    "lib/products", "lib/put", "lib/reduce", "lib/rotate", "lib/row", "lib/splits", "lib/step", "lib/tile_float",
    "lib/tile_int8", "lib/unary",
    "format/bf16", "format/dense", "format/f16", "format/f32", "format/packed", "format/q4_0", "format/q4_1",
    "format/q4_k", "format/q5_0", "format/q5_1", "format/q6_k", "format/q8_0", "format/quads", "format/whole",
    "integer/q4_0", "integer/q4_1", "integer/q4_k", "integer/q5_0", "integer/q5_1", "integer/q6_k", "integer/q8_0",
}

/// The text of a file.
fn file(name: &str) -> Option<&'static str> {
    FILES.iter().find(|(file, _)| file.strip_suffix(".wgsl") == Some(name)).map(|(_, text)| *text)
}

/// The files that kernels are assembled from: name and text.
pub fn shader_files() -> impl Iterator<Item = (&'static str, &'static str)> {
    FILES.iter().copied()
}

/// Whether weights of a format are also unpacked to integers and scales.
pub fn has_integers(format: Format) -> bool {
    file(&integer_file(format)).is_some()
}

fn integer_file(format: Format) -> String {
    format!("integer/{}", format.name().to_lowercase())
}

/// The flag of kernels that use subgroups.
pub const SUBGROUPS: &str = "SUBGROUPS";
/// What WGSL with subgroups begins with. Elsewhere than in browsers naga compiles it, which has the functions but does not
/// know the directive yet.
pub const ENABLE_SUBGROUPS: &str = if cfg!(target_arch = "wasm32") { "enable subgroups;\n" } else { "" };

/// The WGSL of a kernel.
///
/// *Errors*: a directive that is malformed or names nothing; tests assemble every variant.
pub fn assemble(kernel: &Kernel) -> Result<String, String> {
    let mut assembler = Assembler { kernel, included: Vec::new(), out: String::new() };
    if kernel.flags.contains(&SUBGROUPS) {
        assembler.out.push_str(ENABLE_SUBGROUPS);
    }
    assembler.include("lib/step")?;
    assembler.head();
    assembler.include(kernel.file)?;
    let words: Vec<(&str, &str)> = kernel.words.iter().map(|(name, text)| (*name, text.as_str())).collect();
    Ok(replace_words(&assembler.out, &|word| {
        words.iter().find(|(name, _)| *name == word).map(|(_, t)| (*t).to_owned())
    }))
}

struct Assembler<'a> {
    kernel: &'a Kernel,
    included: Vec<String>,
    out: String,
}

impl Assembler<'_> {
    fn line(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn head(&mut self) {
        let mut head = String::from("struct Params {\n");
        // Writing to a string cannot fail.
        for (name, value) in &self.kernel.params {
            let _ = writeln!(head, "    {name}: {},", value.ty());
        }
        head.push_str("}\n@group(0) @binding(0) var<uniform> p: Params;\n");
        head.push_str("@group(0) @binding(1) var<uniform> step: Step;\n");
        for (i, binding) in self.kernel.bindings.iter().enumerate() {
            let access = if binding.operand.is_written() { "read_write" } else { "read" };
            let _ = writeln!(
                head,
                "@group(0) @binding({}) var<storage, {access}> {}: {};",
                i + 2,
                binding.name,
                binding.ty
            );
        }
        self.line(&head);
    }

    fn include(&mut self, name: &str) -> Result<(), String> {
        if self.included.iter().any(|seen| seen == name) {
            return Ok(());
        }
        self.included.push(name.to_owned());
        let text = file(name).ok_or_else(|| format!("no shader file {name}"))?;
        // For each open condition: whether its lines are taken, and whether the condition around it is.
        let mut open: Vec<(bool, bool)> = Vec::new();
        for line in text.lines() {
            let taken = open.last().is_none_or(|(now, _)| *now);
            let Some(directive) = line.strip_prefix("//!") else {
                if taken {
                    self.line(line);
                }
                continue;
            };
            match (directive.split_once(' ').unwrap_or((directive, "")), open.last_mut()) {
                (("if", flag), _) => open.push((taken && self.kernel.flags.contains(&flag), taken)),
                (("else", ""), Some((now, around))) => *now = *around && !*now,
                (("end", ""), Some(_)) => {
                    open.pop();
                }
                (("include", other), _) if taken => self.include(other.trim_end_matches(".wgsl"))?,
                (("decoder", table), _) if taken => self.decoder(table)?,
                (("integers", table), _) if taken => self.integers(table)?,
                (("include" | "decoder" | "integers", _), _) => {}
                _ => return Err(format!("{name}: cannot read the line {line}")),
            }
        }
        if open.is_empty() { Ok(()) } else { Err(format!("{name}: a condition has no end")) }
    }

    fn kind(&self, table: &str) -> Result<Decoder, String> {
        let found = self.kernel.decoders.iter().find(|(name, _)| *name == table);
        found.map(|(_, kind)| *kind).ok_or_else(|| format!("{}: table {table} has no decoder", self.kernel.file))
    }

    fn decoder(&mut self, table: &str) -> Result<(), String> {
        match self.kind(table)? {
            Decoder::Dense => self.of_table(table, &["format/dense"]),
            Decoder::Quads => self.of_table(table, &["format/quads"]),
            Decoder::Whole => self.of_table(table, &["format/whole"]),
            Decoder::Packed(format) => {
                self.of_table(table, &[&format!("format/{}", format.name().to_lowercase()), "format/packed"])
            }
        }
    }

    fn integers(&mut self, table: &str) -> Result<(), String> {
        match self.kind(table)? {
            Decoder::Packed(format) => self.of_table(table, &[&integer_file(format)]),
            Decoder::Dense | Decoder::Quads | Decoder::Whole => {
                Err(format!("{}: table {table} has no integers", self.kernel.file))
            }
        }
    }

    /// Files with the names of a table.
    fn of_table(&mut self, table: &str, files: &[&str]) -> Result<(), String> {
        let text = |name: &&str| file(name).ok_or_else(|| format!("no shader file {name}"));
        let text = files.iter().map(text).collect::<Result<Vec<_>, _>>()?.join("\n");
        let functions: Vec<String> = text
            .lines()
            .filter_map(|line| line.strip_prefix("fn ")?.split_once('(').map(|(name, _)| name.to_owned()))
            .collect();
        let renamed = replace_words(&text, &|word| match word {
            "weights" => Some(table.to_owned()),
            "GROUPS" => Some(format!("p.{table}_groups")),
            "COLS" => Some(format!("p.{table}_cols")),
            "PLANE0" | "PLANE1" | "PLANE2" | "PLANE3" => Some(format!("p.{table}_{}", word.to_lowercase())),
            function if functions.iter().any(|f| f == function) => Some(format!("{table}_{function}")),
            _ => None,
        });
        self.line(&renamed);
        Ok(())
    }
}

/// Replaces whole words of letters, digits and underscores.
fn replace_words(text: &str, replacement: &dyn Fn(&str) -> Option<String>) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_word) {
        let (before, tail) = rest.split_at(start);
        let (word, after) = tail.split_at(tail.find(|c| !is_word(c)).unwrap_or(tail.len()));
        out.push_str(before);
        out.push_str(&replacement(word).unwrap_or_else(|| word.to_owned()));
        rest = after;
    }
    out.push_str(rest);
    out
}
