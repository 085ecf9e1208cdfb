//! Self-test of a backend: whether its results, read back from the device, are right, and how fast it is.

use std::collections::BTreeSet;

use backend_api::case::{Case, Fill};
use backend_api::compare::{Values, worst};
use backend_api::op::MatMul;
use backend_api::run::{self, Host, Rig};
use backend_api::{Backend, Cover, DType, Error, Format, Graph, cases};
use reference_cpu::Cpu;

use crate::race::{Device, Times};
use crate::timing;

/// Rows and columns of the timed weight matrix: too large for most caches, yet quick on a CPU.
const MATVEC: usize = 1024;
/// Matvecs of one timed step, each on the result of the one before, as in a model.
const CHAIN: usize = 4;

/// Returns the rate of a device from the time of one matvec.
///
/// *Units*: milliseconds; multiply-adds a millisecond, as a [`Cost`](backend_api::Cost) counts them.
pub(crate) fn rate_of(matvec_ms: f64) -> f64 {
    // Each weight is read and multiplied once. Coarse clocks may measure 0.
    2.0 * (MATVEC * MATVEC) as f64 / matvec_ms.max(1e-4)
}

async fn results(rig: &mut Rig<'_>, case: &Case, host: &dyn Host) -> Result<Vec<Values>, Error> {
    rig.step(&case.step)?;
    rig.results(host).await
}

/// Runs a conformance case for each fusion pattern that the backend uses for a graph, with the graph's weight formats
/// where the pattern has weights. Cases in `known` are skipped. Returns the names of the passed cases.
///
/// *Errors*: the first case that fails or could not be run.
pub(crate) async fn prove(
    backend: &dyn Backend,
    graph: &Graph,
    host: &dyn Host,
    known: &BTreeSet<String>,
) -> Result<BTreeSet<String>, String> {
    let reference = Cpu::new(reference_cpu::Options { fast: false, ..Default::default() });
    let covers = backend.cover(graph).map_err(|e| e.to_string())?;
    let mut tests = Vec::new();
    for case in cases(graph, &covers) {
        let name = format!("{} {}", case.op, case.name);
        if !known.contains(&name) {
            let rig = Rig::of_case(backend, &case).map_err(|e| failed(&case, e))?;
            tests.push((name, case, rig));
        }
    }
    // All programs are compiled at once.
    run::ready(backend, host).await.map_err(|e| e.to_string())?;
    let mut passed = BTreeSet::new();
    for (name, case, mut rig) in tests {
        let mut own = Rig::of_case(&reference, &case).map_err(|e| failed(&case, e))?;
        let expected = results(&mut own, &case, host).await.map_err(|e| failed(&case, e))?;
        let found = results(&mut rig, &case, host).await.map_err(|e| failed(&case, e))?;
        worst(&found, &expected, case.tolerance_on(backend.info()))
            .map_err(|why| format!("self-test {} ({}) is wrong: {why}", case.op, case.name))?;
        passed.insert(name);
    }
    Ok(passed)
}

fn failed(case: &Case, error: Error) -> String {
    format!("self-test {} ({}): {error}", case.op, case.name)
}

/// Returns the first case of each fusion pattern whose weight formats all occur in the graph.
fn cases(graph: &Graph, covers: &[Cover]) -> Vec<Case> {
    let formats = |graph: &Graph| -> BTreeSet<Format> {
        let format = |dtype| if let DType::Packed(format) = dtype { Some(format) } else { None };
        graph.tensors().filter_map(|(_, t)| format(t.dtype)).collect()
    };
    let mut wanted: BTreeSet<&str> = covers.iter().map(|cover| cover.form.name()).collect();
    let known = formats(graph);
    let mut cases = cases::of_models();
    cases.retain(|case| formats(&case.graph).is_subset(&known) && wanted.remove(case.op));
    cases
}

/// Timing of chained matvecs with 4-bit weights, as in decoding.
pub(crate) struct Matvec {
    /// Measured times of the chain.
    pub times: Times,
    /// The error if a backend that was the fastest so far could not be timed again.
    pub failed: Option<Error>,
}

impl Matvec {
    pub fn new(device: Device) -> Matvec {
        Matvec { times: Times::new(device), failed: None }
    }

    /// Returns the time of one matvec.
    ///
    /// *Units*: milliseconds.
    pub fn ms(&self) -> f64 {
        self.times.step_ms() / CHAIN as f64
    }

    /// Times one run of so many steps, on a rig that the first run makes.
    ///
    /// *Errors*: those of the backend.
    pub async fn run<'a>(
        &mut self,
        rig: &mut Option<Rig<'a>>,
        backend: &'a dyn Backend,
        steps: u32,
        host: &dyn Host,
    ) -> Result<(), Error> {
        let rig = match rig {
            Some(rig) => rig,
            None => rig.insert(chain(backend)?),
        };
        run::ready(backend, host).await?;
        self.times.add(steps, timing::time(rig, steps as usize, host).await?);
        Ok(())
    }
}

fn chain(backend: &dyn Backend) -> Result<Rig<'_>, Error> {
    let mut graph = Graph::new();
    let mut x = graph.input("x", &[1, MATVEC], DType::F32)?;
    let w = graph.weight("w", &[MATVEC, MATVEC], DType::Packed(Format::Q4_0))?;
    for _ in 0..CHAIN {
        x = graph.push(MatMul, &[x, w])?;
    }
    graph.output(x, "y")?;
    // Zeros stay zeros through the chain, so nothing overflows, and the work is the same.
    let zeros = Fill::Values(vec![0.0]);
    timing::rig(backend, &graph, &[zeros.clone(), Fill::Blocks, zeros])
}
