//! `attention_linear`: an [`Attention`] whose result goes through a [`Linear`].
//!
//! *Operands*: those of the attention; then those of the linear but its first. *Results*: that of the linear.

use super::found::Found;
use super::linear::Linear;
use crate::error::Error;
use crate::graph::{Graph, TensorId};
use crate::links::Links;
use crate::op::{Attention, Op};

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AttentionLinear {
    /// The attention.
    pub attention: Attention,
    /// The projection of its result, without a norm.
    pub linear: Linear,
}

impl AttentionLinear {
    /// How many of the operands are the attention's.
    pub fn attention_operands(&self) -> usize {
        self.attention.operands()
    }

    /// Those that begin at an attention.
    pub fn find(links: &Links<'_>, at: usize) -> Vec<Found<AttentionLinear>> {
        let node = links.node(at);
        let Op::Attention(attention) = node.op else { return Vec::new() };
        let Some((matmul, _)) = links.only_user(node.outputs[0]) else { return Vec::new() };
        let first =
            Found { form: attention, nodes: vec![at], inputs: node.inputs.clone(), outputs: node.outputs.clone() };
        let linears = Linear::find(links, matmul).into_iter().filter(|found| found.inputs[0] == node.outputs[0]);
        linears.map(|linear| first.then(&linear, |attention, linear| AttentionLinear { attention, linear })).collect()
    }

    /// Records it as models do.
    ///
    /// *Errors*: operands that do not fit.
    pub fn record(&self, graph: &mut Graph, operands: &[TensorId]) -> Result<Vec<TensorId>, Error> {
        let malformed = || Error::Invalid(format!("attention_linear does not take {} operands", operands.len()));
        let (head, tail) = operands.split_at_checked(self.attention_operands()).ok_or_else(malformed)?;
        let between = graph.push(self.attention, head)?;
        self.linear.record(graph, &[&[between], tail].concat())
    }
}
