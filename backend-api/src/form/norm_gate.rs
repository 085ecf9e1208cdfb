//! `norm_gate`: a norm of heads, gated.
//!
//! *Operands*: those of the norm, and what the gate is read of. *Results*: like x: an activation of the gate times what is
//! normed.

use super::columns::{Columns, Finding};
use super::found::Found;
use crate::error::Error;
use crate::graph::{Graph, TensorId};
use crate::links::Links;
use crate::op::{Glu, GluKind, Norm, Op};

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NormGate {
    /// The norm.
    pub norm: Norm,
    /// The activation.
    pub kind: GluKind,
    /// The gate.
    pub gate: Columns,
}

impl NormGate {
    /// The one that begins at a norm, if there is one.
    pub fn find(links: &Links<'_>, at: usize) -> Option<Found<NormGate>> {
        let node = links.node(at);
        let Op::Norm(norm) = node.op else { return None };
        let (user, gated) = links.only_user(node.outputs[0])?;
        let (Op::Glu(Glu { kind }), [z, normed]) = (&gated.op, gated.inputs.as_slice()) else { return None };
        if *normed != node.outputs[0] {
            return None;
        }
        let mut finding = Finding { links, nodes: vec![at, user], inputs: node.inputs.clone() };
        let gate = finding.columns(*z);
        let Finding { nodes, inputs, .. } = finding;
        Some(Found { form: NormGate { norm, kind: *kind, gate }, nodes, inputs, outputs: gated.outputs.clone() })
    }

    /// Records it as models do.
    ///
    /// *Errors*: operands that do not fit.
    pub fn record(&self, graph: &mut Graph, operands: &[TensorId]) -> Result<Vec<TensorId>, Error> {
        let gate = self.gate.record(graph, operands)?;
        let of_norm = operands.get(..=self.norm.kind.params());
        let missing = || Error::Invalid(format!("norm_gate does not take {} operands", operands.len()));
        let x = graph.push(self.norm, of_norm.ok_or_else(missing)?)?;
        Ok(vec![graph.push(Glu { kind: self.kind }, &[gate, x])?])
    }
}
