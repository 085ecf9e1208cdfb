//! The command lines that the documents name, for the tests of those who parse them.

use std::fmt;
use std::path::{Path, PathBuf};

/// The documents of the root, beside all of `docs/` and what stands beside the examples.
const DOCUMENTS: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "js/README.md",
    "models/README.md",
];

/// A command line of a document.
#[derive(Debug, Clone)]
pub struct Documented {
    /// The document.
    pub file: String,
    /// The arguments, without placeholders.
    pub args: Vec<String>,
    /// Whether some arguments may be left out: there is an ellipsis, or a sentence mentions the command.
    pub is_part: bool,
    /// Comment beside the command.
    pub about: String,
}

impl fmt::Display for Documented {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.is_part { "mentions" } else { "names" };
        write!(f, "{} {verb} {:?} ({})", self.file, self.args.join(" "), self.about)
    }
}

/// All that begin with one of these words, without them.
///
/// # Panics
/// If a document cannot be read.
pub fn commands(beginnings: &[&str]) -> Vec<Documented> {
    let mut found = Vec::new();
    for path in documents() {
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let file = path.strip_prefix(root()).unwrap_or(&path).display().to_string();
        for (line, is_mention) in lines(&text) {
            let Some(rest) = beginnings.iter().find_map(|b| line.strip_prefix(b)) else { continue };
            if rest.is_empty() || rest.starts_with(' ') {
                let (command, about) = rest.split_once("  ").unwrap_or((rest, ""));
                let is_part = is_mention || command.contains("...");
                found.push(Documented {
                    file: file.clone(),
                    args: words(command),
                    is_part,
                    about: about.trim().into(),
                });
            }
        }
    }
    found
}

fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().find(|folder| folder.join("Cargo.lock").is_file()).unwrap_or(here).into()
}

/// Paths of the documents: those of the root, all below `docs/`, and what stands beside the examples.
///
/// # Panics
/// If a folder cannot be read.
pub fn documents() -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = DOCUMENTS.iter().map(|name| root().join(name)).collect();
    all.extend(below(&root().join("docs")).into_iter().filter(|path| path.extension().is_some_and(|e| e == "md")));
    all.extend(below(&root().join("examples")).into_iter().filter(|path| path.ends_with("README.md")));
    all.push(root().join("web/README.md"));
    all
}

/// Files below a folder, in order, but for those that npm and cargo leave there.
///
/// # Panics
/// If the folder cannot be read.
pub fn below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut entries: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    entries.sort();
    entries.retain(|path| !path.ends_with("node_modules") && !path.ends_with("target"));
    entries.into_iter().flat_map(|path| if path.is_dir() { below(&path) } else { vec![path] }).collect()
}

/// Lines of code blocks, and code that sentences mention.
fn lines(text: &str) -> Vec<(String, bool)> {
    let (mut found, mut prose, mut fenced) = (Vec::new(), String::new(), false);
    for line in text.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
        } else if fenced || line.starts_with("    ") {
            found.push((line.trim().to_owned(), false));
        } else {
            prose.push_str(line.trim());
            prose.push(' ');
        }
    }
    found.extend(prose.split('`').skip(1).step_by(2).map(|code| (code.to_owned(), true)));
    found
}

/// The words of a command: `"..."` is one, and a placeholder is replaced by something that it may stand for.
fn words(command: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for (at, part) in command.split('"').enumerate() {
        if at % 2 == 1 {
            words.push(part.to_owned());
            continue;
        }
        for word in part.split_whitespace().filter(|word| *word != "...") {
            let word = match (words.last().map(String::as_str), word) {
                (Some("--browser"), "B") => "chromium",
                (Some("--backend"), "B" | "NAME") => "cpu",
                (_, word) => word.split('|').next().unwrap_or_default(),
            };
            words.push(word.to_owned());
        }
    }
    words
}
