//! Selection by proof: candidates are opened, asked for the model's operators, tested and timed.

use std::num::NonZeroUsize;
use std::rc::Rc;
use std::str::FromStr;

use backend_api::{Backend, DType, Error, Format, Graph, Products, Tuned};
use model::{Head, Host, Model, Recipe};
use reference_cpu::Cpu;

use crate::error::EngineError;
use crate::report::{Outcome, Report, Rung};
use crate::selftest;
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
    /// One value a texel: slower, works everywhere.
    R32f,
}

/// What a selection may do.
#[derive(Debug, Clone, Default)]
pub struct SelectOptions {
    /// Which backends may be chosen.
    pub backend: Choice,
    /// Makes WebGPU split weights whose bindings would be larger.
    ///
    /// *Units*: bytes.
    pub webgpu_max_binding: Option<u64>,
    /// What WebGPU multiplies several rows with quantised weights in; exactly, if it is left alone.
    pub webgpu_products: Products,
    /// Only this layout of WebGL.
    pub webgl_layout: Option<Layout>,
    /// Makes WebGL fold at this texture size even if the device allows more.
    pub webgl_max_texture_size: Option<u32>,
    /// Threads that the CPU uses natively; by default as many as the machine runs at once.
    pub cpu_threads: Option<NonZeroUsize>,
    /// What was fastest on devices that were [tuned](crate::tune()).
    pub tuned: Rc<Winners>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Candidate {
    WebGpu { optional_features: bool },
    WebGl(Layout),
    Cpu,
}

/// The ladder, best first.
const LADDER: &[(&str, Candidate)] = &[
    ("webgpu", Candidate::WebGpu { optional_features: true }),
    ("webgpu without optional features", Candidate::WebGpu { optional_features: false }),
    ("webgl packed", Candidate::WebGl(Layout::Packed)),
    ("webgl r32f", Candidate::WebGl(Layout::R32f)),
    ("cpu", Candidate::Cpu),
];

impl Candidate {
    /// The backend, of which only one variant is needed.
    fn family(self) -> Choice {
        match self {
            Candidate::WebGpu { .. } => Choice::WebGpu,
            Candidate::WebGl(_) => Choice::WebGl,
            Candidate::Cpu => Choice::Cpu,
        }
    }

    /// Why it is not even to be tried.
    fn excluded(self, options: &SelectOptions) -> Option<&'static str> {
        let wanted = match options.backend {
            Choice::Auto => true,
            Choice::Gpu => self != Candidate::Cpu,
            family => self.family() == family,
        };
        let layout = match (self, options.webgl_layout) {
            (Candidate::WebGl(layout), Some(only)) => layout == only,
            _ => true,
        };
        match (wanted, layout) {
            (false, _) => Some("another backend was asked for"),
            (_, false) => Some("another layout was asked for"),
            _ => None,
        }
    }

    /// Opens it, with the defaults of its tunables.
    async fn open(self, options: &SelectOptions) -> Result<Box<dyn Backend>, Error> {
        match self {
            Candidate::WebGpu { optional_features } => open_webgpu(optional_features, options).await,
            Candidate::WebGl(layout) => open_webgl(layout, options),
            Candidate::Cpu => {
                let options = reference_cpu::Options { fast: true, threads: options.cpu_threads };
                Ok(Box::new(Cpu::new(options)))
            }
        }
    }
}

/// A rung of the ladder, to be opened without any proof.
pub(crate) struct Variant(&'static str, Candidate);

impl Variant {
    /// Its name.
    pub fn name(&self) -> &'static str {
        self.0
    }

    /// The rung of a name.
    pub fn named(name: &str) -> Option<Variant> {
        LADDER.iter().find(|(known, _)| *known == name).map(|(known, candidate)| Variant(known, *candidate))
    }

    /// Opens it, with the defaults of its tunables.
    ///
    /// *Errors*: it is not there.
    pub async fn open(&self, options: &SelectOptions) -> Result<Box<dyn Backend>, Error> {
        self.1.open(options).await
    }
}

/// The other rungs of the family that a rung belongs to.
pub(crate) fn variants(of: &str) -> impl Iterator<Item = Variant> {
    let family = LADDER.iter().find(|(name, _)| *name == of).map(|(_, candidate)| candidate.family());
    let others = LADDER.iter().filter(move |(name, candidate)| *name != of && Some(candidate.family()) == family);
    others.map(|(name, candidate)| Variant(name, *candidate)).collect::<Vec<_>>().into_iter()
}

#[cfg(feature = "webgpu")]
async fn open_webgpu(optional_features: bool, options: &SelectOptions) -> Result<Box<dyn Backend>, Error> {
    let options = backend_webgpu::Options {
        optional_features,
        max_binding: options.webgpu_max_binding,
        // Where even subgroups fail, nothing is risked.
        products: if optional_features { options.webgpu_products } else { Products::F32 },
        ..Default::default()
    };
    Ok(Box::new(backend_webgpu::WebGpu::open(options).await?))
}

#[cfg(feature = "webgl")]
fn open_webgl(layout: Layout, options: &SelectOptions) -> Result<Box<dyn Backend>, Error> {
    let layout = match layout {
        Layout::Packed => backend_webgl::Layout::Packed,
        Layout::R32f => backend_webgl::Layout::R32f,
    };
    let max_texture_size = options.webgl_max_texture_size;
    let options = backend_webgl::Options { layout, max_texture_size, ..Default::default() };
    Ok(Box::new(backend_webgl::WebGl::open(options)?))
}

#[cfg(not(feature = "webgpu"))]
async fn open_webgpu(_: bool, _: &SelectOptions) -> Result<Box<dyn Backend>, Error> {
    Err(Error::Absent { backend: "webgpu", reason: "this program was built without it".into() })
}

#[cfg(not(feature = "webgl"))]
fn open_webgl(_: Layout, _: &SelectOptions) -> Result<Box<dyn Backend>, Error> {
    Err(Error::Absent { backend: "webgl", reason: "this program was built without it".into() })
}

/// Chooses a backend, for a model if there is one.
///
/// *Errors*: no backend that may be chosen works; the error has the report.
pub async fn select(
    recipe: Option<&Recipe>,
    options: &SelectOptions,
    host: &dyn Host,
) -> Result<(Rc<dyn Backend>, Report), EngineError> {
    let outcome = Outcome::Rejected(String::new());
    let rung = |name| Rung {
        name,
        adapter: None,
        software: false,
        facts: Vec::new(),
        matvec_ms: None,
        tried_ms: None,
        outcome: outcome.clone(),
    };
    let mut rungs: Vec<Rung> = LADDER.iter().map(|(name, _)| rung(*name)).collect();
    let mut best: Option<(usize, Rc<dyn Backend>, f64)> = None;
    let mut healthy: Vec<Choice> = Vec::new();
    // Where speed decides, the CPU comes first: it is there at once, and what is slower needs no test.
    let cpu_first = LADDER.iter().enumerate().rev().take(1).chain(LADDER.iter().enumerate().take(LADDER.len() - 1));
    let in_order = LADDER.iter().enumerate();
    let tried: Vec<_> = if options.backend == Choice::Auto { cpu_first.collect() } else { in_order.collect() };
    for (index, &(_, candidate)) in tried {
        let Some(rung) = rungs.get_mut(index) else { continue };
        let skipped = match candidate.excluded(options) {
            Some(why) => Some(why),
            None if healthy.contains(&candidate.family()) => Some("a better variant of this backend works"),
            None if !healthy.is_empty() && options.backend != Choice::Auto => Some("a better backend works"),
            None => None,
        };
        if let Some(why) = skipped {
            rung.outcome = Outcome::Skipped(why.into());
            continue;
        }
        let least = best.as_ref().map_or(f64::INFINITY, |(_, _, ms)| *ms);
        let start = host.now_ms();
        let proven = prove(candidate, recipe, options, host, least, rung).await;
        rung.tried_ms = Some(host.now_ms() - start);
        match proven {
            Err(reason) => rung.outcome = Outcome::Rejected(reason),
            Ok((backend, ms)) => {
                healthy.push(candidate.family());
                rung.matvec_ms = Some(ms);
                rung.outcome = Outcome::Slower;
                if ms < least {
                    best = Some((index, backend, ms));
                }
            }
        }
        host.turn().await;
    }
    let mut report = Report { chosen: None, rungs };
    let Some((index, backend, _)) = best else { return Err(EngineError::NoBackend(report)) };
    if let Some(rung) = report.rungs.get_mut(index) {
        rung.outcome = Outcome::Chosen;
        report.chosen = Some(rung.name);
    }
    Ok((backend, report))
}

/// How long a device that was lost has to come back: browsers start their GPU process again.
///
/// *Units*: milliseconds.
const LOST_PAUSE: f64 = 250.0;

/// Opens, checks, times and, if it takes less than `least` milliseconds, tests one candidate; once more if its device
/// was lost meanwhile.
async fn prove(
    candidate: Candidate,
    recipe: Option<&Recipe>,
    options: &SelectOptions,
    host: &dyn Host,
    least: f64,
    rung: &mut Rung,
) -> Result<(Rc<dyn Backend>, f64), String> {
    let name = rung.name;
    let open = || async {
        let mut backend = candidate.open(options).await.map_err(|e| e.to_string())?;
        let stale = options.tuned.apply(name, &mut *backend).err();
        Ok::<(Rc<dyn Backend>, _), String>((Rc::from(backend), stale))
    };
    let (mut backend, mut stale) = open().await?;
    let mut proven = examine(&*backend, recipe, host, least).await;
    if proven.is_err() && matches!(backend.idle(), Err(Error::Lost(_))) {
        let until = host.now_ms() + LOST_PAUSE;
        while host.now_ms() < until {
            host.turn().await;
        }
        (backend, stale) = open().await?;
        proven = examine(&*backend, recipe, host, least).await;
    }
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
    Ok((backend, proven?))
}

/// Asks a backend for the operators, times its matvec, and tests it unless that took `least` milliseconds or more.
async fn examine(backend: &dyn Backend, recipe: Option<&Recipe>, host: &dyn Host, least: f64) -> Result<f64, String> {
    let graph = match recipe {
        Some(recipe) => {
            Model::check(recipe, backend).map_err(|e| e.to_string())?;
            recipe.graph(1, Head::Greedy)
        }
        None => sample_graph(),
    };
    let prepared = graph.and_then(|graph| backend_api::fuse::prepare(&graph, backend)).map_err(|e| e.to_string())?;
    let ms = selftest::time_matvec(backend, host).await.map_err(|e| e.to_string())?;
    if ms < least {
        selftest::prove(backend, &prepared, host).await?;
    }
    Ok(ms)
}

/// What is tested without a model: a weight format, and the two operators that no model lacks.
fn sample_graph() -> Result<Graph, Error> {
    let mut graph = Graph::new();
    let x = graph.input("x", &[1, 64], DType::F32)?;
    let w = graph.weight("w", &[64, 64], DType::Packed(Format::Q4_0))?;
    let y = graph.push(backend_api::op::MatMul, &[x, w])?;
    let y = graph.push(backend_api::op::ArgMax, &[y])?;
    graph.output(y, "y")?;
    Ok(graph)
}
