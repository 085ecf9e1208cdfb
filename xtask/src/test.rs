//! All tests, and what they add up to.

use crate::browser::{self, Kind};
use crate::crashed::Crashed;
use crate::runs::{NIGHTLY, Need, PAGE, Program, RUNS, Run};
use crate::tally::Tally;
use crate::{drivers, models, process, programs, root};
use anyhow::{Context, Result, anyhow};
use clap::ValueEnum;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The oldest version of Node.js that can run the tests of the JavaScript package.
const NODE: u64 = 20;

/// Runs everything, or the runs with a text in their titles; with `nightly` also what takes too long for each change. True
/// if everything passed.
pub fn run(only: &str, nightly: bool) -> Result<bool> {
    let machine = Machine::look();
    machine.print();
    let mut summary = Summary::default();

    if only.is_empty() || !root().join("models").join("cache").is_dir() {
        println!("\n== models");
        let fetched = models::fetch();
        if let Err(error) = &fetched {
            println!("error: {error:#}");
        }
        summary.note("models", Tally::one(fetched.is_ok()), None);
    }
    let wanted = |run: &&Run| run.title.contains(only);
    let all = || RUNS.iter().chain(if nightly { NIGHTLY } else { &[] }).filter(wanted);
    for run in all().filter(|run| !run.needs.page()) {
        machine.start(run, &mut summary)?;
    }
    let mut pages = all().filter(|run| run.needs.page()).peekable();
    if pages.peek().is_some() {
        let failed = summary.total.failed;
        for run in PAGE {
            machine.start(run, &mut summary)?;
        }
        if summary.total.failed > failed {
            println!("\nWithout a page nothing can be run in browsers.");
        } else {
            pages.try_for_each(|run| machine.start(run, &mut summary))?;
        }
    }
    summary.print();
    Ok(summary.total.failed == 0)
}

/// The version of Node.js, if it is there with npm.
fn node() -> Option<u64> {
    process::which("npm")?;
    let output = Command::new("node").arg("--version").output().ok()?;
    String::from_utf8_lossy(&output.stdout).trim().strip_prefix('v')?.split('.').next()?.parse().ok()
}

/// The outcome of the runs.
#[derive(Default)]
struct Summary {
    lines: Vec<(&'static str, Tally, Option<Duration>)>,
    total: Tally,
    /// What to do about the runs that were skipped.
    remedies: BTreeSet<String>,
}

impl Summary {
    fn note(&mut self, title: &'static str, tally: Tally, elapsed: Option<Duration>) {
        self.total.add(tally);
        self.lines.push((title, tally, elapsed));
    }

    fn print(&self) {
        println!("\n== summary");
        for (title, tally, elapsed) in &self.lines {
            let seconds = elapsed.map(|elapsed| format!("{:.0} s", elapsed.as_secs_f64())).unwrap_or_default();
            println!("{title:34} {:44} {seconds:>7}", tally.to_string());
        }
        for remedy in &self.remedies {
            println!("SKIPPED, because this is missing: {remedy}");
        }
        println!("\n{}", self.total);
    }
}

/// What this machine has.
struct Machine {
    drivers: Vec<drivers::Driver>,
    browsers: Vec<(Kind, Result<PathBuf, String>)>,
    node: Result<(), String>,
}

impl Machine {
    fn look() -> Machine {
        let node = match node() {
            Some(major) if major >= NODE => Ok(()),
            _ => Err(format!("Node.js {NODE} or later, with npm (https://nodejs.org)")),
        };
        let browsers = Kind::value_variants().iter().map(|kind| (*kind, kind.find())).collect();
        Machine { drivers: drivers::find(), browsers, node }
    }

    fn print(&self) {
        println!("drivers");
        for driver in &self.drivers {
            match &driver.found {
                Ok(found) => println!("  {:8} {}: {found}", driver.backend, driver.what),
                Err(remedy) => println!("  {:8} {}: MISSING; {remedy}", driver.backend, driver.what),
            }
        }
        println!("browsers");
        for (kind, found) in &self.browsers {
            match found {
                Ok(program) => println!("  {:8} {}", kind.name(), program.display()),
                Err(remedy) => println!("  {:8} MISSING; {remedy}", kind.name()),
            }
        }
    }

    /// What is missing, and what to do about it.
    fn lacks(&self, need: Need) -> Option<String> {
        match need {
            Need::Nothing => None,
            Need::Driver(backend) => {
                let driver = self.drivers.iter().find(|driver| driver.backend == backend)?;
                driver.found.as_ref().err().map(|remedy| format!("the driver of {backend}: {remedy}"))
            }
            Need::Browser(kind) => self.lacks_one(&[kind]),
            Need::Browsers(kinds) => self.lacks_one(kinds),
            Need::OldBrowser => browser::lacks_for_old(),
            Need::Node => self.node.as_ref().err().cloned(),
        }
    }

    /// What one of some browsers takes that is not there.
    fn lacks_one(&self, kinds: &[Kind]) -> Option<String> {
        let wanted = self.browsers.iter().filter(|(kind, _)| kinds.contains(kind));
        wanted.filter_map(|(_, found)| found.as_ref().err().cloned()).next()
    }

    /// Starts a run, or skips it.
    fn start(&self, run: &Run, summary: &mut Summary) -> Result<()> {
        if let Some(remedy) = self.lacks(run.needs) {
            println!("\n== {}: SKIPPED, because this is missing: {remedy}", run.title);
            summary.remedies.insert(remedy);
            summary.note(run.title, Tally::skip(), None);
            return Ok(());
        }
        let missing = self.drivers.iter().filter(|driver| driver.found.is_err()).map(|driver| driver.backend);
        let begin = Instant::now();
        let tally = run.start(&missing.collect::<Vec<_>>().join(","))?;
        println!("({:.0} s)", begin.elapsed().as_secs_f64());
        summary.note(run.title, tally, Some(begin.elapsed()));
        Ok(())
    }
}

impl Need {
    /// Whether the page must have been built.
    fn page(self) -> bool {
        matches!(self, Need::Browser(_) | Need::Browsers(_) | Need::OldBrowser | Need::Node)
    }
}

impl Program {
    fn command(&self) -> Result<Command> {
        Ok(match self {
            Program::Cargo => Command::new(process::cargo()),
            Program::Suite => Command::new(programs::built("conformance")?),
            Program::Page | Program::Task => Command::new(std::env::current_exe()?),
            Program::Node => Command::new("node"),
        })
    }
}

impl Run {
    /// Runs it, showing its output. A run that exits with an error without having counted a failure counts as one. A test
    /// program that a signal ended is run once more.
    fn start(&self, skip: &str) -> Result<Tally> {
        println!("\n== {}", self.title);
        let (mut tally, status, crashed) = self.once(self.args.iter().copied(), skip)?;
        let mut good = status.success() || crashed.are_all();
        for program in &crashed.programs {
            println!("RUN AGAIN, because a signal ended it: cargo test {program}");
            let args = ["test", "--release"].into_iter().chain(program.split(' '));
            let (again, status, _) = self.once(args.chain(["--", "--show-output"]), skip)?;
            tally.add(again);
            good &= status.success();
        }
        if !good && tally.failed == 0 {
            println!("{}: ended with {status}", self.title);
            tally.failed = 1;
        }
        match self.program {
            Program::Task => Ok(Tally::one(status.success())),
            _ => Ok(tally),
        }
    }

    /// Runs it once with these arguments: what it counted, how it ended, and the test programs that a signal ended.
    fn once<'a>(&self, args: impl Iterator<Item = &'a str>, skip: &str) -> Result<(Tally, ExitStatus, Crashed)> {
        // The tests of the package know it by another name.
        let chromium = Kind::Chromium.find().ok();
        let mut child = self
            .program
            .command()?
            .args(args)
            .current_dir(root())
            .env("ANYGPU_SKIP", skip)
            .envs(chromium.map(|program| ("CHROMIUM", program)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", self.title))?;
        let mut tally = Tally::default();
        let mut crashed = Crashed::default();
        let stdout = child.stdout.take().context("no output to read")?;
        let stderr = child.stderr.take().context("no errors to read")?;
        std::thread::scope(|scope| {
            let errors = scope.spawn(|| {
                each_line(stderr, |text| {
                    eprint!("{text}");
                    crashed.read(text);
                })
            });
            each_line(stdout, |text| {
                print!("{text}");
                tally.read(text);
            })?;
            errors.join().map_err(|_| anyhow!("the errors could not be read"))?
        })?;
        Ok((tally, child.wait()?, crashed))
    }
}

/// Does something with each line, whatever its encoding.
fn each_line(from: impl Read, mut each: impl FnMut(&str)) -> Result<()> {
    let mut lines = BufReader::new(from);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        each(&String::from_utf8_lossy(&line));
        line.clear();
    }
    Ok(())
}
