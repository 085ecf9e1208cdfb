//! `epilogue`: a product or a norm, and a [`Chain`] of its result.
//!
//! *Operands*: those of the first; then those of the chain but its first. *Results*: those of the first, of which the chain's takes
//! the place of the last.

use super::chain::Chain;
use super::found::Found;
use super::linear::Linear;
use super::norm_add::NormAdd;
use super::norm_add_linear::NormAddLinear;
use super::{Cover, Form};
use crate::error::Error;
use crate::graph::{Graph, TensorId};
use crate::links::Links;

/// See the [module page](self).
#[derive(Debug, Clone, PartialEq)]
pub struct Epilogue {
    /// A [`Linear`], [`NormAdd`] or [`NormAddLinear`].
    pub head: Box<Form>,
    /// Chain that follows; its first operand is the result before it, each element at its place.
    pub chain: Chain,
}

impl Epilogue {
    /// The most operands that a chain adds.
    pub const OPERANDS: usize = 3;

    /// Those that begin at a norm or a matmul.
    pub fn find(links: &Links<'_>, at: usize) -> Vec<Found<Epilogue>> {
        let kinds = [NormAddLinear::matcher(links, at), Linear::matcher(links, at), NormAdd::matcher(links, at)];
        let of_kind = |heads: Vec<Cover>| {
            // A residual or an activation that the head has itself is no gain.
            let most = heads.iter().map(|head| head.nodes.len()).max().unwrap_or(0);
            let all = heads.iter().flat_map(|head| Epilogue::of(links, head)).collect::<Vec<_>>();
            all.into_iter().filter(move |found| found.nodes.len() > most)
        };
        kinds.into_iter().flat_map(of_kind).collect()
    }

    /// The head with what follows, the longest chain first.
    fn of(links: &Links<'_>, head: &Cover) -> Vec<Found<Epilogue>> {
        let Some((result, others)) = head.outputs.split_last() else { return Vec::new() };
        let fits = |chain: &Found<Chain>| {
            let added = &chain.inputs[1..];
            added.len() <= Epilogue::OPERANDS && !added.iter().any(|id| others.contains(id))
        };
        let joined = |chain: Found<Chain>| Found {
            form: Epilogue { head: Box::new(head.form.clone()), chain: chain.form },
            nodes: [&head.nodes[..], &chain.nodes].concat(),
            inputs: [&head.inputs[..], &chain.inputs[1..]].concat(),
            outputs: [others, &chain.outputs].concat(),
        };
        Chain::after(links, *result).into_iter().filter(fits).map(joined).collect()
    }

    /// How many of so many operands are the head's.
    pub fn of_head(&self, operands: usize) -> usize {
        operands.saturating_sub(self.chain.operands().saturating_sub(1))
    }

    /// Records it as models do.
    ///
    /// *Errors*: operands that do not fit.
    pub fn record(&self, graph: &mut Graph, operands: &[TensorId]) -> Result<Vec<TensorId>, Error> {
        let (first, rest) = operands.split_at(self.of_head(operands.len()));
        let mut results = self.head.record(graph, first)?;
        let made = results.pop().ok_or_else(|| Error::Invalid("the head of an epilogue has no result".into()))?;
        results.extend(self.chain.record(graph, &[&[made], rest].concat())?);
        Ok(results)
    }
}
