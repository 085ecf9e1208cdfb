//! Selection of a backend: candidates are opened, checked for the model's operators, self-tested and timed.

use std::collections::BTreeSet;
use std::rc::Rc;

use backend_api::run::{Host, Rig};
use backend_api::{Backend, DType, Error, Format, Graph};
use model::{Model, Recipe};

use crate::error::EngineError;
use crate::ladder::{Candidate, Choice, Family, SelectOptions, ladder, opened};
use crate::proven;
use crate::race::{Device, Next, Side, next};
use crate::report::Report;
use crate::rung::{Outcome, Rung};
use crate::selftest::{self, Matvec};

/// Chooses a backend, for a model if there is one.
///
/// If speed decides, the CPU is tried first: it is always available, and slower candidates then need no self-tests.
/// Cached self-test results are used if they are still valid.
///
/// *Errors*: none of the allowed backends works; the error has the report.
pub async fn select(
    recipe: Option<&Recipe>,
    options: &SelectOptions,
    host: &dyn Host,
) -> Result<(Rc<dyn Backend>, Report), EngineError> {
    select_telling(recipe, options, host, &mut |_| {}).await
}

/// Selects a backend, and calls `on_rung` for each candidate when it is tried and whenever it has an outcome. Cached
/// results are reported all at once.
///
/// *Errors*: as [`select`].
pub async fn select_telling(
    recipe: Option<&Recipe>,
    options: &SelectOptions,
    host: &dyn Host,
    on_rung: &mut dyn FnMut(&Rung),
) -> Result<(Rc<dyn Backend>, Report), EngineError> {
    if let Some(recipe) = recipe
        && let Some((backend, report)) = proven::recall(recipe, options, host).await
    {
        report.rungs.iter().for_each(on_rung);
        return Ok((backend, report));
    }
    let ladder = ladder(options);
    let mut rungs: Vec<Rung> = ladder.iter().map(|candidate| Rung::untried(candidate.name)).collect();
    let auto = options.backend == Choice::Auto;
    let (first, then): (Vec<usize>, Vec<usize>) = (0..ladder.len()).partition(|index| !auto || ladder[*index].is_cpu());
    let mut best: Option<Holder> = None;
    let mut proofs = 0;
    let mut healthy: Vec<Family> = Vec::new();
    for index in first.into_iter().chain(then) {
        let candidate = &ladder[index];
        let skipped = match candidate.excluded(options) {
            Some(why) => Some(why),
            None if healthy.contains(&candidate.family) => Some("a better variant of this backend works"),
            None if !healthy.is_empty() && !auto => Some("a better backend works"),
            None => None,
        };
        if let Some(why) = skipped {
            rungs[index].outcome = Outcome::Skipped(why.into());
            on_rung(&rungs[index]);
            continue;
        }
        on_rung(&rungs[index]);
        let start = host.now_ms();
        let holder = best.as_mut().map(|held| (&*held.backend, &mut held.matvec));
        let proven = prove(candidate, recipe, options, host, holder, &mut rungs[index]).await;
        rungs[index].tried_ms = Some(host.now_ms() - start);
        if let Some(Holder { index, matvec: Matvec { failed: Some(error), .. }, .. }) = &best {
            rungs[*index].outcome = Outcome::Rejected(error.to_string());
            on_rung(&rungs[*index]);
            best = None;
        }
        match proven {
            Err(reason) => rungs[index].outcome = Outcome::Rejected(reason),
            Ok((backend, matvec, passed)) => {
                healthy.push(candidate.family);
                rungs[index].matvec_ms = Some(matvec.ms());
                rungs[index].outcome = Outcome::Slower;
                if let Some(cases) = passed {
                    proofs += cases.len();
                    rungs[index].outcome = Outcome::Chosen;
                    if let Some(held) = best.replace(Holder { index, backend, matvec, cases }) {
                        rungs[held.index].matvec_ms = Some(held.matvec.ms());
                        rungs[held.index].outcome = Outcome::Slower;
                        on_rung(&rungs[held.index]);
                    }
                }
            }
        }
        on_rung(&rungs[index]);
        host.turn().await;
    }
    let mut report = Report { rungs, proofs, ..Report::default() };
    let Some(Holder { index, backend, matvec, cases }) = best else { return Err(EngineError::NoBackend(report)) };
    let rung = &mut report.rungs[index];
    // Later races may have measured a shorter time.
    rung.matvec_ms = Some(matvec.ms());
    report.chosen = Some(rung.name);
    report.proof = recipe.and_then(|_| proven::proof(options, &report.rungs, cases));
    Ok((backend, report))
}

/// The fastest candidate so far.
struct Holder {
    index: usize,
    backend: Rc<dyn Backend>,
    matvec: Matvec,
    /// The self-tests that it has passed.
    cases: BTreeSet<String>,
}

/// Time that a lost device gets to come back: browsers restart their GPU process.
///
/// *Units*: milliseconds.
const LOST_PAUSE: f64 = 250.0;

/// Opens, checks and times a candidate and, if it is faster than the holder, self-tests it. Tries once more if its
/// device was lost meanwhile. If it was faster, also returns the self-tests that it passed.
async fn prove(
    candidate: &Candidate,
    recipe: Option<&Recipe>,
    options: &SelectOptions,
    host: &dyn Host,
    mut holder: Option<(&dyn Backend, &mut Matvec)>,
    rung: &mut Rung,
) -> Result<(Rc<dyn Backend>, Matvec, Option<BTreeSet<String>>), String> {
    let mut backend = opened(candidate, options, rung).await?;
    let device = |backend: &dyn Backend| match candidate.family {
        Family::Cpu => Device::Cpu,
        _ if backend.info().software => Device::Software,
        _ => Device::Gpu,
    };
    let mut matvec = Matvec::new(device(&*backend));
    let mut proven = examine(&*backend, recipe, host, &mut holder, &mut matvec).await;
    if proven.is_err() && matches!(backend.idle(), Err(Error::Lost(_))) {
        let until = host.now_ms() + LOST_PAUSE;
        while host.now_ms() < until {
            host.turn().await;
        }
        backend = opened(candidate, options, rung).await?;
        matvec = Matvec::new(device(&*backend));
        proven = examine(&*backend, recipe, host, &mut holder, &mut matvec).await;
    }
    Ok((backend, matvec, proven?))
}

/// Checks a backend for the operators, times it against the holder, and self-tests it if it won. Returns the self-tests
/// that it passed, or nothing if it lost the race.
async fn examine(
    backend: &dyn Backend,
    recipe: Option<&Recipe>,
    host: &dyn Host,
    holder: &mut Option<(&dyn Backend, &mut Matvec)>,
    matvec: &mut Matvec,
) -> Result<Option<BTreeSet<String>>, String> {
    let graph = match recipe {
        Some(recipe) => {
            Model::check(recipe, backend).map_err(|e| e.to_string())?;
            recipe.graph(1, recipe.head()).map_err(|e| e.to_string())?
        }
        None => sample_graph().map_err(|e| e.to_string())?,
    };
    let mut rig = None;
    let won = match holder {
        Some((held, times)) => race(*held, times, backend, matvec, &mut rig, host).await?,
        None => true,
    };
    // Without a race, it is timed only for the report.
    while matvec.times.is_rough()
        && let Some(steps) = matvec.times.next()
    {
        matvec.run(&mut rig, backend, steps, host).await.map_err(|e| e.to_string())?;
    }
    Ok(if won { Some(selftest::prove(backend, &graph, host, &BTreeSet::new()).await?) } else { None })
}

/// Times two backends until it is known whether the challenger is faster. A holder that fails during the race loses it,
/// since it would fail later, too.
///
/// *Errors*: those of the challenger.
async fn race<'a>(
    held: &dyn Backend,
    holder: &mut Matvec,
    backend: &'a dyn Backend,
    challenger: &mut Matvec,
    rig: &mut Option<Rig<'a>>,
    host: &dyn Host,
) -> Result<bool, String> {
    let mut held_rig = None;
    loop {
        match next(&holder.times, &challenger.times) {
            Next::Won(side) => return Ok(side == Side::Challenger),
            Next::Run(Side::Challenger, steps) => {
                challenger.run(rig, backend, steps, host).await.map_err(|e| e.to_string())?;
            }
            Next::Run(Side::Holder, steps) => {
                if let Err(error) = holder.run(&mut held_rig, held, steps, host).await {
                    holder.failed = Some(error);
                    return Ok(true);
                }
            }
        }
    }
}

/// Makes the graph that is tested when there is no model: one weight format, and the two operators that every model
/// has.
fn sample_graph() -> Result<Graph, Error> {
    let mut graph = Graph::new();
    let x = graph.input("x", &[1, 64], DType::F32)?;
    let w = graph.weight("w", &[64, 64], DType::Packed(Format::Q4_0))?;
    let y = graph.push(backend_api::op::MatMul, &[x, w])?;
    let y = graph.push(backend_api::op::ArgMax, &[y])?;
    graph.output(y, "y")?;
    Ok(graph)
}
