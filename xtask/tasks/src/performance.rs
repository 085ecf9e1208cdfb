//! The tables of `docs/performance/software.md` and `gpu.md` and the picture of `docs/performance.md`, from the results that
//! `xtask bench` and `anygpu bench` left in `docs/performance` and `docs/performance/gpu`.

mod picture;
mod tables;

use crate::root;
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::fs;
use std::path::Path;

/// Lines between which the page is generated; everything else is written by hand.
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
    #[serde(default)]
    memory: Vec<Memory>,
    #[serde(default)]
    page: Vec<Page>,
    /// Whether pages were isolated from other origins.
    #[serde(default)]
    isolated: bool,
    /// The share of the processors that other programs used, for each start of the browser.
    #[serde(default)]
    other_load: Vec<f64>,
}

#[derive(Debug, Deserialize)]
struct Model {
    adapter: String,
    model: String,
    #[serde(default)]
    depth: usize,
    prefill_tokens: usize,
    decode_tokens: usize,
    #[serde(flatten)]
    phases: Option<Phases>,
    #[serde(default)]
    buffers: Vec<Buffers>,
    roles: Option<Roles>,
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

/// Phases of a decode step that runs alone.
#[derive(Debug, Deserialize)]
struct Phases {
    encode_ms: f64,
    queue_ms: f64,
    fetch_ms: f64,
    utilisation: f64,
}

#[derive(Debug, Deserialize)]
struct Buffers {
    class: String,
    count: usize,
    bytes: u64,
}

#[derive(Debug, Deserialize)]
struct Roles {
    prefill: Vec<Role>,
    decode: Vec<Role>,
}

#[derive(Debug, Deserialize)]
struct Role {
    role: String,
    percent: Option<f64>,
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
    engine: String,
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
    submits_per_token: Option<f64>,
    gpu_objects_per_token: Option<f64>,
}

/// Memory of a browser while a model was loaded and run once.
#[derive(Debug, Deserialize)]
struct Memory {
    engine: String,
    model: String,
    /// Source that the model was loaded from.
    source: String,
    /// Where the system shows it.
    peak: Option<Peak>,
}

#[derive(Debug, Deserialize)]
struct Peak {
    tree_bytes: u64,
    renderer_gpu_bytes: Option<u64>,
    renderer_bytes: Option<u64>,
    gpu_bytes: Option<u64>,
    #[serde(default)]
    phase: String,
    #[serde(default)]
    phases: Vec<Peak>,
}

/// The first token on the page, from navigation.
#[derive(Debug, Deserialize)]
struct Page {
    wanted: String,
    backend: String,
    cold: Visit,
    warm: Warm,
}

/// Milliseconds of its parts, in order.
#[derive(Debug, Deserialize)]
struct Visit<T = f64> {
    start_ms: f64,
    open_ms: f64,
    load_ms: f64,
    compile_ms: f64,
    prefill_ms: f64,
    total_ms: T,
}

type Warm = Visit<Spread>;

impl Run {
    /// Returns the result of another engine on the same model, which it ran without a text before.
    fn peer(&self, model: &Model) -> Option<&Peer> {
        self.peer_models.iter().find(|peer| peer.model == model.model).filter(|_| model.depth == 0)
    }
}

/// Writes the tables and the picture.
pub fn run() -> Result<()> {
    let docs = root().join("docs");
    let folder = docs.join("performance");
    let (software, gpu) = (read(&folder)?, read(&folder.join("gpu"))?);
    for (name, runs) in [("software.md", &software), ("gpu.md", &gpu)] {
        let page = folder.join(name);
        let old = fs::read_to_string(&page).with_context(|| format!("cannot read {}", page.display()))?;
        let new = spliced(&old, &tables::all(runs))
            .with_context(|| format!("{} lacks the two lines that mark the generated part", page.display()))?;
        fs::write(&page, new).with_context(|| format!("cannot write {}", page.display()))?;
        println!("wrote docs/performance/{name} from {} runs", runs.len());
    }
    let svg = docs.join("performance.svg");
    fs::write(&svg, picture::draw(&software)).with_context(|| format!("cannot write {}", svg.display()))?;
    println!("wrote docs/performance.svg");
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
            .with_context(|| format!("{} is not a result of `cargo xtask bench`", path.display()))?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use approx::abs_diff_eq;

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
        let all = [1234.5, 12.34, 1.234, 0.1234, 0.0].map(tables::number);
        assert_eq!(all, ["1234", "12.3", "1.23", "0.123", "0"]);
    }

    /// The results in the repository have the fields that the page's generator, and so everybody, expects of a run.
    #[test]
    fn the_results_of_the_repository_are_read_and_shown() {
        let folder = root().join("docs/performance");
        let gpu = read(&folder.join("gpu")).unwrap();
        let text = tables::all(&gpu);
        for run in &gpu {
            assert!(text.contains(&run.title) && !run.command.is_empty() && !run.machine.is_empty());
            assert!(run.models.iter().all(|model| model.phases.is_some() && model.roles.is_some()), "{}", run.title);
        }
        let runs = read(&folder).unwrap();
        let (text, svg) = (tables::all(&runs), picture::draw(&runs));
        for run in &runs {
            assert!(text.contains(&run.title) && !run.command.is_empty() && !run.machine.is_empty());
            for m in &run.models {
                let sum =
                    m.first_token.open_ms + m.first_token.load_ms + m.first_token.compile_ms + m.first_token.prefill_ms;
                assert!(abs_diff_eq!(sum, m.first_token.total_ms, epsilon = 1e-6), "{}", run.title);
                assert!(svg.contains(&format!("{}, {}", run.title, m.model)), "{}", run.title);
            }
        }
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
    }
}
