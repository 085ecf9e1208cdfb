//! A text that moves: begun in Firefox on WebGL, gone on with natively on the CPU, ended in Chromium on WebGPU.

use crate::browser::{Choice, Drive, Run, Visit};
use crate::tally::Tally;
use crate::{programs, root};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use xtask::browsers::Kind;

/// Where sessions wait for the next part. The server of automated runs looks there.
pub const FOLDER: &str = "target/sessions";

const PROMPT: &str = "Once upon a time";
/// Tokens of each part.
const PART: usize = 10;
/// How tokens are drawn, as `js/test/browser/leg.js` draws them.
const SAMPLING: &[&str] = &["--temperature", "1", "--seed", "7", "--top-k", "40", "--top-p", "0.95"];

/// Runs all parts, and the whole undisturbed. True if the tokens are the same.
pub fn run() -> Result<bool> {
    let folder = root().join(FOLDER);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let begun = in_browser(Kind::Firefox, "webgl", None, &folder.join("begun.session"))?;
    let (first, second) = (folder.join("begun.session"), folder.join("gone-on.session"));
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let gone_on = natively(&["--load-session", &text(&first), "--save-session", &text(&second)], PART)?;
    let ended = in_browser(Kind::Chromium, "webgpu", Some("gone-on.session"), &folder.join("ended.session"))?;
    let whole = natively(&[&["--prompt", PROMPT], SAMPLING].concat(), 3 * PART)?;
    let moved = [begun, gone_on, ended].concat();
    let same = moved == whole && whole.len() == 3 * PART;
    println!("moved     {moved:?}\nnot moved {whole:?}");
    println!("{}", Tally::one(same));
    Ok(same)
}

/// A part in a browser: its tokens. The session goes to a file.
fn in_browser(kind: Kind, backend: &str, session: Option<&str>, saved: &Path) -> Result<Vec<u64>> {
    let report = tempfile::NamedTempFile::new().context("cannot make a file for the report")?;
    let drive = Drive {
        browser: Choice { kind, version: None },
        main_thread: false,
        json: Some(report.path().into()),
        timeout: None,
        watchdog: Some(240),
        show: false,
        chromium_flag: Vec::new(),
    };
    let mut pairs = vec![("prompt", PROMPT.to_owned()), ("tokens", PART.to_string())];
    pairs.extend(session.map(|name| ("session", name.to_owned())));
    if !drive.visit_all(&[Visit { run: Run::Leg, backend, pairs, isolated: false }])? {
        bail!("the part in {} failed", kind.name());
    }
    let report: Value = serde_json::from_slice(&fs::read(report.path())?).context("the report is not JSON")?;
    let hex = report["session"].as_str().context("the report has no session")?;
    let byte = |pair: &[u8]| Ok(u8::from_str_radix(std::str::from_utf8(pair)?, 16)?);
    let bytes =
        hex.as_bytes().chunks(2).map(byte).collect::<Result<Vec<_>>>().context("the session is not in digits")?;
    fs::write(saved, bytes).with_context(|| format!("cannot write {}", saved.display()))?;
    tokens(&report)
}

/// A part by the command line, on the CPU.
fn natively(args: &[&str], count: usize) -> Result<Vec<u64>> {
    let mut command = Command::new(programs::built("anygpu")?);
    command.args(["generate", "--model", "gab"]);
    command.args(["--backend", "cpu", "--ignore-eos", "--json", "--max-tokens", &count.to_string()]).args(args);
    let output = command.current_dir(root()).stderr(Stdio::inherit()).output().context("cannot start anygpu")?;
    if !output.status.success() {
        bail!("the native part ended with {}", output.status);
    }
    tokens(&serde_json::from_slice(&output.stdout).context("the answer is not JSON")?)
}

fn tokens(report: &Value) -> Result<Vec<u64>> {
    let list = report["tokens"].as_array().context("there are no tokens")?;
    list.iter().map(|token| token.as_u64().context("a token is no number")).collect()
}
