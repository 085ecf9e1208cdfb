//! Purposes of kernels, by which traces group them.

use std::collections::BTreeSet;

use crate::form::Cover;
use crate::graph::Graph;
use crate::op::Op;
use crate::tensor::{DType, Kind};

/// Purpose of a kernel. A kernel that multiplies by weights is for that; another with several purposes has the last of them
/// in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Copies, slices and transposes.
    Copy,
    /// Functions of single elements, sums and products of them.
    Activation,
    /// Layer and RMS norms.
    Norm,
    /// Rows of a table.
    Embedding,
    /// Rows for the KV cache or the history.
    Cache,
    /// Products with weights.
    Matmul,
    /// Which experts a row goes to, and products with their weights.
    Experts,
    /// The next token.
    Sampling,
    /// Recurrent states that are carried from token to token.
    Recurrence,
    /// Scores over keys, and values that they weigh.
    Attention,
}

impl Role {
    /// All roles.
    pub const ALL: [Role; 10] = [
        Role::Embedding,
        Role::Matmul,
        Role::Experts,
        Role::Attention,
        Role::Norm,
        Role::Activation,
        Role::Cache,
        Role::Recurrence,
        Role::Sampling,
        Role::Copy,
    ];

    /// Its name in traces.
    pub fn name(self) -> &'static str {
        match self {
            Role::Copy => "copy",
            Role::Activation => "activation",
            Role::Norm => "norm",
            Role::Embedding => "embedding",
            Role::Cache => "cache",
            Role::Matmul => "matmul",
            Role::Experts => "experts",
            Role::Sampling => "sampling",
            Role::Recurrence => "recurrence",
            Role::Attention => "attention",
        }
    }

    /// The purpose of an operator.
    pub(crate) fn of(op: &Op) -> Role {
        match op {
            Op::Permute(_) | Op::Slice(_) | Op::Concat(_) | Op::Pad(_) => Role::Copy,
            Op::Unary(_) | Op::Binary(_) | Op::Scale(_) | Op::Glu(_) => Role::Activation,
            Op::Norm(_) => Role::Norm,
            Op::GetRows(_) => Role::Embedding,
            Op::Append(_) | Op::Rope(_) => Role::Cache,
            Op::MatMul(_) => Role::Matmul,
            Op::Route(_) | Op::MatMulId(_) | Op::WeightedSum(_) => Role::Experts,
            Op::ArgMax(_) | Op::TopK(_) | Op::Penalize(_) | Op::Pick(_) | Op::Sample(_) => Role::Sampling,
            Op::ShortConv(_) | Op::SsmScan(_) | Op::GatedDeltaNet(_) => Role::Recurrence,
            Op::Softmax(_) | Op::Attention(_) => Role::Attention,
            Op::Resize(_) | Op::Im2Col(_) => Role::Copy,
            Op::Conv2d(_) | Op::SolveTriangular(_) => Role::Matmul,
            Op::Repeat(_) | Op::Set(_) | Op::Tri(_) => Role::Copy,
            Op::Clamp(_) | Op::Xielu(_) | Op::Sum(_) | Op::Cumsum(_) => Role::Activation,
            Op::Argsort(_) => Role::Sampling,
        }
    }
}

impl Cover {
    /// The weights and states that tell it from others like it: matrices if it has some, else states, else other weights,
    /// of which blocks may share some.
    pub fn subject(&self, graph: &Graph) -> String {
        let of = |wanted: fn(Kind, DType) -> bool| {
            let tensors = self.inputs.iter().map(|id| graph.tensor(*id));
            let named = tensors.filter(|tensor| wanted(tensor.kind, tensor.dtype)).map(|tensor| tensor.name.as_str());
            named.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ")
        };
        let matrices = of(|kind, dtype| kind == Kind::Weight && matches!(dtype, DType::Packed(_)));
        let weights = || of(|kind, _| kind == Kind::Weight);
        let states = || of(|kind, _| matches!(kind, Kind::State(_)));
        [matrices, states(), weights()].into_iter().find(|found| !found.is_empty()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cover::cover;
    use crate::op::{Append, At};

    #[test]
    fn states_tell_kernels_apart_before_tables_that_all_share() {
        let mut graph = Graph::new();
        let cache = graph.state("blk.0.k_cache", &[8, 64], DType::F32).unwrap();
        let table = graph.weight("rope_table", &[1, 64], DType::F32).unwrap();
        graph.push(Append { at: At::Position }, &[cache, table]).unwrap();
        let covers = cover(&graph, &[], &|_, _| Ok(())).unwrap();
        assert_eq!(covers[0].subject(&graph), "blk.0.k_cache");
    }
}
