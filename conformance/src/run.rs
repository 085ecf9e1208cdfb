//! Running one case on one backend.

use backend_api::case::Case;
use backend_api::compare::{Values, worst};
use backend_api::run::{Host, Rig};
use backend_api::{Backend, Error};

/// How a case went.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// Within the tolerance.
    Passed {
        /// The largest NMSE of its results.
        nmse: f64,
        /// The backend does not have the form, so its nodes were run in others.
        expanded: bool,
    },
    /// Outside it, or not to be run at all.
    Failed(String),
}

/// Runs a case on a backend.
///
/// *Errors*: what the backend returns; a guard that was overwritten; a step that made objects, or submitted more than once.
pub async fn run(backend: &dyn Backend, case: &Case, host: &dyn Host) -> Result<(Vec<Values>, bool), Error> {
    let mut rig = Rig::of_case(backend, case)?;
    let before = backend.stats();
    rig.step(&case.step)?;
    let spent = backend.stats().since(&before);
    if spent.objects > 0 || spent.submits > 1 {
        return Err(Error::Invalid(format!(
            "a step made {} objects and {} submits; it may make none and one",
            spent.objects, spent.submits
        )));
    }
    let whole = rig.covers().len() == 1;
    Ok((rig.results(host).await?, !whole))
}

/// Runs a case on a backend and compares with the reference.
pub async fn check(backend: &dyn Backend, reference: &dyn Backend, case: &Case, host: &dyn Host) -> Outcome {
    let expected = match run(reference, case, host).await {
        Ok((values, _)) => values,
        Err(error) => return Outcome::Failed(format!("the reference failed: {error}")),
    };
    match run(backend, case, host).await {
        Ok((found, expanded)) => judge(&found, &expected, case.tolerance_on(backend.info()), expanded),
        Err(error) => Outcome::Failed(error.to_string()),
    }
}

/// Compares all results with a tolerance.
pub fn judge(found: &[Values], expected: &[Values], tolerance: f64, expanded: bool) -> Outcome {
    match worst(found, expected, tolerance) {
        Ok(nmse) => Outcome::Passed { nmse, expanded },
        Err(why) => Outcome::Failed(why),
    }
}
