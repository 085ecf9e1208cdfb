//! Automated runs in real browsers: the page does the work and posts the result; there is no driver program in between.

mod choice;
mod display;
mod old;
mod start;
mod versions;
mod watched;

pub use choice::Choice;
pub use versions::VERSIONS;

use crate::memory::Sampler;
use crate::process::{self, Group};
use crate::tally::Tally;
use crate::tree::OtherLoad;
use crate::web::serve::{Event, Server};
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use display::Display;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};
use std::{fmt, fs};
use xtask::browsers::Kind;

/// How many lines of a browser's log are shown when it fails.
const TAIL: usize = 40;

/// Fields in which a page reports its checks.
const COUNTS: [&str; 3] = ["passed", "failed", "skipped"];

/// Errors that are caused on purpose, though a browser reports them as the page's: by the server; by a policy, which
/// the page reports itself; and by a check that removes a page while WebKit still reads its cache.
const DELIBERATE: &[&str] = &[
    "/flaky/",
    "/stall/",
    "/status/",
    "CONSOLE SECURITY ERROR Refused to ",
    "Cache API operation failed: Context is stopped",
];

/// Job of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Run {
    /// The conformance suite.
    Conformance,
    /// Generation: greedy, compared with the reference where there is one, and sampled, compared with the CPU.
    Generate,
    /// Prefill and decode, timed.
    Bench,
    /// Everything around a model: loading, errors, the cache, leaks, a lost device.
    Checks,
    /// Conversations that lose their device, worker or tab at random moments.
    Kills,
    /// Engines that are loaded and disposed of, over and over: nothing may be left of them.
    Cycles,
    /// Each call of storage, locks and the network fails once.
    Failing,
    /// A part of a text that moves; `cargo xtask travel` has the options for it.
    #[value(skip)]
    Leg,
    /// Measurements of `cargo xtask bench`, which has the options for them.
    #[value(skip)]
    Measure,
    /// A model loaded from a server, from the cache and from a blob, in stages; likewise.
    #[value(skip)]
    Load,
    /// A model loaded and run once, while the browser's memory is watched; likewise.
    #[value(skip)]
    Memory,
    /// The time to the first token on the real page; likewise.
    #[value(skip)]
    Page,
}

impl Run {
    /// Its name, for the page too.
    const fn name(self) -> &'static str {
        match self {
            Run::Conformance => "conformance",
            Run::Generate => "generate",
            Run::Bench => "bench",
            Run::Checks => "checks",
            Run::Kills => "kills",
            Run::Cycles => "cycles",
            Run::Failing => "failing",
            Run::Leg => "leg",
            Run::Measure => "measure",
            Run::Load => "load",
            Run::Memory => "memory",
            Run::Page => "page",
        }
    }

    /// Returns the flags of Chromium for this job: `cycles` asks for garbage collections, and for the size of the
    /// heap.
    const fn chromium_flags(self) -> &'static [&'static str] {
        match self {
            Run::Cycles => &["--js-flags=--expose-gc", "--enable-precise-memory-info"],
            _ => &[],
        }
    }

    /// Whether it measures: then it may take long and be silent for long.
    const fn is_measuring(self) -> bool {
        matches!(self, Run::Measure | Run::Load | Run::Memory | Run::Page)
    }
}

/// Which browser, and how it is watched.
#[derive(Debug, Clone, Args)]
pub struct Drive {
    /// Browser to start: chromium, firefox or webkit as installed, or an old one such as chromium@92, which is fetched with npm
    #[arg(long)]
    pub browser: Choice,
    /// Run on the page's own thread instead of a worker
    #[arg(long)]
    pub main_thread: bool,
    /// Write the result to a file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Seconds that the run may take [default: 1800; 10800 of bench]
    #[arg(long)]
    pub timeout: Option<u64>,
    /// Seconds without any progress that count as a hang [default: 60; 600 of bench]
    #[arg(long)]
    pub watchdog: Option<u64>,
    /// Show all that the browser prints
    #[arg(long)]
    pub show: bool,
    /// Another flag for Chromium, such as those for a real GPU (--chromium-flag=--use-webgpu-adapter=default)
    #[arg(long, value_name = "FLAG", allow_hyphen_values = true)]
    pub chromium_flag: Vec<String>,
}

/// A run in a browser.
#[derive(Debug, Clone, Args)]
pub struct Options {
    #[command(flatten)]
    pub drive: Drive,
    /// Backend to ask for: auto, gpu, webgpu, webgl or cpu; generate has webgl-packed, webgl-r32f and webgl-bits too; conformance has webgpu-core, webgpu-split, webgpu-software, webgpu-int8, webgl-r32f, webgl-bits, webgl-fold and webgl-split too
    #[arg(long)]
    pub backend: String,
    /// Job of the page
    #[arg(long, value_enum)]
    pub run: Run,
    /// Serve with the headers that isolate a page from other origins, so that the CPU has threads
    #[arg(long)]
    pub isolated: bool,
    /// Threads of the CPU that there must be; more than one needs --isolated, and modules with threads
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Model: gab, smollm2, gemma3, or the name of a file in models/ or models/cache/
    #[arg(long, default_value = "gab")]
    pub model: String,
    /// Prompt of `generate`, instead of the reference's
    #[arg(long)]
    pub prompt: Option<String>,
    /// How many prompts of the reference [default: all]
    #[arg(long)]
    pub prompts: Option<usize>,
    /// Tokens to generate for each prompt [default: 64; 16 of smollm2, 8 of gemma3]
    #[arg(long)]
    pub tokens: Option<usize>,
    /// Tokens of the prompt of `bench`
    #[arg(long, default_value_t = 128)]
    pub prefill: usize,
    /// Tokens to decode in `bench`
    #[arg(long, default_value_t = 64)]
    pub decode: usize,
    /// Operator of `conformance` [default: all]
    #[arg(long)]
    pub op: Option<String>,
    /// Run only the first of every so many cases of each operator of `conformance`, or calls of `failing`
    #[arg(long, default_value_t = 1)]
    pub every: usize,
    /// Parts of the names of the checks, or of what is to fail, separated by commas [default: all]
    #[arg(long)]
    pub only: Option<String>,
    /// How many conversations `kills` disturbs
    #[arg(long, default_value_t = 8)]
    pub kills: usize,
    /// Number of the first of them: the same number is the same conversation, disturbed at the same moment
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// How often `cycles` loads a model and disposes of it
    #[arg(long, default_value_t = 48, value_parser = clap::value_parser!(u64).range(8..))]
    pub cycles: u64,
}

/// How a run failed to give a result.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Failure {
    /// The browser ended.
    Crash(String),
    /// Nothing was heard for this many seconds, since a phase began.
    Hang(u64, String),
    /// It made progress, but took longer than this many seconds; it was in this phase.
    Timeout(u64, String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Crash(status) => write!(f, "the browser ended before the page had a result: {status}"),
            Failure::Hang(seconds, phase) => write!(f, "the page made no progress for {seconds} s{}", In(phase)),
            Failure::Timeout(seconds, phase) => {
                write!(f, "the page had no result after {seconds} s{}; see --timeout", In(phase))
            }
        }
    }
}

/// A phase, if the page named one.
struct In<'a>(&'a str);

impl fmt::Display for In<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, ", in \"{}\"", self.0) }
    }
}

impl Options {
    /// Returns further pairs of the page's query.
    fn pairs(&self) -> Vec<(&'static str, String)> {
        let mut pairs = vec![
            ("model", self.model.clone()),
            ("prefill", self.prefill.to_string()),
            ("decode", self.decode.to_string()),
            ("every", self.every.to_string()),
            ("kills", self.kills.to_string()),
            ("seed", self.seed.to_string()),
            ("cycles", self.cycles.to_string()),
        ];
        let optional = [
            ("prompt", self.prompt.clone()),
            ("prompts", self.prompts.map(|n| n.to_string())),
            ("tokens", self.tokens.map(|n| n.to_string())),
            ("threads", self.threads.map(|n| n.to_string())),
            ("op", self.op.clone()),
            ("only", self.only.clone()),
        ];
        pairs.extend(optional.into_iter().filter_map(|(name, value)| Some((name, value?))));
        pairs
    }
}

/// Runs, shows progress, and writes the result if asked to. True if everything passed.
pub fn run(options: &Options) -> Result<bool> {
    let visit =
        Visit { run: options.run, backend: &options.backend, pairs: options.pairs(), isolated: options.isolated };
    options.drive.visit_all(&[visit])
}

/// One start of a browser.
pub struct Visit<'a> {
    /// Job of the page.
    pub run: Run,
    /// Backend to ask for.
    pub backend: &'a str,
    /// Further pairs of the page's query.
    pub pairs: Vec<(&'static str, String)>,
    /// Whether pages are isolated from other origins, and so may have threads.
    pub isolated: bool,
}

/// The outcome of a visit, or of several.
#[derive(Default)]
struct Outcome {
    result: Map<String, Value>,
    errors: Vec<String>,
}

impl Outcome {
    /// Adds that of another visit: lists are concatenated, counts added; of everything else the first is kept.
    fn join(&mut self, other: Outcome) {
        self.errors.extend(other.errors);
        for (name, value) in other.result {
            match (self.result.get_mut(&name), value) {
                (None, value) => drop(self.result.insert(name, value)),
                (Some(Value::Array(list)), Value::Array(more)) => list.extend(more),
                (Some(own), value) if COUNTS.contains(&name.as_str()) => {
                    *own = json!(own.as_u64().unwrap_or(0) + value.as_u64().unwrap_or(0));
                }
                _ => {}
            }
        }
    }

    /// Adds what was seen from outside to the things that the page measured in this visit.
    fn mark(&mut self, list: &str, name: &str, value: &Value) {
        let Some(Value::Array(entries)) = self.result.get_mut(list) else { return };
        for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
            entry.insert(name.into(), value.clone());
        }
    }
}

impl Drive {
    /// Starts a browser for each visit, one after the other, shows progress, and writes the combined result if asked to.
    /// True if everything passed.
    pub fn visit_all(&self, visits: &[Visit<'_>]) -> Result<bool> {
        if let Some(remedy) = self.browser.lacks() {
            println!("SKIPPED {}: {remedy}", self.browser);
            println!("{}", Tally::skip());
            return Ok(true);
        }
        let program = self.browser.program()?;
        let begin = Instant::now();
        let mut whole = Outcome::default();
        for visit in visits {
            let mut outcome = self.visit(&program, visit)?;
            if let Some(error) = fault_of_webkit(self.browser.kind, &outcome.errors) {
                println!("once more, since WebKit stopped a module that cannot do this: {error}");
                outcome = self.visit(&program, visit)?;
            }
            whole.join(outcome);
        }
        self.finish(whole, begin.elapsed())
    }

    /// Has a browser do a run, and shows progress.
    fn visit(&self, program: &Path, visit: &Visit<'_>) -> Result<Outcome> {
        let Visit { run, backend, pairs, isolated } = visit;
        let (send, events) = mpsc::channel();
        let server = Server::start(None, Some(send), *isolated)?;
        let url = format!("http://{}/test/?{}", server.address(), self.query(*run, backend, pairs));
        let profile =
            tempfile::Builder::new().prefix("anygpu-").tempdir().context("cannot make a folder for the profile")?;

        let display = match self.browser.kind.needs_display() {
            true if std::env::var_os("DISPLAY").is_none() || !self.show => Some(Display::start()?),
            _ => None,
        };
        let Choice { kind, version } = self.browser;
        let show = self.show;
        let (send_error, errors) = mpsc::channel();
        let flags: Vec<_> = run.chromium_flags().iter().copied().map(str::to_owned).collect();
        let flags = [&flags[..], &self.chromium_flag].concat();
        let mut command = start::command(kind, program, version, profile.path(), backend, &url, &flags)?;
        if let Some(display) = &display {
            command.env("DISPLAY", &display.name);
        }
        let posted = send_error.clone();
        let mut browser = Group::start(&mut command, move |line| {
            if show {
                eprintln!("[{}] {line}", kind.name());
            }
            if let Some(error) = start::page_error(kind, line)
                && !is_deliberate(error)
            {
                // If the run is over, its errors no longer matter.
                let _ = send_error.send(error.to_owned());
            }
        })
        .with_context(|| format!("cannot start {}", program.display()))?;
        let sampler = match run {
            Run::Memory | Run::Cycles => Sampler::start(browser.id()),
            _ => None,
        };

        let load = OtherLoad::start();
        let patience = self.watchdog.unwrap_or(if run.is_measuring() { 600 } else { 60 });
        let limit = self.timeout.unwrap_or(if run.is_measuring() { 10_800 } else { 1800 });
        let result = wait(patience, limit, &mut browser, &events, &posted, sampler.as_ref())?;
        if result.is_err() {
            println!("-- the end of the browser's log:\n{}\n--", browser.tail(TAIL));
        }
        let load = load.and_then(|load| load.fraction());
        let peaks = sampler.and_then(Sampler::finish);
        drop(browser);
        let mut outcome = Outcome::default();
        match result {
            Ok(Value::Object(result)) => outcome.result = result,
            Ok(_) => outcome.errors.push("the page's report is not an object".into()),
            Err(failure) => outcome.errors.push(failure.to_string()),
        }
        // An uncaught error may be known twice: from the page, and from the browser's log.
        outcome.errors.extend(errors.try_iter());
        if *run == Run::Memory {
            watched::tell(peaks.as_ref());
            outcome.mark("memory", "peak", &json!(peaks));
        }
        if *run == Run::Cycles {
            let rests = peaks.as_ref().map(watched::rests).unwrap_or_default();
            outcome.mark("cycles", "rests", &json!(rests));
            outcome.errors.extend(watched::growth(&rests));
        }
        if let (true, Some(load)) = (run.is_measuring(), load) {
            println!("others used {:.0} % of the processors meanwhile", 100.0 * load);
            outcome.result.insert("other_load".into(), json!([load]));
        }
        Ok(outcome)
    }

    /// Returns the query of the page.
    fn query(&self, run: Run, backend: &str, pairs: &[(&str, String)]) -> String {
        let fixed = [
            ("run", run.name()),
            ("browser", self.browser.kind.name()),
            ("backend", backend),
            ("worker", if self.main_thread { "false" } else { "true" }),
        ];
        let version = self.browser.version.map(|version| version.number.to_string());
        let version = version.iter().map(|number| ("version", number.as_str()));
        let pairs = pairs.iter().map(|(name, value)| (*name, value.as_str())).chain(version);
        let pairs = fixed.into_iter().chain(pairs).map(|(name, value)| format!("{name}={}", encoded(value)));
        pairs.collect::<Vec<_>>().join("&")
    }

    /// Shows the outcome, and writes it to the file.
    fn finish(&self, Outcome { mut result, errors }: Outcome, elapsed: Duration) -> Result<bool> {
        let count = |name: &str| result.get(name).and_then(Value::as_u64).unwrap_or(0);
        let [passed, failed, skipped] = COUNTS.map(count);
        let mut tally = Tally::new(passed, failed, skipped);
        for error in &errors {
            println!("FAILED {error}");
        }
        tally.add(Tally::new(0, errors.len() as u64, 0));
        if tally == Tally::default() {
            println!("FAILED the page checked nothing");
            tally.add(Tally::one(false));
        }
        let seconds = elapsed.as_secs_f64();
        if let Some(file) = &self.json {
            result.insert("browser".into(), json!(self.browser.to_string()));
            result.insert("machine".into(), json!(process::machine()));
            result.insert("command".into(), json!(process::command_line()));
            result.insert("errors".into(), json!(errors));
            result.insert("seconds".into(), json!(seconds));
            result.insert("ok".into(), json!(tally.failed == 0));
            let text = format!("{:#}\n", Value::Object(result));
            fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
        }
        println!("{tally} ({seconds:.1} s)");
        Ok(tally.failed == 0)
    }
}

/// Finds the error, if a run failed by a fault of WebKit's: 2.50 of WebKitGTK stops sound modules now and then. So does its
/// JavaScript engine by itself, without a page, with the module for older browsers too, and no other browser does. Code of ours in
/// the modules is safe Rust, which cannot access memory out of bounds. Each other failure counts, and so does a second one.
fn fault_of_webkit(kind: Kind, errors: &[String]) -> Option<&String> {
    let found = errors.iter().find(|error| error.contains("Out of bounds memory access"));
    found.filter(|_| kind == Kind::Webkit)
}

fn is_deliberate(error: &str) -> bool {
    DELIBERATE.iter().any(|path| error.contains(path))
}

/// Waits for the result, within the limits on the whole run and between two signs of progress. Shows what the page says
/// meanwhile.
fn wait(
    patience: u64,
    limit: u64,
    browser: &mut Group,
    events: &Receiver<Event>,
    errors: &Sender<String>,
    sampler: Option<&Sampler>,
) -> Result<Result<Value, Failure>> {
    let begin = Instant::now();
    let mut heard = begin;
    let mut phase = String::new();
    loop {
        match events.recv_timeout(Duration::from_millis(200)) {
            Ok(Event::Report(text)) => {
                return Ok(Ok(serde_json::from_str(&text).context("the page's report is not JSON")?));
            }
            Ok(Event::Log(line)) => {
                heard = Instant::now();
                if !line.is_empty() {
                    println!("{line}");
                }
            }
            Ok(Event::Phase(name)) => {
                heard = Instant::now();
                if let Some(sampler) = sampler {
                    sampler.phase(name.clone());
                }
                phase = name;
            }
            Ok(Event::Error(error)) if is_deliberate(&error) => {}
            Ok(Event::Error(error)) => errors.send(error)?,
            Ok(Event::Interrupted) => bail!("interrupted"),
            Err(RecvTimeoutError::Disconnected) => bail!("the server ended"),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Some(status) = browser.ended() {
            return Ok(Err(Failure::Crash(status.to_string())));
        }
        if heard.elapsed() > Duration::from_secs(patience) {
            return Ok(Err(Failure::Hang(patience, phase)));
        }
        if begin.elapsed() > Duration::from_secs(limit) {
            return Ok(Err(Failure::Timeout(limit, phase)));
        }
    }
}

/// Percent-encodes everything but letters, digits and a few marks.
fn encoded(text: &str) -> String {
    let byte = |b: u8| match b {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(b).to_string(),
        _ => format!("%{b:02X}"),
    };
    text.bytes().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_fault_of_webkit_is_given_another_run() {
        let errors = |text: &str| ["first".to_owned(), text.to_owned()];
        let trap = "RuntimeError: Out of bounds memory access (evaluating 'f(a)')";
        assert_eq!(fault_of_webkit(Kind::Webkit, &errors(trap)), Some(&trap.to_owned()));
        assert_eq!(fault_of_webkit(Kind::Chromium, &errors(trap)), None);
        assert_eq!(
            fault_of_webkit(Kind::Webkit, &errors("RuntimeError: Unreachable code should not be executed")),
            None
        );
        assert_eq!(fault_of_webkit(Kind::Webkit, &[]), None);
    }
}
