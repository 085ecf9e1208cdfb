//! Measures in a browser: the engine, and on request other engines beside it.

use crate::browser::{Drive, Run, Visit};
use crate::root;
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Kind of measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum What {
    /// Time to the first token, prefill, decode, and the floors of the device.
    Model,
    /// Single operators: several queued, one read.
    Ops,
    /// The model with one design decision at a time switched off.
    Ablate,
    /// Loading from a server, from the cache and from a blob, each in stages, and how fast each weight format is repacked.
    Load,
    /// The most memory that the browser's processes hold while a model is loaded and run once; a browser of its own for
    /// each model, from a blob and from an address, and with --peers for wllama, from a blob. On Linux.
    Memory,
    /// The first token of the built-in model on the page of dist/, from navigation: a visit with an empty cache, which is
    /// told apart, and --repeat visits in the same profile.
    Page,
}

/// A run of measurements.
#[derive(Debug, Clone, Args)]
pub struct Options {
    #[command(flatten)]
    drive: Drive,
    /// Backend to ask for: auto, gpu, webgpu, webgl or cpu
    #[arg(long, default_value = "auto")]
    backend: String,
    /// Measurements, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [What::Model, What::Ops])]
    what: Vec<What>,
    /// Models, separated by commas: gab, smollm2, or names of files in models/ or models/cache/
    #[arg(long, value_delimiter = ',', default_values_t = [String::from("gab"), String::from("smollm2")])]
    model: Vec<String>,
    /// Tokens that the context has before the prompt, which are not measured [model and ablate]
    #[arg(long, value_name = "TOKENS", default_value_t = 0)]
    depth: usize,
    /// Tokens of the prompt, after which decoding begins
    #[arg(long, value_name = "TOKENS", default_value_t = 128)]
    prefill: usize,
    /// Tokens to decode after it
    #[arg(long, value_name = "TOKENS", default_value_t = 64)]
    decode: usize,
    /// Measurements, after one that is not counted [memory: there is one]
    #[arg(long, value_name = "N", default_value_t = 3)]
    repeat: usize,
    /// Operators that are queued before a read
    #[arg(long, value_name = "N", default_value_t = 20)]
    queued: usize,
    /// Time other engines in the same browser too: TF.js on the operators, wllama on one thread on the models. They are
    /// fetched with npm into target/peers
    #[arg(long)]
    peers: bool,
    /// Serve with the headers that isolate a page from other origins, so that engines may have threads
    #[arg(long)]
    isolated: bool,
    /// Threads of the CPU and of wllama; more than one needs --isolated, and modules with threads [default: 1; 2 with --isolated]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// Measures, shows the tables, and writes the result if asked to. True if nothing failed.
pub fn run(options: &Options) -> Result<bool> {
    if options.peers {
        fetch()?;
    }
    options.drive.visit_all(&options.visits())
}

impl Options {
    /// One browser for all that is only timed; others where nothing may be left of what was done before.
    fn visits(&self) -> Vec<Visit<'_>> {
        let visit = |run, pairs| Visit { run, backend: &self.backend, pairs, isolated: self.isolated };
        let mut visits = Vec::new();
        let timed: Vec<_> = self.what.iter().filter_map(|what| what.timed()).collect();
        if !timed.is_empty() {
            let more =
                [("what", timed.join(",")), ("models", self.model.join(",")), ("queued", self.queued.to_string())];
            visits.push(visit(Run::Measure, self.pairs(more)));
        }
        if self.what.contains(&What::Load) {
            visits.push(visit(Run::Load, self.pairs([("models", self.model.join(","))])));
        }
        if self.what.contains(&What::Memory) {
            // Both engines get the same: a blob.
            let engines = [("anygpu", "blob"), ("anygpu", "address"), ("wllama", "blob")];
            let engines = &engines[..if self.peers { 3 } else { 2 }];
            for (model, (engine, source)) in self.model.iter().flat_map(|m| engines.iter().map(move |e| (m, e))) {
                let more = [("model", model.clone()), ("engine", engine.to_string()), ("source", source.to_string())];
                visits.push(visit(Run::Memory, self.pairs(more)));
            }
        }
        if self.what.contains(&What::Page) {
            visits.push(visit(Run::Page, self.pairs([])));
        }
        visits
    }

    /// Returns the query of the page.
    fn pairs<const N: usize>(&self, more: [(&'static str, String); N]) -> Vec<(&'static str, String)> {
        let threads = self.threads.unwrap_or(if self.isolated { 2 } else { 1 });
        let mut pairs = vec![
            ("depth", self.depth.to_string()),
            ("prefill", self.prefill.to_string()),
            ("decode", self.decode.to_string()),
            ("repeat", self.repeat.to_string()),
            ("peers", self.peers.to_string()),
            ("threads", threads.to_string()),
        ];
        pairs.extend(more);
        pairs
    }
}

impl What {
    /// Its name for the page that only times.
    fn timed(self) -> Option<&'static str> {
        match self {
            What::Model => Some("model"),
            What::Ops => Some("ops"),
            What::Ablate => Some("ablate"),
            What::Load | What::Memory | What::Page => None,
        }
    }
}

/// Where the other engines are.
pub fn peers() -> PathBuf {
    root().join("target/peers/node_modules")
}

/// Fetches the other engines, in the locked versions, unless they are there.
fn fetch() -> Result<()> {
    let (from, to) = (root().join("js/test/peers"), root().join("target/peers"));
    let lock = "package-lock.json";
    let same = fs::read(from.join(lock)).ok() == fs::read(to.join(lock)).ok();
    if same && peers().is_dir() {
        return Ok(());
    }
    fs::create_dir_all(&to).with_context(|| format!("cannot make the folder {}", to.display()))?;
    for name in ["package.json", lock] {
        fs::copy(from.join(name), to.join(name)).with_context(|| format!("cannot copy {name}"))?;
    }
    println!("fetching other engines with npm (30 MB)");
    let status = Command::new("npm")
        .args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"])
        .current_dir(&to)
        .stdin(Stdio::null())
        .status()
        .context("cannot start npm; install Node.js with it, or leave out --peers")?;
    if !status.success() {
        // What is there is incomplete.
        fs::remove_file(to.join(lock))?;
        bail!("npm could not fetch the other engines (the message is above); check the network, or leave out --peers");
    }
    Ok(())
}
