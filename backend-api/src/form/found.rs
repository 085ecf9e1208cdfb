//! Results of matchers.

use crate::graph::TensorId;

/// Nodes of a graph that one form does. The nodes' results that are not among its own are seen by nobody else.
#[derive(Debug, Clone, PartialEq)]
pub struct Found<F> {
    /// Fusion pattern that the nodes match.
    pub form: F,
    /// The nodes, by index. A norm that the form computes on the way is not listed: others may compute it, too, and if
    /// nobody else needs its result, it is not run by itself.
    pub nodes: Vec<usize>,
    /// Tensors that it reads, in the order that the form documents.
    pub inputs: Vec<TensorId>,
    /// Tensors that it writes, in the order that the form documents.
    pub outputs: Vec<TensorId>,
}

impl<F> Found<F> {
    /// Wraps the form in another one.
    pub(crate) fn map<G>(self, form: impl FnOnce(F) -> G) -> Found<G> {
        Found { form: form(self.form), nodes: self.nodes, inputs: self.inputs, outputs: self.outputs }
    }
}

impl<F: Copy> Found<F> {
    /// This form and one that takes its result as the first operand: as the form that does both.
    pub(crate) fn then<G: Copy, H>(&self, next: &Found<G>, form: impl FnOnce(F, G) -> H) -> Found<H> {
        Found {
            form: form(self.form, next.form),
            nodes: [&self.nodes[..], &next.nodes].concat(),
            inputs: [&self.inputs[..], &next.inputs[1..]].concat(),
            outputs: next.outputs.clone(),
        }
    }
}
