//! `delta`: a gated delta net of some columns, with what its gates are made of.
//!
//! *Operands*: the state of the delta net; what its columns are read of, each once; with `gates` vectors `[heads]`: a bias
//! and decays. *Results*: those of the operator; with `gates`, g is `softplus(g + bias) * decays` and beta `sigmoid(beta)`.

use super::columns::{Columns, Finding};
use super::found::Found;
use crate::error::Error;
use crate::graph::{Graph, TensorId};
use crate::links::Links;
use crate::op::{Binary, BinaryKind, GatedDeltaNet, Op, Unary, UnaryKind};

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delta {
    /// How heads share keys.
    pub net: GatedDeltaNet,
    /// Queries.
    pub q: Columns,
    /// Keys.
    pub k: Columns,
    /// Values.
    pub v: Columns,
    /// Columns that the decays are computed from.
    pub g: Columns,
    /// How much is learned, or what that is made of.
    pub beta: Columns,
    /// Whether gates are made of g and beta.
    pub gates: bool,
}

impl Delta {
    /// The delta net of whole operands, as the operator has it.
    pub fn plain(net: GatedDeltaNet, widths: [usize; 5]) -> Delta {
        let [q, k, v, g, beta] = std::array::from_fn(|i| Columns::all(i + 1, widths[i]));
        Delta { net, q, k, v, g, beta, gates: false }
    }

    /// The places of the bias and of the decays among so many operands, if there are gates.
    pub fn vectors(&self, operands: usize) -> Option<[usize; 2]> {
        self.gates.then(|| [operands - 2, operands - 1])
    }

    /// The one around a delta net, if there is anything.
    pub fn find(links: &Links<'_>, at: usize) -> Option<Found<Delta>> {
        let node = links.node(at);
        let (Op::GatedDeltaNet(net), [state, q, k, v, g, beta]) = (&node.op, node.inputs.as_slice()) else {
            return None;
        };
        let mut finding = Finding { links, nodes: vec![at], inputs: vec![*state] };
        let [q, k, v] = [*q, *k, *v].map(|id| finding.columns(id));
        let gates = gates(&mut finding, *g, *beta);
        let (g, beta) = gates.map_or((*g, *beta), |(g, beta, _)| (g, beta));
        let form =
            Delta { net: *net, q, k, v, g: finding.columns(g), beta: finding.columns(beta), gates: gates.is_some() };
        let Finding { nodes, inputs, .. } = finding;
        let vectors = gates.into_iter().flat_map(|(_, _, vectors)| vectors);
        (nodes.len() > 1).then(|| Found {
            form,
            nodes,
            inputs: inputs.into_iter().chain(vectors).collect(),
            outputs: node.outputs.clone(),
        })
    }

    /// Records it as models do.
    ///
    /// *Errors*: operands that do not fit.
    pub fn record(&self, graph: &mut Graph, operands: &[TensorId]) -> Result<Vec<TensorId>, Error> {
        if operands.len() < 2 + 2 * usize::from(self.gates) {
            return Err(Error::Invalid(format!("delta does not take {} operands", operands.len())));
        }
        let mut beta = self.beta.record(graph, operands)?;
        let mut g = self.g.record(graph, operands)?;
        if let Some([bias, decays]) = self.vectors(operands.len()) {
            beta = graph.push(Unary { kind: UnaryKind::Sigmoid }, &[beta])?;
            g = graph.push(Binary { kind: BinaryKind::Add }, &[g, operands[bias]])?;
            g = graph.push(Unary { kind: UnaryKind::Softplus }, &[g])?;
            g = graph.push(Binary { kind: BinaryKind::Mul }, &[g, operands[decays]])?;
        }
        let [q, k, v] = [self.q, self.k, self.v].map(|columns| columns.record(graph, operands));
        graph.push_multi(self.net.into(), &[operands[0], q?, k?, v?, g, beta])
    }
}

/// Finds the inputs of g and beta, with a bias and decays, if they match.
fn gates(finding: &mut Finding<'_, '_>, g: TensorId, beta: TensorId) -> Option<(TensorId, TensorId, [TensorId; 2])> {
    let links = finding.links;
    let unary = |id: TensorId, wanted: UnaryKind| {
        let (at, maker) = links.only_for_one(id)?;
        matches!(maker.op, Op::Unary(Unary { kind }) if kind == wanted).then(|| (at, maker.inputs[0]))
    };
    let (sigmoid, beta) = unary(beta, UnaryKind::Sigmoid)?;
    let (product, maker) = links.only_for_one(g)?;
    let (Op::Binary(Binary { kind: BinaryKind::Mul }), [pace, decays]) = (&maker.op, maker.inputs.as_slice()) else {
        return None;
    };
    if links.tensor(*decays).shape.rank() != 1 {
        return None;
    }
    let (softplus, sum) = unary(*pace, UnaryKind::Softplus)?;
    let (bias, g) = finding.bias(sum)?;
    finding.nodes.extend([sigmoid, product, softplus]);
    Some((g, beta, [bias, *decays]))
}
