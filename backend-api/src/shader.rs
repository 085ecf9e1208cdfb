//! The assembler of shaders: makes the text of a kernel from files, the same way for WGSL and GLSL.
//!
//! A file is plain source with lines that begin with `//!`:
//!
//! | line | what it does |
//! |---|---|
//! | `//!include FILE` | puts a file in its place, each file once |
//! | `//!if CONDITION`, `//!else`, `//!end` | keeps lines or drops them; a condition is flags with `!`, `&&` and `\|\|` |
//! | `//!each WORD`, `//!end` | puts lines once for each row, with the row's number in place of the word |
//! | `//!each WORD N`, `//!end` | the same N times, for loops whose indices must be constants |
//! | `//!KIND TABLE` | puts an [`Instance`] for a table of numbers in its place: a decoder of its format |
//! | `//!function NAME` | puts the [function](crate::op::function) of that name in its place, or of the word's that stands for it |
//!
//! An instance is text that a kernel may need several times, once for each of its tables. So its functions take the
//! table's name as a prefix, and whole words of it are replaced.

mod file;
mod kernels;

pub use file::{code, code_len, text};
pub use kernels::{Emitted, Known, expand, kernels};

use crate::elementary::Language;
use crate::op::function as function_of;
use std::collections::BTreeMap;
use std::path::Path;

/// A shader file: its name and its text.
pub type File = (&'static str, &'static str);

/// One instance of a table's decoder.
#[derive(Debug, Clone, Default)]
pub struct Instance {
    /// The files, in order.
    pub files: Vec<&'static str>,
    /// The flags of their conditions.
    pub flags: Vec<&'static str>,
    /// Their words that are replaced.
    pub words: Vec<(&'static str, String)>,
    /// Text that is made, which takes no table.
    pub made: String,
}

/// Finds the instance of a kind for a table. *Errors*: there is none.
pub type Instances<'a> = dyn Fn(&str, &str) -> Result<Instance, String> + 'a;

/// A shader that is being assembled.
pub struct Assembler<'a> {
    files: &'a [File],
    flags: &'a [&'a str],
    instances: &'a Instances<'a>,
    rows: usize,
    included: Vec<String>,
    text: String,
}

impl<'a> Assembler<'a> {
    /// Begins a shader with these files, flags and instances at hand.
    pub fn new(files: &'a [File], flags: &'a [&'a str], instances: &'a Instances<'a>) -> Assembler<'a> {
        Assembler { files, flags, instances, rows: 1, included: Vec::new(), text: String::new() }
    }

    /// Sets how many rows a kernel works on; 1 if nothing else is said.
    pub fn rows(self, rows: usize) -> Assembler<'a> {
        Assembler { rows, ..self }
    }

    /// Adds a line.
    pub fn line(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// Adds a file, unless it was added before.
    ///
    /// *Errors*: a line that is malformed or names nothing.
    pub fn include(&mut self, name: &str) -> Result<(), String> {
        if self.included.iter().any(|seen| seen == name) {
            return Ok(());
        }
        self.included.push(name.to_owned());
        let (text, flags) = (find(self.files, name)?, self.flags);
        each_line(name, text, flags, self.rows, &mut |line| {
            match line {
                Line::Text(text) => self.line(text),
                Line::Directive("include", file) => self.include(file)?,
                Line::Directive(kind, table) => {
                    let instance = (self.instances)(kind, table).map_err(|why| format!("{name}: {why}"))?;
                    // Several files may ask for the same function.
                    if instance.made.is_empty() || !self.text.contains(&instance.made) {
                        self.line(&instance.text(self.files, table)?);
                    }
                }
            }
            Ok(())
        })
    }

    /// The text, with whole words replaced.
    pub fn finish(self, words: &[(&str, &str)]) -> String {
        replace_words(&self.text, &|word| find_word(words, word).map(str::to_owned))
    }
}

impl Instance {
    /// The function of a name.
    ///
    /// *Errors*: there is none.
    pub fn function(name: &str, language: Language) -> Result<Instance, String> {
        let made = function_of(name, language).ok_or_else(|| format!("no function {name}"))?;
        Ok(Instance { made, ..Instance::default() })
    }

    /// The text for a table.
    ///
    /// *Errors*: a file that does not exist, or a line that is no condition.
    pub fn text(&self, files: &[File], table: &str) -> Result<String, String> {
        if self.files.is_empty() {
            return Ok(self.made.clone());
        }
        let mut parts = Vec::new();
        for name in &self.files {
            let mut part = String::new();
            each_line(name, find(files, name)?, &self.flags, 1, &mut |line| match line {
                Line::Text(text) => {
                    part.push_str(text);
                    part.push('\n');
                    Ok(())
                }
                Line::Directive(kind, _) => Err(format!("{name}: {kind} has no place in a decoder")),
            })?;
            parts.push(part);
        }
        let text = parts.join("\n");
        let functions: Vec<&str> = text.lines().filter_map(function).collect();
        Ok(replace_words(&text, &|word| match find_word(&self.words, word) {
            Some(replacement) => Some(replacement.to_owned()),
            None => functions.contains(&word).then(|| format!("{table}_{word}")),
        }))
    }
}

/// The function that a line declares: `fn name(` or `type name(` without indentation.
fn function(line: &str) -> Option<&str> {
    let (kind, name) = line.split_once('(')?.0.split_once(' ')?;
    [kind, name].iter().all(|word| !word.is_empty() && word.chars().all(is_word)).then_some(name)
}

/// Writes assembled texts to files of these names for `cargo xtask shaders`: if the variable `SHADERS` of the environment names
/// a folder, to a folder within it. For tests.
pub fn write_if_asked(within: &str, texts: &BTreeMap<String, String>) -> std::io::Result<()> {
    let Some(folder) = std::env::var_os("SHADERS").map(|folder| Path::new(&folder).join(within)) else { return Ok(()) };
    std::fs::create_dir_all(&folder)?;
    texts.iter().try_for_each(|(name, text)| std::fs::write(folder.join(name.replace([' ', '/'], "_")), text))
}

fn find(files: &[File], name: &str) -> Result<&'static str, String> {
    let found = files.iter().find(|(file, _)| *file == name);
    found.map(|(_, text)| *text).ok_or_else(|| format!("no shader file {name}"))
}

fn find_word<'w>(words: &'w [(&str, impl AsRef<str>)], word: &str) -> Option<&'w str> {
    words.iter().find(|(name, _)| *name == word).map(|(_, text)| text.as_ref())
}

/// A line that conditions keep.
enum Line<'t> {
    Text(&'t str),
    /// Its name and what follows it.
    Directive(&'t str, &'t str),
}

/// Hands on the lines of a file that its conditions keep, and those that stand for each row as often as there are rows.
fn each_line(
    name: &str,
    text: &str,
    flags: &[&str],
    rows: usize,
    take: &mut dyn FnMut(Line<'_>) -> Result<(), String>,
) -> Result<(), String> {
    // For each open condition: whether its lines are taken, and whether the condition around it is.
    let mut open: Vec<(bool, bool)> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let taken = open.last().is_none_or(|(now, _)| *now);
        let Some(directive) = line.strip_prefix("//!") else {
            if taken {
                take(Line::Text(line))?;
            }
            continue;
        };
        match (directive.split_once(' ').unwrap_or((directive, "")), open.last_mut()) {
            (("if", condition), _) if !condition.is_empty() => open.push((taken && holds(condition, flags), taken)),
            (("else", ""), Some((now, around))) => *now = *around && !*now,
            (("end", ""), Some(_)) => {
                open.pop();
            }
            (("each", word), _) if !word.is_empty() => {
                let (word, times) = match word.split_once(' ') {
                    None => (word, rows),
                    Some((word, times)) => (word, times.parse().map_err(|e| format!("{name}: {line}: {e}"))?),
                };
                let body = repeated(&mut lines).ok_or_else(|| format!("{name}: {line} has no end"))?;
                for row in (0..times).filter(|_| taken) {
                    let of_row = replace_words(&body, &|found| (found == word).then(|| format!("{row}u")));
                    each_line(name, &of_row, flags, rows, take)?;
                }
            }
            ((kind, argument), _) if !argument.is_empty() && kind != "else" && kind != "end" => {
                if taken {
                    take(Line::Directive(kind, argument))?;
                }
            }
            _ => return Err(format!("{name}: cannot read the line {line}")),
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("{name}: a condition has no end")) }
}

/// The lines up to the end of what begins before them.
fn repeated<'t>(lines: &mut impl Iterator<Item = &'t str>) -> Option<String> {
    let (mut body, mut open) = (String::new(), 1);
    loop {
        let line = lines.next()?;
        match line.strip_prefix("//!").map(|directive| directive.split(' ').next()) {
            Some(Some("if" | "each")) => open += 1,
            Some(Some("end")) => open -= 1,
            _ => {}
        }
        if open == 0 {
            return Some(body);
        }
        body.push_str(line);
        body.push('\n');
    }
}

/// Whether a condition holds: alternatives of flags that are set, or with `!` are not.
fn holds(condition: &str, flags: &[&str]) -> bool {
    let is_set = |flag: &str| match flag.trim().strip_prefix('!') {
        Some(flag) => !flags.contains(&flag),
        None => flags.contains(&flag.trim()),
    };
    condition.split("||").any(|all| all.split("&&").all(is_set))
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Replaces whole words of letters, digits and underscores.
fn replace_words(text: &str, replacement: &dyn Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_word) {
        let (before, tail) = rest.split_at(start);
        let (word, after) = tail.split_at(tail.find(|c| !is_word(c)).unwrap_or(tail.len()));
        out.push_str(before);
        match replacement(word) {
            Some(text) => out.push_str(&text),
            None => out.push_str(word),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: &[File] = &[
        (
            "main",
            "//!include lib\n//!include lib\n//!decoder w\n//!if A || B && !C\nyes SIZE SIZES\n//!else\nno\n//!end\n",
        ),
        ("lib", "shared\n"),
        ("format", "vec4 four(uint x) {\n//!if HIGH\n    four(PLANE)\n//!end\n}\n"),
        ("open", "//!if A\n"),
        ("odd", "//!else\n"),
        ("bare", "//!include\n"),
        ("nested", "//!if A\n//!if B\nboth\n//!else\nonly A\n//!end\n//!else\n//!if B\nonly B\n//!end\n//!end\n"),
        ("in a decoder", "//!include lib\n"),
        ("rows", "//!if A\n//!each ROW\n//!if B\nROWS ROW\n//!else\nonly ROW\n//!end\n//!end\n//!end\nlast\n"),
        ("times", "//!each I 2\n//!each ROW\nI ROW\n//!end\n//!end\n"),
        ("endless", "//!each ROW\n//!if A\n//!end\n"),
        ("uncounted", "//!each ROW often\n//!end\n"),
    ];

    fn instance(kind: &str, table: &str) -> Result<Instance, String> {
        match (kind, table) {
            ("decoder", "w") => Ok(Instance {
                files: vec!["format"],
                flags: vec!["HIGH"],
                words: vec![("PLANE", "p.w_plane".into())],
                ..Default::default()
            }),
            ("decoder", "x") => Ok(Instance { files: vec!["in a decoder"], ..Default::default() }),
            _ => Err(format!("no {kind} {table}")),
        }
    }

    fn assembled(name: &str, flags: &[&str]) -> Result<String, String> {
        let mut shader = Assembler::new(FILES, flags, &instance);
        shader.include(name)?;
        Ok(shader.finish(&[("SIZE", "64")]))
    }

    #[test]
    fn files_conditions_decoders_and_words() {
        let decoder = "vec4 w_four(uint x) {\n    w_four(p.w_plane)\n}\n\n";
        for (flags, last) in [
            (&["A"][..], "yes 64 SIZES"),
            (&["B"], "yes 64 SIZES"),
            (&["B", "C"], "no"),
            (&["A", "C"], "yes 64 SIZES"),
            (&[], "no"),
        ] {
            assert_eq!(assembled("main", flags).unwrap(), format!("shared\n{decoder}{last}\n"));
        }
        for (flags, text) in [(&["A", "B"][..], "both\n"), (&["A"], "only A\n"), (&["B"], "only B\n"), (&[], "")] {
            assert_eq!(assembled("nested", flags).unwrap(), text);
        }
    }

    #[test]
    fn lines_stand_for_each_row() {
        let assembled = |flags: &[&str], rows| {
            let mut shader = Assembler::new(FILES, flags, &instance).rows(rows);
            shader.include("rows").unwrap();
            shader.finish(&[])
        };
        assert_eq!(assembled(&["A", "B"], 3), "ROWS 0u\nROWS 1u\nROWS 2u\nlast\n");
        assert_eq!(assembled(&["A"], 1), "only 0u\nlast\n");
        assert_eq!(assembled(&["B"], 2), "last\n");
        let mut shader = Assembler::new(FILES, &[], &instance).rows(3);
        shader.include("times").unwrap();
        assert_eq!(shader.finish(&[]), "0u 0u\n0u 1u\n0u 2u\n1u 0u\n1u 1u\n1u 2u\n");
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        for (name, why) in [
            ("open", "no end"),
            ("endless", "no end"),
            ("uncounted", "often"),
            ("odd", "cannot read"),
            ("bare", "cannot read"),
            ("nowhere", "no shader file"),
        ] {
            assert!(assembled(name, &[]).unwrap_err().contains(why), "{name}");
        }
        let text = |table| instance("decoder", table).unwrap().text(FILES, table);
        assert!(text("x").unwrap_err().contains("no place in a decoder"));
    }
}
