//! Value of each design decision, measured by switching it off alone.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;

use backend_api::{
    Backend, BackendInfo, Cover, Error, Form, Format, Graph, KernelInfo, Matcher, Part, Plan, Program, ReadId, Stats,
    StepParams, StorageDesc, StorageId, Tensor, Unsupported,
};
use model::{ByteSource, Gguf, Head, Host, KvCache, Model, Recipe};
use serde::Serialize;

use super::model::{ModelOptions, PerToken, Timed, rate, time};
use crate::error::EngineError;
use crate::ladder::Candidate;
use crate::ladder::SelectOptions;
use crate::select::select;
use crate::{EngineOptions, Progress};

/// Decode steps between two reads, beside each one.
const INTERVALS: [usize; 5] = [2, 4, 8, 16, 32];
/// Kernels of a submission.
const PARTS: [usize; 3] = [1, 8, 64];

/// A model with one decision switched off.
#[derive(Debug, Clone, Serialize)]
pub struct Ablation {
    /// Decision that is switched off; `nothing` comes first.
    pub without: String,
    /// Prefill speed, in tokens a second.
    pub prefill_tokens_per_s: f64,
    /// Decode speed, in tokens a second.
    pub decode_tokens_per_s: f64,
    /// Counters of a token.
    #[serde(flatten)]
    pub stats: PerToken,
    /// Prefill speed relative to the row with nothing switched off.
    pub prefill_ratio: f64,
    /// Decode speed relative to the row with nothing switched off.
    pub decode_ratio: f64,
}

impl Ablation {
    fn of(without: String, options: &ModelOptions, timed: &Timed, whole: Option<&Ablation>) -> Ablation {
        let prefill = rate(options.prefill as f64, timed.prefill_ms.median);
        let decode = rate(1.0, timed.decode_ms_per_token.median);
        let ratio = |value: f64, whole: Option<f64>| whole.filter(|w| *w > 0.0).map_or(1.0, |w| value / w);
        Ablation {
            without,
            prefill_tokens_per_s: prefill,
            decode_tokens_per_s: decode,
            stats: timed.stats,
            prefill_ratio: ratio(prefill, whole.map(|w| w.prefill_tokens_per_s)),
            decode_ratio: ratio(decode, whole.map(|w| w.decode_tokens_per_s)),
        }
    }
}

/// Results of all ablations. Field names are stable: other programs read the JSON.
#[derive(Debug, Clone, Serialize)]
pub struct AblationReport {
    /// The kind of backend.
    pub backend: &'static str,
    /// The device.
    pub adapter: String,
    /// The model, as the caller names it.
    pub model: String,
    /// Tokens of the prompt.
    pub prefill_tokens: usize,
    /// Tokens decoded after it.
    pub decode_tokens: usize,
    /// A row for each decision.
    pub ablate: Vec<Ablation>,
}

/// A backend with something switched off.
struct Without {
    inner: Rc<dyn Backend>,
    /// Fusion patterns that it refuses, so that their nodes run as other patterns.
    forms: BTreeSet<&'static str>,
    /// Storages of weights' planes, if the backend is to keep 16-bit floats in their place. The floats are all 0, since
    /// no operator's time depends on values.
    blank: Option<RefCell<HashSet<StorageId>>>,
    /// Way in which its programs run steps, if not as they are.
    steps: Option<Steps>,
}

/// Way to run steps that lack something.
#[derive(Debug, Clone, Copy)]
enum Steps {
    /// Each by a program that is made for it, with buffers and bindings of its own.
    Anew,
    /// Each in parts of so many kernels, which are submitted one by one.
    Parts(usize),
}

impl Without {
    fn nothing(inner: &Rc<dyn Backend>) -> Without {
        Without { inner: inner.clone(), forms: BTreeSet::new(), blank: None, steps: None }
    }

    fn forms(inner: &Rc<dyn Backend>, forms: BTreeSet<&'static str>) -> Rc<dyn Backend> {
        Rc::new(Without { forms, ..Without::nothing(inner) })
    }

    fn planes(inner: &Rc<dyn Backend>) -> Rc<dyn Backend> {
        Rc::new(Without { blank: Some(RefCell::default()), ..Without::nothing(inner) })
    }

    fn steps(inner: &Rc<dyn Backend>, steps: Steps) -> Rc<dyn Backend> {
        Rc::new(Without { steps: Some(steps), ..Without::nothing(inner) })
    }
}

/// A program that is made again for each step.
struct Anew {
    backend: Rc<dyn Backend>,
    plan: Plan,
    sequences: Vec<Vec<StorageId>>,
    program: Box<dyn Program>,
}

impl Program for Anew {
    fn step(&mut self, params: &StepParams) -> Result<(), Error> {
        let sequences: Vec<&[StorageId]> = self.sequences.iter().map(Vec::as_slice).collect();
        self.program = self.backend.compile_sequences(&self.plan, &sequences)?;
        self.program.step(params)
    }

    fn kernels(&self) -> Vec<KernelInfo> {
        self.program.kernels()
    }
}

/// A program whose steps are submitted in parts.
struct InParts {
    program: Box<dyn Program>,
    kernels: usize,
}

impl Program for InParts {
    fn step(&mut self, params: &StepParams) -> Result<(), Error> {
        let all = self.program.pieces().len();
        if all == 0 {
            // A backend may run whole steps only.
            return self.program.step(params);
        }
        let parts = (0..all).step_by(self.kernels).map(|first| first..all.min(first + self.kernels));
        parts.into_iter().try_for_each(|part| self.program.part(params, &Part::Kernels(part)))
    }

    fn kernels(&self) -> Vec<KernelInfo> {
        self.program.kernels()
    }
}

impl Backend for Without {
    fn info(&self) -> &BackendInfo {
        self.inner.info()
    }

    fn matchers(&self) -> &[Matcher] {
        self.inner.matchers()
    }

    fn supports(&self, graph: &Graph, cover: &Cover) -> Result<(), Unsupported> {
        let name = cover.form.name();
        if self.forms.contains(name) {
            return Err(Unsupported { op: name.into(), reason: "it is switched off".into() });
        }
        self.inner.supports(graph, cover)
    }

    fn equal_results(&self) -> bool {
        self.inner.equal_results()
    }

    fn slot_size(&self, tensor: &Tensor) -> u64 {
        self.inner.slot_size(tensor)
    }

    fn storage_bytes(&self, desc: &StorageDesc) -> Result<u64, Error> {
        self.inner.storage_bytes(desc)
    }

    fn create(&self, desc: &StorageDesc) -> Result<StorageId, Error> {
        let Some(blank) = &self.blank else { return self.inner.create(desc) };
        let dtype = desc.dtype.in_format(Format::F16);
        let id = self.inner.create(&StorageDesc { dtype, ..desc.clone() })?;
        if dtype != desc.dtype {
            blank.borrow_mut().insert(id);
        }
        Ok(id)
    }

    fn write(&self, id: StorageId, first_row: usize, bytes: &[u8]) -> Result<(), Error> {
        if self.blank.as_ref().is_some_and(|blank| blank.borrow().contains(&id)) {
            return Ok(());
        }
        self.inner.write(id, first_row, bytes)
    }

    fn read(&self, id: StorageId, first_row: usize, rows: usize) -> Result<ReadId, Error> {
        self.inner.read(id, first_row, rows)
    }

    fn try_read(&self, read: ReadId, out: &mut [u8]) -> Result<bool, Error> {
        self.inner.try_read(read, out)
    }

    fn destroy(&self, id: StorageId) {
        self.inner.destroy(id);
    }

    fn compile_sequences(&self, plan: &Plan, sequences: &[&[StorageId]]) -> Result<Box<dyn Program>, Error> {
        if self.blank.is_none() {
            let program = self.inner.compile_sequences(plan, sequences)?;
            return Ok(match self.steps {
                None => program,
                Some(Steps::Parts(kernels)) => Box::new(InParts { program, kernels }),
                Some(Steps::Anew) => {
                    let sequences = sequences.iter().map(|storages| storages.to_vec()).collect();
                    Box::new(Anew { backend: self.inner.clone(), plan: plan.clone(), sequences, program })
                }
            });
        }
        let graph = plan.graph().clone().with_weights_in(Format::F16);
        self.inner.compile_sequences(&self.inner.plan(graph)?, sequences)
    }

    fn ready(&self) -> Result<bool, Error> {
        self.inner.ready()
    }

    fn idle(&self) -> Result<bool, Error> {
        self.inner.idle()
    }

    fn stats(&self) -> Stats {
        self.inner.stats()
    }
}

/// Loads and times the model again for each row.
struct Bench<'a> {
    source: &'a dyn ByteSource,
    gguf: Gguf,
    n_ctx: usize,
    kv_cache: KvCache,
    options: &'a ModelOptions,
    host: &'a dyn Host,
    loading: &'a mut dyn FnMut(Progress),
    progress: &'a mut dyn FnMut(&str),
    rows: Vec<Ablation>,
}

impl Bench<'_> {
    fn recipe(&self) -> Result<Recipe, EngineError> {
        Ok(Recipe::new(&self.gguf, Some(self.n_ctx))?.with_kv_cache(self.kv_cache))
    }

    async fn row(
        &mut self,
        without: &str,
        backend: Rc<dyn Backend>,
        options: &ModelOptions,
    ) -> Result<Timed, EngineError> {
        let recipe = self.recipe()?;
        let mut weights = |done, total| (self.loading)(Progress::Weights { done, total });
        let model = Rc::new(Model::load(self.source, recipe, backend, self.host, &mut weights).await?);
        let mut progress = |text: &str| (self.progress)(&format!("without {without}: {text}"));
        let timed = time(&model, options, self.host, &mut progress).await?;
        self.rows.push(Ablation::of(without.into(), self.options, &timed, self.rows.first()));
        Ok(timed)
    }
}

/// Times a model with everything switched on and default tunables, and then with one decision switched off at a time:
/// the pipeline of decode steps and when it reads, the reuse of what a step needs, its single submission, fusion as a
/// whole and of each pattern, the planes of weights, the first value of each tunable, and the differences of the
/// backend's other variants. A switch that changes nothing on this backend has no row.
///
/// *Errors*: as [`run`](super::run()).
pub async fn ablate(
    name: &str,
    source: &dyn ByteSource,
    engine: &EngineOptions,
    options: &ModelOptions,
    host: &dyn Host,
    loading: &mut dyn FnMut(Progress),
    progress: &mut dyn FnMut(&str),
) -> Result<AblationReport, EngineError> {
    let gguf = Gguf::read(source).await?;
    let n_ctx = engine.n_ctx.unwrap_or_else(|| options.n_ctx());
    let kv_cache = engine.kv_cache;
    let mut bench = Bench { source, gguf, n_ctx, kv_cache, options, host, loading, progress, rows: Vec::new() };
    (bench.progress)("choosing a backend");
    let recipe = bench.recipe()?;
    // Backends that are opened anew would not have the tuned values, so none has.
    let untuned = SelectOptions { tuned: Rc::default(), ..engine.select.clone() };
    let (backend, report) = select(Some(&recipe), &untuned, host).await?;
    let info = backend.info().clone();
    let whole = bench.row("nothing", backend.clone(), options).await?;
    if whole.fetch_interval != Some(1) {
        let options = ModelOptions { fetch_interval: Some(1), ..*options };
        bench.row("pipeline (a read after each step)", backend.clone(), &options).await?;
        for steps in INTERVALS {
            let options = ModelOptions { fetch_interval: Some(steps), ..options };
            bench.row(&format!("pace (a read after {steps} steps)"), backend.clone(), &options).await?;
        }
    }
    bench
        .row("reuse (buffers and bindings made for each step)", Without::steps(&backend, Steps::Anew), options)
        .await?;

    let covers = backend.cover(&recipe.graph(1, Head::GREEDY)?)?;
    for kernels in PARTS.into_iter().filter(|kernels| *kernels < covers.len()) {
        let name = format!("one submit (a submit after {kernels} kernels)");
        bench.row(&name, Without::steps(&backend, Steps::Parts(kernels)), options).await?;
    }
    let several = covers.iter().filter(|cover| !matches!(cover.form, Form::Op(_)));
    let fused: BTreeSet<_> = several.map(|cover| cover.form.name()).collect();
    let mut sets: Vec<(String, BTreeSet<_>)> = vec![("fusion".into(), fused.clone())];
    sets.extend(fused.iter().map(|form| (format!("fused {form}"), BTreeSet::from([*form]))));
    for (name, forms) in sets.into_iter().filter(|(_, forms)| !forms.is_empty()) {
        bench.row(&name, Without::forms(&backend, forms), options).await?;
    }
    bench.row("planes (weights in 16-bit floats instead)", Without::planes(&backend), options).await?;
    let (tunables, tuning) = (backend.tunables(), backend.tuning());
    drop(backend);

    let rung = Candidate::named(report.chosen.unwrap_or_default(), &untuned).ok_or(EngineError::NoBackend(report))?;
    for tunable in tunables {
        let Some(plain) = tunable.values.first() else { continue };
        let now = tuning.iter().find(|tuned| tuned.name == tunable.name).map_or(*plain, |tuned| tuned.value);
        let mut other = rung.open(&untuned).await?;
        if now != *plain && other.tune(tunable.name, *plain).is_ok() {
            let without = format!("{} {now} ({plain} instead)", tunable.name);
            bench.row(&without, Rc::from(other), options).await?;
        }
    }
    for variant in rung.variants(&untuned) {
        let Ok(other) = variant.open(&untuned).await else { continue };
        if other.info().facts != info.facts {
            bench.row(&format!("{} ({} instead)", rung.name, variant.name), Rc::from(other), options).await?;
        }
    }
    Ok(AblationReport {
        backend: info.name,
        adapter: info.adapter,
        model: name.into(),
        prefill_tokens: options.prefill,
        decode_tokens: options.decode,
        ablate: bench.rows,
    })
}
