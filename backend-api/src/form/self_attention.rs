//! `self_attention`: from the fused projection, or from what it projects, to the heads: [`QkvAppend`], then
//! [`Attention`] over the caches.
//!
//! *Operands*: those of `project` without residual, or its result `[t, (n_head + 2 * n_head_kv) * head_dim]`; then
//! those of [`QkvAppend`] but its first; then the sinks of the attention, if it has them. *Results*: the heads `[t, n_head * head_dim]`; the K cache; the V cache.
//!
//! It is for backends whose kernels are several draws: one appends to the caches, later ones read them.

use super::found::Found;
use super::linear::{Activation, Linear};
use super::qkv_append::QkvAppend;
use crate::error::Error;
use crate::graph::{Graph, TensorId};
use crate::links::Links;
use crate::op::{Attention, Op};

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SelfAttention {
    /// The projection to Q, K and V; none if operand 0 is its result.
    pub project: Option<Linear>,
    /// How the projection is split, rotated and appended.
    pub qkv: QkvAppend,
    /// Attention of the queries to the caches.
    pub attention: Attention,
}

impl SelfAttention {
    /// The operands before those that [`QkvAppend`] has besides its first, and those; no sinks. `None` if there are too few.
    pub fn operands<'a, T>(&self, list: &'a [T]) -> Option<(&'a [T], &'a [T])> {
        let (list, _) = list.split_at_checked(list.len().checked_sub(usize::from(self.attention.sinks))?)?;
        list.len().checked_sub(self.qkv.rest()).filter(|front| *front > 0).map(|front| list.split_at(front))
    }

    /// Those that begin at the slice which takes the queries, or at the matmul of their projection.
    pub fn find(links: &Links<'_>, at: usize) -> Vec<Found<SelfAttention>> {
        let linears = Linear::find(links, at).into_iter();
        let plain = linears.filter(|found| found.form.activation == Activation::None && !found.form.residual);
        let projected = plain.filter_map(|linear| {
            let rest = SelfAttention::after(links, &QkvAppend::of(links, linear.outputs[0])?)?;
            Some(linear.then(&rest, |linear, rest| SelfAttention { project: Some(linear), ..rest }))
        });
        let alone = QkvAppend::find(links, at).and_then(|qkv| SelfAttention::after(links, &qkv));
        projected.chain(alone).collect()
    }

    /// The attention to caches that an append has just filled, with it.
    fn after(links: &Links<'_>, qkv: &Found<QkvAppend>) -> Option<Found<SelfAttention>> {
        let [q, k, v] = *qkv.outputs.as_slice() else { return None };
        let (at, user) = links.only_user(q)?;
        let Op::Attention(attention) = user.op else { return None };
        let alone = [k, v].iter().all(|cache| links.users(*cache) == [at]);
        let heads = (attention.n_head, attention.n_head_kv) == (qkv.form.n_head, qkv.form.n_head_kv);
        let (parts, sinks) = user.inputs.split_at_checked(3)?;
        if !alone || !heads || parts != qkv.outputs || attention.masking.explicit || !attention.masking.cached {
            return None;
        }
        Some(Found {
            form: SelfAttention { project: None, qkv: qkv.form, attention },
            nodes: [&qkv.nodes[..], &[at]].concat(),
            inputs: [&qkv.inputs[..], sinks].concat(),
            outputs: vec![user.outputs[0], k, v],
        })
    }

    /// Records it as models do.
    ///
    /// *Errors*: operands that do not fit.
    pub fn record(&self, graph: &mut Graph, operands: &[TensorId]) -> Result<Vec<TensorId>, Error> {
        let malformed = || Error::Invalid(format!("self_attention does not take {} operands", operands.len()));
        let (front, rest) = self.operands(operands).ok_or_else(malformed)?;
        let projected = match self.project {
            Some(linear) => linear.record(graph, front)?,
            None => front.to_vec(),
        };
        let parts = self.qkv.record(graph, &[&projected[..], rest].concat())?;
        let sinks = &operands[front.len() + rest.len()..];
        let heads = graph.push(self.attention, &[&parts[..], sinks].concat())?;
        Ok(vec![heads, parts[1], parts[2]])
    }
}
