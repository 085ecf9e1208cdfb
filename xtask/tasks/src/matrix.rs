//! The matrix of `docs`: what the conformance suite found in browsers and natively, by operator, weight format and codec.

mod picture;

use crate::root;
use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Deserialize;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use xtask::browsers::Kind;

/// A column: its title, where the suite runs, and the suite's name of the backend.
struct Column {
    title: &'static str,
    place: Place,
    backend: &'static str,
}

enum Place {
    Browser(Kind),
    Native,
}

const COLUMNS: &[Column] = &[
    Column { title: "Chromium WebGPU", place: Place::Browser(Kind::Chromium), backend: "webgpu" },
    Column { title: "Chromium WebGL2", place: Place::Browser(Kind::Chromium), backend: "webgl" },
    Column { title: "Firefox WebGL2", place: Place::Browser(Kind::Firefox), backend: "webgl" },
    Column { title: "Firefox WebGPU", place: Place::Browser(Kind::Firefox), backend: "webgpu" },
    Column { title: "WebKit WebGL2", place: Place::Browser(Kind::Webkit), backend: "webgl" },
    Column { title: "native Vulkan", place: Place::Native, backend: "webgpu" },
    Column { title: "native GLES", place: Place::Native, backend: "webgl" },
    Column { title: "GLES, r32f", place: Place::Native, backend: "webgl-r32f" },
    Column { title: "GLES, bits", place: Place::Native, backend: "webgl-bits" },
    Column { title: "CPU", place: Place::Native, backend: "cpu" },
];

/// Seconds that the suite may take in a browser. Software devices need a minute or two.
const TIMEOUT: &str = "3600";

/// Columns to run.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Take the results that a run before left in target/matrix, and run only what is not there
    #[arg(long)]
    reuse: bool,
    /// Run only the first of every so many cases of each operator in browsers
    #[arg(long, default_value_t = 1)]
    every: usize,
}

/// Results of the suite for a backend, from a browser or natively.
#[derive(Debug, Deserialize)]
struct Results {
    adapter: String,
    skipped: Option<serde_json::Value>,
    ops: Vec<OpResults>,
    parts: Vec<PartResults>,
    #[serde(default)]
    user_agent: String,
}

/// The cases that go through a weight format or codec in a certain way.
#[derive(Debug, Deserialize)]
struct PartResults {
    role: String,
    of: String,
    cases: usize,
    failed: usize,
    worst_nmse: f64,
}

#[derive(Debug, Deserialize)]
struct OpResults {
    op: String,
    cases: usize,
    worst_nmse: f64,
    failures: Vec<Failed>,
}

#[derive(Debug, Deserialize)]
struct Failed {
    expected: Option<String>,
}

/// Outcome of the cases of one operator in one column.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Cell {
    /// Not run.
    Absent,
    /// All passed, or failed as expected: how many, and the largest error.
    Passed { cases: usize, nmse: f64 },
    /// So many of so many failed.
    Failed { failed: usize, cases: usize },
}

/// The whole table.
struct Table {
    columns: Vec<(&'static Column, Results)>,
}

/// Runs the suite everywhere and writes the table and its picture. Whether all cases passed.
pub fn run(options: &Options) -> Result<bool> {
    let folder = root().join("target").join("matrix");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let mut columns = Vec::new();
    for column in COLUMNS {
        let file = folder.join(format!("{}.json", column.title.replace(' ', "-").to_lowercase()));
        if !(options.reuse && file.is_file()) {
            println!("== {}", column.title);
            column.run(&file, options.every)?;
        }
        columns.push((column, column.read(&file)?));
    }
    let table = Table { columns };
    let docs = root().join("docs");
    fs::create_dir_all(&docs)?;
    for (name, text) in [("conformance.md", table.markdown()), ("conformance.svg", picture::draw(&table))] {
        let path = docs.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        println!("wrote docs/{name}");
    }
    let failed = table.ops().iter().any(|op| table.row(op).iter().any(|cell| matches!(cell, Cell::Failed { .. })));
    Ok(!failed)
}

impl Column {
    /// Runs the suite. What fails in it is in the file, and no error here.
    fn run(&self, file: &Path, every: usize) -> Result<()> {
        if file.is_file() {
            fs::remove_file(file)?;
        }
        let mut command = match &self.place {
            Place::Browser(kind) => {
                let mut command = Command::new(std::env::current_exe()?);
                command.args(["browser", "--browser", kind.name(), "--run", "conformance", "--timeout", TIMEOUT]);
                command.args(["--every", &every.to_string()]);
                command
            }
            Place::Native => {
                let mut command = Command::new(crate::process::cargo());
                command.args(["run", "--quiet", "--release", "-p", "conformance", "--"]);
                command
            }
        };
        command.args(["--backend", self.backend, "--json"]).arg(file).current_dir(root()).stdin(Stdio::null());
        command.status().with_context(|| format!("cannot start the suite for {}", self.title))?;
        if !file.is_file() {
            bail!("{} gave no results (the reason is above)", self.title);
        }
        Ok(())
    }

    fn read(&self, file: &PathBuf) -> Result<Results> {
        #[derive(Deserialize)]
        struct Native {
            backends: Vec<Results>,
        }
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let wrong = || format!("{} holds no results; remove it and run again", file.display());
        let results = match self.place {
            Place::Browser(_) => serde_json::from_str::<Results>(&text).with_context(wrong)?,
            Place::Native => {
                serde_json::from_str::<Native>(&text).with_context(wrong)?.backends.pop().with_context(wrong)?
            }
        };
        if results.ops.is_empty() {
            bail!("nothing was run for {}: {:?}", self.title, results.skipped);
        }
        Ok(results)
    }
}

impl Cell {
    fn new(cases: usize, failed: usize, nmse: f64) -> Cell {
        if failed == 0 { Cell::Passed { cases, nmse } } else { Cell::Failed { failed, cases } }
    }
}

impl Results {
    fn cell(&self, op: &str) -> Cell {
        let Some(found) = self.ops.iter().find(|found| found.op == op) else { return Cell::Absent };
        let failed = found.failures.iter().filter(|failure| failure.expected.is_none()).count();
        Cell::new(found.cases, failed, found.worst_nmse)
    }

    /// Returns the outcome of the cases that use a format or codec in this role.
    fn part(&self, role: &str, of: &str) -> Cell {
        let found = self.parts.iter().find(|found| found.role == role && found.of == of);
        found.map_or(Cell::Absent, |found| Cell::new(found.cases, found.failed, found.worst_nmse))
    }

    fn cases(&self) -> usize {
        self.ops.iter().map(|op| op.cases).sum()
    }
}

/// A table of formats or codecs: a title, the role, and what the first column holds.
const PARTS: &[(&str, &str, &str)] = &[
    ("Rows of a table, by weight format", "get_rows", "format"),
    ("Products of one row, by weight format", "matvec", "format"),
    ("Products of several rows, by weight format", "matmul", "format"),
    ("Writing into a state, by codec", "append", "codec"),
    ("Attention over keys or values, by codec", "attention", "codec"),
];

impl Table {
    /// The operators, in the suite's order.
    fn ops(&self) -> Vec<&str> {
        distinct(self.columns.iter().flat_map(|(_, results)| &results.ops).map(|found| found.op.as_str()))
    }

    /// The formats or codecs of a role.
    fn parts(&self, role: &str) -> Vec<&str> {
        let all = self.columns.iter().flat_map(|(_, results)| &results.parts);
        let mut parts = distinct(all.filter(|found| found.role == role).map(|found| found.of.as_str()));
        parts.sort_unstable();
        parts
    }

    fn row(&self, op: &str) -> Vec<Cell> {
        self.columns.iter().map(|(_, results)| results.cell(op)).collect()
    }

    /// One table: a row for each name.
    fn grid(&self, out: &mut String, first: &str, names: &[&str], cell: impl Fn(&Results, &str) -> Cell) {
        let titles = self.columns.iter().map(|(column, _)| column.title.to_owned());
        line(out, std::iter::once(first.to_owned()).chain(titles));
        line(out, (0..=self.columns.len()).map(|index| if index == 0 { "---".into() } else { "---:".into() }));
        for name in names {
            let cells = self.columns.iter().map(|(_, results)| cell(results, name).to_string());
            line(out, std::iter::once(format!("`{name}`")).chain(cells));
        }
    }

    fn markdown(&self) -> String {
        let mut out = String::from(
            "# Conformance\n\n\
             Every operator on every backend, in browsers and natively, against the reference in f64: the largest error of \
             its cases (NMSE, the sum of squared differences over the sum of squared reference values) and how many cases \
             there were. `exact` means that no bit differed. All devices here are software, as on a machine without a GPU; \
             on a real one, open the page's conformance tab.\n\n\
             Written by `cargo xtask matrix`; do not edit.\n\n\
             ![The same as a picture](conformance.svg)\n\n",
        );
        self.grid(&mut out, "operator", &self.ops(), Results::cell);
        let counts = self.columns.iter().map(|(_, results)| format!("{} cases", results.cases()));
        line(&mut out, std::iter::once("all".to_owned()).chain(counts));
        out.push_str(
            "\nThe tables below have a row for each weight format and codec. A case counts for all that it goes through, so \
             that its error may come from elsewhere: those near 1e-7 of a few formats are of cases that also write halves \
             into a cache, and those near 1e-9 of the CPU are of its products in integers.\n",
        );
        for (title, role, first) in PARTS {
            let _ = write!(out, "\n## {title}\n\n");
            self.grid(&mut out, first, &self.parts(role), |results, of| results.part(role, of));
        }
        out.push_str("\n## Devices\n\n| column | device | browser |\n|---|---|---|\n");
        for (column, results) in &self.columns {
            let browser = if results.user_agent.is_empty() { "none" } else { &results.user_agent };
            let _ = writeln!(out, "| {} | {} | {browser} |", column.title, results.adapter);
        }
        out
    }
}

/// Each of them once, in the order of their first place.
fn distinct<'a>(all: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found = Vec::new();
    for name in all {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

/// A line of a table.
fn line(out: &mut String, cells: impl Iterator<Item = String>) {
    for cell in cells {
        let _ = write!(out, "| {cell} ");
    }
    out.push_str("|\n");
}

impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Cell::Absent => write!(f, "not run"),
            Cell::Passed { cases, nmse: 0.0 } => write!(f, "exact ({cases})"),
            Cell::Passed { cases, nmse } => write!(f, "{nmse:.0e} ({cases})"),
            Cell::Failed { failed, cases } => write!(f, "**{failed} of {cases} FAIL**"),
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_table_in_docs_has_a_row_for_each_operator_and_form() {
        let table = std::fs::read_to_string(crate::root().join("docs/conformance.md")).unwrap();
        let absent = backend_api::cases::names().filter(|name| !table.contains(&format!("\n| `{name}` |")));
        assert_eq!(absent.collect::<Vec<_>>(), Vec::<&str>::new(), "run `cargo xtask matrix`");
    }
}
