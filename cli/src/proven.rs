//! The file that keeps what selection has proven, so that the next start need not.

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

/// What was proven on this machine, unless all is to be proven anew. What cannot be read, or is of another version, is
/// proven again.
pub fn read(device: &DeviceArgs) -> Proofs {
    if device.prove {
        return Proofs::default();
    }
    file().and_then(|path| read_from(&path)).unwrap_or_default()
}

/// Adds what a selection has proven. A file that cannot be written costs the next start its time, and nothing else.
pub fn keep(report: &Report) {
    let Some(proof) = &report.proof else { return };
    let Ok(path) = file() else { return };
    let mut proofs = read_from(&path).unwrap_or_default();
    proofs.add((**proof).clone());
    let _ = tune::write(&path, &proofs);
}
