//! Automated runs in real browsers: the page does the work and posts the result; no driver program stands between.

mod display;
mod kind;

pub use kind::Kind;

use crate::process::{self, Group};
use crate::tally::Tally;
use crate::web::serve::{Event, Server};
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use display::Display;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};
use std::{fmt, fs};

/// What of a browser's log is shown when it fails.
const TAIL: usize = 40;

/// What the server does on purpose, and a browser reports as an error of the page.
const DELIBERATE: &[&str] = &["/flaky/", "/stall/", "/status/"];

/// What the page is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Run {
    /// The conformance suite.
    Conformance,
    /// Greedy generation, compared with the reference where there is one.
    Generate,
    /// Prefill and decode, timed.
    Bench,
    /// Everything around a model: loading, errors, the cache, leaks, a lost device.
    Checks,
    /// What `cargo xtask bench` measures; it has the options for it.
    #[value(skip)]
    Measure,
}

impl Run {
    /// Its name, for the page too.
    const fn name(self) -> &'static str {
        match self {
            Run::Conformance => "conformance",
            Run::Generate => "generate",
            Run::Bench => "bench",
            Run::Checks => "checks",
            Run::Measure => "measure",
        }
    }
}

/// Which browser, and how it is watched.
#[derive(Debug, Clone, Args)]
pub struct Drive {
    /// Browser to start
    #[arg(long, value_enum)]
    pub browser: Kind,
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
    /// Backend to ask for: auto, gpu, webgpu, webgl or cpu; conformance has webgpu-split, webgl-r32f, webgl-fold and webgl-split too
    #[arg(long)]
    pub backend: String,
    /// What to do
    #[arg(long, value_enum)]
    pub run: Run,
    /// Model: gab, smollm2, or the name of a file in models/ or models/cache/
    #[arg(long, default_value = "gab")]
    pub model: String,
    /// Prompt of `generate`, instead of the reference's
    #[arg(long)]
    pub prompt: Option<String>,
    /// How many prompts of the reference [default: all]
    #[arg(long)]
    pub prompts: Option<usize>,
    /// Tokens to generate for each prompt [default: 64; 16 of smollm2]
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
    /// Of each operator of `conformance`, only the first of so many cases, and so on
    #[arg(long, default_value_t = 1)]
    pub every: usize,
    /// Parts of the names of the checks to run, separated by commas [default: all]
    #[arg(long)]
    pub only: Option<String>,
}

/// How a run failed to give a result.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Failure {
    /// The browser ended.
    Crash(String),
    /// Nothing was heard for so many seconds.
    Hang(u64),
    /// It went on, but for too long: so many seconds.
    Timeout(u64),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Crash(status) => write!(f, "the browser ended before the page had a result: {status}"),
            Failure::Hang(seconds) => write!(f, "the page made no progress for {seconds} s"),
            Failure::Timeout(seconds) => write!(f, "the page had no result after {seconds} s; see --timeout"),
        }
    }
}

impl Options {
    /// What the page is told besides.
    fn pairs(&self) -> Vec<(&'static str, String)> {
        let mut pairs = vec![
            ("model", self.model.clone()),
            ("prefill", self.prefill.to_string()),
            ("decode", self.decode.to_string()),
            ("every", self.every.to_string()),
        ];
        let optional = [
            ("prompt", self.prompt.clone()),
            ("prompts", self.prompts.map(|n| n.to_string())),
            ("tokens", self.tokens.map(|n| n.to_string())),
            ("op", self.op.clone()),
            ("only", self.only.clone()),
        ];
        pairs.extend(optional.into_iter().filter_map(|(name, value)| Some((name, value?))));
        pairs
    }
}

/// Runs, shows what comes, and writes the result if that is asked for. Whether all of it passed.
pub fn run(options: &Options) -> Result<bool> {
    options.drive.visit(options.run, &options.backend, &options.pairs())
}

impl Drive {
    /// Has a browser do a run with these options of it, shows what comes, and writes the result if that is asked for.
    /// Whether all of it passed.
    pub fn visit(&self, run: Run, backend: &str, pairs: &[(&str, String)]) -> Result<bool> {
        let program = match self.browser.find() {
            Ok(program) => program,
            Err(remedy) => {
                println!("SKIPPED {}: {remedy}", self.browser.name());
                println!("{}", Tally::skip());
                return Ok(true);
            }
        };
        let begin = Instant::now();
        let (send, events) = mpsc::channel();
        let server = Server::start(None, Some(send))?;
        let url = format!("http://{}/test/?{}", server.address(), self.query(run, backend, pairs));
        let profile =
            tempfile::Builder::new().prefix("anygpu-").tempdir().context("cannot make a folder for the profile")?;

        let display = match self.browser.needs_display() {
            true if std::env::var_os("DISPLAY").is_none() || !self.show => Some(Display::start()?),
            _ => None,
        };
        let (kind, show) = (self.browser, self.show);
        let (send_error, errors) = mpsc::channel();
        let mut command = kind.command(&program, profile.path(), backend, &url, &self.chromium_flag)?;
        if let Some(display) = &display {
            command.env("DISPLAY", &display.name);
        }
        let posted = send_error.clone();
        let mut browser = Group::start(&mut command, move |line| {
            if show {
                eprintln!("[{}] {line}", kind.name());
            }
            if let Some(error) = kind.page_error(line)
                && !is_deliberate(error)
            {
                // If the run is over, its errors no longer matter.
                let _ = send_error.send(error.to_owned());
            }
        })
        .with_context(|| format!("cannot start {}", program.display()))?;

        let patience = self.watchdog.unwrap_or(if run == Run::Measure { 600 } else { 60 });
        let limit = self.timeout.unwrap_or(if run == Run::Measure { 10_800 } else { 1800 });
        let outcome = wait(patience, limit, &mut browser, &events, &posted)?;
        if outcome.is_err() {
            println!("-- the end of the browser's log:\n{}\n--", browser.tail(TAIL));
        }
        drop(browser);
        self.finish(outcome, errors.try_iter().collect(), begin.elapsed())
    }

    /// What the page is told.
    fn query(&self, run: Run, backend: &str, pairs: &[(&str, String)]) -> String {
        let fixed = [
            ("run", run.name()),
            ("browser", self.browser.name()),
            ("backend", backend),
            ("worker", if self.main_thread { "false" } else { "true" }),
        ];
        let pairs = pairs.iter().map(|(name, value)| (*name, value.as_str()));
        let pairs = fixed.into_iter().chain(pairs).map(|(name, value)| format!("{name}={}", encoded(value)));
        pairs.collect::<Vec<_>>().join("&")
    }

    /// Shows what came of it, and writes it to the file.
    fn finish(&self, outcome: Result<Value, Failure>, reported: Vec<String>, elapsed: Duration) -> Result<bool> {
        let (mut result, failure) = match outcome {
            Ok(result) => (result, None),
            Err(failure) => (json!({}), Some(failure.to_string())),
        };
        let count = |name: &str| result.get(name).and_then(Value::as_u64).unwrap_or(0);
        let mut tally = Tally::new(count("passed"), count("failed"), count("skipped"));
        // An uncaught error may be known twice: from the page, and from the browser's log.
        let errors: Vec<String> = failure.into_iter().chain(reported).collect();
        for error in &errors {
            println!("FAILED {error}");
        }
        tally.add(Tally::new(0, errors.len() as u64, 0));
        if tally == Tally::default() {
            println!("FAILED the page checked nothing");
            tally.add(Tally::one(false));
        }
        let seconds = elapsed.as_secs_f64();
        if let (Some(file), Some(object)) = (&self.json, result.as_object_mut()) {
            object.insert("browser".into(), json!(self.browser.name()));
            object.insert("machine".into(), json!(process::machine()));
            object.insert("command".into(), json!(process::command_line()));
            object.insert("errors".into(), json!(errors));
            object.insert("seconds".into(), json!(seconds));
            object.insert("ok".into(), json!(tally.failed == 0));
            fs::write(file, format!("{result:#}\n")).with_context(|| format!("cannot write {}", file.display()))?;
        }
        println!("{tally} ({seconds:.1} s)");
        Ok(tally.failed == 0)
    }
}

fn is_deliberate(error: &str) -> bool {
    DELIBERATE.iter().any(|path| error.contains(path))
}

/// Waits for the result, so many seconds at most, and so many from one sign of progress to the next. What the page says
/// meanwhile is shown.
fn wait(
    patience: u64,
    limit: u64,
    browser: &mut Group,
    events: &Receiver<Event>,
    errors: &Sender<String>,
) -> Result<Result<Value, Failure>> {
    let begin = Instant::now();
    let mut heard = begin;
    loop {
        match events.recv_timeout(Duration::from_millis(200)) {
            Ok(Event::Report(text)) => {
                return Ok(Ok(serde_json::from_str(&text).context("the page's report is no JSON")?));
            }
            Ok(Event::Log(line)) => {
                heard = Instant::now();
                if !line.is_empty() {
                    println!("{line}");
                }
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
            return Ok(Err(Failure::Hang(patience)));
        }
        if begin.elapsed() > Duration::from_secs(limit) {
            return Ok(Err(Failure::Timeout(limit)));
        }
    }
}

/// Percent-encoding: all but letters, digits and a few marks.
fn encoded(text: &str) -> String {
    let byte = |b: u8| match b {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(b).to_string(),
        _ => format!("%{b:02X}"),
    };
    text.bytes().map(byte).collect()
}
