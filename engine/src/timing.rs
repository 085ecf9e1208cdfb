//! How long the steps of a small graph take.

use backend_api::case::Fill;
use backend_api::run::{Host, Rig};
use backend_api::{Backend, Error, Graph, StepParams};

/// Any seed does; the same one everywhere makes failures repeatable.
const SEED: u64 = 1;
/// Measurements of which the best counts: whatever disturbs one makes it longer.
const RUNS: usize = 3;

/// A graph to be timed, whose externals are filled.
///
/// *Errors*: as [`Rig::new`].
pub(crate) fn rig<'a>(backend: &'a dyn Backend, graph: &Graph, fills: &[Fill]) -> Result<Rig<'a>, Error> {
    let rig = Rig::new(backend, graph)?;
    rig.fill(fills, &|index| SEED + index as u64)?;
    Ok(rig)
}

/// How long so many steps and one read of the last output take.
///
/// *Units*: milliseconds.
///
/// *Errors*: what the backend returns.
pub(crate) async fn time(rig: &mut Rig<'_>, steps: usize, host: &dyn Host) -> Result<f64, Error> {
    let start = host.now_ms();
    for _ in 0..steps {
        rig.step(&StepParams::at(0, 1))?;
    }
    rig.finish(host).await?;
    Ok(host.now_ms() - start)
}

/// The time of one step where up to `most` are under way before one read, as far as `enough_ms` allows. What a read
/// costs besides is taken off where it matters: on a fast GPU in a browser it costs more than the step.
///
/// *Units*: milliseconds.
///
/// *Errors*: what the backend returns.
pub(crate) async fn step_ms(rig: &mut Rig<'_>, most: usize, enough_ms: f64, host: &dyn Host) -> Result<f64, Error> {
    // The first run pays for what the driver puts off until then.
    time(rig, 1, host).await?;
    let (mut one, mut many) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..RUNS {
        one = one.min(time(rig, 1, host).await?);
        // A slow device is known to be slow after one run.
        if one > enough_ms {
            return Ok(one);
        }
    }
    let more = most.min((enough_ms / one.max(f64::MIN_POSITIVE)) as usize).max(1);
    for _ in 0..RUNS {
        many = many.min(time(rig, 1 + more, host).await?);
    }
    // Clocks of browsers are coarse: the difference may come out as nothing.
    Ok((many - one).max(many / 100.0) / more as f64)
}
