//! Workers that fail ever more often, as a thesis measured the availability of its pool, and what the simulator makes of
//! the same failures.

use super::client::Client;
use super::machines::{Pool, memory, signal};
use super::{alone, request};
use crate::process::{Group, machine};
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Workers of the protocol.
const WORKERS: u64 = 10;
/// Tokens of an answer, as the thesis asked for.
const TOKENS: usize = 128;
/// Requests of which the median is what one takes.
const REQUESTS: usize = 20;
/// Tokens that the context holds: room for a prompt and an answer.
const CONTEXT: usize = 256;
/// Texts that a worker holds states for.
const SESSIONS: &str = "2";
/// Time until the chain is up.
const READY: Duration = Duration::from_secs(60);
/// Time between a token and the next in which tokens flow.
const STALL: f64 = 0.25;
/// Prompts, one after the other, with their temperatures.
pub const TEXTS: [(&str, f64); 4] = [
    ("Once upon a time there was a little girl who lived in a house by the sea with her mother and a small dog", 0.0),
    ("The dog and the cat were friends. One day they went to the park to play with a big red ball, and then", 0.8),
    ("Tom found an old box under a tree. He wanted to know what was inside, so he asked his father to help him", 0.0),
    ("It was a cold day and the snow was deep. Lily put on her coat and her hat and ran out to make a snowman", 0.8),
];

/// Protocol of a run. *Units*: seconds.
pub struct Protocol {
    /// Workers that the model needs.
    pub needed: u32,
    /// Time over which failures grow.
    pub seconds: f64,
    /// Share of them in which a worker stands still.
    pub frozen: f64,
    /// Seed of the failures and their moments.
    pub seed: u64,
}

/// A failure, as `anygpu pool sim` says it.
#[derive(Deserialize)]
struct Loss {
    at: f64,
    worker: usize,
    away: f64,
    frozen: bool,
}

impl Protocol {
    /// Returns the simulator's result for this protocol.
    fn simulated(&self, anygpu: &Path, machines: Option<&Path>) -> Result<Value> {
        let mut command = Command::new(anygpu);
        command.args(["pool", "sim", "--json", "--churn", &self.needed.to_string(), "--seed", &self.seed.to_string()]);
        command.args(["--seconds", &self.seconds.to_string(), "--frozen", &self.frozen.to_string()]);
        command.args(machines.into_iter().flat_map(|file| [Path::new("--machines"), file]));
        let output = command.output().context("cannot start anygpu")?;
        serde_json::from_slice(&output.stdout)
            .with_context(|| format!("anygpu pool sim: {}", String::from_utf8_lossy(&output.stderr)))
    }
}

/// Availability that is the least that a run may have, with so many of 10 workers needed. Of runs on this machine under
/// others' load most had far more; what depends on the machine alone is left room for.
fn floor(needed: u32) -> f64 {
    match needed {
        1 => 0.85,
        2 | 3 => 0.75,
        _ => 0.5,
    }
}

/// Runs it. Whether all texts were right and the pool was there as long as it is to be.
pub fn run(protocol: &Protocol, anygpu: &Path, server: &Path, file: Option<&Path>) -> Result<bool> {
    let losses = protocol.simulated(anygpu, None)?["losses"].take();
    let losses: Vec<Loss> = serde_json::from_value(losses).context("anygpu pool sim says no losses")?;
    let expected: Vec<String> = TEXTS.iter().map(|text| alone(anygpu, None, *text, TOKENS)).collect::<Result<_>>()?;
    let context = CONTEXT.to_string();
    // As it is now: a build may replace it meanwhile.
    let folder = tempfile::tempdir().context("there is no place for a program")?;
    let kept = folder.path().join("anygpu");
    std::fs::copy(anygpu, &kept).with_context(|| format!("cannot copy {}", anygpu.display()))?;
    let anygpu = &*kept;
    let pool = Pool::start(anygpu, server, &["--seam", "f32", "--n-ctx", &context, "--sessions", SESSIONS])?;
    let model = pool.client.get("/pool.json")?["model"].take();
    let memory = memory(&model, protocol.needed)?;
    let mut machines = Machines { pool: &pool, memory: memory.to_string(), starts: Arc::default(), at: Vec::new() };
    for _ in 0..WORKERS {
        let process = machines.start()?;
        machines.at.push(Some(process));
    }
    pool.until(READY, "its workers do not become ready", |state| {
        let spares = state["spares"].as_array().map_or(0, Vec::len) as u64;
        state["serves"] == true && spares + u64::from(protocol.needed) >= WORKERS.min(u64::from(protocol.needed) * 5)
    })?;
    machines.starts.lock().unwrap_or_else(PoisonError::into_inner).clear();
    let ask = asking(pool.client)?;
    let (before, load) = (pool.client.state()?, load());
    let over = Arc::new(OnceLock::new());
    let asker = {
        let (client, over) = (pool.client, Arc::clone(&over));
        thread::spawn(move || asked(client, &expected, &over))
    };
    let failed = fail(&mut machines, &losses, protocol.seconds, Instant::now());
    over.get_or_init(Instant::now);
    let after = pool.client.state()?;
    let starts = machines.starts.lock().unwrap_or_else(PoisonError::into_inner).clone();
    drop(machines);
    // With it ends the answer that is under way.
    drop(pool);
    let heard = asker.join().unwrap_or_else(|_| bail!("who asks has panicked"));
    let heard = failed.and(heard)?;
    let real = heard.report(&before, &after, &losses);
    let measured = measured(&model, memory, (&before, &after), &starts, ask)?;
    let path = crate::root().join("target").join("pool").join(format!("machines-{}.json", protocol.needed));
    std::fs::write(&path, measured.to_string()).with_context(|| format!("cannot write {}", path.display()))?;
    let simulated = simulated(&protocol.simulated(anygpu, Some(&path))?["report"], protocol.seconds);
    println!("{} of {WORKERS} workers needed, {:.0} s, {} failures", protocol.needed, protocol.seconds, losses.len());
    println!("{}; load {load} before, {} after", machine(), self::load());
    for (name, title) in ROWS {
        let shown = |report: &Value| report[name].as_f64().map_or_else(|| "-".to_owned(), |it| format!("{it:.1}"));
        println!("{title:44} {:>9} measured {:>9} simulated", shown(&real), shown(&simulated));
    }
    println!("{measured}");
    if let Some(file) = file {
        let report = json!({
            "needed": protocol.needed, "seconds": protocol.seconds, "seed": protocol.seed, "frozen": protocol.frozen,
            "machine": machine(), "load": load, "measured": real, "machines": measured, "simulated": simulated,
        });
        std::fs::write(file, format!("{report:#}\n")).with_context(|| format!("cannot write {}", file.display()))?;
    }
    judged(protocol, &losses, &heard, &real)
}

/// Rows of the report of a run.
const ROWS: [(&str, &str); 14] = [
    ("availability", "available, as the coordinator sees it, %"),
    ("flows", "tokens flow, as who asks sees it, %"),
    ("answers", "answers"),
    ("token_ms", "a token, ms, p50 of answers"),
    ("first_ms", "the first token, ms, p50"),
    ("stalls", "waits of more than 250 ms"),
    ("stall_ms", "such a wait, ms, p50"),
    ("stall_p90_ms", "p90"),
    ("lost", "workers lost, as the coordinator sees it"),
    ("promoted", "stages taken over by a spare"),
    ("recruited", "stages that somebody was prepared for"),
    ("given_up", "chains given up"),
    ("replayed", "rows computed again"),
    ("again", "steps sent again"),
];

/// Whether it is as it is to be.
fn judged(protocol: &Protocol, losses: &[Loss], heard: &Heard, real: &Value) -> Result<bool> {
    for wrong in &heard.wrong {
        println!("{wrong}");
    }
    let lost = real["lost"].as_f64().unwrap_or(0.0);
    let killed = losses.iter().filter(|loss| !loss.frozen).count() as f64;
    if lost < killed / 2.0 {
        bail!("{killed} workers were killed, and the coordinator lost {lost}");
    }
    let availability = real["availability"].as_f64().unwrap_or(0.0) / 100.0;
    let floor = floor(protocol.needed);
    if availability < floor {
        println!("available for {:.1} % of the time, where {:.0} % are the least", 100.0 * availability, 100.0 * floor);
    }
    let right = heard.texts - heard.wrong.len();
    let failed = heard.wrong.len() + usize::from(availability < floor || right == 0);
    println!("{right} passed, {failed} failed, 0 skipped");
    Ok(failed == 0)
}

/// The workers' processes.
struct Machines<'a> {
    pool: &'a Pool,
    memory: String,
    /// Time of each start until its hello was answered.
    starts: Arc<Mutex<Vec<f64>>>,
    at: Vec<Option<Group>>,
}

impl Machines<'_> {
    fn start(&self) -> Result<Group> {
        let (begun, starts) = (Instant::now(), Arc::clone(&self.starts));
        self.pool.worker("cpu", &self.memory, move |line: &str| {
            if line.contains("; Ctrl-C leaves") {
                starts.lock().unwrap_or_else(PoisonError::into_inner).push(begun.elapsed().as_secs_f64());
            }
        })
    }
}

impl Drop for Machines<'_> {
    fn drop(&mut self) {
        for process in self.at.iter().flatten() {
            // What stands still takes no other signal; and nobody waits for farewells.
            let _ = signal("-KILL", process);
        }
    }
}

/// Has workers fail and come back.
fn fail(machines: &mut Machines, losses: &[Loss], seconds: f64, begun: Instant) -> Result<()> {
    // Who comes back when.
    let mut back: Vec<(f64, usize)> = Vec::new();
    let mut losses = losses.iter().peekable();
    loop {
        let now = begun.elapsed().as_secs_f64();
        if now >= seconds {
            return Ok(());
        }
        while let Some(at) = back.iter().position(|(at, _)| *at <= now) {
            let (_, worker) = back.swap_remove(at);
            match &machines.at[worker] {
                Some(process) => signal("-CONT", process)?,
                None => machines.at[worker] = Some(machines.start()?),
            }
        }
        while let Some(loss) = losses.next_if(|loss| loss.at <= now) {
            if let Some(process) = &machines.at[loss.worker] {
                if loss.frozen {
                    signal("-STOP", process)?;
                } else {
                    signal("-KILL", process)?;
                    machines.at[loss.worker] = None;
                }
                back.push((now + loss.away, loss.worker));
            }
        }
        let next = back.iter().map(|(at, _)| *at).chain(losses.peek().map(|loss| loss.at)).fold(seconds, f64::min);
        thread::sleep(Duration::from_secs_f64((next - begun.elapsed().as_secs_f64()).clamp(0.001, 1.0)));
    }
}

/// Observations of the client. *Units*: seconds.
#[derive(Default)]
struct Heard {
    texts: usize,
    /// Texts that differ from those of one machine.
    wrong: Vec<String>,
    /// For each answer: the time until its first token, and that of a token after it.
    firsts: Vec<f64>,
    tokens: Vec<f64>,
    /// Waits that were too long.
    stalls: Vec<f64>,
    passed: f64,
}

/// Asks for one text after the other until all is over. The last one is given up.
fn asked(client: Client, expected: &[String], over: &OnceLock<Instant>) -> Result<Heard> {
    let (mut heard, begun) = (Heard::default(), Instant::now());
    for (number, (text, right)) in TEXTS.iter().zip(expected).cycle().enumerate() {
        let mut answer = client.ask(&request(*text, TOKENS), &format!("text {number}"))?;
        let (asked, mut last) = (Instant::now(), Instant::now());
        let (mut told, mut count, mut first) = (String::new(), 0, 0.0);
        loop {
            let token = answer.token();
            let now = over.get().copied().unwrap_or_else(Instant::now);
            let waited = now.saturating_duration_since(last).as_secs_f64();
            last = now;
            if waited > STALL {
                heard.stalls.push(waited);
            }
            if over.get().is_some() {
                heard.passed = (now - begun).as_secs_f64();
                return Ok(heard);
            }
            let Some(token) = token.with_context(|| format!("text {number}, after {told:?}"))? else { break };
            told.push_str(&token);
            count += 1;
            if count == 1 {
                first = asked.elapsed().as_secs_f64();
            }
        }
        heard.texts += 1;
        heard.firsts.push(first);
        heard.tokens.push((asked.elapsed().as_secs_f64() - first) / f64::from((count - 1).max(1)));
        if told != *right {
            heard.wrong.push(format!("text {number} is {told:?}, and alone {right:?}"));
        }
    }
    bail!("there is nothing to ask for")
}

/// The value that a part of all is below.
pub fn quantile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get((sorted.len() as f64 * part) as usize).copied().unwrap_or(0.0)
}

/// How far a number of a pool's state went.
pub fn went(before: &Value, after: &Value, path: &str) -> f64 {
    let number = |state: &Value| state.pointer(path).and_then(Value::as_f64).unwrap_or(0.0);
    number(after) - number(before)
}

impl Heard {
    fn report(&self, before: &Value, after: &Value, losses: &[Loss]) -> Value {
        let went = |path| went(before, after, path);
        let stalled: f64 = self.stalls.iter().sum();
        json!({
            "availability": 100.0 * went("/times/served") / went("/times/passed"),
            "flows": 100.0 * (1.0 - stalled / self.passed),
            "failures": losses.len(),
            "frozen": losses.iter().filter(|loss| loss.frozen).count(),
            "answers": self.texts,
            "wrong": self.wrong.len(),
            "token_ms": 1e3 * quantile(&self.tokens, 0.5),
            "first_ms": 1e3 * quantile(&self.firsts, 0.5),
            "stalls": self.stalls.len(),
            "stall_ms": 1e3 * quantile(&self.stalls, 0.5),
            "stall_p90_ms": 1e3 * quantile(&self.stalls, 0.9),
            "lost": went("/lost"),
            "promoted": went("/promoted"),
            "recruited": went("/recruited"),
            "given_up": went("/given_up"),
            "replayed": went("/replayed"),
            "again": went("/again"),
        })
    }
}

/// Seconds of a request to the coordinator that no worker has part in.
fn asking(client: Client) -> Result<f64> {
    let one = |_| {
        let begun = Instant::now();
        client.state().map(|_| begun.elapsed().as_secs_f64())
    };
    Ok(quantile(&(0..REQUESTS).map(one).collect::<Result<Vec<_>>>()?, 0.5))
}

/// The machines as the simulator takes them. `ask` is what a request takes beside what the pool does.
fn measured(model: &Value, memory: u64, (before, after): (&Value, &Value), starts: &[f64], ask: f64) -> Result<Value> {
    let went = |path| went(before, after, path);
    let laps = went("/times/lap_count").max(1.0);
    let (lap, steps) = (went("/times/laps") * 1e-6 / laps, went("/times/steps") * 1e-6 / laps);
    let stages = after["chains"][0]["stages"].as_array().map_or(1, Vec::len).max(1) as f64;
    let blocks = model["blocks"].as_f64().context("the coordinator does not say blocks")?;
    let head_blocks = model["head_blocks"].as_f64().context("the coordinator does not say head_blocks")?;
    let block = steps / (blocks + head_blocks);
    // Of a step of a prompt, in one stage.
    let prompts = went("/times/prompt_count").max(1.0);
    let (rows, prompt) = (went("/times/prompt_rows") / prompts, went("/times/prompts") * 1e-6 / prompts);
    let hop = (lap - steps).max(0.0) / stages;
    // What is asked goes there and back as well.
    let open = (went("/times/opens") * 1e-6 / went("/times/open_count").max(1.0) - hop).max(0.0);
    let prepares = went("/times/prepare_count").max(1.0);
    Ok(json!({
        "blocks": model["blocks"], "width": model["width"], "block_bytes": model["block_bytes"],
        "embedding_bytes": model["embedding_bytes"], "head_bytes": model["head_bytes"], "head_blocks": head_blocks,
        "memory": memory, "block": [block, block], "hop": hop, "open": open, "ask": ask,
        "prompt_rows": (rows * steps / (stages * prompt).max(1e-9)).max(1.0), "bandwidth": [1e9, 1e9],
        "compile": went("/times/prepares") * 1e-6 / prepares, "start": quantile(starts, 0.5), "snapshot": 512,
        "tokens": [rows.round().max(1.0) as usize, TOKENS],
    }))
}

/// A simulator's report in the words of this one.
fn simulated(report: &Value, seconds: f64) -> Value {
    let number = |path: &str| report.pointer(path).and_then(Value::as_f64);
    json!({
        "availability": number("/availability").map(|it| 100.0 * it),
        "flows": number("/stalled").map(|it| 100.0 * (1.0 - it / seconds)),
        "answers": number("/answered"),
        "token_ms": number("/token/p50").map(|it| 1e3 * it),
        "first_ms": number("/first/p50").map(|it| 1e3 * it),
        "lost": number("/lost"),
        "promoted": number("/promoted"),
        "recruited": number("/recruited"),
        "given_up": number("/given_up"),
        "replayed": number("/replayed"),
    })
}

/// Returns the load of the machine: processes that want to run, over the last minute.
fn load() -> String {
    let all = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    all.split(' ').next().filter(|it| !it.is_empty()).unwrap_or("unknown").to_owned()
}
