//! The self-test of a backend: right results, read back from itself, and its speed.

use std::collections::BTreeSet;

use backend_api::case::{Case, Fill};
use backend_api::compare::{Values, worst};
use backend_api::op::MatMul;
use backend_api::run::{self, Host, Rig};
use backend_api::{Backend, Cover, DType, Error, Format, Graph, cases};
use reference_cpu::Cpu;

use crate::race::{Device, Times};
use crate::timing;

/// A weight matrix too large for most caches, yet quick for a CPU.
const MATVEC: usize = 1024;
/// Matvecs of one timed step, one after the other as in a model.
const CHAIN: usize = 4;

/// The rate of a device that takes so long for one of the matvecs that are timed.
///
/// *Units*: milliseconds; multiply-adds a millisecond, as a [`Cost`](backend_api::Cost) counts them.
pub(crate) fn rate_of(matvec_ms: f64) -> f64 {
    // Each weight is read and multiplied once. Coarse clocks may see no time pass.
    2.0 * (MATVEC * MATVEC) as f64 / matvec_ms.max(1e-4)
}

async fn results(rig: &mut Rig<'_>, case: &Case, host: &dyn Host) -> Result<Vec<Values>, Error> {
    rig.step(&case.step)?;
    rig.results(host).await
}

/// Runs a conformance case for each form that the backend runs of a graph, with the graph's weight formats where the form
/// has one, but for those that it is known to pass. Gives the names of the others.
///
/// *Errors*: the first case that fails, with its error, or that could not be run.
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
    // All are compiled at once.
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

/// The first case of each form whose weight formats are all among the graph's.
fn cases(graph: &Graph, covers: &[Cover]) -> Vec<Case> {
    let formats = |graph: &Graph| -> BTreeSet<Format> {
        let format = |dtype| if let DType::Packed(format) = dtype { Some(format) } else { None };
        graph.tensors().filter_map(|(_, t)| format(t.dtype)).collect()
    };
    let mut wanted: BTreeSet<&str> = covers.iter().map(|cover| cover.form.name()).collect();
    let known = formats(graph);
    let mut cases = cases::all();
    cases.retain(|case| formats(&case.graph).is_subset(&known) && wanted.remove(case.op));
    cases
}

/// Times matvecs of 4-bit weights within a chain of them, as in decoding.
pub(crate) struct Matvec {
    /// Measured times of the chain.
    pub times: Times,
    /// Why a backend that held the title could not be timed again.
    pub failed: Option<Error>,
}

impl Matvec {
    pub fn new(device: Device) -> Matvec {
        Matvec { times: Times::new(device), failed: None }
    }

    /// The time of one.
    ///
    /// *Units*: milliseconds.
    pub fn ms(&self) -> f64 {
        self.times.step_ms() / CHAIN as f64
    }

    /// Times one run of so many steps, on a rig that the first one makes.
    ///
    /// *Errors*: what the backend returns.
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
    // Zeros stay zeros through the chain: no overflow, and the same work.
    let zeros = Fill::Values(vec![0.0]);
    timing::rig(backend, &graph, &[zeros.clone(), Fill::Blocks, zeros])
}
