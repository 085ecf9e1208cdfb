//! A small graph on a backend, with storages of its own: what is tested and timed.

use backend_api::case::Fill;
use backend_api::format::ROW_ALIGN;
use backend_api::{
    Backend, DType, Error, Graph, Kind, Plan, Program, Shape, StepParams, StorageDesc, StorageId, Tensor, fuse,
    host_rows,
};
use model::{Host, read_rows};

/// Any seed does; the same one everywhere makes failures repeatable.
const SEED: u64 = 1;
/// Bytes that are filled at a time: the rows of a larger weight repeat, so that host memory holds a piece of it only.
const PIECE: usize = 4 << 20;
/// Measurements of which the best counts: whatever disturbs one makes it longer.
const RUNS: usize = 3;

/// A compiled graph with its storages, which are freed in the end.
pub(crate) struct Rig<'a> {
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

/// Fills a storage; the rows of a large one repeat.
fn write(backend: &dyn Backend, id: StorageId, tensor: &Tensor, fill: &Fill, seed: u64) -> Result<(), Error> {
    let (rows, cols) = host_rows(&tensor.shape);
    let row = tensor.dtype.row_bytes(cols)?;
    let piece_rows = (PIECE / row / ROW_ALIGN).max(1) * ROW_ALIGN;
    if rows <= piece_rows || tensor.shape.rank() != 2 {
        return backend.write(id, 0, &fill.bytes(tensor, seed));
    }
    let piece = fill.bytes(&Tensor { shape: Shape::new(&[piece_rows, cols])?, ..tensor.clone() }, seed);
    for first in (0..rows).step_by(piece_rows) {
        backend.write(id, first, &piece[..row * piece_rows.min(rows - first)])?;
    }
    Ok(())
}

impl<'a> Rig<'a> {
    /// Compiles a graph. `fills` are those of its externals, in order.
    ///
    /// *Errors*: unsupported operators; what the backend returns.
    pub fn new(backend: &'a dyn Backend, graph: &Graph, fills: &[Fill]) -> Result<Rig<'a>, Error> {
        let plan = Plan::new(fuse::prepare(graph, backend)?, &|tensor| backend.slot_size(tensor));
        let mut storages = Storages(backend, Vec::new());
        for (index, ((_, tensor), fill)) in plan.graph().externals().zip(fills).enumerate() {
            let id = backend.create(&StorageDesc::of(tensor))?;
            storages.1.push(id);
            if tensor.kind != Kind::Output {
                write(backend, id, tensor, fill, SEED + index as u64)?;
            }
        }
        let program = backend.compile(&plan, &storages.1)?;
        Ok(Rig { program, storages, plan })
    }

    /// Submits one step.
    ///
    /// *Errors*: what the backend returns.
    pub fn step(&mut self, params: &StepParams) -> Result<(), Error> {
        self.program.step(params)
    }

    /// How long so many steps and one read of the last output take.
    ///
    /// *Units*: milliseconds.
    ///
    /// *Errors*: what the backend returns.
    pub async fn time(&mut self, steps: usize, host: &dyn Host) -> Result<f64, Error> {
        let start = host.now_ms();
        for _ in 0..steps {
            self.step(&StepParams::at(0, 1))?;
        }
        self.last(host).await?;
        Ok(host.now_ms() - start)
    }

    /// The time of one step where up to `most` are under way before one read, as far as `enough_ms` allows. What a read
    /// costs besides is taken off where it matters: on a fast GPU in a browser it costs more than the step.
    ///
    /// *Units*: milliseconds.
    ///
    /// *Errors*: what the backend returns.
    pub async fn step_ms(&mut self, most: usize, enough_ms: f64, host: &dyn Host) -> Result<f64, Error> {
        // The first run pays for what the driver puts off until then.
        self.time(1, host).await?;
        let (mut one, mut many) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..RUNS {
            one = one.min(self.time(1, host).await?);
            // A slow device is known to be slow after one run.
            if one > enough_ms {
                return Ok(one);
            }
        }
        let more = most.min((enough_ms / one.max(f64::MIN_POSITIVE)) as usize).max(1);
        for _ in 0..RUNS {
            many = many.min(self.time(1 + more, host).await?);
        }
        // Clocks of browsers are coarse: the difference may come out as nothing.
        Ok((many - one).max(many / 100.0) / more as f64)
    }

    /// All that a step may have written.
    ///
    /// *Errors*: what the backend returns.
    pub async fn results(&self, host: &dyn Host) -> Result<Vec<(DType, Vec<u8>)>, Error> {
        let mut results = Vec::new();
        for (tensor, id) in self.written() {
            results.push((tensor.dtype, self.read(tensor, id, host).await?));
        }
        Ok(results)
    }

    /// The last of the outputs.
    async fn last(&self, host: &dyn Host) -> Result<Vec<u8>, Error> {
        match self.written().last() {
            Some((tensor, id)) => self.read(tensor, id, host).await,
            None => Ok(Vec::new()),
        }
    }

    fn written(&self) -> impl Iterator<Item = (&Tensor, StorageId)> {
        let externals = self.plan.graph().externals().zip(&self.storages.1).map(|((_, tensor), id)| (tensor, *id));
        externals.filter(|(tensor, _)| matches!(tensor.kind, Kind::Output | Kind::State))
    }

    async fn read(&self, tensor: &Tensor, id: StorageId, host: &dyn Host) -> Result<Vec<u8>, Error> {
        let (rows, cols) = host_rows(&tensor.shape);
        let mut bytes = vec![0; rows * tensor.dtype.row_bytes(cols)?];
        read_rows(self.storages.0, id, 0, rows, &mut bytes, host).await?;
        Ok(bytes)
    }
}
