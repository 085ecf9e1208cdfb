//! Candidates in the report of a selection.

use serde::{Deserialize, Serialize};

/// A candidate backend.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rung {
    /// Name of the backend and its variant.
    pub name: &'static str,
    /// Names of the device and driver, if the backend could be opened.
    pub adapter: Option<String>,
    /// Whether the device is known to be a GPU emulated in software.
    pub software: bool,
    /// Limits and options of the device that matter.
    pub facts: Vec<(&'static str, String)>,
    /// Time of the test matvec, if it was measured.
    ///
    /// *Units*: milliseconds.
    pub matvec_ms: Option<f64>,
    /// Time that opening, timing and testing it took, as far as these were done.
    ///
    /// *Units*: milliseconds.
    pub tried_ms: Option<f64>,
    /// Outcome of the candidate.
    pub outcome: Outcome,
}

/// Outcome of a candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "reason")]
pub enum Outcome {
    /// It is being tried. Finished reports do not have this outcome.
    Trying,
    /// It runs the model. While other candidates are still tried, it is the fastest so far.
    Chosen,
    /// Another candidate is faster, or this one is software and not twice as fast as the CPU. It was not tested
    /// further.
    Slower,
    /// It cannot run the model on this machine, or computed wrong results.
    Rejected(String),
    /// It was not tried.
    Skipped(String),
}

impl Rung {
    /// Makes a candidate that was not tried.
    pub(crate) fn untried(name: &'static str) -> Rung {
        let outcome = Outcome::Trying;
        Rung { name, adapter: None, software: false, facts: Vec::new(), matvec_ms: None, tried_ms: None, outcome }
    }
}
