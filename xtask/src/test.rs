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
    driver: Option<&'static str>,
    args: &'static [&'static str],
}

/// A run of the conformance suite.
macro_rules! suite {
    ($title:literal, $driver:expr, $($arg:literal),+) => {
        Run { title: $title, driver: $driver, args: &["run", "--quiet", "--release", "-p", "conformance", "--", $($arg),+] }
    };
}

const RUNS: &[Run] = &[
    Run {
        title: "unit and integration tests",
        driver: None,
        // The lines of tests that skip themselves must be seen to be counted.
        args: &["test", "--release", "--workspace", "--no-fail-fast", "--", "--show-output"],
    },
    suite!(
        "vectors: reference and cpu",
        None,
        "--vectors",
        "conformance/vectors",
        "--backend",
        "reference",
        "--backend",
        "cpu"
    ),
    suite!("conformance: cpu", None, "--backend", "cpu"),
    suite!("conformance: webgpu", Some("webgpu"), "--backend", "webgpu", "--backend", "webgpu-split"),
    suite!("conformance: webgl, packed", Some("webgl"), "--backend", "webgl", "--backend", "webgl-fold"),
    suite!("conformance: webgl, r32f", Some("webgl"), "--backend", "webgl-r32f"),
    suite!("mutation check", None, "--mutate"),
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

    for run in RUNS {
        match run.driver.filter(|driver| missing.contains(driver)) {
            Some(driver) => {
                println!("\n== {}: SKIPPED, the driver of {driver} is missing (see above)", run.title);
                note(run.title, Tally::skip());
            }
            None => note(run.title, run.start(&skip)?),
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
    fn start(&self, skip: &str) -> Result<Tally> {
        println!("\n== {}", self.title);
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
        let mut child = Command::new(&cargo)
            .args(self.args)
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
