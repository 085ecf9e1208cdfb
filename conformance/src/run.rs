//! Running one case on one backend.

use crate::compare::{Values, nmse};
use backend_api::case::Case;
use backend_api::{
    Backend, DType, Error, Graph, Kind, Plan, Program, StepParams, StorageDesc, StorageId, Tensor, fuse, host_rows,
};
use model::{Host, read_rows};

/// Rows of sentinels behind every tensor that kernels write.
const GUARD_ROWS: usize = 2;
/// How the error begins that tells of overwritten guard rows.
pub const OVERRUN: &str = "a kernel wrote past the end of";
/// Exact in every layout, and unlike anything a kernel yields.
const SENTINEL: f32 = -12_345.5;
const SENTINEL_HALF: u16 = 0xF207;
const SENTINEL_ID: i32 = -12_345;

/// A graph on a backend, with storages of its own that are freed in the end.
pub struct Bench<'a> {
    // The program goes before its storages.
    program: Box<dyn Program>,
    storages: Storages<'a>,
    plan: Plan,
}

struct Storages<'a>(&'a dyn Backend, Vec<StorageId>);

impl Drop for Storages<'_> {
    fn drop(&mut self) {
        self.1.iter().for_each(|id| self.0.destroy(*id));
    }
}

fn guards(tensor: &Tensor) -> usize {
    let written = matches!(tensor.kind, Kind::Output | Kind::State);
    if written && tensor.shape.rank() > 1 { GUARD_ROWS } else { 0 }
}

fn sentinels(dtype: DType, count: usize) -> Vec<u8> {
    match dtype {
        DType::I32 => SENTINEL_ID.to_le_bytes().repeat(count),
        DType::F16 => SENTINEL_HALF.to_le_bytes().repeat(count),
        DType::F32 | DType::Packed(_) => SENTINEL.to_le_bytes().repeat(count),
    }
}

impl<'a> Bench<'a> {
    /// Fuses, expands and compiles a graph for a backend and fills its externals. `data(index, tensor)` gives the bytes
    /// of an external that is no output.
    ///
    /// *Errors*: unsupported operators; what the backend returns.
    pub fn new(
        backend: &'a dyn Backend,
        graph: &Graph,
        data: &mut dyn FnMut(usize, &Tensor) -> Vec<u8>,
    ) -> Result<Bench<'a>, Error> {
        let graph = fuse::prepare(graph, backend)?;
        let plan = Plan::new(graph, &|tensor| backend.slot_size(tensor));
        let mut storages = Storages(backend, Vec::new());
        for (index, (_, tensor)) in plan.graph().externals().enumerate() {
            let guard_rows = guards(tensor);
            let id = backend.create(&StorageDesc { guard_rows, ..StorageDesc::of(tensor) })?;
            storages.1.push(id);
            let (rows, cols) = host_rows(&tensor.shape);
            if tensor.kind == Kind::Output {
                backend.write(id, 0, &sentinels(tensor.dtype, rows * cols))?;
            } else {
                backend.write(id, 0, &data(index, tensor))?;
            }
            if guard_rows > 0 {
                backend.write(id, rows, &sentinels(tensor.dtype, guard_rows * cols))?;
            }
        }
        let program = backend.compile(&plan, &storages.1)?;
        Ok(Bench { program, storages, plan })
    }

    /// Runs one step.
    ///
    /// *Errors*: what the backend returns.
    pub fn step(&mut self, params: &StepParams) -> Result<(), Error> {
        self.program.step(params)
    }

    /// The operators that really ran.
    pub fn graph(&self) -> &Graph {
        self.plan.graph()
    }

    /// All that a step may have written, after a look at the guards.
    ///
    /// *Errors*: what the backend returns; a guard that was overwritten.
    pub async fn results(&self, host: &dyn Host) -> Result<Vec<Values>, Error> {
        let mut results = Vec::new();
        for ((_, tensor), id) in self.plan.graph().externals().zip(&self.storages.1) {
            if !matches!(tensor.kind, Kind::Output | Kind::State) {
                continue;
            }
            let (rows, cols) = host_rows(&tensor.shape);
            let guard_rows = guards(tensor);
            let row = tensor.dtype.row_bytes(cols)?;
            let mut bytes = vec![0; (rows + guard_rows) * row];
            read_rows(self.storages.0, *id, 0, rows + guard_rows, &mut bytes, host).await?;
            let guard = bytes.split_off(rows * row);
            if guard != sentinels(tensor.dtype, guard_rows * cols) {
                return Err(Error::Driver(format!("{OVERRUN} {} {tensor}", tensor.name)));
            }
            results.push(Values { dtype: tensor.dtype, bytes });
        }
        Ok(results)
    }
}

/// How a case went.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// Within the tolerance.
    Passed {
        /// The largest NMSE of its results.
        nmse: f64,
        /// The backend refused the fused operator, so its primitives were run.
        expanded: bool,
    },
    /// Outside it, or not to be run at all.
    Failed(String),
}

/// The seed of a case's external; the same on every backend.
fn seed(case: &Case, index: usize) -> u64 {
    let text = case.op.bytes().chain(case.name.bytes());
    text.fold(index as u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01B3))
}

/// Runs a case on a backend.
///
/// *Errors*: what the backend returns; a guard that was overwritten.
pub async fn run(backend: &dyn Backend, case: &Case, host: &dyn Host) -> Result<(Vec<Values>, bool), Error> {
    let mut data = |index: usize, tensor: &Tensor| {
        let fill = case.fills.get(index).cloned().unwrap_or(backend_api::case::Fill::Values(vec![0.0]));
        fill.bytes(tensor, seed(case, index))
    };
    let mut bench = Bench::new(backend, &case.graph, &mut data)?;
    bench.step(&case.step)?;
    let fused = bench.graph().nodes().len() == case.graph.nodes().len();
    Ok((bench.results(host).await?, !fused))
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
    if found.len() != expected.len() {
        return Outcome::Failed(format!("{} results instead of {}", found.len(), expected.len()));
    }
    let mut worst = 0f64;
    for (found, expected) in found.iter().zip(expected) {
        let exact = found.dtype == DType::I32;
        match nmse(found, expected) {
            Ok(error) if error <= if exact { 0.0 } else { tolerance } => worst = worst.max(error),
            Ok(error) => return Outcome::Failed(format!("NMSE {error:.2e} instead of at most {tolerance:.0e}")),
            Err(why) => return Outcome::Failed(why),
        }
    }
    Outcome::Passed { nmse: worst, expanded }
}
