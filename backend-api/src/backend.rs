//! The `Backend` trait: storages, programs, reads that never block, and counters.

use std::ops::AddAssign;

use crate::cover::cover;
use crate::error::{Error, Unsupported};
use crate::form::{Cover, Matcher};
use crate::graph::Graph;
use crate::kernel::KernelInfo;
use crate::part::{Part, Piece};
use crate::plan::Plan;
use crate::products::Products;
use crate::step::StepParams;
use crate::tensor::{DType, Shape, Tensor};
use crate::tuning::{Tunable, Tuned};
use crate::watch::Watcher;

/// A storage of a backend: the memory of one weight, state, input or output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StorageId(pub u32);

/// A read in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReadId(pub u32);

/// Describes a storage to allocate.
#[derive(Debug, Clone)]
pub struct StorageDesc {
    /// For errors and debuggers.
    pub name: String,
    /// Its shape.
    pub shape: Shape,
    /// Its element type.
    pub dtype: DType,
    /// Rows (see [`Shape::rows`]) that are allocated beyond the shape, that kernels must leave alone and that can be
    /// written and read like any others. Conformance puts sentinels there; 0 otherwise, and always for packed ones.
    pub guard_rows: usize,
}

impl StorageDesc {
    /// A storage for a tensor.
    pub fn of(tensor: &Tensor) -> StorageDesc {
        StorageDesc { name: tensor.name.clone(), shape: tensor.shape, dtype: tensor.dtype, guard_rows: 0 }
    }
}

/// Describes a backend to a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendInfo {
    /// `cpu`, `webgpu` or `webgl`.
    pub name: &'static str,
    /// The device and driver as they name themselves.
    pub adapter: String,
    /// Whether the device is known to be a GPU that the CPU imitates.
    pub software: bool,
    /// Whether a step is done when [`Program::step`] returns, so that having several under way gains nothing.
    pub synchronous: bool,
    /// Prompts of fewer tokens are decoded one by one, because making a program for several rows takes longer. 0 if there
    /// are none such.
    ///
    /// *Units*: tokens.
    pub short_prompt: usize,
    /// Tokens of a prompt that are worth computing in one step, if there are as many.
    ///
    /// *Units*: rows.
    pub prompt_rows: usize,
    /// Rows of a step that verifies a draft, at most: they take far less time together than one after the other, and are
    /// rounded alike to the last bit. 1 if there is no such step.
    ///
    /// *Units*: rows.
    pub verify_rows: usize,
    /// Rows of a step that advances several sequences by a row each, at most, in about the time of one. 1 if they are run one
    /// after another.
    ///
    /// *Units*: rows.
    pub batch_rows: usize,
    /// Tokens of a text that must have been foreseen before its first draft is made, because making a program that verifies
    /// drafts takes as long as the steps that so many of them save. 0 if it takes no time.
    ///
    /// *Units*: tokens.
    pub verify_after: usize,
    /// Precision of matmuls of several rows with quantised weights.
    pub products: Products,
    /// Limits and options that matter, as (name, value) for reports.
    pub facts: Vec<(&'static str, String)>,
}

/// Counters since the backend was opened. Differences between two readings are what tests assert on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Compute dispatches or draws (on the CPU: kernels run).
    pub dispatches: u64,
    /// Submissions of encoded work (WebGL: flushes).
    pub submits: u64,
    /// GPU objects made: buffers, textures, pipelines, bind groups, framebuffers. Fences do not count: they hold no
    /// memory and mark a place in the stream of commands.
    pub objects: u64,
    /// Bytes sent to the device, step parameters included.
    pub uploaded: u64,
    /// Bytes read back.
    pub read_back: u64,
    /// Bytes of device memory held now (not a counter).
    pub memory: u64,
}

impl Stats {
    /// Returns the counts since an earlier reading; `memory` is this reading's.
    pub fn since(&self, earlier: &Stats) -> Stats {
        Stats {
            dispatches: self.dispatches - earlier.dispatches,
            submits: self.submits - earlier.submits,
            objects: self.objects - earlier.objects,
            uploaded: self.uploaded - earlier.uploaded,
            read_back: self.read_back - earlier.read_back,
            memory: self.memory,
        }
    }
}

impl AddAssign for Stats {
    /// Adds the counts of a later span; `memory` is the later one's.
    fn add_assign(&mut self, later: Stats) {
        self.dispatches += later.dispatches;
        self.submits += later.submits;
        self.objects += later.objects;
        self.uploaded += later.uploaded;
        self.read_back += later.read_back;
        self.memory = later.memory;
    }
}

/// Memory of one class that a program holds beside the storages that it is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// `slots` lie between covers, `scratch` between the kernels of one, and `parameters` say what is fixed when compiled.
    pub class: &'static str,
    /// Number of buffers or textures.
    pub count: usize,
    /// Bytes of all of them.
    pub bytes: u64,
}

impl Held {
    /// Sums up buffers of these sizes.
    pub fn of(class: &'static str, sizes: impl IntoIterator<Item = u64>) -> Held {
        sizes.into_iter().fold(Held { class, count: 0, bytes: 0 }, |held, bytes| Held {
            count: held.count + 1,
            bytes: held.bytes + bytes,
            ..held
        })
    }
}

/// A device that can hold tensors and run programs.
///
/// No method blocks on the device. Methods take `&self`: a backend is a handle to shared state of one thread.
pub trait Backend {
    /// Returns the description of this backend and its device.
    fn info(&self) -> &BackendInfo;

    /// The matchers of the forms that it has kernels for beside the primitives, in the order in which they are tried.
    fn matchers(&self) -> &[Matcher] {
        &[]
    }

    /// Whether it can run these nodes in this form. It asks the same function that compiles.
    ///
    /// *Errors*: the reason why not.
    fn supports(&self, graph: &Graph, cover: &Cover) -> Result<(), Unsupported>;

    /// Which nodes of a graph it runs together, in order.
    ///
    /// *Errors*: nodes that it cannot run in any form, all of them.
    fn cover(&self, graph: &Graph) -> Result<Vec<Cover>, Error> {
        cover(graph, self.matchers(), &|graph, cover| self.supports(graph, cover))
    }

    /// The size of a temporary in this backend's units (bytes, texels), for the planner.
    fn slot_size(&self, tensor: &Tensor) -> u64;

    /// Whether the temporaries that one cover makes must lie in slots of equal size, as what is drawn to at once in
    /// WebGL.
    fn equal_results(&self) -> bool {
        false
    }

    /// Covers a graph and plans its slots.
    ///
    /// *Errors*: as [`Self::cover`].
    fn plan(&self, graph: Graph) -> Result<Plan, Error> {
        let covers = self.cover(&graph)?;
        Ok(Plan::new(graph, covers, &|tensor| self.slot_size(tensor), self.equal_results()))
    }

    /// The device memory that [`Self::create`] would take.
    ///
    /// *Units*: bytes.
    ///
    /// *Errors*: limits exceeded.
    fn storage_bytes(&self, desc: &StorageDesc) -> Result<u64, Error>;

    /// Makes a storage filled with zeros.
    ///
    /// *Errors*: limits exceeded, out of memory, device lost.
    fn create(&self, desc: &StorageDesc) -> Result<StorageId, Error>;

    /// Rows of a state as a storage of their own, which shares their memory: what one sequence has of a state that
    /// holds those of several. It must be destroyed before the whole is.
    ///
    /// *Errors*: rows out of range or where the device can bind none; a backend whose
    /// [`batch_rows`](BackendInfo::batch_rows) are 1.
    fn view(&self, id: StorageId, first_row: usize, rows: usize) -> Result<StorageId, Error> {
        let what = format!("rows {first_row}+{rows} of storage {}", id.0);
        Err(Error::Invalid(format!("{} has no views of {what}; make a storage for each sequence", self.info().name)))
    }

    /// Writes whole rows: file bytes of the weight format for packed storages (see
    /// [`Packing::repack`](crate::format::Packing::repack) for the alignment), otherwise little-endian values of
    /// [`DType::row_bytes`] a row.
    /// Rows of a one-dimensional storage are its elements.
    ///
    /// *Errors*: rows out of range, device lost.
    fn write(&self, id: StorageId, first_row: usize, bytes: &[u8]) -> Result<(), Error>;

    /// Begins to read rows of an unpacked storage as they are after all steps submitted so far.
    ///
    /// *Errors*: rows out of range, device lost.
    fn read(&self, id: StorageId, first_row: usize, rows: usize) -> Result<ReadId, Error>;

    /// Whether a read is done; if so its bytes (what [`Self::write`] would take, rows without padding) are in `out` and
    /// the read is forgotten. Never blocks: on `false` let the host do other things and ask again.
    ///
    /// *Errors*: `out` has another length, an unknown read, device lost.
    fn try_read(&self, read: ReadId, out: &mut [u8]) -> Result<bool, Error>;

    /// Frees a storage. Programs bound to it must have been dropped.
    fn destroy(&self, id: StorageId);

    /// Makes everything that a step needs: pipelines, slots, bindings. `storages` are those of the graph's
    /// [externals](crate::Graph::externals), in that order.
    ///
    /// *Errors*: limits, out of memory, shader or driver errors, device lost.
    fn compile(&self, plan: &Plan, storages: &[StorageId]) -> Result<Box<dyn Program>, Error> {
        self.compile_sequences(plan, &[storages])
    }

    /// Makes a program that several sequences share: each has states of its own, and a step names the one that its rows
    /// belong to. Weights, inputs, outputs and slots are there once.
    ///
    /// *Errors*: as [`Self::compile`]; what [`check_sequences`](crate::check_sequences) refuses.
    fn compile_sequences(&self, plan: &Plan, sequences: &[&[StorageId]]) -> Result<Box<dyn Program>, Error>;

    /// Whether what was compiled so far runs without waiting for the driver's compiler, which is asked to begin with all that is
    /// missing. A step that comes before is right, too, but may hold up all that follows it. By default compiling is done
    /// by then.
    ///
    /// *Errors*: device lost.
    fn ready(&self) -> Result<bool, Error> {
        Ok(true)
    }

    /// Whether everything submitted so far is done, without blocking; how callers bound the work in flight.
    ///
    /// *Errors*: device lost.
    fn idle(&self) -> Result<bool, Error>;

    /// Has each kernel of all programs be followed by a call, or by none any more; of one that runs in parts, the last part.
    /// While nobody watches, steps are what they were.
    ///
    /// *Errors*: a backend that cannot be watched, as by default.
    fn set_watcher(&self, watcher: Option<Watcher>) -> Result<(), Error> {
        match watcher {
            None => Ok(()),
            Some(_) => Err(Error::Invalid(format!("{} cannot be watched; use another backend", self.info().name))),
        }
    }

    /// The counters.
    fn stats(&self) -> Stats;

    /// The tunables that shape its kernels; by default there are none.
    fn tunables(&self) -> &'static [Tunable] {
        &[]
    }

    /// The values of all of them.
    fn tuning(&self) -> Vec<Tuned> {
        Vec::new()
    }

    /// Gives one of them another value, before anything is made.
    ///
    /// *Errors*: no tunable has this name, the value is none of those that are known, something was made already.
    fn tune(&mut self, name: &str, value: usize) -> Result<(), Error> {
        Err(Error::Invalid(format!("{} has no tunable {name} = {value}", self.info().name)))
    }
}

/// A compiled graph. Its storages and slots stay what they are; only [`StepParams`] change.
pub trait Program {
    /// Encodes and submits one step. Makes no GPU object and does not wait.
    ///
    /// *Errors*: rows, position or sequence out of range, device lost.
    fn step(&mut self, params: &StepParams) -> Result<(), Error>;

    /// Advances several sequences, each by its rows, as if step followed step. What they share is not kept apart: all read
    /// the same inputs, and outputs are those of the last. By default they follow one another.
    ///
    /// Runs one step of a graph whose [rows belong to several sequences](Graph::take_rows_of): each sequence advances
    /// by a row, in the order given, and weights are read once for all.
    ///
    /// *Errors*: as [`Self::step`], of the first that fails; those before it were run.
    fn steps(&mut self, runs: &[StepParams]) -> Result<(), Error> {
        runs.iter().try_for_each(|params| self.step(params))
    }

    /// Its [`kernels`](Self::kernels) as far as cutting a step goes; none if it runs only whole steps.
    fn pieces(&self) -> &[Piece] {
        &[]
    }

    /// Encodes and submits a part of a step, after the parts before it in order, with the parameters of the step.
    /// All parts together do what [`Self::step`] does, to the last bit. Between them others may use the backend.
    ///
    /// *Errors*: as [`Self::step`]; a part of a program without [`pieces`](Self::pieces).
    fn part(&mut self, params: &StepParams, part: &Part) -> Result<(), Error> {
        let _ = params;
        Err(Error::Invalid(format!("{part:?} was asked of a program that runs only whole steps; run a step")))
    }

    /// Runs one step as [`Self::steps`] does, but has the device time each of its [`kernels`](Self::kernels) by itself.
    /// None if it cannot, or if these runs are several steps; then nothing was run. It makes objects: it is for traces.
    ///
    /// *Errors*: as [`Self::steps`], out of memory.
    fn profile(&mut self, runs: &[StepParams]) -> Result<Option<Box<dyn Profile>>, Error> {
        let _ = runs;
        Ok(None)
    }

    /// Its dispatches or draws in order.
    fn kernels(&self) -> Vec<KernelInfo>;

    /// Its memory by class, for traces; by default it tells of none.
    fn held(&self) -> Vec<Held> {
        Vec::new()
    }
}

/// The times of one step, under way.
pub trait Profile {
    /// How long each kernel of the step took on the device, once that is known. Never blocks: on `None` let the host do
    /// other things and ask again.
    ///
    /// *Units*: milliseconds.
    ///
    /// *Errors*: device lost.
    fn try_read(&mut self) -> Result<Option<Vec<f64>>, Error>;
}

/// Row granularity of a storage or tensor in host terms: (rows, elements a row). One-dimensional tensors have rows of
/// one element, so that token histories can be read and written in part.
pub fn host_rows(shape: &Shape) -> (usize, usize) {
    if shape.rank() <= 1 { (shape.len(), 1) } else { (shape.rows(), shape.cols()) }
}
