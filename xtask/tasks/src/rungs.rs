//! The table of docs/browsers.md: what generates the right text in which browser.

use crate::browser::{Choice, VERSIONS};
use crate::root;
use anyhow::{Context, Result};
use clap::Args;
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The browsers of this machine; the old ones follow.
const INSTALLED: &[&str] = &["chromium", "firefox", "webkit"];

/// The oldest Chromium that is supported. One before it says what it lacks, and runs nothing.
const OLDEST: u32 = 80;

/// The ways to run a model, as `xtask browser --backend` takes them.
const RUNGS: &[&str] = &["webgpu", "webgl-packed", "webgl-r32f", "webgl-bits", "cpu"];

/// Models, and the number of tokens to generate for the first prompt of each reference.
const MODELS: &[(&str, &str)] = &[("gab", "24"), ("smollm2", "8")];

/// Seconds without progress that count as a hang: compiling for a software GPU is silent for long.
const WATCHDOG: &str = "240";

/// Rows to run.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Take the results that a run before left in target/rungs, and run only what is not there
    #[arg(long)]
    reuse: bool,
}

/// A browser and what it said of each rung: for each model a result of `xtask browser`.
struct Row {
    browser: String,
    rungs: Vec<Vec<Value>>,
}

/// Runs all models on all rungs of all browsers and writes the table. Whether everything passed that a browser has.
pub fn run(options: &Options) -> Result<bool> {
    let folder = root().join("target").join("rungs");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let old = VERSIONS
        .iter()
        .rev()
        .filter(|version| version.number >= OLDEST)
        .map(|version| format!("chromium@{}", version.number));
    let browsers = INSTALLED.iter().map(|name| (*name).to_owned()).chain(old);
    let mut rows = Vec::new();
    for browser in browsers {
        if let Some(remedy) = browser.parse::<Choice>().map_err(anyhow::Error::msg)?.lacks() {
            println!("SKIPPED {browser}: {remedy}");
            continue;
        }
        let mut rungs = Vec::new();
        for rung in RUNGS {
            let results = MODELS.iter().map(|(model, tokens)| {
                let file = folder.join(format!("{browser}-{rung}-{model}.json"));
                if !(options.reuse && file.is_file()) {
                    println!("== {browser}, {rung}: {model}");
                    generate(&browser, rung, model, tokens, &file)?;
                }
                let text =
                    fs::read(&file).with_context(|| format!("{browser} gave no result (the reason is above)"))?;
                serde_json::from_slice(&text)
                    .with_context(|| format!("{} holds no result; remove it and run again", file.display()))
            });
            rungs.push(results.collect::<Result<Vec<Value>>>()?);
        }
        rows.push(Row { browser, rungs });
    }
    let path = root().join("docs").join("browsers.md");
    fs::write(&path, markdown(&rows)).with_context(|| format!("cannot write {}", path.display()))?;
    println!("wrote docs/browsers.md");
    let good = |result: &Value| result["failed"] == 0 || absent(result).is_some();
    Ok(rows.iter().flat_map(|row| row.rungs.iter().flatten()).all(good))
}

/// Has a browser generate. What fails is in the file, and no error here.
fn generate(browser: &str, rung: &str, model: &str, tokens: &str, file: &Path) -> Result<()> {
    if file.is_file() {
        fs::remove_file(file)?;
    }
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["browser", "--browser", browser, "--backend", rung, "--run", "generate", "--model", model]);
    command.args(["--prompts", "1", "--tokens", tokens, "--watchdog", WATCHDOG, "--json"]).arg(file);
    command.current_dir(root()).stdin(Stdio::null());
    command.status().with_context(|| format!("cannot start {browser}"))?;
    Ok(())
}

/// Why a browser does not have a rung; none if it does.
fn absent(result: &Value) -> Option<&str> {
    let rungs = result["selection"]["rungs"].as_array()?;
    let mut tried = rungs.iter().map(|rung| &rung["outcome"]).filter(|outcome| outcome["kind"] != "skipped");
    let reason = tried.next()?["reason"].as_str()?;
    let (_, why) = reason.split_once("is not available here: ")?;
    Some(why.split(';').next().unwrap_or(why))
}

/// A cell of the table: the checks that passed for each model, or what happened instead.
fn cell(results: &[Value], notes: &mut Vec<String>) -> String {
    let note = |notes: &mut Vec<String>, text: &str| {
        let at = notes.iter().position(|note| note == text).unwrap_or_else(|| {
            notes.push(text.to_owned());
            notes.len() - 1
        });
        at + 1
    };
    if let Some(why) = results.iter().find_map(absent) {
        return format!("none ({})", note(notes, why));
    }
    let models = results.iter().map(|result| match (result["passed"].as_u64(), result["failed"].as_u64()) {
        (Some(passed), Some(0)) if passed > 0 => format!("{passed} of {passed}"),
        (Some(passed), Some(failed)) if failed > 0 && result["error"].is_null() => {
            format!("**{failed} of {} FAIL**", passed + failed)
        }
        _ => {
            let error = result["error"].as_str().or_else(|| result["errors"][0].as_str()).unwrap_or("no result");
            format!("**FAILS** ({})", note(notes, error.lines().next().unwrap_or(error)))
        }
    });
    models.collect::<Vec<_>>().join("; ")
}

/// Returns a fact that is the same in all results of a browser.
fn said<'a>(row: &'a Row, of: impl Fn(&'a Value) -> &'a Value) -> &'a str {
    row.rungs.iter().flatten().find_map(|result| of(result).as_str()).unwrap_or("unknown")
}

fn markdown(rows: &[Row]) -> String {
    let mut out = format!(
        "# Browsers\n\n\
         What generates the right text where. For each of {}: so many tokens of the first prompt of its reference, \
         greedily, are the reference's; sampled texts are those of the CPU in the same browser for the same seed; and \
         decoding costs no more uploads, read-backs and objects than it may. A cell has the checks that passed, model by \
         model. All GPUs here are software. No column is chosen by hand: a browser picks the first that it can, from the \
         left.\n\n\
         Written by `cargo xtask rungs`; do not edit.\n\n",
        MODELS.iter().map(|(model, tokens)| format!("{model} ({tokens} tokens)")).collect::<Vec<_>>().join(" and "),
    );
    let mut notes = Vec::new();
    let _ = writeln!(out, "| browser | {} | engine runs in the |", RUNGS.join(" | "));
    let _ = writeln!(out, "|---|{}---|", "---|".repeat(RUNGS.len()));
    for row in rows {
        let cells: Vec<_> = row.rungs.iter().map(|results| cell(results, &mut notes)).collect();
        let thread = said(row, |result| &result["info"]["thread"]);
        let _ = writeln!(out, "| {} | {} | {thread} |", row.browser, cells.join(" | "));
    }
    out.push('\n');
    for (index, note) in notes.iter().enumerate() {
        let _ = writeln!(out, "{}. {note}", index + 1);
    }
    out.push_str("\n| browser | calls itself |\n|---|---|\n");
    for row in rows {
        let _ = writeln!(out, "| {} | {} |", row.browser, said(row, |result| &result["user_agent"]));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rung(kind: &str, reason: &str) -> Value {
        json!({"outcome": {"kind": kind, "reason": reason}})
    }

    #[test]
    fn what_a_browser_lacks_is_no_failure_and_a_failure_is_said() {
        let lacks = "webgpu is not available here: this browser has none; update it";
        let lacking = json!({
            "passed": 0, "failed": 1, "error": "BackendError",
            "selection": {"rungs": [rung("skipped", "another was asked for"), rung("rejected", lacks)]},
        });
        let wrong = json!({
            "passed": 0, "failed": 1, "error": "BackendError: it is wrong\nat a line",
            "selection": {"rungs": [rung("rejected", "the self-test failed")]},
        });
        let mut notes = Vec::new();
        let mut said = |results: &[Value]| cell(results, &mut notes);
        assert_eq!(said(&[lacking.clone(), lacking]), "none (1)");
        assert_eq!(said(&[json!({"passed": 15, "failed": 0}), json!({"passed": 4, "failed": 0})]), "15 of 15; 4 of 4");
        assert_eq!(said(&[json!({"passed": 14, "failed": 1})]), "**1 of 15 FAIL**");
        assert_eq!(said(&[wrong]), "**FAILS** (2)");
        assert_eq!(said(&[json!({"passed": 0, "failed": 0})]), "**FAILS** (3)");
        assert_eq!(notes, ["this browser has none", "BackendError: it is wrong", "no result"]);
    }
}
