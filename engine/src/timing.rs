//! Times of the steps of small graphs.

use backend_api::case::Fill;
use backend_api::run::{Host, Rig};
use backend_api::{Backend, Error, Graph, StepParams};

/// Seed of the inputs; a fixed one makes failures repeatable.
const SEED: u64 = 1;
/// Number of measurements of which the shortest counts, since disturbances only make them longer.
const RUNS: usize = 3;

/// Makes a rig for a graph to be timed, with its inputs and weights filled.
///
/// *Errors*: as [`Rig::new`].
pub(crate) fn rig<'a>(backend: &'a dyn Backend, graph: &Graph, fills: &[Fill]) -> Result<Rig<'a>, Error> {
    let rig = Rig::new(backend, graph)?;
    rig.fill(fills, &|index| SEED + index as u64)?;
    Ok(rig)
}

/// Measures so many steps and one read of the last output.
///
/// *Units*: milliseconds.
///
/// *Errors*: those of the backend.
pub(crate) async fn time(rig: &mut Rig<'_>, steps: usize, host: &dyn Host) -> Result<f64, Error> {
    let start = host.now_ms();
    for _ in 0..steps {
        rig.step(&StepParams::at(0, 1))?;
    }
    rig.finish(host).await?;
    Ok(host.now_ms() - start)
}

/// Measures the time of one step when up to `most` steps are submitted before one read, in about `enough_ms`. The
/// overhead of the read is subtracted: on a fast GPU in a browser it costs more than the step.
///
/// *Units*: milliseconds.
///
/// *Errors*: those of the backend.
pub(crate) async fn step_ms(rig: &mut Rig<'_>, most: usize, enough_ms: f64, host: &dyn Host) -> Result<f64, Error> {
    // The first run includes work that the driver has deferred until then.
    time(rig, 1, host).await?;
    let (mut one, mut many) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..RUNS {
        one = one.min(time(rig, 1, host).await?);
        // A device with such long steps needs no long runs.
        if one > enough_ms {
            return Ok(one);
        }
    }
    let more = most.min((enough_ms / one.max(f64::MIN_POSITIVE)) as usize).max(1);
    for _ in 0..RUNS {
        many = many.min(time(rig, 1 + more, host).await?);
    }
    // Browser clocks are coarse, so the difference may come out as 0.
    Ok((many - one).max(many / 100.0) / more as f64)
}
