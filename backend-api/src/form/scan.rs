//! `scan`: a selective scan of some columns, with the bias of its paces and a gate.
//!
//! *Operands*: the state of the scan; what its columns are read of, each once; its decays; its skip; with `bias` a vector
//! `[heads]` that is added to dt. *Results*: y, with `gate` times an activation of its gate; and the state.

use super::columns::{Columns, Finding};
use super::found::Found;
use crate::error::Error;
use crate::graph::{Graph, TensorId};
use crate::links::Links;
use crate::op::{Binary, BinaryKind, Glu, GluKind, Op, SsmScan};

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scan {
    /// Input of the scan.
    pub x: Columns,
    /// Columns that the step sizes are computed from.
    pub dt: Columns,
    /// Columns that weigh what enters the state.
    pub b: Columns,
    /// Columns that weigh what is read from the state.
    pub c: Columns,
    /// Whether a bias is added to dt.
    pub bias: bool,
    /// A gate of the result.
    pub gate: Option<(GluKind, Columns)>,
}

/// The places of a scan's operands that are not columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanPlaces {
    /// Decays.
    pub a: usize,
    /// Operand that scales x on its way past the state.
    pub skip: usize,
    /// The bias of dt.
    pub bias: Option<usize>,
}

impl Scan {
    /// The scan of whole operands, as the operator has them, and the places of the others.
    pub fn plain([d, heads, mixes]: [usize; 3]) -> (Scan, ScanPlaces) {
        let [x, dt] = [Columns::all(1, d), Columns::all(2, heads)];
        let [b, c] = [4, 5].map(|of| Columns::all(of, mixes));
        (Scan { x, dt, b, c, bias: false, gate: None }, ScanPlaces { a: 3, skip: 6, bias: None })
    }

    /// The places among so many operands.
    pub fn places(&self, operands: usize) -> ScanPlaces {
        let end = operands - usize::from(self.bias);
        ScanPlaces { a: end - 2, skip: end - 1, bias: self.bias.then_some(end) }
    }

    /// The one around a scan, if there is anything.
    pub fn find(links: &Links<'_>, at: usize) -> Option<Found<Scan>> {
        let node = links.node(at);
        let (Op::SsmScan(_), [state, x, dt, a, b, c, skip]) = (&node.op, node.inputs.as_slice()) else { return None };
        let mut finding = Finding { links, nodes: vec![at], inputs: vec![*state] };
        let x = finding.columns(*x);
        let bias = if finding.is_sum_of_slice(*dt) { finding.bias(*dt) } else { None };
        let dt = finding.columns(bias.map_or(*dt, |(_, summand)| summand));
        let (b, c) = (finding.columns(*b), finding.columns(*c));
        let (mut out, mut gate) = (node.outputs[0], None);
        if let Some((at, user)) = links.only_user(out)
            && let (Op::Glu(Glu { kind }), [z, y]) = (&user.op, user.inputs.as_slice())
            && *y == out
        {
            finding.nodes.push(at);
            (gate, out) = (Some((*kind, finding.columns(*z))), user.outputs[0]);
        }
        let Finding { nodes, inputs, .. } = finding;
        (nodes.len() > 1).then(|| Found {
            form: Scan { x, dt, b, c, bias: bias.is_some(), gate },
            nodes,
            inputs: inputs.into_iter().chain([*a, *skip]).chain(bias.map(|(vector, _)| vector)).collect(),
            outputs: vec![out, node.outputs[1]],
        })
    }

    /// Records it as models do.
    ///
    /// *Errors*: operands that do not fit.
    pub fn record(&self, graph: &mut Graph, operands: &[TensorId]) -> Result<Vec<TensorId>, Error> {
        if operands.len() < 4 + usize::from(self.bias) {
            return Err(Error::Invalid(format!("scan does not take {} operands", operands.len())));
        }
        let ScanPlaces { a, skip, bias } = self.places(operands.len());
        let gate = self.gate.map(|(_, columns)| columns.record(graph, operands)).transpose()?;
        let [x, mut dt, b, c] = [self.x, self.dt, self.b, self.c].map(|columns| columns.record(graph, operands));
        if let Some(bias) = bias {
            dt = graph.push(Binary { kind: BinaryKind::Add }, &[dt?, operands[bias]]);
        }
        let made = graph.push_multi(SsmScan.into(), &[operands[0], x?, dt?, operands[a], b?, c?, operands[skip]])?;
        let y = match (self.gate, gate) {
            (Some((kind, _)), Some(gate)) => graph.push(Glu { kind }, &[gate, made[0]])?,
            _ => made[0],
        };
        Ok(vec![y, made[1]])
    }
}
