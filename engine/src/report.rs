//! Reports of selections: the chosen backend, and the reasons against the others.

use std::fmt;

use backend_api::BackendInfo;
use serde::{Deserialize, Serialize};

use crate::proven::Proof;

/// Result of a selection.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    /// The chosen candidate; absent if all were refused.
    pub chosen: Option<&'static str>,
    /// All candidates, best first.
    pub rungs: Vec<Rung>,
    /// Whether cached results were used, since nothing has changed. In that case only the chosen candidate was opened
    /// (or all were opened, to check that they are unchanged), and the others are reported as they were at that time.
    pub remembered: bool,
    /// Number of self-tests that were run.
    pub proofs: usize,
    /// Self-test results to cache, for [`proven`](crate::SelectOptions::proven) of the next selection; absent if there
    /// is nothing new.
    #[serde(skip)]
    pub proof: Option<Box<Proof>>,
}

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

impl Report {
    /// Makes the report of a backend that the caller chose.
    pub(crate) fn given(info: &BackendInfo) -> Report {
        let (adapter, facts) = (Some(info.adapter.clone()), info.facts.clone());
        let rung = Rung::untried(info.name);
        let rung = Rung { adapter, software: info.software, facts, outcome: Outcome::Chosen, ..rung };
        Report { chosen: Some(info.name), rungs: vec![rung], ..Report::default() }
    }

    /// Returns the chosen candidate.
    pub fn chosen(&self) -> Option<&Rung> {
        self.rungs.iter().find(|r| r.outcome == Outcome::Chosen)
    }

    /// Returns the reasons why candidates were rejected, on one line.
    pub(crate) fn reasons(&self) -> String {
        let reasons = self.rungs.iter().filter_map(|rung| match &rung.outcome {
            Outcome::Rejected(reason) => Some(format!("{}: {reason}", rung.name)),
            _ => None,
        });
        reasons.collect::<Vec<_>>().join("; ")
    }
}

impl fmt::Display for Report {
    /// Writes one line for each candidate.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let chosen_ms = self.chosen().and_then(|rung| rung.matvec_ms);
        let faster = |rung: &Rung| rung.software && rung.matvec_ms.zip(chosen_ms).is_some_and(|(ms, least)| ms < least);
        for (index, rung) in self.rungs.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            let (mark, text) = match &rung.outcome {
                Outcome::Trying => (' ', "being tried".to_owned()),
                Outcome::Chosen => ('*', "chosen".to_owned()),
                Outcome::Slower if faster(rung) => (' ', "software, and not twice as fast as the CPU".to_owned()),
                Outcome::Slower => (' ', "another one is faster".to_owned()),
                Outcome::Rejected(reason) => ('x', reason.clone()),
                Outcome::Skipped(reason) => ('-', format!("not tried: {reason}")),
            };
            write!(f, "{mark} {}", rung.name)?;
            if let Some(adapter) = &rung.adapter {
                write!(f, " on {adapter}")?;
            }
            if let Some(ms) = rung.matvec_ms {
                write!(f, " ({ms:.3} ms a matvec)")?;
            }
            write!(f, ": {text}")?;
        }
        Ok(())
    }
}
