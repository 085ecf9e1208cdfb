//! What a backend must show before it is trusted: right results, read back from itself, and how fast it is.

use std::collections::BTreeSet;

use backend_api::case::{Case, Fill};
use backend_api::op::MatMul;
use backend_api::{
    Backend, DType, Error, Format, Graph, Kind, Op, Plan, Program, StepParams, StorageDesc, StorageId, fuse, host_rows,
};
use model::{Host, read_rows};
use reference_cpu::Cpu;

/// Any seed does; the same one everywhere makes failures repeatable.
const SEED: u64 = 1;
/// A weight matrix too large for most caches, yet quick for a CPU.
const MATVEC: usize = 1024;
/// Matvecs of one timed step, one after the other as in a model.
const CHAIN: usize = 8;
const RUNS: usize = 3;
/// Steps of a timed run, as far as [`ENOUGH_MS`] allows: as in decoding, many are under way before one read.
const STEPS: usize = 32;
/// *Units*: milliseconds.
const ENOUGH_MS: f64 = 30.0;

/// A graph on a backend with its storages, which are freed in the end.
struct Bench<'a> {
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

impl<'a> Bench<'a> {
    fn new(backend: &'a dyn Backend, graph: &Graph, fills: &[Fill]) -> Result<Bench<'a>, Error> {
        let plan = Plan::new(fuse::prepare(graph, backend)?, &|tensor| backend.slot_size(tensor));
        let mut storages = Storages(backend, Vec::new());
        for (index, ((_, tensor), fill)) in plan.graph().externals().zip(fills).enumerate() {
            let id = backend.create(&StorageDesc::of(tensor))?;
            storages.1.push(id);
            if tensor.kind != Kind::Output {
                backend.write(id, 0, &fill.bytes(tensor, SEED + index as u64))?;
            }
        }
        let program = backend.compile(&plan, &storages.1)?;
        Ok(Bench { program, storages, plan })
    }

    /// How long so many steps and one read take.
    ///
    /// *Units*: milliseconds.
    async fn time(&mut self, steps: usize, host: &dyn Host) -> Result<f64, Error> {
        let start = host.now_ms();
        for _ in 0..steps {
            self.program.step(&StepParams::at(0, 1))?;
        }
        self.results(host).await?;
        Ok(host.now_ms() - start)
    }

    /// All that a step may have written.
    async fn results(&self, host: &dyn Host) -> Result<Vec<(DType, Vec<u8>)>, Error> {
        let mut results = Vec::new();
        for ((_, tensor), id) in self.plan.graph().externals().zip(&self.storages.1) {
            if matches!(tensor.kind, Kind::Output | Kind::State) {
                let (rows, cols) = host_rows(&tensor.shape);
                let mut bytes = vec![0; 4 * rows * cols];
                read_rows(self.storages.0, *id, 0, rows, &mut bytes, host).await?;
                results.push((tensor.dtype, bytes));
            }
        }
        Ok(results)
    }
}

async fn run(backend: &dyn Backend, case: &Case, host: &dyn Host) -> Result<Vec<(DType, Vec<u8>)>, Error> {
    let mut bench = Bench::new(backend, &case.graph, &case.fills)?;
    bench.program.step(&case.step)?;
    bench.results(host).await
}

/// Runs a conformance case for each operator of the graphs, with their weight formats where the operator has one.
///
/// *Errors*: the first case that fails, with its error, or that could not be run.
pub(crate) async fn prove(backend: &dyn Backend, graph: &Graph, host: &dyn Host) -> Result<(), String> {
    let reference = Cpu::new(reference_cpu::Options { fast: false });
    for case in cases(graph) {
        let named = |e: Error| format!("self-test {} ({}): {e}", case.op, case.name);
        let expected = run(&reference, &case, host).await.map_err(named)?;
        let found = run(backend, &case, host).await.map_err(named)?;
        for ((dtype, expected), (_, found)) in expected.iter().zip(&found) {
            let error = nmse(*dtype, found, expected);
            if error > case.tolerance {
                let (op, name, limit) = (case.op, &case.name, case.tolerance);
                return Err(format!(
                    "self-test {op} ({name}) is wrong: NMSE {error:.1e} instead of at most {limit:.0e}"
                ));
            }
        }
    }
    Ok(())
}

/// The first case of each operator whose weight formats are all among the graph's.
fn cases(graph: &Graph) -> Vec<Case> {
    let formats = |graph: &Graph| -> BTreeSet<Format> {
        let format = |dtype| if let DType::Packed(format) = dtype { Some(format) } else { None };
        graph.tensors().filter_map(|(_, t)| format(t.dtype)).collect()
    };
    let mut wanted: BTreeSet<&str> = graph.nodes().iter().map(|n| n.op.name()).collect();
    let known = formats(graph);
    let mut cases = Op::all_cases();
    cases.retain(|case| formats(&case.graph).is_subset(&known) && wanted.remove(case.op));
    cases
}

/// Squared differences over squared reference values; infinite for what is no number on one side only.
fn nmse(dtype: DType, found: &[u8], expected: &[u8]) -> f64 {
    let value = |b: &[u8]| {
        let word = [b[0], b[1], b[2], b[3]];
        if dtype == DType::I32 { f64::from(i32::from_le_bytes(word)) } else { f64::from(f32::from_le_bytes(word)) }
    };
    let (mut difference, mut energy) = (0.0, 0.0);
    for (a, b) in found.chunks_exact(4).map(value).zip(expected.chunks_exact(4).map(value)) {
        difference += (a - b) * (a - b);
        energy += b * b;
    }
    match difference / energy {
        _ if difference == 0.0 => 0.0,
        error if error.is_nan() => f64::INFINITY,
        error => error,
    }
}

/// The time of one matvec of 4-bit weights within a chain of them. What a read costs besides is taken off where it
/// matters: on a fast GPU in a browser it costs more than the whole chain, though a model decodes several tokens between
/// two reads.
///
/// *Units*: milliseconds.
///
/// *Errors*: what the backend returns.
pub(crate) async fn time_matvec(backend: &dyn Backend, host: &dyn Host) -> Result<f64, Error> {
    let mut graph = Graph::new();
    let mut x = graph.input("x", &[1, MATVEC], DType::F32)?;
    let w = graph.weight("w", &[MATVEC, MATVEC], DType::Packed(Format::Q4_0))?;
    for _ in 0..CHAIN {
        x = graph.push(MatMul, &[x, w])?;
    }
    graph.output(x, "y")?;
    // Zeros stay zeros through the chain: no overflow, and the same work.
    let zeros = Fill::Values(vec![0.0]);
    let mut bench = Bench::new(backend, &graph, &[zeros.clone(), Fill::Blocks, zeros])?;
    // The first run pays for what the driver puts off until then.
    bench.time(1, host).await?;
    let (mut one, mut many) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..RUNS {
        one = one.min(bench.time(1, host).await?);
        // A slow device is known to be slow after one run.
        if one > ENOUGH_MS {
            return Ok(one / CHAIN as f64);
        }
    }
    let more = STEPS.min((ENOUGH_MS / one.max(f64::MIN_POSITIVE)) as usize);
    for _ in 0..RUNS {
        many = many.min(bench.time(1 + more, host).await?);
    }
    // Clocks of browsers are coarse: the difference may come out as nothing.
    Ok((many - one).max(many / 100.0) / (more * CHAIN) as f64)
}
