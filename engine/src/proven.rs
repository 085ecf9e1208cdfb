//! Cached self-test results of a device, so that the next start tests only the changes.

use std::collections::BTreeSet;
use std::rc::Rc;

use backend_api::Backend;
use backend_api::run::Host;
use model::{Model, Recipe};
use serde::{Deserialize, Serialize};

use crate::ladder::Candidate;
#[cfg(not(target_arch = "wasm32"))]
use crate::native::{place, seconds};
use crate::report::{Outcome, Report, Rung};
use crate::select::{SelectOptions, opened};
use crate::selftest;
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
struct Known {
    name: String,
    adapter: Option<String>,
    software: bool,
    facts: Vec<(String, String)>,
    matvec_ms: Option<f64>,
    outcome: Outcome,
}

impl Known {
    fn of(rung: &Rung) -> Known {
        let Rung { name, adapter, software, facts, matvec_ms, outcome, .. } = rung.clone();
        let facts = facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Known { name: name.into(), adapter, software, facts, matvec_ms, outcome }
    }

    /// Returns whether the device and its facts are unchanged.
    fn is(&self, rung: &Rung) -> bool {
        let facts = rung.facts.iter().map(|(name, value)| (*name, value.as_str()));
        let known = self.facts.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        self.adapter == rung.adapter && self.software == rung.software && known.eq(facts)
    }

    /// Returns whether it could not even be opened.
    fn is_absent(&self) -> bool {
        self.adapter.is_none() && matches!(self.outcome, Outcome::Rejected(_))
    }
}

/// Cached results of one selection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    /// The program and the system, or the browser.
    place: String,
    /// Options of the selection.
    asked: String,
    /// Time of the selection.
    ///
    /// *Units*: seconds since 1970.
    at: i64,
    rungs: Vec<Known>,
    /// Self-tests that the chosen candidate has passed.
    cases: BTreeSet<String>,
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

    fn find(&self, asked: &str) -> Option<&Proof> {
        let (place, now) = (place(), seconds());
        let holds = |proof: &Proof| (0..HOLDS).contains(&now.saturating_sub(proof.at));
        self.0.iter().find(|proof| holds(proof) && proof.place == place && proof.asked == asked)
    }
}

/// Returns a selection's options as text, without its cached results.
fn asked(options: &SelectOptions) -> String {
    let SelectOptions { backend, webgpu_max_binding, webgpu_products, webgl_layout, .. } = options;
    let SelectOptions { webgl_max_texture_size, cpu_threads, without, candidates, .. } = options;
    let webgl = (webgl_layout, webgl_max_texture_size);
    let own: Vec<&str> = candidates.iter().map(|candidate| candidate.name).collect();
    format!("{backend:?} {webgpu_max_binding:?} {webgpu_products:?} {webgl:?} {cpu_threads:?} {without:?} {own:?}")
}

/// Returns the results of a selection to cache. Returns nothing if a device could be opened but was rejected: it may
/// suit another model, or the failure may have been temporary.
pub(crate) fn proof(options: &SelectOptions, rungs: &[Rung], cases: BTreeSet<String>) -> Option<Box<Proof>> {
    let refused = |rung: &Rung| rung.adapter.is_some() && matches!(rung.outcome, Outcome::Rejected(_));
    if rungs.iter().any(refused) {
        return None;
    }
    let rungs = rungs.iter().map(Known::of).collect();
    Some(Box::new(Proof { place: place(), asked: asked(options), at: seconds(), rungs, cases }))
}

/// Repeats a cached selection if nothing relevant has changed. The chosen candidate is opened, checked for the model's
/// operators, and runs only the self-tests that it has not passed before. Candidates that were absent are tried again.
/// If a software device was chosen, all others are tried again, since a real GPU would be better. Returns nothing if
/// any of them has changed.
pub(crate) async fn recall(
    recipe: &Recipe,
    options: &SelectOptions,
    host: &dyn Host,
) -> Option<(Rc<dyn Backend>, Report)> {
    let start = host.now_ms();
    let proof = options.proven.find(&asked(options))?;
    let known = proof.rungs.iter().find(|rung| rung.outcome == Outcome::Chosen)?;
    let candidate = Candidate::named(&known.name, options).filter(|candidate| candidate.excluded(options).is_none())?;
    let mut chosen = Rung::untried(candidate.name);
    let backend = opened(&candidate, options, &mut chosen).await.ok().filter(|_| known.is(&chosen))?;
    let imitated = known.software || candidate.is_cpu();
    let was_tried = |rung: &Known| !matches!(rung.outcome, Outcome::Skipped(_) | Outcome::Chosen);
    for other in proof.rungs.iter().filter(|rung| was_tried(rung) && (imitated || rung.is_absent())) {
        let candidate = Candidate::named(&other.name, options)?;
        let mut rung = Rung::untried(candidate.name);
        // An absent candidate leaves `rung` as it was, which the comparison sees.
        let _ = opened(&candidate, options, &mut rung).await;
        if !other.is(&rung) {
            return None;
        }
    }
    Model::check(recipe, &*backend).ok()?;
    let graph = recipe.graph(1, recipe.head()).ok()?;
    let passed = selftest::prove(&*backend, &graph, host, &proof.cases).await.ok()?;
    chosen.tried_ms = Some(host.now_ms() - start);
    chosen.matvec_ms = known.matvec_ms;
    chosen.outcome = Outcome::Chosen;
    let rungs = proof.rungs.iter().filter_map(|known| {
        let Known { name, adapter, software, matvec_ms, outcome, .. } = known.clone();
        let candidate = Candidate::named(&name, options)?;
        let rung = Rung { adapter, software, matvec_ms, outcome, ..Rung::untried(candidate.name) };
        Some(if candidate.name == chosen.name { chosen.clone() } else { rung })
    });
    let cases = || proof.cases.union(&passed).cloned().collect();
    let report = Report {
        chosen: Some(candidate.name),
        rungs: rungs.collect(),
        remembered: true,
        proofs: passed.len(),
        proof: (!passed.is_empty()).then(|| Box::new(Proof { cases: cases(), ..proof.clone() })),
    };
    Some((backend, report))
}
