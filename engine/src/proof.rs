//! Cached self-test results of devices, as they are stored.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

#[cfg(not(target_arch = "wasm32"))]
use crate::native::{place, seconds};
use crate::rung::{Outcome, Rung};
#[cfg(target_arch = "wasm32")]
use crate::web::{place, seconds};

/// Time for which cached results are valid: browsers do not tell the version of every driver.
///
/// *Units*: seconds.
const HOLDS: i64 = 7 * 24 * 3600;
/// Most selections that are kept.
const MOST: usize = 16;

/// Earlier outcome of a candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Known {
    pub(crate) name: String,
    pub(crate) adapter: Option<String>,
    pub(crate) software: bool,
    pub(crate) facts: Vec<(String, String)>,
    pub(crate) matvec_ms: Option<f64>,
    pub(crate) outcome: Outcome,
}

impl Known {
    pub fn of(rung: &Rung) -> Known {
        let Rung { name, adapter, software, facts, matvec_ms, outcome, .. } = rung.clone();
        let facts = facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Known { name: name.into(), adapter, software, facts, matvec_ms, outcome }
    }

    /// Returns whether the device and its facts are unchanged.
    pub fn is(&self, rung: &Rung) -> bool {
        let facts = rung.facts.iter().map(|(name, value)| (*name, value.as_str()));
        let known = self.facts.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        self.adapter == rung.adapter && self.software == rung.software && known.eq(facts)
    }

    /// Returns whether it could not even be opened.
    pub fn is_absent(&self) -> bool {
        self.adapter.is_none() && matches!(self.outcome, Outcome::Rejected(_))
    }
}

/// Cached results of one selection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    /// The program and the system, or the browser.
    pub(crate) place: String,
    /// Options of the selection.
    pub(crate) asked: String,
    /// Time of the selection.
    ///
    /// *Units*: seconds since 1970.
    pub(crate) at: i64,
    pub(crate) rungs: Vec<Known>,
    /// Self-tests that the chosen candidate has passed.
    pub(crate) cases: BTreeSet<String>,
}

/// Cached self-test results of the devices of a machine. They can be stored as JSON.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Proofs(Vec<Proof>);

impl Proofs {
    /// Adds the results of a selection, in place of older ones with the same place and options.
    pub fn add(&mut self, proof: Proof) {
        self.0.retain(|known| (&known.place, &known.asked) != (&proof.place, &proof.asked));
        self.0.insert(0, proof);
        self.0.truncate(MOST);
    }

    pub(crate) fn find(&self, asked: &str) -> Option<&Proof> {
        let (place, now) = (place(), seconds());
        let holds = |proof: &Proof| (0..HOLDS).contains(&now.saturating_sub(proof.at));
        self.0.iter().find(|proof| holds(proof) && proof.place == place && proof.asked == asked)
    }
}
