//! What a backend must show before it is trusted: right results, read back from itself, and how fast it is.

use std::collections::BTreeSet;

use backend_api::case::{Case, Fill};
use backend_api::op::MatMul;
use backend_api::{Backend, DType, Error, Format, Graph, Op};
use model::Host;
use reference_cpu::Cpu;

use crate::rig::Rig;

/// A weight matrix too large for most caches, yet quick for a CPU.
const MATVEC: usize = 1024;
/// Matvecs of one timed step, one after the other as in a model.
const CHAIN: usize = 4;
/// Steps of a timed run, as far as [`ENOUGH_MS`] allows: as in decoding, many are under way before one read.
const STEPS: usize = 32;
/// *Units*: milliseconds.
const ENOUGH_MS: f64 = 20.0;

async fn run(backend: &dyn Backend, case: &Case, host: &dyn Host) -> Result<Vec<(DType, Vec<u8>)>, Error> {
    let mut rig = Rig::new(backend, &case.graph, &case.fills)?;
    rig.step(&case.step)?;
    rig.results(host).await
}

/// Runs a conformance case for each operator of the graphs, with their weight formats where the operator has one.
///
/// *Errors*: the first case that fails, with its error, or that could not be run.
pub(crate) async fn prove(backend: &dyn Backend, graph: &Graph, host: &dyn Host) -> Result<(), String> {
    let reference = Cpu::new(reference_cpu::Options { fast: false, ..Default::default() });
    for case in cases(graph) {
        let named = |e: Error| format!("self-test {} ({}): {e}", case.op, case.name);
        let expected = run(&reference, &case, host).await.map_err(named)?;
        let found = run(backend, &case, host).await.map_err(named)?;
        for ((dtype, expected), (_, found)) in expected.iter().zip(&found) {
            let error = nmse(*dtype, found, expected);
            let limit = case.tolerance_on(backend.info());
            if error > limit {
                let (op, name) = (case.op, &case.name);
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
    let (mut difference, mut energy) = (0.0, 0.0);
    for (a, b) in dtype.numbers(found).zip(dtype.numbers(expected)) {
        difference += (a - b) * (a - b);
        energy += b * b;
    }
    match difference / energy {
        _ if difference == 0.0 => 0.0,
        error if error.is_nan() => f64::INFINITY,
        error => error,
    }
}

/// The time of one matvec of 4-bit weights within a chain of them, as in decoding.
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
    let mut rig = Rig::new(backend, &graph, &[zeros.clone(), Fill::Blocks, zeros])?;
    Ok(rig.step_ms(STEPS, ENOUGH_MS, host).await? / CHAIN as f64)
}
