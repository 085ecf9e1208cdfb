//! Imports between the modules of a crate, as their `use` lines and paths have them: rooms are in an order, and circles
//! within a room may only become smaller.

use crate::root;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Folders with a prefix of their modules' paths, and their rooms in the order in which they may import each other: each
/// one only those before it.
const ROOMS: &[(&str, &str, &[&str])] = &[
    ("model/src", "crate::", &["gguf", "text", "arch", "runtime"]),
    (
        "model/src/runtime",
        "crate::runtime::",
        &["sequence", "load", "scheduler", "session", "run", "batch", "embed", "stage"],
    ),
];
/// Folders with a prefix of their modules' paths, and how many of their modules import each other in circles. A module that
/// only tests use is not counted.
const CIRCLES: &[(&str, &str, usize)] = &[("model/src/runtime", "crate::runtime::", 0), ("engine/src", "crate::", 0)];

/// Code of a file without its tests, which may import anything.
fn code(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap();
    let end = text.find("#[cfg(test)]\nmod tests").or_else(|| text.find("#[cfg(all(test")).unwrap_or(text.len());
    let lines = text[..end].lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The code of each module directly in a folder, with all modules below it. Files of tests alone are left out.
fn modules(folder: &Path) -> BTreeMap<String, String> {
    fn add(path: &Path, to: &mut String) {
        if path.is_dir() {
            fs::read_dir(path).unwrap().for_each(|entry| add(&entry.unwrap().path(), to));
        } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("tests.rs") {
            to.push_str(&code(path));
        }
    }
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if !["lib", "mod", "main", "tests"].contains(&name.as_str()) {
            add(&path, found.entry(name).or_default());
        }
    }
    found
}

/// Modules that a text names after a prefix.
fn named<'a>(text: &'a str, prefix: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(prefix).skip(1).map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or(""))
}

/// Which modules each module imports.
fn imports(folder: &str, prefix: &str) -> BTreeMap<String, BTreeSet<String>> {
    let modules = modules(&root().join(folder));
    let of = |(name, text): (&String, &String)| {
        let all = named(text, prefix).filter(|other| other != name && modules.contains_key(*other));
        (name.clone(), all.map(str::to_owned).collect())
    };
    modules.iter().map(of).collect()
}

/// Modules that can be reached from themselves.
fn in_circles(imports: &BTreeMap<String, BTreeSet<String>>) -> Vec<&str> {
    let mut found = Vec::new();
    for name in imports.keys() {
        let (mut reached, mut next) = (BTreeSet::new(), vec![name]);
        while let Some(from) = next.pop() {
            next.extend(imports[from].iter().filter(|to| reached.insert(*to)));
        }
        if reached.contains(name) {
            found.push(name.as_str());
        }
    }
    found
}

#[test]
fn rooms_import_only_those_before_them() {
    for (folder, prefix, order) in ROOMS {
        let imports = imports(folder, prefix);
        for (at, room) in order.iter().enumerate() {
            let later: Vec<_> = order[at + 1..].iter().filter(|later| imports[*room].contains(**later)).collect();
            assert!(later.is_empty(), "{folder}/{room} imports {later:?}; move what it needs to an earlier room");
        }
    }
}

#[test]
fn circles_of_imports_only_become_smaller() {
    for (folder, prefix, most) in CIRCLES {
        let imports = imports(folder, prefix);
        let found = in_circles(&imports);
        assert_eq!(
            found.len(),
            *most,
            "{folder}: {found:?} import each other in circles; correct the number if it is smaller"
        );
    }
}

#[test]
fn a_circle_is_found_and_a_chain_is_none() {
    let of = |all: &[(&str, &[&str])]| -> BTreeMap<String, BTreeSet<String>> {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        all.iter().map(|(name, others)| ((*name).to_owned(), set(others))).collect()
    };
    assert!(in_circles(&of(&[("a", &["b"]), ("b", &["c"]), ("c", &[])])).is_empty());
    assert_eq!(in_circles(&of(&[("a", &["b"]), ("b", &["c"]), ("c", &["b"])])), ["b", "c"]);
    assert_eq!(named("use crate::one::Two; crate::three()", "crate::").collect::<Vec<_>>(), ["one", "three"]);
}
