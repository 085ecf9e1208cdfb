//! Selection by proof: candidates are opened, asked for the model's operators, tested and timed.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::rc::Rc;
use std::str::FromStr;

use backend_api::run::{Host, Rig};
use backend_api::{Backend, DType, Error, Format, Graph, Products, Tuned};
use model::{Model, Recipe};

use crate::error::EngineError;
use crate::ladder::{Candidate, LADDER};
use crate::proven::{self, Proofs};
use crate::race::{Device, Next, Side, next};
use crate::report::{Outcome, Report, Rung};
use crate::selftest::{self, Matvec};
use crate::tune::Winners;

/// Which backends may be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Choice {
    /// The fastest that works.
    #[default]
    Auto,
    /// The best GPU backend that works.
    Gpu,
    /// WebGPU.
    WebGpu,
    /// WebGL2.
    WebGl,
    /// The CPU.
    Cpu,
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(name: &str) -> Result<Choice, String> {
        match name {
            "auto" => Ok(Choice::Auto),
            "gpu" => Ok(Choice::Gpu),
            "webgpu" => Ok(Choice::WebGpu),
            "webgl" => Ok(Choice::WebGl),
            "cpu" => Ok(Choice::Cpu),
            other => Err(format!("the backend {other:?} is not known; choose auto, gpu, webgpu, webgl or cpu")),
        }
    }
}

/// How WebGL lays out dense tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Four values a texel.
    Packed,
    /// One value a texel: slower.
    R32f,
    /// The bits of four values in a texel of integers: needs no extension, so that it works everywhere.
    Bits,
}

/// Options of a selection.
#[derive(Debug, Clone, Default)]
pub struct SelectOptions {
    /// Which backends may be chosen.
    pub backend: Choice,
    /// Makes WebGPU split weights whose bindings would be larger.
    ///
    /// *Units*: bytes.
    pub webgpu_max_binding: Option<u64>,
    /// Precision of matmuls of several rows with quantised weights on WebGPU; exact by default.
    pub webgpu_products: Products,
    /// Only this layout of WebGL.
    pub webgl_layout: Option<Layout>,
    /// Makes WebGL fold at this texture size even if the device allows more.
    pub webgl_max_texture_size: Option<u32>,
    /// Threads that the CPU uses natively; by default as many as the machine runs at once. In a browser
    /// `web::before_cpu` has them started.
    pub cpu_threads: Option<NonZeroUsize>,
    /// Rungs that are not to be tried, by name, because they failed.
    pub without: Vec<&'static str>,
    /// Tuning results of devices ([`tune`](crate::tune())).
    pub tuned: Rc<Winners>,
    /// Self-test results of earlier selections on this machine ([`Report::proof`]).
    pub proven: Rc<Proofs>,
}

impl SelectOptions {
    /// Leaves out a rung by the name that reports give it. One that is not known, as of another version, is none to
    /// leave out.
    pub fn leave_out(&mut self, name: &str) {
        self.without.extend(Candidate::named(name).map(|candidate| candidate.name));
    }
}

/// Chooses a backend, for a model if there is one.
///
/// Where speed decides, the CPU comes first: it is there at once, and what is slower needs no test. What was proven before
/// need not be proven again.
///
/// *Errors*: no backend that may be chosen works; the error has the report.
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
    let mut rungs: Vec<Rung> = LADDER.iter().map(|candidate| Rung::untried(candidate.name)).collect();
    let auto = options.backend == Choice::Auto;
    let mut order: Vec<usize> = (0..LADDER.len()).collect();
    order.sort_by_key(|index| auto && LADDER[*index].family != Choice::Cpu);
    let mut best: Option<Holder> = None;
    let mut proofs = 0;
    let mut healthy: Vec<Choice> = Vec::new();
    for index in order {
        let candidate = &LADDER[index];
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
    // A race may have shown it to be faster than it seemed at first.
    rung.matvec_ms = Some(matvec.ms());
    report.chosen = Some(rung.name);
    report.proof = recipe.and_then(|_| proven::proof(options, &report.rungs, cases));
    Ok((backend, report))
}

/// The fastest so far.
struct Holder {
    index: usize,
    backend: Rc<dyn Backend>,
    matvec: Matvec,
    /// The self-tests that it has passed.
    cases: BTreeSet<String>,
}

/// Opens a candidate with what is fastest on its device, and notes what it is.
///
/// *Errors*: it is not there.
pub(crate) async fn opened(
    candidate: &Candidate,
    options: &SelectOptions,
    rung: &mut Rung,
) -> Result<Rc<dyn Backend>, String> {
    let mut backend = candidate.open(options).await.map_err(|e| e.to_string())?;
    let stale = options.tuned.apply(candidate.name, &mut *backend).err();
    let info = backend.info();
    rung.adapter = Some(info.adapter.clone());
    rung.software = info.software;
    rung.facts.clone_from(&info.facts);
    let values = backend.tuning().into_iter().map(|Tuned { name, value }| format!("{name} {value}"));
    let values: Vec<String> = values.collect();
    if !values.is_empty() {
        rung.facts.push(("tuning", values.join(", ")));
    }
    rung.facts.extend(stale.map(|error| ("tuning not used", error.to_string())));
    Ok(Rc::from(backend))
}

/// How long a device that was lost has to come back: browsers start their GPU process again.
///
/// *Units*: milliseconds.
const LOST_PAUSE: f64 = 250.0;

/// Opens, checks and times one candidate and, if it is faster than the holder, tests it; once more if its device was lost
/// meanwhile. If it was faster, gives the tests that it passed.
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
        Choice::Cpu => Device::Cpu,
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

/// Asks a backend for the operators, times it against the holder, and tests it if it won; gives the tests that it passed
/// then.
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
    // Where there is no race, it is timed for the report.
    while matvec.times.is_rough()
        && let Some(steps) = matvec.times.next()
    {
        matvec.run(&mut rig, backend, steps, host).await.map_err(|e| e.to_string())?;
    }
    Ok(if won { Some(selftest::prove(backend, &graph, host, &BTreeSet::new()).await?) } else { None })
}

/// Times two backends until it is known whether the challenger is faster. A holder that fails now would fail later, too:
/// it loses.
///
/// *Errors*: what the challenger returns.
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

/// Makes the graph that is tested without a model: a weight format, and the two operators that every model has.
fn sample_graph() -> Result<Graph, Error> {
    let mut graph = Graph::new();
    let x = graph.input("x", &[1, 64], DType::F32)?;
    let w = graph.weight("w", &[64, 64], DType::Packed(Format::Q4_0))?;
    let y = graph.push(backend_api::op::MatMul, &[x, w])?;
    let y = graph.push(backend_api::op::ArgMax, &[y])?;
    graph.output(y, "y")?;
    Ok(graph)
}
