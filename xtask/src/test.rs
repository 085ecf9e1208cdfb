//! All tests, and what they add up to.

use crate::browsers::{self, Kind};
use crate::runs::{NIGHTLY, Need, PAGE, PAGE_WITH_THREADS, Program, RUNS, Run};
use crate::tally::Tally;
use crate::{arm, crashed, drivers, nats, process, programs, root, toolchain};
use anyhow::{Context, Result, anyhow};
use clap::ValueEnum;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// The oldest version of Node.js that can run the tests of the JavaScript package.
const NODE: u64 = 20;
/// The most runs at a time: each may take a few gigabytes.
const MOST_AT_A_TIME: usize = 4;
/// The program of the other tasks, which runs browsers, pools and whatever else is more than one command.
const TASKS: &str = "tasks";
/// Of what a failed run printed, so many lines are said again at the end, so many of them its last ones, each cut to a length.
const MOST_LINES: usize = 24;
const LAST_LINES: usize = 12;
const LINE_LEN: usize = 160;
/// How long all runs of a change take on two processors, half of it to compile. *Units*: minutes.
const MINUTES: u64 = 60;

/// Describes the task in its help.
pub const ABOUT: &str = "Run all tests: models are fetched, then unit tests, conformance, the mutation check, the page in \
    every browser; says first what it will run and how long that takes";

/// Chooses among all runs.
#[derive(Debug, Clone, clap::Args)]
#[command(
    after_help = "Says first which GPU drivers and browsers this machine has, and how to install those that are \
    missing. What they leave out is counted as skipped. The last line is `N passed, N failed, N skipped`; the exit code is 1 \
    if anything failed."
)]
pub struct Options {
    /// Only runs that have this in their title, such as `firefox` or `conformance`
    #[arg(long, default_value = "", hide_default_value = true)]
    only: String,
    /// Also what takes too long for each change: the whole suite in all browsers, llama.cpp's large cases
    #[arg(long)]
    nightly: bool,
    /// Only say what would be run, and how long it takes
    #[arg(long)]
    list: bool,
}

/// Runs everything, or the chosen runs. True if everything passed.
pub fn run(options: &Options) -> Result<bool> {
    let (only, nightly) = (options.only.as_str(), options.nightly);
    let machine = Machine::look(nightly);
    machine.print();
    let all: Vec<&Run> =
        RUNS.iter().chain(if nightly { NIGHTLY } else { &[] }).filter(|run| run.title.contains(only)).collect();
    let (pages, native): (Vec<&Run>, Vec<&Run>) = all.into_iter().partition(|run| run.needs.page());
    let page = (!pages.is_empty()).then_some(if nightly { &PAGE_WITH_THREADS } else { &PAGE });
    machine.print_plan(native.iter().copied().chain(page).chain(pages.iter().copied()), options);
    if options.list {
        return Ok(true);
    }
    let tasks = programs::built(TASKS)?;
    let mut summary = Summary::default();

    if only.is_empty() || !root().join("models").join("cache").is_dir() {
        println!("\n== models");
        let fetched = Command::new(&tasks).arg("models").current_dir(root()).status();
        summary.note("models", Tally::one(fetched.context("cannot start the tasks")?.success()), None, String::new());
    }
    // The longest two first: all tests of the workspace, and beside them the page.
    let (tests, others) = native.split_at(native.len().min(1));
    let first: Vec<&Run> = tests.iter().copied().chain(page).chain(others.iter().copied()).collect();
    machine.start_together(&first, &mut summary)?;
    if page.is_some_and(|page| summary.failed(page)) {
        println!("\nWithout a page nothing can be run in browsers.");
    } else {
        machine.start_together(&pages, &mut summary)?;
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
    /// Titles of the runs that failed, and their reasons.
    reasons: Vec<(&'static str, String)>,
    /// How to install whatever skipped runs need.
    remedies: BTreeSet<String>,
}

impl Summary {
    fn note(&mut self, title: &'static str, tally: Tally, elapsed: Option<Duration>, output: String) {
        self.total.add(tally);
        self.lines.push((title, tally, elapsed));
        if tally.failed > 0 {
            self.reasons.push((title, reason(&output)));
        }
    }

    /// Whether a run that has ended was not good.
    fn failed(&self, run: &Run) -> bool {
        self.lines.iter().any(|(title, tally, _)| *title == run.title && tally.failed > 0)
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
        // Again, where nobody has to look for it: the output before has tens of thousands of lines.
        for (title, reason) in &self.reasons {
            println!("\n== FAILED: {title}\n{reason}");
        }
        println!("\n{}", self.total);
    }
}

/// Drivers, browsers and tools of this machine.
struct Machine {
    drivers: Vec<drivers::Driver>,
    browsers: Vec<(Kind, Result<PathBuf, String>)>,
    node: Result<(), String>,
    /// Whether GPU drivers in software compile as they do for a user.
    nightly: bool,
}

impl Machine {
    fn look(nightly: bool) -> Machine {
        let node = match node() {
            Some(major) if major >= NODE => Ok(()),
            _ => Err(format!("Node.js {NODE} or later, with npm (https://nodejs.org)")),
        };
        let browsers = Kind::value_variants().iter().map(|kind| (*kind, kind.find())).collect();
        Machine { drivers: drivers::find(), browsers, node, nightly }
    }

    /// Variables of the environment for each run.
    fn environment(&self) -> Vec<(&'static str, String)> {
        let missing = self.drivers.iter().filter(|driver| driver.found.is_err()).map(|driver| driver.backend);
        let mut variables = vec![("ANYGPU_SKIP", missing.collect::<Vec<_>>().join(","))];
        // The tests of the package know it by another name.
        let chromium = Kind::Chromium.find().ok();
        variables.extend(chromium.map(|program| ("CHROMIUM", program.to_string_lossy().into_owned())));
        let quick: &[(&str, &str)] = if self.nightly { &[] } else { &drivers::QUICK };
        let unset = drivers::SAFE
            .iter()
            .chain(&drivers::ALONE)
            .chain(quick)
            .filter(|(name, _)| std::env::var_os(name).is_none());
        variables.extend(unset.map(|(name, value)| (*name, (*value).to_string())));
        variables
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

    /// Says what will be run, what will be skipped, and how long it takes.
    fn print_plan<'a>(&self, runs: impl Iterator<Item = &'a Run>, options: &Options) {
        let (lacking, runs): (Vec<&Run>, Vec<&Run>) = runs.partition(|run| self.lacks(run.needs).is_some());
        println!("runs");
        runs.iter().for_each(|run| println!("  {}", run.title));
        lacking.iter().for_each(|run| println!("  {} (SKIPPED)", run.title));
        let time = match options {
            Options { only, .. } if !only.is_empty() => String::new(),
            Options { nightly: true, .. } => {
                format!("; hours: those of a change alone take about {MINUTES} minutes on two processors")
            }
            _ => format!("; about {MINUTES} minutes on two processors, compiling included"),
        };
        println!("{} runs, {} skipped{time}", runs.len(), lacking.len());
    }

    /// Names a requirement that is missing, and how to install it.
    fn lacks(&self, need: Need) -> Option<String> {
        match need {
            Need::Nothing | Need::Page => None,
            Need::Driver(backend) => {
                let driver = self.drivers.iter().find(|driver| driver.backend == backend)?;
                driver.found.as_ref().err().map(|remedy| format!("the driver of {backend}: {remedy}"))
            }
            Need::Avx2 => (!has_avx2()).then(|| "a processor with AVX2".into()),
            Need::Arm => arm::lacks(),
            Need::System(system) => toolchain::checks(system.target()).err().map(|error| error.to_string()),
            Need::Browser(kind) => self.lacks_one(&[kind]),
            Need::Browsers(kinds) => self.lacks_one(kinds),
            Need::OldBrowser => browsers::lacks_for_old(),
            Need::Nats => nats::lacks(),
            Need::Node | Need::NodeAlone => self.node.as_ref().err().cloned(),
        }
    }

    /// Returns how to install the first of some browsers that is missing.
    fn lacks_one(&self, kinds: &[Kind]) -> Option<String> {
        let wanted = self.browsers.iter().filter(|(kind, _)| kinds.contains(kind));
        wanted.filter_map(|(_, found)| found.as_ref().err().cloned()).next()
    }

    /// Starts runs, or skips them; as many at a time as there are processors, for most use only one. What several print is
    /// shown run by run, when each has ended.
    fn start_together(&self, runs: &[&Run], summary: &mut Summary) -> Result<()> {
        let environment = self.environment();
        let (lacking, runs): (Vec<&Run>, Vec<&Run>) = runs.iter().partition(|run| self.lacks(run.needs).is_some());
        for run in lacking {
            let remedy = self.lacks(run.needs).unwrap_or_default();
            println!("\n== {}: SKIPPED, because this is missing: {remedy}", run.title);
            summary.remedies.insert(remedy);
            summary.note(run.title, Tally::skip(), None, String::new());
        }
        let workers = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_AT_A_TIME).min(runs.len());
        let next = AtomicUsize::new(0);
        let ended = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            let work = || -> Result<()> {
                while let Some(run) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let begin = Instant::now();
                    let screen = Screen::new(run.title, workers == 1);
                    screen.out(&format!("\n== {}\n", run.title));
                    let tally = run.start(&environment, &screen)?;
                    screen.out(&format!("({:.0} s)\n", begin.elapsed().as_secs_f64()));
                    locked(&ended).push((run.title, tally, begin.elapsed(), screen.end()));
                }
                Ok(())
            };
            let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
            threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| anyhow!("a worker panicked"))?)
        })?;
        let mut ended = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
        ended.sort_by_key(|(title, ..)| runs.iter().position(|run| run.title == *title));
        ended.into_iter().for_each(|(title, tally, elapsed, output)| summary.note(title, tally, Some(elapsed), output));
        Ok(())
    }
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    std::arch::is_x86_feature_detected!("avx2")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx2() -> bool {
    false
}

impl Need {
    /// Whether the page must have been built.
    fn page(self) -> bool {
        matches!(self, Need::Page | Need::Browser(_) | Need::Browsers(_) | Need::OldBrowser | Need::Node)
    }
}

impl Program {
    fn command(&self) -> Result<Command> {
        Ok(match self {
            Program::Cargo => crashed::with_cores(&process::cargo()),
            Program::Suite => Command::new(programs::built("conformance")?),
            Program::Page | Program::Task => Command::new(programs::path(TASKS)),
            Program::Node => Command::new("node"),
        })
    }
}

impl Run {
    /// Runs it. A run that exits with an error without having counted a failure counts as one, so that a test program that a
    /// signal ended fails it.
    fn start(&self, environment: &[(&str, String)], screen: &Screen) -> Result<Tally> {
        let begin = SystemTime::now();
        let (mut tally, status) = self.once(environment, screen)?;
        if matches!(self.program, Program::Cargo) {
            screen.out(&crashed::backtraces(begin)?);
        }
        if !status.success() && tally.failed == 0 {
            screen.out(&format!("{}: ended with {status}\n", self.title));
            tally.failed = 1;
        }
        match self.program {
            Program::Task => Ok(Tally::one(status.success())),
            _ => Ok(tally),
        }
    }

    /// Runs it to its end: what it counted, and how it ended.
    fn once(&self, environment: &[(&str, String)], screen: &Screen) -> Result<(Tally, ExitStatus)> {
        let mut child = self
            .program
            .command()?
            .args(self.args)
            .current_dir(root())
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", self.title))?;
        let mut tally = Tally::default();
        let stdout = child.stdout.take().context("no output to read")?;
        let stderr = child.stderr.take().context("no errors to read")?;
        std::thread::scope(|scope| {
            let errors = scope.spawn(|| each_line(stderr, |text| screen.err(text)));
            each_line(stdout, |text| {
                screen.out(text);
                tally.read(text);
            })?;
            errors.join().map_err(|_| anyhow!("the errors could not be read"))?
        })?;
        Ok((tally, child.wait()?))
    }
}

/// Output of a run: shown at once, or all together when it has ended.
struct Screen {
    at_once: bool,
    output: Mutex<String>,
}

impl Screen {
    /// Says what begins.
    fn new(title: &str, at_once: bool) -> Screen {
        if !at_once {
            println!("... {title}");
        }
        Screen { at_once, output: Mutex::default() }
    }

    fn out(&self, text: &str) {
        if self.at_once {
            print!("{text}");
        }
        locked(&self.output).push_str(text);
    }

    fn err(&self, text: &str) {
        if self.at_once {
            eprint!("{text}");
        }
        locked(&self.output).push_str(text);
    }

    /// Returns all that was printed.
    fn end(self) -> String {
        let output = self.output.into_inner().unwrap_or_else(PoisonError::into_inner);
        if !self.at_once {
            print!("{output}");
        }
        output
    }
}

/// The lines of an output that say why it failed: those with one of the usual words and the two after each, and the last ones.
fn reason(output: &str) -> String {
    let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    let says = |line: &&str| {
        ["FAILED", "panicked at", "error: ", "error[", "(signal: ", "not ok "].iter().any(|word| line.contains(word))
    };
    let at = |i: usize| lines[i.saturating_sub(2)..=i].iter().any(says) || i + LAST_LINES >= lines.len();
    let told: Vec<String> =
        (0..lines.len()).filter(|i| at(*i)).map(|i| lines[i].chars().take(LINE_LEN).collect()).collect();
    told[told.len().saturating_sub(MOST_LINES)..].join("\n")
}

/// Locks a mutex; a panic elsewhere does not spoil it.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_a_failure_is_short_and_has_what_matters() {
        let many = |word: &str| (0..50).map(|i| format!("{word} {i}\n")).collect::<String>();
        let panic = "thread 'a' panicked at b.rs:1:2:\nleft: 1\nright: 2\n";
        let told = reason(&format!("{}{panic}\n{}", many("ok"), many("line")));
        assert_eq!(told, format!("{panic}{}", many("line").lines().skip(38).collect::<Vec<_>>().join("\n")));
        // Not each line with a name of a module.
        assert!(!reason(&format!("test serve::error::tests::a ... ok\n{}", many("line"))).contains("serve"));
        let told = reason(&format!("test a ... FAILED\n{}{}", "panicked at\n".repeat(30), "é".repeat(500)));
        assert_eq!(told.lines().count(), MOST_LINES);
        assert_eq!(told.lines().last().unwrap().chars().count(), LINE_LEN);
        assert_eq!(reason(""), "");
    }
}
