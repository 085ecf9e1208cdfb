//! Damaged and hostile files by the thousand.

mod through;

use crate::root;
use anyhow::{Context, Result, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use model::fuzz::{TARGETS, Target, fuzz_one, seeds};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use std::{env, fs, io, panic, thread};

/// An input that takes longer than this is a finding too: a reader must not hang on a bad file.
const SLOW: Duration = Duration::from_secs(2);
/// An input that takes this long is not waited for.
const HUNG: Duration = Duration::from_secs(30);
/// Stack of wasm in browsers. *Units*: bytes.
const STACK: usize = 1 << 20;

#[derive(Args)]
pub struct Options {
    /// How long to run
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Number of the first input, to continue or to repeat a run: the same numbers are the same inputs
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How many inputs at most
    #[arg(long, default_value_t = u64::MAX, hide_default_value = true)]
    count: u64,
    /// Only these kinds: bits, structure, template, tokenizer, session, model
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Mutate only the fixtures whose path has this, such as families or encoders
    #[arg(long, value_name = "TEXT")]
    files: Option<String>,
    /// Run each file with the command line on this backend, rather than its readers alone
    #[arg(long, value_name = "cpu|webgpu|webgl")]
    through: Option<String>,
    /// Run inputs in this process, and tell another one about each
    #[arg(long, hide = true)]
    worker: bool,
}

/// Runs for a time. Whether nothing was found.
pub fn run(options: &Options) -> Result<bool> {
    let targets: Vec<&Target> = TARGETS
        .iter()
        .filter(|target| options.only.is_empty() || options.only.iter().any(|n| n == target.name))
        // A session is no model.
        .filter(|target| options.through.is_none() || target.name != "session")
        .collect();
    if targets.is_empty() {
        bail!("--only names none of {}", TARGETS.map(|target| target.name).join(", "));
    }
    let inputs = Inputs { targets, files: files(options.files.as_deref())? };
    if options.worker {
        thread::scope(|scope| {
            let work = || work(options, &inputs);
            let worker = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work)?;
            worker.join().unwrap_or_else(|_| bail!("the worker panicked"))
        })?;
        return Ok(true);
    }
    match &options.through {
        Some(backend) => through::run(options, &inputs, backend),
        None => watch(options, &inputs),
    }
}

/// Inputs by their numbers.
struct Inputs {
    targets: Vec<&'static Target>,
    files: Vec<Vec<u8>>,
}

impl Inputs {
    fn target(&self, number: u64) -> &'static Target {
        self.targets[(number % self.targets.len() as u64) as usize]
    }

    fn input(&self, number: u64) -> Vec<u8> {
        (self.target(number).input)(&self.files, number / self.targets.len() as u64)
    }
}

/// Valid files to begin with: small ones of every value type and all fixtures, or only the fixtures whose path has a text.
fn files(named: Option<&str>) -> Result<Vec<Vec<u8>>> {
    let fixtures = root().join("models").join("fixtures");
    let mut paths: Vec<PathBuf> = Vec::new();
    for folder in ["", "families", "encoders", "tokenizers"].map(|name| fixtures.join(name)) {
        let list = fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
        paths.extend(list.filter_map(|entry| Some(entry.ok()?.path())));
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "gguf"));
    let within = |path: &PathBuf| path.strip_prefix(&fixtures).unwrap_or(path).to_string_lossy().into_owned();
    paths.retain(|path| named.is_none_or(|named| within(path).contains(named)));
    paths.sort();
    let mut files = if named.is_none() { seeds() } else { Vec::new() };
    if let (true, Some(named)) = (paths.is_empty(), named) {
        bail!("--files: no fixture's path has {named:?}; models/fixtures has them");
    }
    for path in paths {
        files.push(fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?);
    }
    Ok(files)
}

/// Runs one input after the other, each announced by its number before it begins.
fn work(options: &Options, inputs: &Inputs) -> Result<()> {
    let (begin, limit) = (Instant::now(), Duration::from_secs(options.seconds));
    let mut out = io::stdout().lock();
    for number in options.seed..options.seed.saturating_add(options.count) {
        if begin.elapsed() >= limit {
            break;
        }
        writeln!(out, "{number}")?;
        out.flush()?;
        let input = inputs.input(number);
        let run = || {
            let at = Instant::now();
            panic::catch_unwind(|| fuzz_one(&input)).map(|()| at.elapsed())
        };
        // A busy machine may have been elsewhere the first time.
        match run().and_then(|first| if first > SLOW { run().map(|second| first.min(second)) } else { Ok(first) }) {
            Err(_) => writeln!(out, "a panic")?,
            Ok(time) if time > SLOW => writeln!(out, "{} ms", time.as_millis())?,
            Ok(_) => {}
        }
    }
    Ok(())
}

/// Findings of a run.
struct Found<'i> {
    inputs: &'i Inputs,
    /// Text that the fixtures' paths have.
    files: Option<&'i str>,
    findings: u64,
}

impl Found<'_> {
    /// Keeps an input, and says how to repeat it.
    fn keep(&mut self, number: u64, what: &str, bar: &ProgressBar) -> Result<()> {
        self.findings += 1;
        let folder = root().join("target").join("fuzz");
        fs::create_dir_all(&folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
        let target = self.inputs.target(number).name;
        let path = folder.join(format!("{target}-{number}.gguf"));
        fs::write(&path, self.inputs.input(number)).with_context(|| format!("cannot write {}", path.display()))?;
        let only: Vec<&str> = self.inputs.targets.iter().map(|target| target.name).collect();
        bar.suspend(|| {
            eprintln!("finding: {what} on input {number} ({target}), kept as {}", path.display());
            let files = self.files.map(|named| format!(" --files {named}")).unwrap_or_default();
            eprintln!("repeat: cargo xtask fuzz --seed {number} --count 1 --only {}{files}", only.join(","));
        });
        Ok(())
    }
}

/// Has workers run inputs, and goes on after the one that ended a worker.
fn watch(options: &Options, inputs: &Inputs) -> Result<bool> {
    let bar = ProgressBar::new(options.seconds);
    bar.set_style(ProgressStyle::with_template("fuzz {bar:40} {pos}/{len} s  {msg}")?);
    let begin = Instant::now();
    let mut found = Found { inputs, files: options.files.as_deref(), findings: 0 };
    let mut counts = vec![0u64; inputs.targets.len()];
    let end = options.seed.saturating_add(options.count);
    let mut next = options.seed;
    while next < end && begin.elapsed().as_secs() < options.seconds {
        let mut worker = Command::new(env::current_exe()?)
            .args(["fuzz", "--worker", "--seed", &next.to_string(), "--count", &(end - next).to_string()])
            .args(["--seconds", &(options.seconds - begin.elapsed().as_secs()).to_string()])
            .args(options.only.iter().flat_map(|name| ["--only", name]))
            .args(options.files.iter().flat_map(|named| ["--files", named]))
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start a worker")?;
        let Some(output) = worker.stdout.take() else { bail!("the worker has no output") };
        let (send, lines) = mpsc::channel();
        thread::spawn(move || {
            BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| send.send(line))
        });
        let mut running = None;
        loop {
            match lines.recv_timeout(HUNG) {
                Ok(line) => match (line.parse::<u64>(), running) {
                    (Ok(number), _) => {
                        counts[(number % inputs.targets.len() as u64) as usize] += 1;
                        next = number + 1;
                        running = Some(number);
                        if number.is_multiple_of(256) {
                            bar.set_position(begin.elapsed().as_secs());
                            bar.set_message(format!(
                                "{} inputs, {} findings",
                                counts.iter().sum::<u64>(),
                                found.findings
                            ));
                        }
                    }
                    (Err(_), Some(number)) => found.keep(number, &line, &bar)?,
                    (Err(_), None) => bail!("the worker says {line:?}"),
                },
                Err(RecvTimeoutError::Timeout) => {
                    worker.kill().context("cannot end a worker")?;
                    worker.wait().context("cannot wait for a worker")?;
                    let Some(number) = running else { bail!("the worker did not begin") };
                    found.keep(number, "no end", &bar)?;
                    break;
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let status = worker.wait().context("cannot wait for a worker")?;
                    match running {
                        Some(number) if !status.success() => found.keep(number, &status.to_string(), &bar)?,
                        None if !status.success() => bail!("the worker did not begin ({status})"),
                        _ => {}
                    }
                    break;
                }
            }
        }
    }
    bar.finish_and_clear();
    let counted: Vec<String> =
        inputs.targets.iter().zip(&counts).map(|(target, count)| format!("{count} {}", target.name)).collect();
    println!(
        "{} inputs in {} s ({} to {next}; {}), {} findings",
        counts.iter().sum::<u64>(),
        begin.elapsed().as_secs(),
        options.seed,
        counted.join(", "),
        found.findings
    );
    Ok(found.findings == 0)
}
