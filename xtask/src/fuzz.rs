//! Damaged files by the thousand.

use crate::root;
use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use model::fuzz::{fuzz_one, mutate, seeds};
use std::fs;
use std::panic;
use std::time::{Duration, Instant};

/// An input that takes longer than this is a finding too: a reader must not hang on a bad file.
const SLOW: Duration = Duration::from_secs(2);

/// Runs for a time. Whether nothing was found.
pub fn run(seconds: u64, start: u64) -> Result<bool> {
    let seeds = seeds();
    let folder = root().join("target").join("fuzz");
    let bar = ProgressBar::new(seconds);
    bar.set_style(ProgressStyle::with_template("fuzz {bar:40} {pos}/{len} s  {msg}")?);
    // The message of a panic is worth seeing once per finding, and above the bar.
    let above = bar.clone();
    panic::set_hook(Box::new(move |info| above.suspend(|| eprintln!("{info}"))));

    let (begin, limit) = (Instant::now(), Duration::from_secs(seconds));
    let (mut number, mut findings, mut slowest) = (start, 0u64, Duration::ZERO);
    while begin.elapsed() < limit {
        let input = mutate(&seeds[number as usize % seeds.len()], number);
        let at = Instant::now();
        let panicked = panic::catch_unwind(|| fuzz_one(&input)).is_err();
        slowest = slowest.max(at.elapsed());
        if panicked || at.elapsed() > SLOW {
            findings += 1;
            fs::create_dir_all(&folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
            let path = folder.join(format!("{number}.gguf"));
            fs::write(&path, &input).with_context(|| format!("cannot write {}", path.display()))?;
            let what = if panicked { "a panic" } else { "too slow" };
            bar.suspend(|| eprintln!("finding: {what} on input {number}, kept as {}", path.display()));
        }
        number += 1;
        if number.is_multiple_of(256) {
            bar.set_position(begin.elapsed().as_secs());
            bar.set_message(format!("{} inputs, {findings} findings", number - start));
        }
    }
    bar.finish_and_clear();
    println!(
        "{} inputs in {seconds} s ({start} to {number}), slowest {} ms, {findings} findings",
        number - start,
        slowest.as_millis()
    );
    Ok(findings == 0)
}
