//! Cache of the backends' self-tests, so that the next start can skip them.

use crate::args::DeviceArgs;
use crate::tune::{self, MOST_BYTES};
use anygpu::{Proofs, Report};
use anyhow::{Context, Result};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

fn file() -> Result<PathBuf> {
    Ok(tune::folder().context("no home folder is known")?.join("proven.json"))
}

fn read_from(path: &Path) -> Result<Proofs> {
    let mut text = String::new();
    File::open(path)?.take(MOST_BYTES).read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}

/// Reads the cached results of this machine. Returns none if `--prove` asks for new self-tests, or if the file is
/// unreadable or of another version.
pub fn read(device: &DeviceArgs) -> Proofs {
    if device.prove {
        return Proofs::default();
    }
    file().and_then(|path| read_from(&path)).unwrap_or_default()
}

/// Adds the result of a selection to the cache. If the file cannot be written, the next start only takes longer.
pub fn keep(report: &Report) {
    let Some(proof) = &report.proof else { return };
    let Ok(path) = file() else { return };
    let mut proofs = read_from(&path).unwrap_or_default();
    proofs.add((**proof).clone());
    let _ = tune::write(&path, &proofs);
}
