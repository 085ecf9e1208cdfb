//! Cases from outside: arrays that somebody else computed, with operators of ours that must arrive at them.
//!
//! A folder holds cases in one of two forms: a folder per case with `case.json` and `.npy` arrays ([`single`]), or
//! graphs of our operators in `cases.json` with their arrays in `arrays.bin` ([`pack`]). Folders within are looked
//! into as well, one level deep.

mod node;
mod pack;
mod single;

use anygpu_conformance::report::BackendReport;
use anygpu_conformance::run::Outcome;
use anyhow::{Context, Result, ensure};
use backend_api::Backend;
use backend_api::compare::Values;
use std::path::{Path, PathBuf};

/// More elements than any case has reason for; checked before an array is read.
const MAX_ELEMENTS: u64 = 1 << 28;

/// An array with its shape.
#[derive(Debug, Clone)]
struct Array {
    shape: Vec<usize>,
    data: Values,
}

/// How a case is reported: its operator, its name, and how it went.
type Done = (String, String, Outcome);

/// Replays all cases of a folder on a backend. One that the backend refuses has failed.
pub fn replay(dir: &Path, name: &str, backend: &dyn Backend) -> Result<BackendReport> {
    let mut folders = vec![dir.to_path_buf()];
    let read = || format!("cannot read {}", dir.display());
    for entry in std::fs::read_dir(dir).with_context(read)? {
        let path: PathBuf = entry.with_context(read)?.path();
        folders.extend(path.is_dir().then_some(path));
    }
    folders.sort();
    let mut results: Vec<Done> = Vec::new();
    for folder in folders {
        if folder.join("case.json").is_file() {
            results.push(single::replay(&folder, backend));
        }
        if folder.join("cases.json").is_file() {
            results.extend(pack::replay(&folder, backend)?);
        }
    }
    ensure!(!results.is_empty(), "{} holds no case.json and no cases.json", dir.display());
    results.sort_by(|a, b| a.0.cmp(&b.0));
    let mut report = BackendReport::new(name, &backend.info().adapter);
    for (op, label, outcome) in results {
        report.add(&op, &label, outcome, None);
    }
    Ok(report)
}
