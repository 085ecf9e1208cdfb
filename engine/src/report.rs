//! Reports of selections: the chosen backend, and the reasons against the others.

use std::fmt;

use backend_api::BackendInfo;
use serde::Serialize;

use crate::proof::Proof;
use crate::rung::{Outcome, Rung};

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
