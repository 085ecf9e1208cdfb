//! Cost estimates of nodes and kernels from their shapes, whatever the backend.
//!
//! The unit is a multiply-add; a number that is read or written counts as one, too. So a product with one row, whose
//! time goes into reading the weights, costs about twice its multiply-adds, and one with many rows little more than
//! them.

use std::ops::Add;

use crate::form::Cover;
use crate::graph::{Graph, Node};
use crate::op::Op;
use crate::step::StepParams;
use crate::tensor::{Kind, Tensor};

/// Estimated cost of a cover or a kernel.
///
/// *Units*: multiply-adds, or numbers read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Wherever in a text the step is.
    pub fixed: u64,
    /// Besides, for each token up to the step's last: attention looks at all of them.
    pub per_token: u64,
}

impl Add for Cost {
    type Output = Cost;

    fn add(self, other: Cost) -> Cost {
        Cost {
            fixed: self.fixed.saturating_add(other.fixed),
            per_token: self.per_token.saturating_add(other.per_token),
        }
    }
}

impl Cost {
    /// Makes a cost that does not depend on the position.
    pub(crate) fn fixed(work: u64) -> Cost {
        Cost { fixed: work, per_token: 0 }
    }

    /// Evaluates the cost for one step.
    pub fn of(self, step: &StepParams) -> u64 {
        let tokens = u64::from(step.position) + u64::from(step.rows);
        self.fixed.saturating_add(self.per_token.saturating_mul(tokens))
    }

    /// `part` of `of` equal parts, rounded up.
    pub fn share(self, part: u64, of: u64) -> Cost {
        let share = |work: u64| {
            let work = (u128::from(work) * u128::from(part)).div_ceil(u128::from(of.max(1)));
            u64::try_from(work).unwrap_or(u64::MAX)
        };
        Cost { fixed: share(self.fixed), per_token: share(self.per_token) }
    }
}

impl Cover {
    /// Sums the costs of the nodes of this cover.
    pub fn cost(&self, graph: &Graph) -> Cost {
        let nodes = self.nodes.iter().filter_map(|node| graph.nodes().get(*node));
        nodes.map(|node| cost(graph, node)).fold(Cost::default(), Cost::add)
    }

    /// Multiply-adds of its products with weight matrices in a kernel that touches so many bytes: of several kernels each
    /// makes as many of them as it reads of the weights.
    pub(crate) fn products(&self, graph: &Graph, bytes: u64) -> u64 {
        let (mut products, mut weights) = (0, 0);
        for node in self.nodes.iter().filter_map(|node| graph.nodes().get(*node)) {
            let (Op::MatMul(_), [x, w], [y]) = (&node.op, &node.inputs[..], &node.outputs[..]) else { continue };
            let [x, w, y] = [x, w, y].map(|id| graph.tensor(*id));
            if w.kind == Kind::Weight {
                products += len(y) * x.shape.cols() as u64;
                weights += (w.shape.rows() * w.dtype.row_bytes(w.shape.cols()).unwrap_or(0)) as u64;
            }
        }
        Cost::fixed(products).share(bytes.min(weights), weights).fixed
    }
}

/// Numbers of a tensor.
fn len(tensor: &Tensor) -> u64 {
    tensor.shape.len() as u64
}

/// Cost of sorting one number: about the logarithm of how many there are.
const SORTED: u64 = 16;
/// Tokens that each logit is compared with, about.
const COMPARED: u64 = 64;
/// Cost of one number of a recurrent state for each row: it decays, is corrected, and is read.
const REMEMBERED: u64 = 4;

fn cost(graph: &Graph, node: &Node) -> Cost {
    let inputs = || node.inputs.iter().map(|id| graph.tensor(*id));
    let input = |i: usize| node.inputs.get(i).map(|id| graph.tensor(*id));
    let is_state = |tensor: &&Tensor| matches!(tensor.kind, Kind::State(_));
    // Of a state only what the step appends or remembers is touched.
    let made = || node.outputs.iter().map(|id| graph.tensor(*id)).filter(|t| !is_state(t)).map(len).sum::<u64>();
    let read = || inputs().filter(|t| !is_state(t)).map(len).sum::<u64>();
    let rows = || input(0).map_or(1, |x| x.shape.rows() as u64);
    Cost::fixed(match (&node.op, input(0), input(1)) {
        (Op::MatMul(_), Some(x), Some(w)) => made() * x.shape.cols() as u64 + len(w) + len(x),
        (Op::MatMulId(_), Some(x), Some(_)) => 2 * made() * x.shape.cols() as u64,
        (Op::Conv2d(_), Some(_), Some(w)) => made() * (len(w) / w.shape.dim(0).max(1) as u64) + read(),
        (Op::SolveTriangular(_), Some(a), Some(_)) => made() * a.shape.cols() as u64 + read(),
        (Op::Attention(op), Some(q), Some(keys)) => {
            let (d, dv) = op.head_dims(&inputs().collect::<Vec<_>>());
            let each = (q.shape.dim(0) * op.n_head * (d + dv)) as u64;
            if op.masking.cached {
                return Cost { fixed: made() + len(q), per_token: each };
            }
            each * keys.shape.dim(0) as u64 + made() + read()
        }
        (Op::ShortConv(_) | Op::SsmScan(_) | Op::GatedDeltaNet(_), ..) => {
            REMEMBERED * rows() * inputs().filter(is_state).map(len).sum::<u64>() + made() + read()
        }
        (Op::Penalize(_), ..) => COMPARED * made() + read(),
        (Op::TopK(_) | Op::Argsort(_), ..) => SORTED * read() + made(),
        (Op::GetRows(_), ..) => 2 * made(),
        _ => made() + read(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cover::cover;
    use crate::op::{Attention, Masking, MatMul};
    use crate::tensor::DType;

    fn cost_of(graph: &Graph) -> Cost {
        let covers = cover(graph, &[], &|_, _| Ok(())).unwrap();
        covers.iter().map(|cover| cover.cost(graph)).fold(Cost::default(), Cost::add)
    }

    fn product(rows: usize) -> Cost {
        let mut graph = Graph::new();
        let x = graph.input("x", &[rows, 64], DType::F32).unwrap();
        let w = graph.weight("w", &[32, 64], DType::F32).unwrap();
        let y = graph.push(MatMul, &[x, w]).unwrap();
        graph.output(y, "y").unwrap();
        cost_of(&graph)
    }

    #[test]
    fn a_product_costs_its_multiply_adds_and_its_weights_once() {
        assert_eq!(product(1), Cost::fixed(32 * 64 + 32 * 64 + 64));
        assert_eq!(product(100), Cost::fixed(100 * 32 * 64 + 32 * 64 + 100 * 64));
    }

    #[test]
    fn kernels_share_products_as_they_read_the_weights() {
        let mut graph = Graph::new();
        let x = graph.input("x", &[2, 64], DType::F32).unwrap();
        let w = graph.weight("w", &[32, 64], DType::Packed(crate::Format::Q4_0)).unwrap();
        let y = graph.push(MatMul, &[x, w]).unwrap();
        graph.output(y, "y").unwrap();
        let covers = cover(&graph, &[], &|_, _| Ok(())).unwrap();
        let products = |bytes| covers[0].products(&graph, bytes);
        let weights = 32 * 64 / 32 * 18;
        assert_eq!((products(weights + 500), products(weights / 4)), (2 * 32 * 64, 32 * 32));
        // What has no weights makes no products.
        let mut graph = Graph::new();
        let x = graph.input("x", &[2, 64], DType::F32).unwrap();
        let y = graph.push(MatMul, &[x, x]).unwrap();
        graph.output(y, "y").unwrap();
        assert_eq!(cover(&graph, &[], &|_, _| Ok(())).unwrap()[0].products(&graph, 1 << 20), 0);
    }

    #[test]
    fn attention_over_a_cache_costs_what_the_position_says() {
        let mut graph = Graph::new();
        let q = graph.input("q", &[2, 4 * 16], DType::F32).unwrap();
        let [k, v] = ["k", "v"].map(|name| graph.state(name, &[1000, 2 * 16], DType::F32).unwrap());
        let masking = Masking { causal: true, cached: true, ..Masking::default() };
        let op = Attention { n_head: 4, n_head_kv: 2, scale: 1.0, softcap: 0.0, max_bias: 0.0, masking, sinks: false };
        let y = graph.push(op, &[q, k, v]).unwrap();
        graph.output(y, "y").unwrap();
        let cost = cost_of(&graph);
        assert_eq!(cost.per_token, 2 * 4 * 32);
        assert_eq!(cost.of(&StepParams::at(98, 2)) - cost.fixed, 100 * cost.per_token);
    }

    #[test]
    fn shares_add_up_to_the_whole_or_a_little_more() {
        let cost = Cost { fixed: 100, per_token: 7 };
        assert_eq!(cost.share(3, 3), cost);
        assert_eq!(cost.share(1, 3), Cost { fixed: 34, per_token: 3 });
        assert_eq!(Cost::fixed(u64::MAX).share(2, 3).fixed, u64::MAX / 3 * 2);
    }
}
