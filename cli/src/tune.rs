//! `tune`, and the file that saves its results.

use crate::args::{DeviceArgs, TuneArgs};
use crate::load::Bar;
use crate::output;
use anygpu::Winners;
use anygpu::bench::ModelOptions;
use anygpu::native::{NativeHost, block_on};
use anyhow::{Context, Result, bail};
use etcetera::{BaseStrategy, choose_base_strategy};
use serde::Serialize;
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Most bytes of the file. A larger one was not written by this program.
pub const MOST_BYTES: u64 = 1 << 20;

/// Returns the program's cache folder.
///
/// *Errors*: no home folder is known.
pub fn folder() -> Result<PathBuf> {
    Ok(choose_base_strategy()?.cache_dir().join("anygpu"))
}

/// Returns the path of the results: `--tuning`, or else a file in the cache folder.
fn file(device: &DeviceArgs) -> Result<PathBuf> {
    if let Some(file) = &device.tuning {
        return Ok(file.clone());
    }
    Ok(folder().context("no home folder is known; say where with --tuning FILE")?.join("tuning.json"))
}

fn read(path: &Path) -> Result<Winners> {
    let file = match fs::File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Winners::default()),
        opened => opened?,
    };
    let mut text = String::new();
    file.take(MOST_BYTES).read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}

/// Reads the results for this machine's devices. If the file is unusable, it prints a note, and only speed is lost.
pub fn winners(device: &DeviceArgs) -> Winners {
    let Ok(path) = file(device) else { return Winners::default() };
    read(&path).unwrap_or_else(|error| {
        output::note(&format!("note: {} is not used ({error}); `anygpu tune` writes it anew", path.display()));
        Winners::default()
    })
}

/// Runs `tune`.
pub fn run(args: &TuneArgs, device: &DeviceArgs) -> Result<()> {
    if args.prefill == 0 || args.decode == 0 {
        bail!("--prefill and --decode must be at least 1");
    }
    let name = args.load.model.name();
    let path = file(device)?;
    let bar = Bar::new(&name)?;
    let options = ModelOptions {
        prefill: args.prefill,
        decode: args.decode,
        repeat: args.repeat as usize,
        ..ModelOptions::default()
    };
    let source = args.load.model.open()?;
    let (engine, host) = (args.load.options(device), NativeHost::default());
    let (mut loading, mut doing) = (|at| bar.loading(at), |what: &str| bar.doing(what));
    let report = anygpu::tune(&name, &*source, &engine, &options, &host, &mut loading, &mut doing);
    let report = block_on(report).with_context(|| name.clone());
    bar.clear();
    let report = report?;
    let mut winners = winners(device);
    winners.add(report.winner.clone());
    write(&path, &winners).with_context(|| format!("{} cannot be written", path.display()))?;
    if args.json {
        return Ok(output::json(&report)?);
    }
    Ok(output::text(&format!("{report}kept in {}\n", path.display()))?)
}

/// Writes a file atomically: readers see either the old file or the new one.
///
/// *Errors*: the file cannot be written.
pub fn write(path: &Path, found: &impl Serialize) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let fresh = path.with_extension(format!("{}.new", std::process::id()));
    fs::write(&fresh, serde_json::to_string_pretty(found)?)?;
    Ok(fs::rename(&fresh, path)?)
}
