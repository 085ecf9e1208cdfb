//! The command line.

use crate::backends::{Sleeper, open};
use crate::{mutate, vectors};
use anyhow::{Context, Result, bail};
use backend_api::Backend;
use clap::Parser;
use conformance::expect::Expectations;
use conformance::report::{BackendReport, Report};
use conformance::run::{Outcome, check};
use conformance::suite;
use conformance::variants::{self, Kind, Variant};
use reference_cpu::{Cpu, Options};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// Holds every backend to the CPU reference, operator by operator.
///
/// Without arguments it runs all cases on all backends of this machine. The table shows the worst NMSE and the number
/// of cases. It ends with 1 if a case fails, and says SKIPPED where a driver is missing.
#[derive(Debug, Parser)]
struct Args {
    /// Run this backend or variant only; may be given several times: reference, cpu, webgpu, webgpu-core, webgpu-split,
    /// webgpu-software, webgpu-int8, webgl, webgl-r32f, webgl-fold, webgl-split. A backend asked for by name must be there.
    #[arg(long)]
    backend: Vec<String>,
    /// Run the cases of this operator only.
    #[arg(long)]
    op: Option<String>,
    /// Replay cases from outside: a folder per case with case.json and .npy arrays.
    #[arg(long)]
    vectors: Option<PathBuf>,
    /// Break every shader once and see that the suite notices.
    #[arg(long)]
    mutate: bool,
    /// Write the results as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Write the table as a page.
    #[arg(long)]
    html: Option<PathBuf>,
}

pub fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<bool> {
    if let Some(op) = args.op.as_deref().filter(|op| !backend_api::Op::NAMES.contains(op)) {
        bail!("there is no operator {op}; there are {}", backend_api::Op::NAMES.join(", "));
    }
    let candidates: Vec<&Variant> = match args.backend.as_slice() {
        // The reference is its own measure but for vectors.
        [] => variants::ALL.iter().filter(|v| v.kind != Kind::Reference || args.vectors.is_some()).collect(),
        named => named.iter().map(|name| variants::named(name).map_err(anyhow::Error::msg)).collect::<Result<_>>()?,
    };
    if args.mutate {
        return mutate::run(&candidates);
    }
    let expectations: Expectations =
        toml::from_str(include_str!("../expectations.toml")).context("conformance/expectations.toml cannot be read")?;
    let mut report = Report::default();
    for candidate in candidates {
        let entry = match open(candidate, None) {
            Ok(backend) => match &args.vectors {
                Some(dir) => vectors::replay(dir, candidate.name, &*backend)?,
                None => run_suite(candidate.name, &*backend, args.op.as_deref(), &expectations),
            },
            Err(error) if args.backend.is_empty() => {
                let mut entry = BackendReport::new(candidate.name, "");
                entry.skipped = Some(error.to_string());
                entry
            }
            Err(error) => return Err(error).with_context(|| format!("cannot open {}", candidate.name)),
        };
        report.backends.push(entry);
    }
    print!("{}", report.table());
    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(&report)?;
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if let Some(path) = &args.html {
        std::fs::write(path, report.html()).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let (passed, failed, skipped) = report.counts();
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    Ok(failed == 0 && passed > 0)
}

fn run_suite(name: &str, backend: &dyn Backend, op: Option<&str>, expectations: &Expectations) -> BackendReport {
    let reference = Cpu::new(Options { fast: false, ..Default::default() });
    let host = Sleeper(Instant::now());
    let adapter = backend.info().adapter.clone();
    let mut report = BackendReport::new(name, &adapter);
    for case in suite::cases(op) {
        let outcome = pollster::block_on(check(backend, &reference, &case, &host));
        if let Outcome::Failed(why) = &outcome {
            eprintln!("{name} {} [{}]: {why}", case.op, case.name);
        }
        let expected = expectations.reason(name, &adapter, case.op, &case.name);
        report.add(case.op, &case.name, outcome, expected);
    }
    report
}
