//! The licences of everything in a release that others made, each text once.

use super::crates::{Crate, Shipped};
use crate::root;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// How files with licences begin, in capitals.
const NAMES: &[&str] = &["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];

/// How deep in a crate they may lie: tables of others have theirs beside them.
const DEPTH: usize = 3;

/// Crates whose packages lack the text, and where it is the same: in another crate of the same project, or, of
/// Apache-2.0, which names no holder, in this repository.
const LACKING: &[(&str, Lacking)] = &[("profiling", Lacking::Apache), ("pulp-wasm-simd-flag", Lacking::AsOf("pulp"))];

enum Lacking {
    Apache,
    AsOf(&'static str),
}

/// Contents of the modules that are not crates: name, licence, and its text.
pub const OTHERS: &[(&str, &str, &str)] = &[
    (
        "Rust's standard library",
        "(MIT OR Apache-2.0) AND Zlib AND Unicode-3.0 AND Apache-2.0 WITH LLVM-exception",
        include_str!("texts/rust-std.txt"),
    ),
    ("ggml: codebooks of the formats IQ1 to IQ3", "MIT", include_str!("texts/ggml.txt")),
];

/// Contents of the JavaScript of page and package that others wrote: name, licence, and its text.
pub const OF_SCRIPTS: &[(&str, &str, &str)] = &[
    ("marked", "MIT AND BSD-3-Clause", include_str!("texts/marked.txt")),
    ("@nats-io/nats-core, @nats-io/nkeys, @nats-io/nuid", "Apache-2.0", include_str!("../../../../LICENSE-APACHE")),
    ("tweetnacl", "Unlicense", include_str!("texts/tweetnacl.txt")),
];

/// The text of all notices.
///
/// *Errors*: a crate has no text of its licence, neither in its package nor in the list above.
pub fn text(shipped: &Shipped) -> Result<String> {
    let mut all = String::from(
        "anygpu is licensed under MIT or Apache-2.0. Its WebAssembly modules, its package and its page contain the\n\
         following works of others, whose licences are below. Of its package's JavaScript these are what wasm-bindgen\n\
         writes, and the client of NATS in vendor/.\n\n",
    );
    let others = || OTHERS.iter().chain(OF_SCRIPTS);
    for (name, license, _) in others() {
        writeln!(all, "{name}  ({license})")?;
    }
    for Crate { name, version, license, .. } in &shipped.crates {
        writeln!(all, "{}  ({license})", title(name, version))?;
    }
    // By text, in the order of their first users.
    let mut texts: Vec<(String, Vec<String>)> = Vec::new();
    let mut add = |user: String, text: String| match texts.iter_mut().find(|(known, _)| same(known, &text)) {
        Some((_, users)) => users.push(user),
        None => texts.push((text, vec![user])),
    };
    for (name, _, text) in others() {
        add((*name).to_owned(), (*text).to_owned());
    }
    for one in &shipped.crates {
        for text in texts_of(one, shipped)? {
            add(title(&one.name, &one.version), text);
        }
    }
    for (text, mut users) in texts {
        users.dedup();
        write!(all, "\n{}\n{}\n{}\n\n{}\n", "=".repeat(80), users.join(", "), "-".repeat(80), text.trim_end())?;
    }
    Ok(all)
}

/// A crate as the notices name it.
pub fn title(name: &str, version: &str) -> String {
    format!("{name} {version}")
}

/// The texts that a crate comes with, or those that stand for them.
fn texts_of(one: &Crate, shipped: &Shipped) -> Result<Vec<String>> {
    let mut files = BTreeMap::new();
    collect(&one.folder, DEPTH, &mut files)?;
    if !files.is_empty() {
        return Ok(files.into_values().collect());
    }
    let lacking = LACKING.iter().find(|(lacking, _)| *lacking == one.name);
    match lacking.map(|(_, lacking)| lacking) {
        Some(Lacking::Apache) => Ok(vec![fs::read_to_string(root().join("LICENSE-APACHE"))?]),
        Some(Lacking::AsOf(other)) => {
            let other = shipped.crates.iter().find(|one| one.name == *other);
            texts_of(other.with_context(|| format!("what {} shares a licence with does not ship", one.name))?, shipped)
        }
        None => bail!(
            "{} is in the wasm modules, and its package has no text of its licence ({}); say in \
             xtask/tasks/src/release/notices.rs where it is",
            title(&one.name, &one.version),
            one.license
        ),
    }
}

/// Collects the files of a folder that are licences, by their paths.
fn collect(folder: &Path, depth: usize, files: &mut BTreeMap<PathBuf, String>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().to_uppercase());
        if path.is_dir() {
            if depth > 1 {
                collect(&path, depth - 1, files)?;
            }
        } else if NAMES.iter().any(|begin| name.starts_with(begin)) && !name.ends_with(".RS") {
            let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            files.insert(path, String::from_utf8_lossy(&bytes).replace('\r', ""));
        }
    }
    Ok(())
}

/// Whether two texts differ in nothing but blanks and ends of lines.
fn same(a: &str, b: &str) -> bool {
    a.split_whitespace().eq(b.split_whitespace())
}

#[cfg(test)]
mod tests {
    use super::super::crates;
    use super::*;

    fn lone(name: &str, folder: &Path) -> Shipped {
        let crates = vec![Crate {
            name: name.to_owned(),
            version: "1.2.3".to_owned(),
            license: "MIT".to_owned(),
            folder: folder.to_owned(),
            sha256: String::new(),
            uses: Vec::new(),
        }];
        Shipped { crates, direct: Vec::new() }
    }

    #[test]
    fn every_crate_of_the_modules_has_a_notice() {
        let shipped = crates::shipped().unwrap();
        let text = text(&shipped).unwrap();
        let (list, texts) = text.split_once(&"=".repeat(80)).unwrap();
        let users: Vec<&str> =
            texts.split(&"=".repeat(80)).filter_map(|part| part.trim_start().lines().next()).collect();
        for Crate { name, version, license, .. } in &shipped.crates {
            let title = title(name, version);
            assert!(list.lines().any(|line| line == format!("{title}  ({license})")), "{title} is not listed");
            assert!(users.iter().any(|line| line.split(", ").any(|user| user == title)), "{title} has no text");
        }
    }

    #[test]
    fn a_crate_without_a_text_is_refused_and_named() {
        let folder = tempfile::tempdir().unwrap();
        let refused = text(&lone("nameless", folder.path())).unwrap_err().to_string();
        assert!(refused.contains("nameless 1.2.3") && refused.len() < 300, "{refused}");
        fs::create_dir_all(folder.path().join("src/tables")).unwrap();
        fs::write(folder.path().join("src/tables/licence.txt"), "Do as\r\nyou like").unwrap();
        let found = text(&lone("nameless", folder.path())).unwrap();
        assert!(found.contains("nameless 1.2.3\n") && found.contains("Do as\nyou like"));
    }
}
