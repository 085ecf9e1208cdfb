//! All tests, and what they add up to.

use crate::browser::{self, Kind};
use crate::crashed::Crashed;
use crate::tally::Tally;
use crate::{drivers, models, process, root};
use anyhow::{Context, Result, anyhow};
use clap::ValueEnum;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// One command whose output states how many of its checks passed.
struct Run {
    title: &'static str,
    /// What it needs of the machine.
    needs: Need,
    program: Program,
    args: &'static [&'static str],
}

/// What a run needs of the machine. Without it, it is skipped.
#[derive(Clone, Copy)]
enum Need {
    /// Nothing but Rust.
    Nothing,
    /// The driver of a backend, as [`drivers`] names it.
    Driver(&'static str),
    /// What a page needs: the page itself, and the browser.
    Browser(Kind),
    /// The page, and what old browsers are fetched with and run on.
    OldBrowser,
    /// The page, and Node.js with npm.
    Node,
}

/// What is started.
enum Program {
    Cargo,
    /// This program, which drives a browser.
    Page,
    /// This program, for a task whose exit status is the only result.
    Task,
    Node,
}

/// A run of the conformance suite.
macro_rules! suite {
    ($title:literal, $needs:expr, $($arg:literal),+) => {
        Run {
            title: $title,
            needs: $needs,
            program: Program::Cargo,
            args: &["run", "--quiet", "--release", "-p", "conformance", "--", $($arg),+],
        }
    };
}

/// A run of the arrays that others computed, on some variants.
macro_rules! vectors {
    ($title:literal, $needs:expr, $($variant:literal),+) => {
        suite!($title, $needs, "--vectors", "conformance/vectors", $("--backend", $variant),+)
    };
}

/// A run in a browser.
macro_rules! page {
    ($title:literal, $browser:ident, $backend:literal, $run:literal $(, $arg:literal)*) => {
        Run {
            title: $title,
            needs: Need::Browser(Kind::$browser),
            program: Program::Page,
            args: &["browser", "--browser", Kind::$browser.name(), "--backend", $backend, "--run", $run, "--watchdog", "240" $(, $arg)*],
        }
    };
}

/// A run in an old Chromium.
macro_rules! old {
    ($version:literal, $backend:literal, $run:literal $(, $arg:literal)*) => {
        Run {
            title: concat!("chromium ", $version, ", ", $backend, ": ", $run),
            needs: Need::OldBrowser,
            program: Program::Page,
            args: &["browser", "--browser", concat!("chromium@", $version), "--backend", $backend, "--run", $run, "--watchdog", "240" $(, $arg)*],
        }
    };
}

const RUNS: &[Run] = &[
    Run {
        title: "unit and integration tests",
        needs: Need::Nothing,
        program: Program::Cargo,
        // The lines of tests that skip themselves must be seen to be counted.
        args: &["test", "--release", "--workspace", "--no-fail-fast", "--", "--show-output"],
    },
    Run {
        title: "vectors: as onnx has them",
        needs: Need::Nothing,
        program: Program::Task,
        args: &["vectors", "--check"],
    },
    vectors!("vectors: reference and cpu", Need::Nothing, "reference", "cpu"),
    vectors!("vectors: webgpu", Need::Driver("webgpu"), "webgpu", "webgpu-core", "webgpu-split"),
    vectors!("vectors: webgl", Need::Driver("webgl"), "webgl", "webgl-fold", "webgl-split", "webgl-r32f", "webgl-bits"),
    suite!("conformance: cpu", Need::Nothing, "--backend", "cpu"),
    suite!(
        "conformance: webgpu",
        Need::Driver("webgpu"),
        "--backend",
        "webgpu",
        "--backend",
        "webgpu-core",
        "--backend",
        "webgpu-split",
        "--backend",
        "webgpu-int8"
    ),
    suite!(
        "conformance: webgl, packed",
        Need::Driver("webgl"),
        "--backend",
        "webgl",
        "--backend",
        "webgl-fold",
        "--backend",
        "webgl-split"
    ),
    suite!("conformance: webgl, r32f", Need::Driver("webgl"), "--backend", "webgl-r32f"),
    suite!("conformance: webgl, bits", Need::Driver("webgl"), "--backend", "webgl-bits"),
    suite!("llama.cpp's cases: cpu", Need::Nothing, "--peer", "small", "--backend", "cpu"),
    suite!("llama.cpp's cases: webgpu", Need::Driver("webgpu"), "--peer", "small", "--backend", "webgpu"),
    suite!("llama.cpp's cases: webgl", Need::Driver("webgl"), "--peer", "small", "--backend", "webgl"),
    suite!("random cases: cpu", Need::Nothing, "--random", "500", "--backend", "cpu"),
    suite!(
        "random cases: webgpu",
        Need::Driver("webgpu"),
        "--random",
        "20",
        "--backend",
        "webgpu",
        "--backend",
        "webgpu-core"
    ),
    suite!(
        "random cases: webgl",
        Need::Driver("webgl"),
        "--random",
        "15",
        "--backend",
        "webgl",
        "--backend",
        "webgl-fold",
        "--backend",
        "webgl-bits"
    ),
    suite!("mutation check", Need::Nothing, "--mutate"),
    // WebGPU in software needs a quarter of a second a token or more, so it gets one prompt. The whole suite runs in one
    // browser, on WebGL and on the CPU, and a third of it in others. WebGPU's kernels are shaped for software there, so an
    // eighth runs those for a GPU as well. Checks that have nothing to do with the GPU run on the CPU
    // in Chromium, whose WebGL2 in software takes long to compile.
    page!("chromium, webgpu: conformance", Chromium, "webgpu", "conformance", "--every", "3"),
    page!("chromium, webgpu as on a GPU: conformance", Chromium, "webgpu-core", "conformance", "--every", "8"),
    page!("chromium, webgpu in bytes: conformance", Chromium, "webgpu-int8", "conformance", "--op", "linear"),
    page!("chromium, webgpu: gab", Chromium, "webgpu", "generate", "--prompts", "1", "--tokens", "64"),
    page!("chromium, webgpu: smollm2", Chromium, "webgpu", "generate", "--model", "smollm2", "--prompts", "1"),
    page!("chromium, webgpu: checks", Chromium, "webgpu", "checks", "--only", "selection,device,embedding"),
    page!("chromium, webgl: conformance", Chromium, "webgl", "conformance"),
    page!("chromium, webgl bits: conformance", Chromium, "webgl-bits", "conformance", "--every", "8"),
    page!("chromium, webgl bits: gab", Chromium, "webgl-bits", "generate", "--prompts", "1"),
    page!("chromium, webgl: gab", Chromium, "webgl", "generate", "--prompts", "2"),
    page!("chromium, webgl: smollm2", Chromium, "webgl", "generate", "--model", "smollm2", "--prompts", "1"),
    page!(
        "chromium, webgl: gemma3",
        Chromium,
        "webgl",
        "generate",
        "--model",
        "gemma3",
        "--prompts",
        "1",
        "--tokens",
        "4"
    ),
    page!("chromium, webgl: checks", Chromium, "webgl", "checks", "--only", "selection,device,page,embedding"),
    page!("chromium, cpu: conformance", Chromium, "cpu", "conformance"),
    page!("chromium, cpu: gab", Chromium, "cpu", "generate"),
    page!("chromium, cpu: smollm2", Chromium, "cpu", "generate", "--model", "smollm2"),
    page!("chromium, cpu: gemma3", Chromium, "cpu", "generate", "--model", "gemma3"),
    page!(
        "chromium, cpu: checks",
        Chromium,
        "cpu",
        "checks",
        "--only",
        "selection,generation,embedding,network,cache,files,object,page"
    ),
    page!("firefox, webgl: conformance", Firefox, "webgl", "conformance", "--every", "3"),
    page!("firefox, webgl bits: conformance", Firefox, "webgl-bits", "conformance", "--every", "8"),
    page!("firefox, webgl bits: gab", Firefox, "webgl-bits", "generate", "--prompts", "1"),
    page!("firefox, webgl: gab", Firefox, "webgl", "generate"),
    page!("firefox, webgl: smollm2", Firefox, "webgl", "generate", "--model", "smollm2", "--prompts", "1"),
    page!("firefox, webgl: gemma3", Firefox, "webgl", "generate", "--model", "gemma3", "--prompts", "1"),
    page!(
        "firefox, webgl: checks",
        Firefox,
        "webgl",
        "checks",
        "--only",
        "selection,generation,embedding,network,cache,files,device"
    ),
    page!("firefox, webgpu: conformance", Firefox, "webgpu", "conformance", "--every", "3"),
    page!("firefox, webgpu: gab", Firefox, "webgpu", "generate", "--prompts", "1", "--tokens", "64"),
    page!("firefox, webgpu: smollm2", Firefox, "webgpu", "generate", "--model", "smollm2", "--prompts", "1"),
    page!("firefox, webgpu: checks", Firefox, "webgpu", "checks", "--only", "selection,device,embedding"),
    page!("webkit, webgl: conformance", Webkit, "webgl", "conformance", "--every", "3"),
    page!("webkit, webgl bits: conformance", Webkit, "webgl-bits", "conformance", "--every", "8"),
    page!("webkit, webgl bits: gab", Webkit, "webgl-bits", "generate", "--prompts", "1"),
    page!("webkit, webgl: gab", Webkit, "webgl", "generate"),
    page!("webkit, webgl: smollm2", Webkit, "webgl", "generate", "--model", "smollm2", "--prompts", "1"),
    page!("webkit, webgl: gemma3", Webkit, "webgl", "generate", "--model", "gemma3", "--prompts", "1"),
    page!(
        "webkit, webgl: checks",
        Webkit,
        "webgl",
        "checks",
        "--only",
        "selection,generation,embedding,network,cache,files,device"
    ),
    // The oldest Chromium, with the build for older browsers, and one with that for today. A part of each run: they are to
    // take no more than a few minutes together.
    old!("80", "webgl", "generate", "--prompts", "1", "--tokens", "24"),
    old!("80", "cpu", "generate", "--prompts", "1", "--tokens", "24"),
    old!("80", "webgl", "conformance", "--every", "8"),
    old!("80", "webgl-bits", "conformance", "--every", "8"),
    old!("80", "webgl-bits", "generate", "--prompts", "1", "--tokens", "24"),
    old!("80", "cpu", "conformance", "--every", "8"),
    old!("80", "webgl", "checks", "--only", "workers,build,device,files"),
    old!("80", "cpu", "checks", "--only", "cache,abort"),
    old!("103", "webgl", "generate", "--prompts", "1", "--tokens", "24"),
    old!("103", "cpu", "generate", "--prompts", "1", "--tokens", "24"),
    old!("103", "webgl", "conformance", "--every", "8"),
    old!("103", "cpu", "conformance", "--every", "8"),
    old!("103", "webgl", "checks", "--only", "workers,build,device"),
    old!("103", "cpu", "checks", "--only", "cache,abort"),
    Run { title: "JavaScript package", needs: Need::Node, program: Program::Node, args: &["js/test/run.js"] },
];

/// What takes too long for each change: the whole suite wherever above only a part of it is run in a browser, all prompts of a
/// real model there, and the long cases of llama.cpp's list.
const NIGHTLY: &[Run] = &[
    suite!("llama.cpp's large cases", Need::Nothing, "--peer", "large", "--backend", "cpu"),
    page!("chromium, webgpu: whole conformance", Chromium, "webgpu", "conformance"),
    page!("chromium, webgpu as on a GPU: whole conformance", Chromium, "webgpu-core", "conformance"),
    page!("chromium, webgl bits: whole conformance", Chromium, "webgl-bits", "conformance"),
    page!(
        "chromium, webgpu: gemma3",
        Chromium,
        "webgpu",
        "generate",
        "--model",
        "gemma3",
        "--prompts",
        "1",
        "--tokens",
        "2"
    ),
    page!("firefox, webgl: whole conformance", Firefox, "webgl", "conformance"),
    page!("firefox, webgpu: whole conformance", Firefox, "webgpu", "conformance"),
    page!("firefox, webgl bits: whole conformance", Firefox, "webgl-bits", "conformance"),
    page!("webkit, webgl: whole conformance", Webkit, "webgl", "conformance"),
    page!("firefox, webgl: all of smollm2", Firefox, "webgl", "generate", "--model", "smollm2"),
    page!("webkit, webgl: all of smollm2", Webkit, "webgl", "generate", "--model", "smollm2"),
    page!("webkit, webgl bits: whole conformance", Webkit, "webgl-bits", "conformance"),
];

/// The oldest version of Node.js that can run the tests of the JavaScript package.
const NODE: u64 = 20;

/// The page: sets up what it needs, builds it, and checks that it is small enough.
const PAGE: &[Run] = &[
    Run { title: "page", needs: Need::Nothing, program: Program::Task, args: &["web", "--no-serve"] },
    Run { title: "size", needs: Need::Nothing, program: Program::Task, args: &["size"] },
];

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
            Need::Browser(kind) => {
                let (_, found) = self.browsers.iter().find(|(browser, _)| *browser == kind)?;
                found.as_ref().err().cloned()
            }
            Need::OldBrowser => browser::lacks_for_old(),
            Need::Node => self.node.as_ref().err().cloned(),
        }
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
        summary.note(run.title, tally, Some(begin.elapsed()));
        Ok(())
    }
}

impl Need {
    /// Whether the page must have been built.
    fn page(self) -> bool {
        matches!(self, Need::Browser(_) | Need::OldBrowser | Need::Node)
    }
}

impl Program {
    fn command(&self) -> Result<Command> {
        Ok(match self {
            Program::Cargo => Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())),
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
