//! `docs/features.md` claims nothing of anygpu for which it does not name a test, and the tests that it and
//! `docs/reliability.md` name exist.

use crate::root;
use std::collections::BTreeMap;
use std::fs;

/// Names of what `cargo xtask test` runs are strings, unlike those of other tests in Rust.
const RUNS: &str = "xtask/src/runs.rs";

/// The notes of a document, by their labels.
fn notes(document: &str) -> BTreeMap<&str, &str> {
    document.lines().filter_map(|line| line.strip_prefix("[^")?.split_once("]: ")).collect()
}

/// The tests that a text names: a file and a name each.
fn named(text: &str) -> Vec<(&str, &str)> {
    text.split('`').skip(1).step_by(2).filter_map(|code| code.split_once("::")).collect()
}

/// Whether a file has a test, a check or a stage of that name.
fn has(file: &str, source: &str, name: &str) -> bool {
    let quoted = source.contains(&format!("\"{name}\""));
    if file == RUNS {
        return quoted;
    }
    if file.ends_with(".rs") {
        let lines: Vec<&str> = source.lines().map(str::trim).collect();
        let begins = format!("fn {name}(");
        return lines.iter().enumerate().any(|(at, line)| {
            let mut attributes = lines[..at].iter().rev().take_while(|line| line.starts_with("#["));
            line.starts_with(&begins) && attributes.any(|attribute| *attribute == "#[test]")
        });
    }
    // A title may begin with what differs from one test to the next, and a stage is a function.
    let ends = source.contains(&format!("}}: {name}`"));
    let stages = [("async function", "("), ("function", "("), ("const", " =")]
        .map(|(kind, end)| format!("export {kind} {name}{end}"));
    quoted || ends || source.lines().any(|line| stages.iter().any(|stage| line.starts_with(stage)))
}

/// The path of a file that a document may name in short: a unit test or a check of the package.
fn path(file: &str) -> String {
    match file.split_once('/') {
        None => format!("js/test/unit/{file}"),
        Some(("checks", name)) => format!("js/test/browser/checks/{name}"),
        Some(_) => file.to_owned(),
    }
}

/// Fails if a document names a test that does not exist.
fn exist(document: &str) {
    for (file, name) in named(document) {
        let source = fs::read_to_string(root().join(path(file))).unwrap_or_else(|e| panic!("{file}: {e}"));
        assert!(has(file, &source, name), "{file} has no test {name:?}");
    }
}

#[test]
fn every_feature_names_tests_that_exist() {
    let document = fs::read_to_string(root().join("docs/features.md")).unwrap();
    let notes = notes(&document);
    let mut rows = 0;
    for row in document.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| |")) {
        let label = row.split_once("[^").and_then(|(_, rest)| rest.split_once(']')).map(|(label, _)| label);
        let note = label.and_then(|label| notes.get(label)).unwrap_or_else(|| panic!("a row without a note: {row}"));
        assert!(!named(note).is_empty(), "a row without a test: {row}");
        rows += 1;
    }
    assert!(rows > 40, "only {rows} rows were found");
    exist(&document);
}

#[test]
fn every_fault_names_tests_that_exist() {
    let document = fs::read_to_string(root().join("docs/reliability.md")).unwrap();
    assert!(named(&document).len() > 60, "only {} were found", named(&document).len());
    exist(&document);
}

#[test]
fn what_is_no_test_is_no_evidence() {
    let rust = "#[test]\n#[ignore]\nfn a() {}\n\nfn b() {}\n// \"c d\"\n";
    assert!(has("x.rs", rust, "a"));
    assert!(!has("x.rs", rust, "b") && !has("x.rs", rust, "c d") && !has("x.rs", rust, "e"));
    let script = "test(\"a b\", () => {});\ntest(`${kind}: c`, () => {});\nexport const d = 1;\nconst e = 2;\n";
    assert!(["a b", "c", "d"].iter().all(|name| has("x.js", script, name)));
    assert!(!has("x.js", script, "a") && !has("x.js", script, "e"));
    assert!(has(RUNS, "title: \"f g\",", "f g") && !has(RUNS, "title: \"f g\",", "f"));
}
