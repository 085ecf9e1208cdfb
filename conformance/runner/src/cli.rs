//! The command line.

use crate::backends::open;
use crate::share::Share;
use crate::{list, mutate, peer, random, vectors};
use anygpu_conformance::expect::Expectations;
use anygpu_conformance::report::{BackendReport, Report};
use anygpu_conformance::run::{Outcome, check};
use anygpu_conformance::suite;
use anygpu_conformance::variants::{self, Kind, Variant};
use anyhow::{Context, Result, bail};
use backend_api::run::NativeHost;
use backend_api::{Backend, cases};
use clap::Parser;
use reference_cpu::{Cpu, Options};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Holds every backend to the CPU reference, operator by operator.
///
/// Without arguments it runs all cases on all backends of this machine. The table shows the worst NMSE and the number
/// of cases. It ends with 1 if a case fails, and says SKIPPED where a driver is missing.
#[derive(Debug, Parser)]
struct Args {
    /// Run this backend or variant only; may be given several times: reference, cpu, cpu-avx512, cpu-avx2, cpu-neon,
    /// cpu-portable, webgpu, webgpu-core, webgpu-split, webgpu-software, webgpu-int8, webgl, webgl-r32f, webgl-bits, webgl-fold,
    /// webgl-split. A backend asked for by name must be there.
    #[arg(long)]
    backend: Vec<String>,
    /// Run the cases of this operator or form only.
    #[arg(long)]
    op: Option<String>,
    /// Replay cases from outside instead: a folder per case with case.json and .npy arrays, or cases.json with arrays.bin.
    #[arg(long)]
    vectors: Option<PathBuf>,
    /// Run the cases of llama.cpp's operator suite that are ours instead, those of this size; `--op` takes one of its
    /// names. What is not ours is counted with the reason.
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["vectors", "mutate", "list"])]
    peer: Option<peer::Size>,
    /// Run a share of the cases, or of the mutations, only, such as 2/8: the second of eight processes that share them.
    #[arg(long, default_value = "1/1", conflicts_with_all = ["vectors", "list", "random"])]
    share: Share,
    /// Run so many cases of each operator instead, of random shapes and parameters. Of one that fails the simplest is shown.
    #[arg(long, value_name = "CASES", conflicts_with_all = ["vectors", "mutate", "list", "peer"])]
    random: Option<u32>,
    /// Seed of the random cases.
    #[arg(long, default_value_t = 1, requires = "random")]
    seed: u64,
    /// Break every shader once and see that the suite notices. With `--op` only what cases of this operator must notice.
    #[arg(long)]
    mutate: bool,
    /// List the kernels and variants that the backends can make, with their cases and mutations. It ends with 1 if one has
    /// no case, or a kernel or decoder no mutation. No device is needed.
    #[arg(long, conflicts_with_all = ["op", "vectors", "mutate", "html"])]
    list: bool,
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
    if let Some(op) = args.op.as_deref().filter(|op| args.peer.is_none() && !cases::names().any(|name| name == *op)) {
        bail!("there is no operator or form {op}; there are {}", cases::names().collect::<Vec<_>>().join(", "));
    }
    let candidates: Vec<&Variant> = match args.backend.as_slice() {
        // The reference is its own measure but for vectors.
        [] => variants::ALL.iter().filter(|v| v.kind != Kind::Reference || args.vectors.is_some()).collect(),
        named => named.iter().map(|name| variants::named(name).map_err(anyhow::Error::msg)).collect::<Result<_>>()?,
    };
    if args.mutate {
        return mutate::run(&candidates, args.op.as_deref(), args.share);
    }
    if args.list {
        let points = list::points(&candidates)?;
        print!("{}", list::table(&points));
        write_json(args.json.as_deref(), &points)?;
        return Ok(points.iter().all(|point| point.missing.is_none()));
    }
    if let Some(size) = args.peer {
        return finish(args, &peer::run(&candidates, args.op.as_deref(), size, args.share)?);
    }
    if let Some(cases) = args.random {
        return finish(args, &random::run(&candidates, args.op.as_deref(), cases, args.seed)?);
    }
    let expectations: Expectations = toml::from_str(include_str!("../../expectations.toml"))
        .context("conformance/expectations.toml cannot be read")?;
    let mut report = Report::default();
    for candidate in candidates {
        let entry = match open(candidate, None) {
            Ok(backend) => match &args.vectors {
                Some(dir) => vectors::replay(dir, candidate.name, &*backend)?,
                None => run_suite(candidate.name, &*backend, args, &expectations),
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
    finish(args, &report)
}

/// Prints and writes a report. True if nothing failed.
fn finish(args: &Args, report: &Report) -> Result<bool> {
    print!("{}", report.table());
    write_json(args.json.as_deref(), report)?;
    if let Some(path) = &args.html {
        std::fs::write(path, report.html()).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let (passed, failed, skipped) = report.counts();
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    Ok(failed == 0 && passed > 0)
}

fn write_json(path: Option<&Path>, results: &impl Serialize) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    let text = serde_json::to_string_pretty(results)?;
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn run_suite(name: &str, backend: &dyn Backend, args: &Args, expectations: &Expectations) -> BackendReport {
    let reference = Cpu::new(Options { fast: false, ..Default::default() });
    let host = NativeHost::default();
    let adapter = backend.info().adapter.clone();
    let mut report = BackendReport::new(name, &adapter);
    for case in args.share.pick(suite::cases(args.op.as_deref())) {
        let outcome = pollster::block_on(check(backend, &reference, &case, &host));
        if let Outcome::Failed(why) = &outcome {
            eprintln!("{name} {} [{}]: {why}", case.op, case.name);
        }
        let expected = expectations.reason(name, &adapter, case.op, &case.name);
        report.add_case(&case, outcome, expected);
    }
    report
}

#[cfg(test)]
#[path = "../../../xtask/tasks/src/documented.rs"]
mod documented;

#[cfg(test)]
mod tests {
    use super::*;
    use clap::error::ErrorKind;

    #[test]
    fn every_command_that_the_documents_name_can_be_parsed() {
        let named = documented::commands(&["cargo run --release -p conformance --"]);
        assert!(!named.is_empty());
        for command in named {
            let args = ["conformance"].into_iter().chain(command.args.iter().map(String::as_str));
            let parsed = Args::try_parse_from(args).map(|_| ()).or_else(|e| match e.kind() {
                ErrorKind::DisplayHelp => Ok(()),
                _ => Err(e),
            });
            assert!(parsed.is_ok(), "{command}: {parsed:?}");
            let backend = command.args.iter().skip_while(|arg| *arg != "--backend").nth(1);
            assert!(backend.is_none_or(|name| variants::named(name).is_ok()), "{command}: {backend:?}");
        }
    }
}
