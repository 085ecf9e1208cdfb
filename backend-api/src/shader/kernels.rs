//! The kernels that a backend can make, as its files list them and as it makes them for the conformance cases. The
//! suite compares the two.

use super::{Assembler, File, Instance, find};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// A kernel as its files have it, whether or not anything makes it so.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// Its name: that of its file without the extension.
    pub kernel: &'static str,
    /// Its file and all that it may include.
    pub files: BTreeSet<&'static str>,
    /// The flags of their conditions.
    pub flags: BTreeSet<&'static str>,
    /// The kinds of decoders that they ask for.
    pub kinds: BTreeSet<&'static str>,
    /// Decoders that can stand in their place, by name.
    pub decoders: BTreeMap<String, Instance>,
    /// Flags, with `!` where they are not set, and decoders that no graph leads to, though the files know them: those of
    /// files that it shares with other kernels.
    pub never: BTreeSet<String>,
}

/// A kernel that a conformance case makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Emitted {
    /// Its name.
    pub kernel: &'static str,
    /// The flags that are set.
    pub flags: BTreeSet<&'static str>,
    /// The names of its decoders.
    pub decoders: BTreeSet<String>,
    /// The case's place in [`cases::all`](crate::cases::all).
    pub case: usize,
}

/// The kernels among shader files: those that no other includes and whose text has an entry point.
///
/// *Errors*: a file includes one that does not exist.
pub fn kernels(files: &[File], entry: &str) -> Result<Vec<Known>, String> {
    let mut included = BTreeSet::new();
    for (_, text) in files {
        included.extend(directives(text).filter(|(kind, _)| *kind == "include").map(|(_, file)| file));
    }
    let mut kernels = Vec::new();
    for (name, _) in files.iter().filter(|(name, _)| !included.contains(name)) {
        let mut known = Known { kernel: name.rsplit_once('.').map_or(*name, |(stem, _)| stem), ..Known::default() };
        known.add(files, name)?;
        let has_entry = |file: &&str| find(files, file).is_ok_and(|text| text.contains(entry));
        if known.files.iter().any(has_entry) {
            kernels.push(known);
        }
    }
    Ok(kernels)
}

/// The text of a file with some flags but without its decoders, and those that it asks for: kind and table.
///
/// *Errors*: a line that is malformed or names nothing.
pub fn expand(files: &[File], name: &str, flags: &[&str]) -> Result<(String, Vec<(String, String)>), String> {
    let asked = RefCell::new(Vec::new());
    let note = |kind: &str, table: &str| {
        asked.borrow_mut().push((kind.to_owned(), table.to_owned()));
        Ok(Instance::default())
    };
    let mut shader = Assembler::new(files, flags, &note);
    shader.include(name)?;
    let text = shader.finish(&[]);
    Ok((text, asked.into_inner()))
}

impl Known {
    /// Adds what a file knows, whatever its conditions.
    fn add(&mut self, files: &[File], name: &str) -> Result<(), String> {
        let text = find(files, name)?;
        let name = files.iter().find(|(file, _)| *file == name).map_or("", |(file, _)| *file);
        if !self.files.insert(name) {
            return Ok(());
        }
        for (kind, argument) in directives(text) {
            match kind {
                "include" => self.add(files, argument)?,
                "if" => self.flags.extend(argument.split(['!', '&', '|', ' ']).filter(|flag| !flag.is_empty())),
                "each" | "else" | "end" => {}
                kind => {
                    self.kinds.insert(kind);
                }
            }
        }
        Ok(())
    }
}

/// The lines of a text that the assembler reads: a name and what follows it.
fn directives(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let directives = text.lines().filter_map(|line| line.strip_prefix("//!"));
    directives.map(|directive| directive.split_once(' ').unwrap_or((directive, "")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: &[File] = &[
        ("main.s", "//!include lib/a.s\n//!if A || B && !C\n//!include lib/b.s\n//!else\nno\n//!end\nfn main(\n"),
        ("lib/a.s", "//!if D\n//!decoder w\n//!end\n"),
        ("lib/b.s", "//!integers w\nb\n"),
        ("format/x.s", "x\n"),
    ];

    #[test]
    fn kernels_are_the_files_with_an_entry_point_and_know_what_they_include() {
        let kernels = kernels(FILES, "fn main(").unwrap();
        let [main] = kernels.as_slice() else { panic!("{kernels:#?}") };
        assert_eq!(main.kernel, "main");
        assert!(main.files.iter().eq(&["lib/a.s", "lib/b.s", "main.s"]));
        assert!(main.flags.iter().eq(&["A", "B", "C", "D"]));
        assert!(main.kinds.iter().eq(&["decoder", "integers"]));
        assert!(super::kernels(&FILES[..2], "fn main(").unwrap_err().contains("lib/b.s"));
    }

    #[test]
    fn flags_decide_what_a_text_has_and_asks_for() {
        let asked = |flags: &[&str]| {
            let (text, asked) = expand(FILES, "main.s", flags).unwrap();
            let asked = asked.into_iter().map(|(kind, table)| format!("{kind} {table}")).collect::<Vec<_>>();
            (text.contains("no"), asked.join(", "))
        };
        assert_eq!(asked(&["A"]), (false, "integers w".into()));
        assert_eq!(asked(&["D"]), (true, "decoder w".into()));
    }
}
