//! Reports of selections: the chosen backend, and the reasons against the others.

use std::fmt;

use backend_api::BackendInfo;
use serde::{Deserialize, Serialize};

use crate::proven::Proof;

/// The outcome of a selection.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    /// The rung chosen; none if all were refused.
    pub chosen: Option<&'static str>,
    /// All rungs, best first.
    pub rungs: Vec<Rung>,
    /// Whether it is what was chosen at an earlier start, since nothing has changed. Then only the chosen rung was opened, or
    /// all were to see that they are the same, and the others are told of as they were then.
    pub remembered: bool,
    /// How many self-tests were run.
    pub proofs: usize,
    /// Self-test results that the next selection can use through [`proven`](crate::SelectOptions::proven); absent if
    /// there is nothing new.
    #[serde(skip)]
    pub proof: Option<Box<Proof>>,
}

/// One candidate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rung {
    /// Backend and variant.
    pub name: &'static str,
    /// Device and driver as they name themselves, if it could be opened.
    pub adapter: Option<String>,
    /// Whether the device is known to be a GPU that the CPU imitates.
    pub software: bool,
    /// Limits and options that matter.
    pub facts: Vec<(&'static str, String)>,
    /// The time of the test matvec, if it came to that.
    ///
    /// *Units*: milliseconds.
    pub matvec_ms: Option<f64>,
    /// How long it took to open it, to time it and to test it, as far as it came to that.
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
    /// It is being tried; in no report.
    Trying,
    /// It runs the model; while others are still tried, it is the fastest so far.
    Chosen,
    /// Another one is faster, or this one is software and not twice as fast as the CPU; so it was not tested further.
    Slower,
    /// It cannot run the model here, or gave wrong results.
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

    /// The rung chosen.
    pub fn chosen(&self) -> Option<&Rung> {
        self.rungs.iter().find(|r| r.outcome == Outcome::Chosen)
    }

    /// Why each rung was refused, on one line.
    pub(crate) fn reasons(&self) -> String {
        let reasons = self.rungs.iter().filter_map(|rung| match &rung.outcome {
            Outcome::Rejected(reason) => Some(format!("{}: {reason}", rung.name)),
            _ => None,
        });
        reasons.collect::<Vec<_>>().join("; ")
    }
}

impl fmt::Display for Report {
    /// One line a rung.
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
