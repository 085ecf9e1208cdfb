//! The tables and the picture of `docs/performance.md`, from the results that `xtask bench` left in `docs/performance`.

mod picture;

use crate::root;
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// What is between these lines of the page is written here; all else is written by hand.
const BEGIN: &str = "<!-- written by `cargo xtask performance` -->\n";
const END: &str = "<!-- end -->\n";

/// A run of `xtask bench`: the fields that the page shows.
#[derive(Debug, Deserialize)]
struct Run {
    /// The name of its file.
    #[serde(skip)]
    title: String,
    machine: String,
    command: String,
    user_agent: String,
    #[serde(default)]
    models: Vec<Model>,
    ops: Option<Ops>,
    peer_ops: Option<Ops>,
    #[serde(default)]
    peer_models: Vec<Peer>,
    #[serde(default)]
    ablations: Vec<Ablations>,
}

#[derive(Debug, Deserialize)]
struct Model {
    adapter: String,
    model: String,
    prefill_tokens: usize,
    decode_tokens: usize,
    first_token: FirstToken,
    prefill_ms: Spread,
    prefill_tokens_per_s: f64,
    decode_ms_per_token: Spread,
    decode_tokens_per_s: f64,
    stats: Stats,
    device_memory_bytes: u64,
    floors: Floors,
    decode_floor: DecodeFloor,
}

#[derive(Debug, Deserialize)]
struct FirstToken {
    open_ms: f64,
    load_ms: f64,
    compile_ms: f64,
    prefill_ms: f64,
    total_ms: f64,
}

#[derive(Debug, Deserialize)]
struct Stats {
    dispatches_per_token: Option<f64>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct Spread {
    median: f64,
    min: f64,
    max: f64,
    n: usize,
}

#[derive(Debug, Deserialize)]
struct Floors {
    read_gb_per_s: f64,
    dispatch_us: f64,
    step_us: f64,
    readback_ms: Spread,
}

#[derive(Debug, Deserialize)]
struct DecodeFloor {
    floor_ms: f64,
    fraction: f64,
}

/// Operators, of this engine or of another one.
#[derive(Debug, Deserialize)]
struct Ops {
    engine: Option<String>,
    #[serde(default)]
    adapter: String,
    ops: Vec<Op>,
}

#[derive(Debug, Deserialize)]
struct Op {
    op: String,
    ms: Spread,
}

#[derive(Debug, Deserialize)]
struct Peer {
    model: String,
    prefill_tokens_per_s: f64,
    decode_tokens_per_s: f64,
}

#[derive(Debug, Deserialize)]
struct Ablations {
    backend: String,
    model: String,
    ablate: Vec<Ablation>,
}

#[derive(Debug, Deserialize)]
struct Ablation {
    without: String,
    prefill_tokens_per_s: f64,
    decode_tokens_per_s: f64,
    prefill_ratio: f64,
    decode_ratio: f64,
    dispatches_per_token: Option<f64>,
}

/// Writes the tables and the picture.
pub fn run() -> Result<()> {
    let docs = root().join("docs");
    let runs = read(&docs.join("performance"))?;
    let page = docs.join("performance.md");
    let old = fs::read_to_string(&page).with_context(|| format!("cannot read {}", page.display()))?;
    let new = spliced(&old, &tables(&runs)).with_context(|| format!("{} lacks its two marks", page.display()))?;
    fs::write(&page, new).with_context(|| format!("cannot write {}", page.display()))?;
    let svg = docs.join("performance.svg");
    fs::write(&svg, picture::draw(&runs)).with_context(|| format!("cannot write {}", svg.display()))?;
    println!("wrote docs/performance.md and docs/performance.svg from {} runs", runs.len());
    Ok(())
}

/// The runs, by title.
fn read(folder: &Path) -> Result<Vec<Run>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read the folder {}", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    if paths.is_empty() {
        bail!("there are no results in {}; `cargo xtask bench --json` writes them", folder.display());
    }
    let parse = |path: &std::path::PathBuf| {
        let text = fs::read_to_string(path)?;
        let mut run: Run = serde_json::from_str(&text)
            .with_context(|| format!("{} is no result of `cargo xtask bench`", path.display()))?;
        run.title = path.file_stem().unwrap_or_default().to_string_lossy().replace('-', " ");
        Ok(run)
    };
    paths.iter().map(parse).collect()
}

/// The page with what is between the marks replaced.
fn spliced(page: &str, tables: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{tables}\n{END}{after}"))
}

/// A Markdown table; all columns but the first are numbers.
struct Table(String);

impl Table {
    fn new(columns: &[&str]) -> Table {
        let mut table = Table(String::new());
        table.row(columns.iter().map(|c| (*c).to_owned()));
        table.row((0..columns.len()).map(|i| if i == 0 { "---" } else { "---:" }.to_owned()));
        table
    }

    fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        for cell in cells {
            // Writing to a string cannot fail.
            let _ = write!(self.0, "| {cell} ");
        }
        self.0.push_str("|\n");
    }
}

/// Three significant digits.
fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 => format!("{value:.2}"),
        0.0 => "0".into(),
        _ => format!("{value:.3}"),
    }
}

impl Run {
    /// What another engine reaches on the same model.
    fn peer(&self, model: &str) -> Option<&Peer> {
        self.peer_models.iter().find(|peer| peer.model == model)
    }
}

fn tables(runs: &[Run]) -> String {
    let sections = [
        ("Prefill and decode", models(runs)),
        ("Time to the first token", first_token(runs)),
        ("Floors", floors(runs)),
        ("Single operators", ops(runs)),
        ("One decision switched off", ablations(runs)),
        ("Runs", list(runs)),
    ];
    let sections = sections.into_iter().filter(|(_, text)| !text.is_empty());
    sections.map(|(title, text)| format!("## {title}\n\n{text}")).collect::<Vec<_>>().join("\n")
}

fn models(runs: &[Run]) -> String {
    let mut table = Table::new(&[
        "run",
        "model",
        "prefill",
        "tok/s",
        "decode",
        "tok/s (min, max, n)",
        "dispatches",
        "MiB",
        "of the floor",
        "wllama, 1 thread",
    ]);
    for run in runs {
        for m in &run.models {
            let ms = m.decode_ms_per_token;
            // The longest time is the lowest rate.
            let (low, high) = (1000.0 / ms.max, 1000.0 / ms.min);
            let peer = run.peer(&m.model).map_or(String::new(), |peer| {
                format!("{} / {}", number(peer.prefill_tokens_per_s), number(peer.decode_tokens_per_s))
            });
            table.row([
                run.title.clone(),
                m.model.clone(),
                m.prefill_tokens.to_string(),
                number(m.prefill_tokens_per_s),
                m.decode_tokens.to_string(),
                format!("{} ({}, {}, {})", number(m.decode_tokens_per_s), number(low), number(high), ms.n),
                m.stats.dispatches_per_token.map_or(String::new(), |n| format!("{n:.0}")),
                number(m.device_memory_bytes as f64 / f64::from(1 << 20)),
                format!("{:.0} %", 100.0 * m.decode_floor.fraction),
                peer,
            ]);
        }
    }
    if runs.iter().all(|run| run.models.is_empty()) { String::new() } else { table.0 }
}

fn first_token(runs: &[Run]) -> String {
    let mut table = Table::new(&["run", "model", "ms", "open", "load", "compile", "prefill", "prefill, warm"]);
    for run in runs {
        for m in &run.models {
            let FirstToken { open_ms, load_ms, compile_ms, prefill_ms, total_ms } = m.first_token;
            let parts = [total_ms, open_ms, load_ms, compile_ms, prefill_ms, m.prefill_ms.median];
            table.row([run.title.clone(), m.model.clone()].into_iter().chain(parts.map(|ms| format!("{ms:.0}"))));
        }
    }
    if runs.iter().all(|run| run.models.is_empty()) { String::new() } else { table.0 }
}

fn floors(runs: &[Run]) -> String {
    let mut table = Table::new(&[
        "run",
        "model",
        "read GB/s",
        "dispatch us",
        "step us",
        "readback ms",
        "floor ms a token",
        "ms a token",
    ]);
    for run in runs {
        for m in &run.models {
            let f = &m.floors;
            let values = [
                f.read_gb_per_s,
                f.dispatch_us,
                f.step_us,
                f.readback_ms.median,
                m.decode_floor.floor_ms,
                m.decode_ms_per_token.median,
            ];
            table.row([run.title.clone(), m.model.clone()].into_iter().chain(values.map(number)));
        }
    }
    if runs.iter().all(|run| run.models.is_empty()) { String::new() } else { table.0 }
}

/// Milliseconds an operator; below, those of the other engine and the ratio.
fn ops(runs: &[Run]) -> String {
    let names = names(runs);
    let mut head = vec!["ms an operator"];
    head.extend(&names);
    let mut table = Table::new(&head);
    for run in runs {
        let Some(own) = &run.ops else { continue };
        let row = |values: &dyn Fn(&str) -> Option<f64>| -> Vec<String> {
            names.iter().map(|name| values(name).map_or(String::new(), number)).collect()
        };
        table.row(std::iter::once(run.title.clone()).chain(row(&|name| own.best(name))));
        if let Some(peer) = run.peer_ops.as_ref().filter(|peer| !peer.ops.is_empty()) {
            let engine = peer.engine.as_deref().unwrap_or("other engine").to_owned();
            table.row(std::iter::once(engine).chain(row(&|name| peer.best(name))));
            let ratio = |name: &str| Some(own.best(name)? / peer.best(name)?);
            table.row(std::iter::once("ratio".to_owned()).chain(row(&ratio)));
        }
    }
    if names.is_empty() { String::new() } else { table.0 }
}

/// The operators that were timed.
fn names(runs: &[Run]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for op in runs.iter().filter_map(|run| run.ops.as_ref()).flat_map(|ops| &ops.ops) {
        if !names.contains(&op.op.as_str()) {
            names.push(&op.op);
        }
    }
    names
}

impl Ops {
    /// The better form of an operator.
    fn best(&self, name: &str) -> Option<f64> {
        self.ops.iter().filter(|op| op.op == name).map(|op| op.ms.median).min_by(f64::total_cmp)
    }
}

fn ablations(runs: &[Run]) -> String {
    let mut out = String::new();
    for run in runs {
        for ablations in &run.ablations {
            let _ = writeln!(out, "{}, {} on {}:\n", run.title, ablations.model, ablations.backend);
            let mut table = Table::new(&["without", "prefill tok/s", "ratio", "decode tok/s", "ratio", "dispatches"]);
            for row in &ablations.ablate {
                table.row([
                    row.without.clone(),
                    number(row.prefill_tokens_per_s),
                    number(row.prefill_ratio),
                    number(row.decode_tokens_per_s),
                    number(row.decode_ratio),
                    row.dispatches_per_token.map_or(String::new(), |n| format!("{n:.0}")),
                ]);
            }
            out.push_str(&table.0);
            out.push('\n');
        }
    }
    out
}

fn list(runs: &[Run]) -> String {
    let mut table = String::from("| run | device | machine | browser | command |\n|---|---|---|---|---|\n");
    for run in runs {
        let adapter = run.models.first().map(|m| &m.adapter).or(run.ops.as_ref().map(|ops| &ops.adapter));
        let (title, machine, browser, command) = (&run.title, &run.machine, &run.user_agent, &run.command);
        let _ = writeln!(
            table,
            "| {title} | {} | {machine} | {browser} | `{command}` |",
            adapter.map_or("", String::as_str)
        );
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_by_hand_stays() {
        let page = format!("# Title\n{BEGIN}old\n{END}by hand\n");
        let new = spliced(&page, "new").unwrap();
        assert_eq!(new, format!("# Title\n{BEGIN}\nnew\n{END}by hand\n"));
        assert_eq!(spliced(&new, "new").unwrap(), new);
        assert!(spliced("no marks", "new").is_none());
    }

    #[test]
    fn numbers_have_three_digits() {
        let all = [1234.5, 12.34, 1.234, 0.1234, 0.0].map(number);
        assert_eq!(all, ["1234", "12.3", "1.23", "0.123", "0"]);
    }

    /// The results that are in the repository are what the page's generator, and so everybody, expects of a run.
    #[test]
    fn the_results_of_the_repository_are_read_and_shown() {
        let runs = read(&root().join("docs/performance")).unwrap();
        let (text, svg) = (tables(&runs), picture::draw(&runs));
        for run in &runs {
            assert!(text.contains(&run.title) && !run.command.is_empty() && !run.machine.is_empty());
            for m in &run.models {
                let sum =
                    m.first_token.open_ms + m.first_token.load_ms + m.first_token.compile_ms + m.first_token.prefill_ms;
                assert!((sum - m.first_token.total_ms).abs() < 1e-6, "{}", run.title);
                assert!(svg.contains(&format!("{}, {}", run.title, m.model)), "{}", run.title);
            }
        }
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
    }
}
