//! Cached self-test results of a device, so that the next start tests only the changes.

use std::collections::BTreeSet;
use std::rc::Rc;

use backend_api::Backend;
use backend_api::run::Host;
use model::{Model, Recipe};

use crate::ladder::{Candidate, SelectOptions, opened};
#[cfg(not(target_arch = "wasm32"))]
use crate::native::{place, seconds};
use crate::proof::{Known, Proof};
use crate::report::Report;
use crate::rung::{Outcome, Rung};
use crate::selftest;
#[cfg(target_arch = "wasm32")]
use crate::web::{place, seconds};

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
