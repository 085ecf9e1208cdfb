//! Costs of a chain beside one worker: time between computations, and bytes that pass the broker.

use super::churn::{TEXTS, quantile, went};
use super::machines::{Pool, memory, signal};
use super::{SMOLLM2, alone, request};
use crate::process::{Group, machine};
use crate::{root, shape};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Tokens of an answer, as the thesis asked for.
const TOKENS: usize = 128;
/// Workers of the chains whose time is compared.
const LENGTHS: [u32; 3] = [1, 3, 5];
/// Answers of each chain, in turns: what else the machine does is the same for all.
const ROUNDS: usize = 8;
/// Answers by which bytes are counted.
const COUNTED: usize = 2;
/// Rows of a request of about 25 tokens and its answer: nothing is computed of the last one.
const ROWS: u64 = 25 + TOKENS as u64 - 1;
/// Largest ratio of the bytes at the broker to those of the activations alone: routes, messages of stages and
/// heartbeats of a busy machine come on top.
const MOST: f64 = 1.25;
/// Least ratio: prompts are a few tokens longer or shorter.
const LEAST: f64 = 0.95;
/// Time until a chain is up.
const READY: Duration = Duration::from_secs(120);

/// The thesis' models: the width of what is handed over, workers, and its megabytes a request (tables 6.5 to 6.7).
const THESIS: [(&str, u64, u32, f64); 6] = [
    ("0.6B", 1024, 3, 4.36),
    ("0.6B", 1024, 10, 19.52),
    ("1.7B", 2048, 3, 5.44),
    ("1.7B", 2048, 10, 35.25),
    ("4B", 2560, 3, 6.77),
    ("4B", 2560, 10, 47.88),
];

/// A pool whose workers are all stages of one chain.
struct Chain {
    pool: Pool,
    workers: Vec<Group>,
    /// Seconds of a token after the first, for each answer.
    tokens: Vec<f64>,
    before: Value,
}

impl Chain {
    /// `memories` gives that of each worker, by what the coordinator says of the model.
    fn start(
        anygpu: &Path,
        server: &Path,
        (model, seam): (Option<&Path>, &str),
        memories: impl Fn(&Value) -> Result<Vec<u64>>,
    ) -> Result<Chain> {
        let model = model.map(|file| file.display().to_string());
        let options = ["--seam", seam, "--n-ctx", "256", "--sessions", "2", "--snapshot", "0"];
        let model = model.iter().flat_map(|file| ["--model", file]);
        let pool = Pool::start(anygpu, server, &options.into_iter().chain(model).collect::<Vec<_>>())?;
        let memories = memories(&pool.client.get("/pool.json")?["model"])?;
        let workers = memories.iter().map(|memory| pool.worker("cpu", &memory.to_string(), |_| ()));
        let workers = workers.collect::<Result<Vec<_>>>()?;
        let chain = Chain { pool, workers, tokens: Vec::new(), before: Value::Null };
        chain.pool.until(READY, "its workers make no chain", |state| {
            state["serves"] == true && state["chains"][0]["stages"].as_array().map_or(0, Vec::len) == memories.len()
        })?;
        Ok(chain)
    }

    /// Asks for a text. The first answers compile what is not yet.
    fn answer(&mut self, number: usize) -> Result<String> {
        let request = request(TEXTS[number % TEXTS.len()], TOKENS);
        let mut answer = self.pool.client.ask(&request, &format!("text {number}"))?;
        let mut text = answer.read(1)?;
        let begun = Instant::now();
        text.push_str(&answer.read(usize::MAX)?);
        self.tokens.push(begun.elapsed().as_secs_f64() / (TOKENS - 1) as f64);
        Ok(text)
    }

    /// Bytes that the broker took and gave.
    fn carried(&self) -> Result<f64> {
        let said = self.pool.broker.get("/varz")?;
        let number = |name: &str| said[name].as_f64().with_context(|| format!("the server does not say {name}"));
        Ok(number("in_bytes")? + number("out_bytes")?)
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        for worker in &self.workers {
            // Nobody waits for farewells.
            let _ = signal("-KILL", worker);
        }
    }
}

/// Measures both. Chains have to give the texts of one machine, and bytes to be about those of activations; times are told.
pub fn run(anygpu: &Path, server: &Path, file: Option<&Path>) -> Result<bool> {
    println!("{}", machine());
    let smollm2 = root().join(SMOLLM2);
    let mut times = vec![compare(anygpu, server, "gab", None)?];
    let mut bytes = Vec::new();
    if smollm2.is_file() {
        times.push(compare(anygpu, server, "SmolLM2-135M", Some(&smollm2))?);
        for (name, width, stages, theirs) in THESIS {
            bytes.push(count(anygpu, server, (name, width, stages, theirs))?);
        }
    } else {
        println!("without {SMOLLM2} there is nothing more to measure: cargo xtask models");
    }
    if let Some(file) = file {
        let report = json!({ "machine": machine(), "times": times, "bytes": bytes });
        std::fs::write(file, format!("{report:#}\n")).with_context(|| format!("cannot write {}", file.display()))?;
    }
    println!(
        "{} passed, 0 failed, {} skipped",
        times.len() + bytes.len(),
        2 + THESIS.len() - times.len() - bytes.len()
    );
    Ok(true)
}

/// Chains of several lengths with the same model, in turns.
fn compare(anygpu: &Path, server: &Path, name: &str, model: Option<&Path>) -> Result<Value> {
    let right: Vec<String> = TEXTS.iter().map(|text| alone(anygpu, model, *text, TOKENS)).collect::<Result<_>>()?;
    let mut chains = Vec::new();
    for length in LENGTHS {
        let same = |model: &Value| Ok(vec![memory(model, length)?; length as usize]);
        chains.push(Chain::start(anygpu, server, (model, "f32"), same)?);
    }
    for round in 0..TEXTS.len() + ROUNDS {
        for (chain, length) in chains.iter_mut().zip(LENGTHS) {
            let (text, right) = (chain.answer(round)?, &right[round % TEXTS.len()]);
            if text != *right {
                bail!("{length} workers say {text:?}, and one machine {right:?}");
            }
            if round + 1 == TEXTS.len() {
                chain.tokens.clear();
                chain.before = chain.pool.settled()?;
            }
        }
    }
    let mut rows = Vec::new();
    for (chain, length) in chains.iter().zip(LENGTHS) {
        let after = chain.pool.settled()?;
        let laps = went(&chain.before, &after, "/times/lap_count").max(1.0);
        let each = |path: &str| went(&chain.before, &after, path) * 1e-3 / laps;
        let (lap, steps) = (each("/times/laps"), each("/times/steps"));
        let token = 1e3 * quantile(&chain.tokens, 0.5);
        println!(
            "{name}: {length} workers, {token:.2} ms a token; a lap {lap:.2} ms, of which {steps:.2} ms of steps, {:.3} ms for each hop",
            (lap - steps) / f64::from(length)
        );
        rows.push(json!({ "workers": length, "token_ms": token, "lap_ms": lap, "steps_ms": steps }));
    }
    let token = |at: usize| quantile(&chains[at].tokens, 0.5);
    let loss = 1.0 - token(0) / token(LENGTHS.len() - 1);
    println!("{name}: {} workers lose {:.1} % against one", LENGTHS[LENGTHS.len() - 1], 100.0 * loss);
    Ok(json!({ "model": name, "chains": rows, "loss": loss }))
}

/// Bytes of an answer with a model as wide as the thesis': what else it is made of makes no difference to them.
fn count(anygpu: &Path, server: &Path, (name, width, stages, theirs): (&str, u64, u32, f64)) -> Result<Value> {
    let model = wide(width)?;
    let memories = |model: &Value| {
        let bytes = |name: &str| model[name].as_u64().with_context(|| format!("the coordinator does not say {name}"));
        let (block, blocks) = (bytes("block_bytes")?, bytes("blocks")?);
        let ends = bytes("embedding_bytes")?.max(bytes("head_bytes")?);
        // Two have room for an end; all have room for a part of the blocks.
        let part = blocks.div_ceil(stages.into()) * block;
        Ok((0..stages).map(|worker| if worker < 2 { ends + part } else { part }).collect())
    };
    let mut chain = Chain::start(anygpu, server, (Some(&model), "f16"), memories)?;
    chain.answer(0)?;
    let (before, state) = (chain.carried()?, chain.pool.client.state()?);
    for number in 1..=COUNTED {
        chain.answer(number)?;
    }
    let megabytes = (chain.carried()? - before) / COUNTED as f64 / 1e6;
    let again = went(&state, &chain.pool.settled()?, "/again");
    let part = megabytes / theirs;
    let floor = floor(width, stages);
    // A step that was sent again is another of those that the request has.
    let most = floor * (MOST + again / TOKENS as f64);
    if !(LEAST * floor..=most).contains(&megabytes) {
        bail!("{name}, {width} wide, {stages} workers: {megabytes:.2} MB a request, where activations take {floor:.2}");
    }
    println!(
        "{name}, {width} wide, {stages} workers: {megabytes:.2} MB a request, {theirs} in the thesis: {:.0} % of that; {again} steps sent again",
        100.0 * part
    );
    Ok(
        json!({ "model": name, "width": width, "workers": stages, "megabytes": megabytes, "thesis": theirs, "part": part }),
    )
}

/// Megabytes that a request's activations take alone: rows of halves, at each seam once to the server and once from it.
fn floor(width: u64, stages: u32) -> f64 {
    (2 * ROWS * 2 * width * u64::from(stages - 1)) as f64 / 1e6
}

/// A model of ten blocks that is so wide.
fn wide(width: u64) -> Result<PathBuf> {
    let file = root().join("target").join("pool").join(format!("wide-{width}.gguf"));
    if !file.is_file() {
        let sizes = shape::Sizes { blocks: 10, width, heads: width / 64, key_heads: 1, hidden: 256 };
        shape::make(&sizes, &root().join(SMOLLM2), &file)?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activations_take_what_the_documentation_says() {
        let two = [1024, 2048, 2560].map(|width| format!("{:.2}", floor(width, 3)));
        assert_eq!(two, ["1.25", "2.49", "3.11"]);
    }
}
