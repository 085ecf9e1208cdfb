//! All tests, and what they add up to.

use crate::tally::Tally;
use crate::{drivers, models, root};
use anyhow::{Context, Result};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// One command whose output states how many of its checks passed.
struct Run {
    title: &'static str,
    /// The driver it needs, as [`drivers`] names it.
    backend: Option<&'static str>,
    args: &'static [&'static str],
}

const CONFORMANCE: &[&str] = &["run", "--quiet", "--release", "-p", "conformance", "--"];

/// `--show-output`: the lines of tests that skip themselves must be seen to be counted.
const UNIT: Run = Run {
    title: "unit and integration tests",
    backend: None,
    args: &["test", "--release", "--workspace", "--no-fail-fast", "--", "--show-output"],
};

const SUITES: &[(Run, &[&str])] = &[
    (Run { title: "conformance: cpu", backend: None, args: CONFORMANCE }, &["--backend", "cpu"]),
    (Run { title: "conformance: webgpu", backend: Some("webgpu"), args: CONFORMANCE }, &["--backend", "webgpu"]),
    (Run { title: "conformance: webgl, packed", backend: Some("webgl"), args: CONFORMANCE }, &["--backend", "webgl"]),
    (
        Run { title: "conformance: webgl, r32f", backend: Some("webgl"), args: CONFORMANCE },
        &["--backend", "webgl-r32f"],
    ),
    (Run { title: "mutation check", backend: None, args: CONFORMANCE }, &["--mutate"]),
];

/// Runs everything. Whether all of it passed.
pub fn run() -> Result<bool> {
    let drivers = drivers::find();
    println!("drivers");
    for driver in &drivers {
        match &driver.found {
            Ok(found) => println!("  {:8} {}: {found}", driver.backend, driver.what),
            Err(remedy) => println!("  {:8} {}: MISSING; {remedy}", driver.backend, driver.what),
        }
    }
    let missing: Vec<&str> = drivers.iter().filter(|d| d.found.is_err()).map(|d| d.backend).collect();
    let skip = missing.join(",");

    let mut lines: Vec<(String, String)> = Vec::new();
    let mut total = Tally::default();
    let mut note = |title: &str, tally: Tally| {
        total.add(tally);
        lines.push((title.into(), tally.to_string()));
    };

    println!("\n== models");
    let fetched = models::fetch();
    if let Err(error) = &fetched {
        println!("error: {error:#}");
    }
    note("models", Tally::one(fetched.is_ok()));

    note(UNIT.title, UNIT.start(&[], &skip)?);
    for (run, more) in SUITES {
        match run.backend.filter(|backend| missing.contains(backend)) {
            Some(backend) => {
                println!("\n== {}: SKIPPED, the driver of {backend} is missing (see above)", run.title);
                note(run.title, Tally::skip());
            }
            None => note(run.title, run.start(more, &skip)?),
        }
    }

    println!("\n== summary");
    for (title, tally) in &lines {
        println!("{title:28} {tally}");
    }
    for driver in &drivers {
        if let Err(remedy) = &driver.found {
            println!("{:28} SKIPPED: {remedy}", driver.backend);
        }
    }
    println!("\n{total}");
    Ok(total.failed == 0)
}

impl Run {
    /// Runs it, showing its output. A run that ends badly without having counted a failure is one.
    fn start(&self, more: &[&str], skip: &str) -> Result<Tally> {
        println!("\n== {}", self.title);
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
        let mut child = Command::new(&cargo)
            .args(self.args)
            .args(more)
            .current_dir(root())
            .env("ANYGPU_SKIP", skip)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {cargo}"))?;
        let mut tally = Tally::default();
        let mut lines = BufReader::new(child.stdout.take().context("no output to read")?);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line)? > 0 {
            let text = String::from_utf8_lossy(&line);
            print!("{text}");
            tally.read(&text);
            line.clear();
        }
        let status = child.wait()?;
        if !status.success() && tally.failed == 0 {
            println!("{}: ended with {status}", self.title);
            tally.failed = 1;
        }
        Ok(tally)
    }
}
