//! Hostile files as a person meets them: each is run by the command line, in a process of its own, on a backend.

use super::{Inputs, Options};
use crate::{programs, root};
use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A command that takes longer than this with a small file is a finding.
const LIMIT: Duration = Duration::from_secs(20);
/// Most memory that a command may take with a file of less than [`SMALL`].
const MEMORY: u64 = 1 << 30;
const SMALL: usize = 1_000_000;
/// The longest message of an error.
const MESSAGE: usize = 400;
/// How often a command's memory is looked at. What it held at most is known as long as it runs.
const LOOK: Duration = Duration::from_millis(2);

/// How a command ended.
struct Ended {
    /// None if it had to be ended.
    status: Option<ExitStatus>,
    /// Text of its standard error.
    said: String,
    time: Duration,
    /// Most memory that it held, in bytes, where the system tells.
    memory: u64,
}

impl Ended {
    /// Returns the fault, if there is one.
    fn finding(&self, size: usize) -> Option<String> {
        let Some(status) = self.status else { return Some(format!("no end after {} s", LIMIT.as_secs())) };
        if size < SMALL && self.memory > MEMORY {
            return Some(format!("{} MiB of memory for {size} bytes", self.memory >> 20));
        }
        // Reports of what was chosen come before an error.
        let error = self.said.lines().rev().find(|line| !line.is_empty()).unwrap_or_default();
        match status.code() {
            Some(0) => None,
            Some(1) if self.said.matches("error: ").count() == 0 => Some("an error without a word".into()),
            Some(1) if !error.starts_with("error: ") => Some(format!("an error of several lines: {error:?}")),
            Some(1) if error.chars().count() > MESSAGE => Some(format!("a long error: {error:?}")),
            Some(1) => None,
            _ => Some(format!("{status}: {error:?}")),
        }
    }

    fn ran(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }
}

/// Runs so many files. Whether nothing was found.
pub fn run(options: &Options, inputs: &Inputs, backend: &str) -> Result<bool> {
    let program = programs::built("anygpu")?;
    let folder = root().join("target").join("fuzz");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let bar = ProgressBar::new(options.count.min(u64::from(u32::MAX)));
    bar.set_style(ProgressStyle::with_template("fuzz {bar:40} {pos}/{len}  {msg}")?);
    let begin = Instant::now();
    let (mut findings, mut ran, mut memory, mut times) = (0, 0, 0, Vec::new());
    for number in options.seed..options.seed.saturating_add(options.count) {
        if begin.elapsed().as_secs() >= options.seconds {
            break;
        }
        let target = inputs.target(number).name;
        let (path, bytes) = (folder.join(format!("{backend}-{target}-{number}.gguf")), inputs.input(number));
        fs::write(&path, &bytes).with_context(|| format!("cannot write {}", path.display()))?;
        let again = || {
            let mut command = Command::new(&program);
            command.args(arguments(target, number, &bytes)).arg("--model").arg(&path).args(["--backend", backend]);
            once(command)
        };
        let mut ended = again()?;
        // A busy machine may have been elsewhere the first time.
        if ended.status.is_none() {
            ended = again()?;
        }
        ran += usize::from(ended.ran());
        memory = memory.max(ended.memory);
        times.push(ended.time);
        match ended.finding(bytes.len()) {
            Some(finding) => {
                findings += 1;
                bar.suspend(|| eprintln!("finding: {finding}, kept as {}", path.display()));
            }
            None => fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?,
        }
        bar.inc(1);
        bar.set_message(format!("{ran} ran, {findings} findings"));
    }
    bar.finish_and_clear();
    times.sort();
    let slowest = times.last().copied().unwrap_or_default();
    println!(
        "{backend}: {} files in {} s, {ran} ran and {} were refused; {} ms each, the slowest {} ms; {} MiB at most; \
         {findings} findings",
        times.len(),
        begin.elapsed().as_secs(),
        times.len() - ran,
        times.get(times.len() / 2).map_or(0, Duration::as_millis),
        slowest.as_millis(),
        memory >> 20,
    );
    Ok(findings == 0)
}

/// Returns the arguments for a file, by its kind.
fn arguments(target: &str, number: u64, bytes: &[u8]) -> Vec<&'static str> {
    let has = |name: &[u8]| bytes.windows(name.len()).any(|window| window == name);
    let (embeds, ranks) = (has(b".pooling_type"), has(b"cls.weight") || has(b"cls.output.weight"));
    let words = matches!(target, "model" | "template" | "tokenizer");
    match (embeds, words) {
        (true, true) if ranks => vec!["rerank", "--query", "Once upon", "--document", "a time", "--document", ""],
        (true, true) => vec!["embed", "--text", "Once upon a time"],
        (true, false) => vec!["embed", "--tokens", "1,2,3"],
        (false, true) => {
            let turns: &[_] = if number % 4 < 2 { &["--chat"] } else { &[] };
            let asked = ["generate", "--prompt", "Once upon  a time", "--max-tokens", "4", "--n-ctx", "64"];
            [&asked, turns].concat()
        }
        (false, false) => vec!["logits", "--tokens", "1,2,3,4,5,6", "--n-ctx", "64"],
    }
}

/// Runs a command to its end, or to that of its time.
fn once(mut command: Command) -> Result<Ended> {
    let begin = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start a command")?;
    let said = child.stderr.take().map(|mut output| {
        thread::spawn(move || {
            let mut said = Vec::new();
            // What was said until then counts.
            let _ = output.read_to_end(&mut said);
            String::from_utf8_lossy(&said).into_owned()
        })
    });
    let mut memory = 0;
    let status = loop {
        memory = memory.max(held(&child));
        if let Some(status) = child.try_wait().context("cannot wait for a command")? {
            break Some(status);
        }
        if begin.elapsed() > LIMIT {
            child.kill().context("cannot end a command")?;
            child.wait().context("cannot wait for a command")?;
            break None;
        }
        thread::sleep(LOOK);
    };
    let said = said.and_then(|reader| reader.join().ok()).unwrap_or_default();
    Ok(Ended { status, said, time: begin.elapsed(), memory })
}

/// Most memory that a process held so far.
fn held(child: &Child) -> u64 {
    let path = Path::new("/proc").join(child.id().to_string()).join("status");
    let status = fs::read_to_string(path).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    line.and_then(|kibibytes| kibibytes.parse::<u64>().ok()).map_or(0, |kibibytes| kibibytes << 10)
}
