//! Producers and consumers of each tensor of a graph, looked up once.

use crate::graph::{Graph, Node, TensorId};
use crate::op::Op;
use crate::tensor::{Kind, Tensor};
use std::cell::Cell;

/// A graph with the makers and users of its tensors.
pub struct Links<'g> {
    graph: &'g Graph,
    users: Vec<Vec<usize>>,
    makers: Vec<Option<usize>>,
    taken: Vec<Cell<bool>>,
}

impl<'g> Links<'g> {
    /// Looks at every node once.
    pub fn new(graph: &'g Graph) -> Links<'g> {
        let count = graph.tensors().len();
        let taken = vec![Cell::new(false); graph.nodes().len()];
        let mut links = Links { graph, users: vec![Vec::new(); count], makers: vec![None; count], taken };
        for (at, node) in graph.nodes().iter().enumerate() {
            for id in &node.inputs {
                // A node that uses a tensor twice is two users.
                links.users[id.index()].push(at);
            }
            for id in &node.outputs {
                links.makers[id.index()] = Some(at);
            }
        }
        links
    }

    /// The graph.
    pub fn graph(&self) -> &'g Graph {
        self.graph
    }

    /// A node.
    pub fn node(&self, at: usize) -> &'g Node {
        &self.graph.nodes()[at]
    }

    /// A tensor.
    pub fn tensor(&self, id: TensorId) -> &'g Tensor {
        self.graph.tensor(id)
    }

    /// Marks a node as covered.
    pub(crate) fn take(&self, at: usize) {
        self.taken[at].set(true);
    }

    /// Whether something covers a node already.
    pub fn is_taken(&self, at: usize) -> bool {
        self.taken[at].get()
    }

    /// The nodes that use a tensor, in order; those that use it twice are listed twice.
    pub fn users(&self, id: TensorId) -> &[usize] {
        &self.users[id.index()]
    }

    /// The node that makes a tensor, with its index.
    pub fn maker(&self, id: TensorId) -> Option<(usize, &'g Node)> {
        self.makers[id.index()].map(|at| (at, self.node(at)))
    }

    /// The only node that uses a temporary, if it uses it once: then nobody else has to see it.
    pub fn only_user(&self, id: TensorId) -> Option<(usize, &'g Node)> {
        match self.users(id) {
            [at] if self.tensor(id).kind == Kind::Temporary => Some((*at, self.node(*at))),
            _ => None,
        }
    }

    /// The node that makes a temporary for one user alone.
    pub fn only_for_one(&self, id: TensorId) -> Option<(usize, &'g Node)> {
        self.only_user(id).and_then(|_| self.maker(id))
    }

    /// The other operand and the result of a sum that is the only user of a tensor, with the sum's index.
    pub fn sum(&self, id: TensorId) -> Option<(usize, TensorId, TensorId)> {
        let (at, node) = self.only_user(id)?;
        match (&node.op, node.inputs.as_slice()) {
            (Op::Binary(op), [a, b]) if op.kind == crate::op::BinaryKind::Add => {
                Some((at, if *a == id { *b } else { *a }, node.outputs[0]))
            }
            _ => None,
        }
    }
}
