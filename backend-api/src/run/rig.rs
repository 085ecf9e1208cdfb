//! A graph on a backend, with storages of its own: what is tested and timed outside of a model.

use crate::backend::{Backend, Program, StorageDesc, StorageId, host_rows};
use crate::case::{Case, Fill};
use crate::compare::Values;
use crate::error::Error;
use crate::form::Cover;
use crate::format::ROW_ALIGN;
use crate::graph::Graph;
use crate::kernel::KernelInfo;
use crate::part::Cuts;
use crate::plan::Plan;
use crate::run::{Host, read_rows};
use crate::step::StepParams;
use crate::tensor::{DType, Kind, Shape, Tensor};

/// How the error about overwritten guard rows begins.
pub const OVERRUN: &str = "a kernel wrote past the end of";
/// Rows of sentinels behind every tensor that kernels write.
const GUARD_ROWS: usize = 2;
/// Exact in every layout, and unlike anything a kernel yields.
const SENTINEL: f32 = -12_345.5;
const SENTINEL_ID: i32 = -12_345;
/// Bytes that are filled at a time: the rows of a larger matrix repeat, so that host memory holds a piece of it only.
const PIECE: usize = 4 << 20;

/// A compiled graph with its storages, which are freed in the end.
pub struct Rig<'a> {
    // The program goes before its storages.
    program: Box<dyn Program>,
    storages: Storages<'a>,
    plan: Plan,
    guarded: bool,
}

struct Storages<'a>(&'a dyn Backend, Vec<StorageId>);

impl Drop for Storages<'_> {
    fn drop(&mut self) {
        self.1.iter().for_each(|id| self.0.destroy(*id));
    }
}

fn is_written(tensor: &Tensor) -> bool {
    matches!(tensor.kind, Kind::Output | Kind::State(_))
}

fn sentinels(dtype: DType, count: usize) -> Vec<u8> {
    match dtype {
        DType::I32 => SENTINEL_ID.to_le_bytes().repeat(count),
        DType::Coded(codec) => codec.encode(&vec![SENTINEL; count]),
        DType::F32 | DType::Packed(_) => SENTINEL.to_le_bytes().repeat(count),
    }
}

impl<'a> Rig<'a> {
    /// Plans and compiles a graph for a backend. All externals are zeros.
    ///
    /// *Errors*: unsupported operators; what the backend returns.
    pub fn new(backend: &'a dyn Backend, graph: &Graph) -> Result<Rig<'a>, Error> {
        Rig::build(backend, graph, false)
    }

    /// Makes a rig with sentinels in the outputs and in the rows behind all that kernels write, so that
    /// [`Self::results`] notices missing and stray writes.
    ///
    /// *Errors*: as [`Self::new`].
    pub fn guarded(backend: &'a dyn Backend, graph: &Graph) -> Result<Rig<'a>, Error> {
        let rig = Rig::build(backend, graph, true)?;
        for (tensor, id) in rig.externals().filter(|(tensor, _)| is_written(tensor)) {
            let (rows, cols) = host_rows(&tensor.shape);
            if tensor.kind == Kind::Output {
                backend.write(id, 0, &sentinels(tensor.dtype, rows * cols))?;
            }
            if guards(tensor) > 0 {
                backend.write(id, rows, &sentinels(tensor.dtype, guards(tensor) * cols))?;
            }
        }
        Ok(rig)
    }

    /// A conformance case, guarded and filled. Its step remains to be run.
    ///
    /// *Errors*: as [`Self::new`].
    pub fn of_case(backend: &'a dyn Backend, case: &Case) -> Result<Rig<'a>, Error> {
        let rig = Rig::guarded(backend, &case.graph)?;
        rig.fill(&case.fills, &|index| case.seed(index))?;
        Ok(rig)
    }

    fn build(backend: &'a dyn Backend, graph: &Graph, guarded: bool) -> Result<Rig<'a>, Error> {
        let plan = backend.plan(graph.clone())?;
        let mut storages = Storages(backend, Vec::new());
        for (_, tensor) in plan.graph().externals() {
            let guard_rows = if guarded { guards(tensor) } else { 0 };
            storages.1.push(backend.create(&StorageDesc { guard_rows, ..StorageDesc::of(tensor) })?);
        }
        let program = backend.compile(&plan, &storages.1)?;
        Ok(Rig { program, storages, plan, guarded })
    }

    /// Writes all rows of an external: file bytes of a packed one, else its values.
    ///
    /// *Errors*: there is no such external; what the backend returns.
    pub fn write(&self, index: usize, bytes: &[u8]) -> Result<(), Error> {
        let id = self.storages().get(index).ok_or_else(|| Error::Invalid(format!("there is no external {index}")))?;
        self.storages.0.write(*id, 0, bytes)
    }

    /// The storages of the externals, in order.
    pub fn storages(&self) -> &[StorageId] {
        &self.storages.1
    }

    /// Fills all externals but outputs. `fills` are those of the graph's externals, in order, with a seed for each.
    ///
    /// *Errors*: what the backend returns.
    pub fn fill(&self, fills: &[Fill], seed: &dyn Fn(usize) -> u64) -> Result<(), Error> {
        for (index, ((tensor, id), fill)) in self.externals().zip(fills).enumerate() {
            if tensor.kind == Kind::Output {
                continue;
            }
            let (rows, cols) = host_rows(&tensor.shape);
            let row = tensor.dtype.row_bytes(cols)?;
            let most = (PIECE / row / ROW_ALIGN).max(1) * ROW_ALIGN;
            let whole = rows <= most || tensor.shape.rank() != 2;
            let shape = if whole { tensor.shape } else { Shape::new(&[most, cols])? };
            let piece = fill.bytes(&Tensor { shape, ..tensor.clone() }, seed(index));
            for first in (0..rows).step_by(if whole { rows } else { most }) {
                self.storages.0.write(id, first, &piece[..piece.len().min(row * (rows - first))])?;
            }
        }
        Ok(())
    }

    /// Submits one step.
    ///
    /// *Errors*: what the backend returns.
    pub fn step(&mut self, params: &StepParams) -> Result<(), Error> {
        self.program.step(params)
    }

    /// Submits one step of several sequences.
    ///
    /// *Errors*: what the backend returns.
    pub fn steps(&mut self, runs: &[StepParams]) -> Result<(), Error> {
        self.program.steps(runs)
    }

    /// Submits one step in parts that cost no more than `most` each, where kernels can be cut so far, and tells how
    /// many there were.
    ///
    /// *Units*: of [`Cost`](crate::Cost).
    ///
    /// *Errors*: what the backend returns.
    pub fn step_in_parts(&mut self, params: &StepParams, most: u64) -> Result<usize, Error> {
        let (mut cuts, mut count) = (Cuts::default(), 0);
        while let Some((part, _)) = cuts.next(self.program.pieces(), params, most) {
            self.program.part(params, &part)?;
            count += 1;
        }
        Ok(count)
    }

    /// The dispatches or draws of a step.
    pub fn kernels(&self) -> Vec<KernelInfo> {
        self.program.kernels()
    }

    /// Returns the covers that run.
    pub fn covers(&self) -> &[Cover] {
        self.plan.covers()
    }

    /// All that a step may have written, after a look at the guards.
    ///
    /// *Errors*: what the backend returns; a guard that was overwritten.
    pub async fn results(&self, host: &dyn Host) -> Result<Vec<Values>, Error> {
        let mut results = Vec::new();
        for (tensor, id) in self.externals().filter(|(tensor, _)| is_written(tensor)) {
            results.push(Values { dtype: tensor.dtype, bytes: self.read(tensor, id, host).await? });
        }
        Ok(results)
    }

    /// Waits until all steps are done, by reading the last of what they write.
    ///
    /// *Errors*: as [`Self::results`].
    pub async fn finish(&self, host: &dyn Host) -> Result<(), Error> {
        if let Some((tensor, id)) = self.externals().filter(|(tensor, _)| is_written(tensor)).last() {
            self.read(tensor, id, host).await?;
        }
        Ok(())
    }

    async fn read(&self, tensor: &Tensor, id: StorageId, host: &dyn Host) -> Result<Vec<u8>, Error> {
        let (rows, cols) = host_rows(&tensor.shape);
        let guard_rows = self.guards(tensor);
        let row = tensor.dtype.row_bytes(cols)?;
        let mut bytes = vec![0; (rows + guard_rows) * row];
        read_rows(self.storages.0, id, 0, rows + guard_rows, &mut bytes, host).await?;
        if bytes.split_off(rows * row) != sentinels(tensor.dtype, guard_rows * cols) {
            return Err(Error::Driver(format!("{OVERRUN} {} {tensor}", tensor.name)));
        }
        Ok(bytes)
    }

    fn externals(&self) -> impl Iterator<Item = (&Tensor, StorageId)> {
        self.plan.graph().externals().zip(&self.storages.1).map(|((_, tensor), id)| (tensor, *id))
    }

    fn guards(&self, tensor: &Tensor) -> usize {
        if self.guarded { guards(tensor) } else { 0 }
    }
}

/// How many guard rows a tensor has. Vectors have rows of one element and are not guarded.
fn guards(tensor: &Tensor) -> usize {
    if is_written(tensor) && tensor.shape.rank() > 1 { GUARD_ROWS } else { 0 }
}
