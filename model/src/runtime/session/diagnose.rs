//! Diagnosis of results that are not finite: a step is run again, operator by operator.

use std::fmt;

use backend_api::run::{Host, read_rows};
use backend_api::{Backend, Graph, Kind, Plan, StepParams, StorageId, Tensor, TensorId, cover, host_rows};

use super::Session;
use crate::arch::Head;
use crate::error::ModelError;
use crate::runtime::load::{Storages, no_storage};

/// The first operator of a step whose result is not finite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Index of the node in the graph of a step of one row.
    pub node: usize,
    /// Name of the operator.
    pub operator: &'static str,
    /// The weight among its operands, or the last one before it.
    pub weight: Option<String>,
    /// Position of the token.
    pub position: usize,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault { node, operator, weight, position } = self;
        write!(f, "at node {node}, {operator}")?;
        if let Some(weight) = weight {
            write!(f, " with {weight}")?;
        }
        write!(f, ", of the token at {position}")
    }
}

impl Fault {
    fn of(graph: &Graph, node: usize, position: usize) -> Fault {
        let nodes = &graph.nodes()[..=node];
        let weights = nodes.iter().rev().flat_map(|node| graph.operands(node)).filter(|t| t.kind == Kind::Weight);
        let weight = weights.map(|tensor| tensor.name.clone()).next();
        Fault { node, operator: nodes[node].op.name(), weight, position }
    }
}

fn is_finite(tensor: &Tensor, bytes: &[u8]) -> bool {
    tensor.dtype.numbers(bytes).all(f64::is_finite)
}

impl Session {
    /// Makes the error of a step whose logits are not finite. Rewinds to before the first bad position.
    pub(crate) async fn not_a_number(&mut self, position: usize, host: &dyn Host) -> ModelError {
        // The error is also correct without the operator.
        let fault = self.fault(position, host).await.ok().flatten();
        self.rewind(fault.as_ref().map_or(position, |fault| fault.position));
        ModelError::NotANumber { position, fault }
    }

    /// Runs the step of a token again without fusion, with all intermediate results as outputs.
    async fn fault(&self, position: usize, host: &dyn Host) -> Result<Option<Fault>, ModelError> {
        let backend = &**self.model().backend();
        let mut graph = self.model().recipe().graph_for(1, Head::LOGITS, self.capacity)?;
        let made: Vec<(TensorId, String)> = graph
            .tensors()
            .filter(|(_, tensor)| tensor.kind == Kind::Temporary)
            .map(|(id, tensor)| (id, tensor.name.clone()))
            .collect();
        for (id, name) in made {
            graph.output(id, name)?;
        }
        let covers = cover(&graph, &[], &|graph, cover| backend.supports(graph, cover))?;
        let plan = Plan::new(graph, covers, &|tensor| backend.slot_size(tensor), backend.equal_results());
        let mut outputs = Storages::new(self.model().backend().clone());
        let bound = self.bind(&plan, &mut outputs)?;
        let mut program = backend.compile(&plan, &bound)?;
        let run = Rerun { backend, graph: plan.graph(), session: self, outputs: &outputs, host };
        let (mut at, mut found) = (position, None);
        loop {
            program.step(&StepParams::at(at as u32, 1))?;
            let Some(node) = run.broken(at).await? else { return Ok(found) };
            found = Some(Fault::of(run.graph, node, at));
            // The states that it reads may have become bad at an earlier position.
            match run.broken_before(node, at).await? {
                Some(earlier) => at = earlier,
                None => return Ok(found),
            }
        }
    }
}

/// A step that was run again.
struct Rerun<'a> {
    backend: &'a dyn Backend,
    graph: &'a Graph,
    session: &'a Session,
    outputs: &'a Storages,
    host: &'a dyn Host,
}

impl Rerun<'_> {
    /// Returns the first node of the step at a position whose result is not finite.
    async fn broken(&self, position: usize) -> Result<Option<usize>, ModelError> {
        for (index, node) in self.graph.nodes().iter().enumerate() {
            for tensor in node.outputs.iter().map(|id| self.graph.tensor(*id)) {
                let (first, rows) = match tensor.kind {
                    Kind::State(_) => (position, 1),
                    _ => (0, host_rows(&tensor.shape).0),
                };
                if !is_finite(tensor, &self.read(tensor, first, rows).await?) {
                    return Ok(Some(index));
                }
            }
        }
        Ok(None)
    }

    /// Returns the first earlier position at which a state that a node reads is not finite.
    async fn broken_before(&self, node: usize, position: usize) -> Result<Option<usize>, ModelError> {
        let operands = self.graph.operands(&self.graph.nodes()[node]);
        let mut first = None;
        for tensor in operands.into_iter().filter(|tensor| matches!(tensor.kind, Kind::State(_))) {
            if position > 0 {
                let bytes = self.read(tensor, 0, position).await?;
                let broken = bytes.chunks_exact(bytes.len() / position).position(|row| !is_finite(tensor, row));
                first = first.into_iter().chain(broken).min();
            }
        }
        Ok(first)
    }

    async fn read(&self, tensor: &Tensor, first: usize, rows: usize) -> Result<Vec<u8>, ModelError> {
        let mut bytes = vec![0; rows * tensor.dtype.row_bytes(host_rows(&tensor.shape).1)?];
        read_rows(self.backend, self.storage(tensor)?, first, rows, &mut bytes, self.host).await?;
        Ok(bytes)
    }

    fn storage(&self, tensor: &Tensor) -> Result<StorageId, ModelError> {
        let found = match tensor.kind {
            Kind::State(_) => self.session.state(&tensor.name),
            _ => self.outputs.get(&tensor.name),
        };
        Ok(found.ok_or_else(|| no_storage(&tensor.name))?)
    }
}
