//! Rules of language and layout that a machine can hold: word limits, plain sentences, links, figures, doc comments.

use crate::documented::{below, documents};
use crate::root;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

/// Most words of a document.
const MOST_WORDS: &[(&str, usize)] = &[("README.md", 900), ("ARCHITECTURE.md", 2500)];
/// Most entries of the glossary in ARCHITECTURE.md.
const MOST_ENTRIES: usize = 20;
/// Documents of which only links are checked: tasks write them, and the package's is published by itself.
const LINKS_ONLY: &[&str] =
    &["docs/conformance.md", "docs/browsers.md", "docs/performance/software.md", "js/README.md"];
/// Documents that may have figures of speed, each of which `docs/performance/software.md` has from a result of a run.
const MEASURED: &str = "docs/performance.md";
/// Units of speed. Without a result in the repository no document has figures of them.
const SPEEDS: &[&str] = &["tok/s", "tokens a second", "tokens/s", "GB/s", "GFLOP/s", "TFLOP/s"];
/// Beginnings of sentences that take a second reading.
const SENTENCES: &[&str] = &["Of ", "Who ", "Whoever "];
/// Comparisons, before which "no" is plain.
const COMPARED: &[&str] =
    &["longer", "more", "less", "larger", "smaller", "faster", "slower", "better", "worse", "further"];
/// Folders whose files are generated or written by others.
const FOREIGN: &[&str] = &["/dist/", "/dist.partial/", "/vendor/", "/wasm/", "/wasm.partial/"];
/// Beginnings of doc comments that are not complete by themselves.
const COMMENTS: &[&str] = &["What ", "The same", "Likewise", "As above", "Who ", "One that "];

/// A sentence or line that breaks a rule.
type Fault = String;

/// Paragraphs, list items and cells of tables, each on one line, without code.
fn prose(text: &str) -> Vec<String> {
    let (mut found, mut fenced) = (vec![String::new()], false);
    for line in text.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
        }
        let words = line.trim();
        let is_code = fenced || line.starts_with("    ") || words.starts_with("```");
        if is_code || words.is_empty() {
            found.push(String::new());
        } else if words.starts_with('|') {
            found.extend(words.split('|').map(|cell| cell.trim().to_owned()));
            found.push(String::new());
        } else {
            let item = words.trim_start_matches(|c: char| c.is_ascii_digit() || "-*#>. ".contains(c));
            if item.len() < words.len() && !words.starts_with("**") {
                found.push(String::new());
            }
            let last = found.last_mut().expect("there is always one");
            if !last.is_empty() {
                last.push(' ');
            }
            last.push_str(item);
        }
    }
    found.into_iter().filter(|text| !text.is_empty()).map(|text| without_code(&text)).collect()
}

/// A paragraph with each span of code replaced by one word.
fn without_code(text: &str) -> String {
    text.split('`').enumerate().map(|(at, part)| if at % 2 == 0 { part } else { "code" }).collect()
}

/// Sentences that begin or continue in a way that takes a second reading.
fn sentences(text: &str) -> Vec<Fault> {
    let mut found = Vec::new();
    for paragraph in prose(text) {
        for sentence in paragraph.split_inclusive(['.', '!', '?']) {
            let sentence = sentence.trim_start_matches(|c: char| c.is_whitespace() || "*_(\"".contains(c));
            if SENTENCES.iter().any(|begin| sentence.starts_with(begin)) || lacks_an_article(sentence) {
                found.push(sentence.to_owned());
            }
        }
    }
    found
}

/// Whether it says "is no X" or "has none of" where "is not a X" and "does not have" are plain.
fn lacks_an_article(sentence: &str) -> bool {
    let words: Vec<&str> = sentence.split_whitespace().collect();
    let is = |at: usize, one: &[&str]| words.get(at).is_some_and(|word| one.contains(&word.trim_end_matches(',')));
    let no = |at: usize| {
        let there = at > 0 && words[at - 1].eq_ignore_ascii_case("there");
        is(at, &["is", "are"]) && is(at + 1, &["no"]) && !there && !is(at + 2, COMPARED)
    };
    let none = |at: usize| is(at, &["has", "have"]) && is(at + 1, &["none"]) && is(at + 2, &["of"]);
    (0..words.len()).any(|at| no(at) || none(at))
}

/// Relative links of a document that lead nowhere. `folder` is where it lies.
fn links(text: &str, folder: &Path) -> Vec<Fault> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    let leads = |target: &&str| {
        let (path, _) = target.split_once('#').unwrap_or((target, ""));
        path.is_empty() || path.contains("://") || path.starts_with("mailto:") || folder.join(path).exists()
    };
    targets.filter(|target| !leads(target)).map(str::to_owned).collect()
}

/// Figures of speed: a number before its unit.
fn speeds(text: &str) -> Vec<Fault> {
    let mut found = Vec::new();
    for unit in SPEEDS {
        for (at, _) in text.match_indices(unit) {
            let before: Vec<&str> = text[..at].split_whitespace().rev().take(1).collect();
            if before.first().is_some_and(|word| word.starts_with(|c: char| c.is_ascii_digit())) {
                found.push(format!("{} {unit}", before[0]));
            }
        }
    }
    found
}

/// Numbers with a fraction in the tables of a page that the tables of another do not have.
fn unknown_figures(page: &str, tables: &str) -> Vec<Fault> {
    let cells = page.lines().filter(|line| line.starts_with('|')).flat_map(|line| line.split('|')).map(str::trim);
    let is_figure = |cell: &&str| cell.contains('.') && cell.parse::<f64>().is_ok();
    let words: Vec<&str> = tables.split(|c: char| c.is_whitespace() || "|(),/".contains(c)).collect();
    cells.filter(is_figure).filter(|cell| !words.contains(cell)).map(str::to_owned).collect()
}

/// First lines of doc comments that are not complete by themselves.
fn comments(source: &str) -> Vec<Fault> {
    let mut found = Vec::new();
    let mut is_first = true;
    for line in source.lines().map(str::trim) {
        let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).map(str::trim_start);
        if let Some(words) = comment.filter(|_| is_first)
            && COMMENTS.iter().any(|begin| words.starts_with(begin))
        {
            found.push(line.to_owned());
        }
        is_first = comment.is_none();
    }
    found
}

/// First lines of the doc comments of a script that are not complete by themselves, without the marks of a comment.
fn script_comments(source: &str) -> Vec<Fault> {
    let mut found = Vec::new();
    let mut lines = source.lines().map(str::trim);
    while let Some(line) = lines.next() {
        let Some(begin) = line.strip_prefix("/**") else { continue };
        // A comment of several lines begins on the line below its mark.
        let first = if begin.is_empty() { lines.next().unwrap_or("").trim_start_matches('*') } else { begin };
        let words = first.trim_start();
        if COMMENTS.iter().any(|begin| words.starts_with(begin)) {
            found.push(words.to_owned());
        }
    }
    found
}

/// Whether a line begins with a day, such as `*2026-11-22.*`.
fn is_date(line: &str) -> bool {
    let shape = "*0000-00-00.*";
    let digits = |(found, wanted): (char, char)| if wanted == '0' { found.is_ascii_digit() } else { found == wanted };
    line.len() >= shape.len() && line.chars().zip(shape.chars()).all(digits)
}

#[test]
fn documents_are_as_short_as_they_may_be() {
    for (name, most) in MOST_WORDS {
        let count = fs::read_to_string(root().join(name)).unwrap().split_whitespace().count();
        assert!(count <= *most, "{name} has {count} words, at most {most} are allowed; move details to docs/");
    }
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let glossary = text.split_once("## Glossary").expect("a glossary").1;
    let entries = glossary.lines().filter(|line| line.starts_with("| ")).count().saturating_sub(1);
    assert!(
        (1..=MOST_ENTRIES).contains(&entries),
        "the glossary has {entries} entries, at most {MOST_ENTRIES} are allowed"
    );
}

#[test]
fn documents_are_plain_and_their_links_lead_somewhere() {
    let documents = documents();
    assert!(documents.len() > 20, "only {} were found", documents.len());
    let tables = fs::read_to_string(root().join("docs/performance/software.md")).unwrap();
    for path in documents {
        let (text, folder) = (fs::read_to_string(&path).unwrap(), path.parent().unwrap());
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        assert_eq!(links(&text, folder), Vec::<Fault>::new(), "{name}: links that lead nowhere");
        if LINKS_ONLY.contains(&name.as_str()) {
            continue;
        }
        assert_eq!(sentences(&text), Vec::<Fault>::new(), "{name}: sentences to write plainly");
        if name == MEASURED {
            assert_eq!(unknown_figures(&text, &tables), Vec::<Fault>::new(), "{name}: figures that no run has");
        } else {
            assert_eq!(speeds(&text), Vec::<Fault>::new(), "{name}: figures without a result in docs/performance");
        }
    }
}

#[test]
fn decisions_are_dated_and_listed() {
    let folder = root().join("docs/decisions");
    let list = fs::read_to_string(folder.join("README.md")).unwrap();
    for path in below(&folder).iter().filter(|path| !path.ends_with("README.md")) {
        let (name, text) = (path.file_name().unwrap().to_str().unwrap(), fs::read_to_string(path).unwrap());
        assert!(
            text.lines().nth(2).is_some_and(is_date),
            "{name}: the third line is not its date, such as *2026-11-22.*"
        );
        assert!(list.contains(&format!("]({name}) ")), "{name} is not in the list of docs/decisions/README.md");
    }
}

#[test]
fn doc_comments_are_complete_by_themselves() {
    let mut counts = [0; 2];
    for path in below(&root()) {
        let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
        let (is_rust, is_script) = (extension == "rs", ["js", "mjs", "ts"].contains(&extension));
        let name = path.to_string_lossy();
        if !(is_rust || is_script) || FOREIGN.iter().any(|folder| name.contains(folder)) {
            continue;
        }
        let source = fs::read_to_string(&path).unwrap();
        let faults = if is_rust { comments(&source) } else { script_comments(&source) };
        assert_eq!(faults, Vec::<Fault>::new(), "{}: begin with a verb or a noun", path.display());
        counts[usize::from(is_rust)] += 1;
    }
    assert!(counts.iter().all(|count| *count > 200), "only {counts:?} scripts and files of Rust were found");
}

#[test]
fn planted_faults_are_found() {
    let found = |text: &str| sentences(text).len();
    assert_eq!(found("A line.\nOf a pipe each line is\na turn.\n\n- Who asks waits.\n"), 2);
    assert_eq!(found("| a | *Whoever asks* waits |\n\n1. A phone is no server.\n"), 2);
    assert_eq!(found("It has none of these, and 8 MB are no more than that."), 1);
    assert_eq!(found("There is no server. It is no longer there. `Of x` is code.\n\n    Who cares\n"), 0);
    assert_eq!(found("```text\nOf course it is no prose\n```\n"), 0);

    let text = "[a](README.md) [b](https://example.org) [c](#d) [e](no/such.md) [f](README.md#x)";
    assert_eq!(links(text, &root()), ["no/such.md"]);

    assert_eq!(speeds("It makes 1,234 tok/s, or 3.5 GB/s; bench prints tokens a second."), ["1,234 tok/s", "3.5 GB/s"]);
    assert_eq!(unknown_figures("| a | 1.5 | 2.5 | 8 |\n9.5\n", "| x | 1.5 | 3.5 (2, 4) |"), ["2.5"]);

    assert!(is_date("*2026-11-22.* Takes in 0002.") && !is_date("*2026-11.*") && !is_date("**Context.** It is"));

    let source = "/// What it is.\n/// The same.\nfn a() {}\n\n//! One that is.\n/// Returns it.\n    /// Likewise.\n";
    assert_eq!(comments(source), ["/// What it is.", "//! One that is."]);
    assert_eq!(comments("    /// Likewise.\nlet x = 1; // What is not a doc comment\n"), ["/// Likewise."]);

    let script = "/** What it is. */\n/**\n * The same.\n */\n/** Whose it is. */\n// Likewise\n  /** Who asks.\n */\n";
    assert_eq!(script_comments(script), ["What it is. */", "The same.", "Who asks."]);
    let script = "/**\n * @type {A}\n */\nlet a; /* What */\n/** Returns it. */\n/**";
    assert_eq!(script_comments(script), Vec::<Fault>::new());
}
