//! A whole pool on this machine: a NATS server, a coordinator and workers that come and go, and the texts that they give,
//! which have to be those of one machine.

mod chains;
mod churn;
mod client;
mod liar;
mod machines;
mod stranger;

use crate::{nats, programs, root};
use anyhow::{Context, Result, bail};
use clap::Args;
use machines::{Pool, memory};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, UNIX_EPOCH};

/// Where `cargo xtask models` puts it.
const SMOLLM2: &str = "models/cache/SmolLM2-135M-Instruct.Q4_1.gguf";
/// Tokens that are told before a worker is lost.
const BEFORE: usize = 20;
/// Time until all workers have something to do.
const READY: Duration = Duration::from_secs(60);
/// Prompts, with their temperatures.
const TEXTS: [(&str, f64); 2] = [("Once upon a time", 0.0), ("The dog and the cat", 0.8)];

/// How it is tried.
#[derive(Args)]
pub struct Options {
    /// Instead of one loss after the other: 10 workers, of which the model needs so many, fail ever more often
    #[arg(long, value_name = "NEEDED", value_parser = clap::value_parser!(u32).range(1..=5))]
    churn: Option<u32>,
    /// Instead: what chains of several lengths cost beside one worker, in time and bytes
    #[arg(long, conflicts_with = "churn")]
    chains: bool,
    /// Seconds over which failures grow, to one in 10 s for each worker
    #[arg(long, default_value_t = 60.0, requires = "churn")]
    seconds: f64,
    /// Share of the failures in which a worker stands still, with its connection there
    #[arg(long, default_value_t = 0.2, requires = "churn")]
    frozen: f64,
    /// Seed of the losses and their moments [default: a new one each time, which is printed]
    #[arg(long)]
    seed: Option<u64>,
    /// Only cases whose title has this in it
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["churn", "chains"])]
    only: Option<String>,
    /// Only cases whose title is another one; may be given several times
    #[arg(long, value_name = "TITLE", conflicts_with_all = ["churn", "chains"])]
    skip: Vec<String>,
    /// Write what was seen to a file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Trouble that a pool gets while it answers.
#[derive(Clone, Copy)]
enum Trouble {
    None,
    /// A worker's process ends.
    Killed,
    /// A worker's process stands still, as hidden pages do.
    Frozen,
    /// The NATS server is started again.
    Server,
    /// The coordinator is started again.
    Coordinator,
    /// The first worker lies, and all texts are checked.
    Lied,
    /// Somebody else speaks for workers, and listens to them.
    Stranger,
    /// None but a server that is too old to tell workers apart.
    Old,
}

/// Model of a pool.
struct Model {
    /// Its file; gab, which is built in, has none.
    file: Option<&'static str>,
    /// Stages that its blocks are for: each worker has room for one of them.
    stages: u32,
    /// Tokens of an answer.
    tokens: usize,
}

impl Model {
    fn path(&self) -> Option<PathBuf> {
        self.file.map(|file| root().join(file))
    }
}

const GAB: Model = Model { file: None, stages: 2, tokens: 120 };
const SMALL: Model = Model { file: Some(SMOLLM2), stages: 3, tokens: 32 };

/// A pool, and what happens to it.
struct Case {
    title: &'static str,
    model: &'static Model,
    /// The backends of its workers.
    workers: &'static [&'static str],
    seam: &'static str,
    trouble: Trouble,
}

const CASES: &[Case] = &[
    Case { title: "two on the CPU, f32", model: &GAB, workers: &["cpu", "cpu"], seam: "f32", trouble: Trouble::None },
    Case { title: "two on the CPU, f16", model: &GAB, workers: &["cpu", "cpu"], seam: "f16", trouble: Trouble::None },
    Case { title: "CPU and WebGL, f32", model: &GAB, workers: &["cpu", "webgl"], seam: "f32", trouble: Trouble::None },
    Case {
        title: "WebGPU and CPU, f16",
        model: &GAB,
        workers: &["webgpu", "cpu"],
        seam: "f16",
        trouble: Trouble::None,
    },
    Case {
        title: "WebGL and WebGPU, f16",
        model: &GAB,
        workers: &["webgl", "webgpu"],
        seam: "f16",
        trouble: Trouble::None,
    },
    Case {
        title: "SmolLM2: CPU, WebGL, WebGPU, f32",
        model: &SMALL,
        workers: &["cpu", "webgl", "webgpu"],
        seam: "f32",
        trouble: Trouble::None,
    },
    Case {
        title: "SmolLM2: WebGPU, CPU, WebGL, f16",
        model: &SMALL,
        workers: &["webgpu", "cpu", "webgl"],
        seam: "f16",
        trouble: Trouble::None,
    },
    Case { title: "a worker is killed", model: &GAB, workers: &["cpu"; 4], seam: "f32", trouble: Trouble::Killed },
    Case { title: "a worker stands still", model: &GAB, workers: &["cpu"; 4], seam: "f32", trouble: Trouble::Frozen },
    Case {
        title: "the server is started again",
        model: &GAB,
        workers: &["cpu"; 3],
        seam: "f32",
        trouble: Trouble::Server,
    },
    Case {
        title: "the coordinator is started again",
        model: &GAB,
        workers: &["cpu"; 3],
        seam: "f32",
        trouble: Trouble::Coordinator,
    },
    Case { title: "workers that are one user", model: &GAB, workers: &["cpu"; 2], seam: "f32", trouble: Trouble::Old },
    Case { title: "a stranger interferes", model: &GAB, workers: &["cpu"; 2], seam: "f32", trouble: Trouble::Stranger },
    // Two of a stage check and settle, whoever is banned.
    Case { title: "a worker lies", model: &GAB, workers: &["cpu"; 7], seam: "f32", trouble: Trouble::Lied },
];

/// Texts until a worker that lies has been checked with near certainty: each has one of two stages checked.
const CHECKED: usize = 30;

/// Runs all cases. Whether all texts were those of one machine.
pub fn run(options: &Options) -> Result<bool> {
    let anygpu = programs::built("anygpu")?;
    let server = nats::server().with_context(|| nats::lacks().unwrap_or_default())?;
    let seed = options.seed.unwrap_or_else(|| UNIX_EPOCH.elapsed().map_or(0, |now| now.subsec_nanos().into()));
    if options.chains {
        return chains::run(&anygpu, &server, options.json.as_deref());
    }
    println!("seed {seed}");
    if let Some(needed) = options.churn {
        let protocol = churn::Protocol { needed, seconds: options.seconds, frozen: options.frozen, seed };
        return churn::run(&protocol, &anygpu, &server, options.json.as_deref());
    }
    let mut chance = StdRng::seed_from_u64(seed);
    let mut right: BTreeMap<Option<&str>, Vec<String>> = BTreeMap::new();
    let skipped = std::env::var("ANYGPU_SKIP").unwrap_or_default();
    let (mut results, mut passed, mut failed, mut skips) = (Vec::new(), 0, 0, 0);
    if let Some(unknown) = options.skip.iter().find(|title| CASES.iter().all(|case| case.title != **title)) {
        bail!("no case has the title {unknown}");
    }
    let is_wanted = |case: &&Case| {
        options.only.as_ref().is_none_or(|only| case.title.contains(only))
            && options.skip.iter().all(|title| case.title != title)
    };
    for case in CASES.iter().filter(is_wanted) {
        if matches!(case.trouble, Trouble::Stranger) && !machines::asks(&server)? {
            println!("{:34} skipped: nats-server before 2.10 gives all workers the same rights", case.title);
            skips += 1;
            continue;
        }
        let older = machines::older();
        let server = match (case.trouble, &older) {
            (Trouble::Old, None) => {
                println!("{:34} skipped: the path has no nats-server before 2.10", case.title);
                skips += 1;
                continue;
            }
            (Trouble::Old, Some(older)) => older,
            _ => &server,
        };
        if let Some(missing) = case.workers.iter().find(|backend| skipped.split(',').any(|skip| skip == **backend)) {
            println!("{:34} skipped: there is no driver of {missing}", case.title);
            skips += 1;
            continue;
        }
        let file = case.model.path();
        if let Some(file) = file.as_deref().filter(|file| !file.is_file()) {
            println!("{:34} skipped: there is no {}: cargo xtask models", case.title, file.display());
            skips += 1;
            continue;
        }
        let right = match right.entry(case.model.file) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let texts = TEXTS.iter().map(|text| alone(&anygpu, file.as_deref(), *text, case.model.tokens));
                new.insert(texts.collect::<Result<_>>()?)
            }
        };
        let begun = Instant::now();
        let outcome = try_case(case, &anygpu, server, right, &mut chance);
        let seconds = begun.elapsed().as_secs_f64();
        match &outcome {
            Ok(seen) => println!("{:34} {} ({seconds:.1} s)", case.title, shown(seen)),
            Err(error) => println!("{:34} FAILED: {error:#}", case.title),
        }
        if outcome.is_ok() {
            passed += 1;
        } else {
            failed += 1;
        }
        let error = outcome.as_ref().err().map(|error| format!("{error:#}"));
        results.push(json!({ "case": case.title, "ok": outcome.is_ok(), "error": error, "seen": outcome.ok(), "seconds": seconds }));
    }
    if let Some(file) = &options.json {
        let report = json!({ "seed": seed, "passed": passed, "failed": failed, "skipped": skips, "cases": results });
        std::fs::write(file, format!("{report:#}\n")).with_context(|| format!("cannot write {}", file.display()))?;
    }
    println!("{passed} passed, {failed} failed, {skips} skipped");
    Ok(failed == 0)
}

/// Returns the facts that are worth a line.
fn shown(seen: &Value) -> String {
    let number = |name: &str| seen["state"][name].as_u64().unwrap_or(0);
    format!(
        "{:.1} ms a token; {} lost, {} promoted, {} prepared anew, {} rows computed again",
        seen["token_ms"].as_f64().unwrap_or(0.0),
        number("lost"),
        number("promoted"),
        number("recruited"),
        number("replayed")
    )
}

/// The text that one machine gives.
fn alone(anygpu: &Path, model: Option<&Path>, (prompt, temperature): (&str, f64), tokens: usize) -> Result<String> {
    let mut command = Command::new(anygpu);
    command.arg("generate").args(model.into_iter().flat_map(|file| [Path::new("--model"), file]));
    command.args(["--backend", "cpu", "--ignore-eos", "--json", "--prompt", prompt]);
    command.args(["--max-tokens", &tokens.to_string()]);
    if temperature > 0.0 {
        command.args(["--temperature", &temperature.to_string(), "--top-k", "40", "--top-p", "0.95", "--seed", "7"]);
    }
    let output = command.output().context("cannot start anygpu")?;
    let report: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("anygpu generate: {}", String::from_utf8_lossy(&output.stderr)))?;
    report["text"].as_str().map(Into::into).context("anygpu generate gives no text")
}

/// Makes the request for a pool.
fn request((prompt, temperature): (&str, f64), tokens: usize) -> Value {
    json!({
        "prompt": prompt, "max_tokens": tokens, "ignore_eos": true, "stream": true,
        "temperature": temperature, "top_k": 40, "top_p": 0.95, "seed": 7,
    })
}

fn try_case(case: &Case, anygpu: &Path, server: &Path, right: &[String], chance: &mut StdRng) -> Result<Value> {
    let lied = matches!(case.trouble, Trouble::Lied);
    // A text that is checked takes the place of one that is asked.
    let checked = if lied { ["--check", "1", "--sessions", "7"] } else { ["--check", "0", "--sessions", "8"] };
    let file = case.model.path().map(|file| file.display().to_string());
    let model: Vec<&str> = file.iter().flat_map(|file| ["--model", file]).collect();
    let options = ["--seam", case.seam, "--snapshot", "32", "--n-ctx", "256"];
    let mut pool = Pool::start(anygpu, server, &[&options[..], &checked, &model].concat())?;
    let memory = memory(&pool.client.get("/pool.json")?["model"], case.model.stages)?.to_string();
    let liar = if lied { Some(pool.join_liar(case.workers[0], &memory)?) } else { None };
    for backend in &case.workers[usize::from(lied)..] {
        pool.join(backend, &memory)?;
    }
    let everybody = case.workers.len();
    pool.until(READY, "its workers do not become ready", |state| {
        let stages = state["chains"][0]["stages"].as_array().map_or(0, Vec::len);
        let spares = state["spares"].as_array().map_or(0, Vec::len);
        state["chains"][0]["up"] == true && stages + spares == everybody && stages >= case.model.stages as usize
    })?;
    if let Some(liar) = &liar {
        find(&pool, liar).with_context(|| format!("the coordinator says: {}", pool.said()))?;
    }
    answers(case, &mut pool, &memory, right, chance).with_context(|| format!("the coordinator says: {}", pool.said()))
}

/// Asks for texts until the worker that lies is banned. What it had part in is not what anybody relies on.
fn find(pool: &Pool, liar: &str) -> Result<()> {
    for text in 0..CHECKED {
        let request = request(TEXTS[text % TEXTS.len()], GAB.tokens);
        // A text that ends as untrusted is what is to be.
        let _ = pool.client.ask(&request, &format!("checked {text}"))?.read(usize::MAX);
        // A dispute is settled though the text is over.
        pool.until(READY, "a dispute is not settled", |state| state["disputed"] == state["banned"])?;
        if pool.client.state()?["banned"] != 0 {
            break;
        }
    }
    let state = pool.client.state()?;
    if state["banned"] != 1 || state.to_string().contains(liar) {
        bail!("{liar} lied, and alone was to be banned: {state}");
    }
    Ok(())
}

/// Asks for all texts, and makes trouble in the middle of each.
fn answers(case: &Case, pool: &mut Pool, memory: &str, right: &[String], chance: &mut StdRng) -> Result<Value> {
    let mut told = Vec::new();
    let begun = Instant::now();
    for ((prompt, temperature), expected) in TEXTS.iter().zip(right) {
        let request = request((prompt, *temperature), case.model.tokens);
        let mut answer = pool.client.ask(&request, prompt)?;
        let some = answer.read(BEFORE)?;
        trouble(case.trouble, pool, memory, chance)?;
        let text = match case.trouble {
            // Who asks again with the same key gets the rest of the same answer.
            Trouble::Coordinator => pool.client.ask(&request, prompt)?.read(usize::MAX)?,
            _ => some + &answer.read(usize::MAX)?,
        };
        if text != *expected {
            bail!("{prompt:?} goes on as {text:?}, and alone as {expected:?}");
        }
        told.push(text);
    }
    let token_ms = begun.elapsed().as_secs_f64() * 1e3 / (TEXTS.len() * case.model.tokens) as f64;
    let state = pool.settled()?;
    if matches!(case.trouble, Trouble::None | Trouble::Old) {
        are_traced(pool, case.workers.len(), state["again"] != 0)?;
    }
    let lost = state["lost"].as_u64().unwrap_or(0);
    if matches!(case.trouble, Trouble::Killed | Trouble::Frozen) && lost < TEXTS.len() as u64 {
        bail!("a worker was to be lost in each of {} texts, and {lost} were", TEXTS.len());
    }
    Ok(json!({ "token_ms": token_ms, "state": state, "texts": told }))
}

/// Each of the last tokens can be followed through all stages. On a busy machine steps are sent again, and seen twice.
fn are_traced(pool: &Pool, stages: usize, again: bool) -> Result<()> {
    let traces = pool.client.get("/traces.json")?;
    let events = traces["traceEvents"].as_array().context("there are no traces")?;
    let mut tokens: BTreeMap<(Option<u64>, Option<u64>), usize> = BTreeMap::new();
    for event in events {
        let at = (event["pid"].as_u64(), event["args"]["position"].as_u64());
        match (event["name"] == "token", event["tid"] == 0) {
            (true, _) => drop(tokens.entry(at).or_default()),
            (_, false) => tokens.get_mut(&at).map_or((), |seen| *seen += 1),
            _ => {}
        }
    }
    match tokens.iter().find(|(_, seen)| **seen < stages || (**seen > stages && !again)) {
        None if !tokens.is_empty() => Ok(()),
        None => bail!("no token is traced"),
        Some((at, seen)) => bail!("of the token at {at:?} {seen} stages are traced, where there are {stages}"),
    }
}

fn trouble(trouble: Trouble, pool: &mut Pool, memory: &str, chance: &mut StdRng) -> Result<()> {
    match trouble {
        Trouble::None | Trouble::Lied | Trouble::Old => Ok(()),
        Trouble::Stranger => stranger::tries(&pool.client.get("/pool.json")?, &pool.client.state()?),
        Trouble::Killed | Trouble::Frozen => {
            let state = pool.client.state()?;
            let stages = state["chains"][0]["stages"].as_array().map_or(&[][..], Vec::as_slice);
            let stage = chance.random_range(0..stages.len().max(1));
            let worker =
                stages.get(stage).and_then(|stage| stage["worker"].as_str()).context("no stage has a worker")?;
            match trouble {
                Trouble::Killed => pool.kill(worker)?,
                _ => pool.freeze(worker)?,
            }
            // For the next text there is to be a spare again.
            pool.join("cpu", memory)
        }
        Trouble::Server => pool.restart_server(),
        Trouble::Coordinator => pool.restart_coordinator(),
    }
}
