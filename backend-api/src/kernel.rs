//! Description of kernels for traces: what each of them touches, computes and is for.

use std::ops::Add;

use crate::form::Cover;
use crate::graph::{Graph, Node, TensorId};
use crate::made::Made;
use crate::op::Op;
use crate::role::Role;
use crate::step::StepParams;
use crate::tensor::{DType, Kind, Update};

/// Operand, result or memory that a kernel binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// Operand of its cover, by index.
    Input(usize),
    /// Result of its cover, by index.
    Output(usize),
    /// Memory between the kernels of its cover.
    Between,
}

/// Bytes that a kernel reads and writes, each once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Wherever in a text the step is.
    pub fixed: u64,
    /// Besides, for each token up to the step's last: rows of a cache.
    pub per_token: u64,
    /// Tokens that a row looks back at, if attention has a window.
    pub window: Option<u32>,
}

impl Traffic {
    /// As many bytes in each step.
    pub fn fixed(bytes: u64) -> Traffic {
        Traffic { fixed: bytes, ..Traffic::default() }
    }

    /// The bytes of one step.
    pub fn of(&self, step: &StepParams) -> u64 {
        let all = u64::from(step.position) + u64::from(step.rows);
        // The first row of the step sees a whole window, each later one a token more.
        let seen = |window: u32| u64::from(window) + u64::from(step.rows.saturating_sub(1));
        let tokens = self.window.map_or(all, |window| all.min(seen(window)));
        self.fixed.saturating_add(self.per_token.saturating_mul(tokens))
    }

    fn share(bytes: u64, part: usize, of: usize) -> Traffic {
        let share = u128::from(bytes) * part.min(of) as u128 / of.max(1) as u128;
        Traffic::fixed(share as u64)
    }
}

impl Add for Traffic {
    type Output = Traffic;

    fn add(self, other: Traffic) -> Traffic {
        Traffic {
            fixed: self.fixed.saturating_add(other.fixed),
            per_token: self.per_token.saturating_add(other.per_token),
            window: self.window.or(other.window),
        }
    }
}

/// One dispatch or draw of a program, for `trace`.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelInfo {
    /// The kernel with its variant.
    pub name: String,
    /// The grid: workgroups, or the width and height of a draw.
    pub grid: [u32; 3],
    /// Bytes that it reads and writes.
    pub traffic: Traffic,
    /// Floating-point operations of its products with weight matrices, of which a multiply-add is two.
    pub flops: u64,
    /// Purpose of the kernel.
    pub role: Role,
    /// The weights or states that tell it from others like it.
    pub subject: String,
    /// Tensors that it writes, as far as they can be watched.
    pub made: Vec<Made>,
}

impl KernelInfo {
    /// Describes a kernel that does a cover of a graph, or a part of it. `bound` is what it binds, with the bytes of all
    /// of that; a step touches less of caches, of tables in which rows are looked up, and of experts.
    pub fn new(graph: &Graph, cover: &Cover, name: String, grid: [u32; 3], bound: &[(Bound, u64)]) -> KernelInfo {
        let kernel = Binding { graph, cover, bound };
        let traffic =
            bound.iter().map(|(bound, bytes)| kernel.touched(*bound, *bytes)).fold(Traffic::default(), Add::add);
        let flops = 2 * cover.products(graph, kernel.weights());
        KernelInfo { name, grid, traffic, flops, role: kernel.role(), subject: cover.subject(graph), made: Vec::new() }
    }
}

/// A kernel of a cover, and what it binds.
struct Binding<'a> {
    graph: &'a Graph,
    cover: &'a Cover,
    bound: &'a [(Bound, u64)],
}

impl Binding<'_> {
    fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.cover.nodes.iter().filter_map(|node| self.graph.nodes().get(*node))
    }

    /// The tensor, a state as it was at first.
    fn tensor(&self, bound: Bound) -> Option<TensorId> {
        let id = match bound {
            Bound::Input(i) => self.cover.inputs.get(i),
            Bound::Output(i) => self.cover.outputs.get(i),
            Bound::Between => None,
        };
        id.map(|id| self.graph.root(*id))
    }

    /// Bytes that a step touches of a tensor of so many.
    fn touched(&self, bound: Bound, bytes: u64) -> Traffic {
        let Some(id) = self.tensor(bound) else { return Traffic::fixed(bytes) };
        let written = matches!(bound, Bound::Output(_));
        match self.nodes().find_map(|node| self.touched_by(node, id, written, bytes)) {
            Some(traffic) => traffic,
            None => Traffic::fixed(match self.graph.tensor(id).kind {
                // The rows that it has are those of earlier steps, and no node of this cover looks at them.
                Kind::State(Update::Append) => 0,
                // Bound once, it is read and written.
                Kind::State(Update::Replace) if written && self.is_bound_once(id) => 2 * bytes,
                _ => bytes,
            }),
        }
    }

    fn is_bound_once(&self, id: TensorId) -> bool {
        self.bound.iter().filter(|(bound, _)| self.tensor(*bound) == Some(id)).count() == 1
    }

    /// Bytes that a node touches of one of its tensors, unless it is all of them.
    fn touched_by(&self, node: &Node, id: TensorId, written: bool, bytes: u64) -> Option<Traffic> {
        let is = |other: &TensorId| self.graph.root(*other) == id;
        let rows = |id: &TensorId| self.graph.tensor(*id).shape.rows();
        let first_dim = |id: &TensorId| self.graph.tensor(*id).shape.dims().next().unwrap_or(1);
        let is_cache = matches!(self.graph.tensor(id).kind, Kind::State(Update::Append));
        let per_token = |window| {
            let per_token = bytes / self.graph.rows_of_one(id).max(1) as u64;
            is_cache.then_some(Traffic { fixed: 0, per_token, window })
        };
        match (&node.op, &node.inputs[..]) {
            (Op::Append(_), [state, x]) if written && is(state) => {
                Some(Traffic::share(bytes, first_dim(x), first_dim(state)))
            }
            _ if written => None,
            (Op::GetRows(_), [table, ..]) if is(table) => {
                Some(Traffic::share(bytes, rows(node.outputs.first()?), rows(table)))
            }
            (Op::GetRows(_), [_, ids]) if is(ids) => {
                Some(Traffic::share(bytes, rows(node.outputs.first()?), self.graph.tensor(*ids).shape.len()))
            }
            (Op::MatMulId(_), [_, w, _]) if is(w) => {
                let (read, of) = self.graph.experts_read(node)?;
                Some(Traffic::share(bytes, read, of))
            }
            (Op::Attention(op), [_, keys, values, ..]) if is(keys) || is(values) => {
                per_token(Some(op.masking.window).filter(|window| *window > 0))
            }
            (Op::Penalize(_), [_, history, ..]) if is(history) => per_token(None),
            _ => None,
        }
    }

    /// Whether the kernel has the weights of a node that multiplies by a matrix of them; nothing if the node does not.
    fn multiplies(&self, node: &Node) -> Option<bool> {
        let (Op::MatMul(_) | Op::MatMulId(_), Some(w)) = (&node.op, node.inputs.get(1)) else { return None };
        let is_weight = matches!(self.graph.tensor(*w).dtype, DType::Packed(_));
        is_weight.then(|| self.bound.iter().any(|(bound, _)| self.tensor(*bound) == Some(*w)))
    }

    /// Bytes of the weights that it multiplies by.
    fn weights(&self) -> u64 {
        let matrices =
            self.nodes().filter(|node| self.multiplies(node).is_some()).filter_map(|node| node.inputs.get(1));
        let matrices = matrices.collect::<Vec<_>>();
        let is_matrix = |bound: &Bound| self.tensor(*bound).is_some_and(|id| matrices.contains(&&id));
        self.bound.iter().filter(|(bound, _)| is_matrix(bound)).map(|(_, bytes)| bytes).sum()
    }

    /// The purpose: that of its product if it has weights, else the one that comes first among those of the other nodes.
    fn role(&self) -> Role {
        let of = |wanted: fn(Option<bool>) -> bool| {
            let nodes = self.nodes().filter(|node| wanted(self.multiplies(node)));
            nodes.map(|node| Role::of(&node.op)).max()
        };
        of(|multiplies| multiplies == Some(true))
            .or_else(|| of(|multiplies| multiplies.is_none()))
            .or_else(|| of(|_| true))
            .unwrap_or(Role::Copy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;
    use crate::cover::cover;
    use crate::form::{AttentionLinear, LinearQkv};
    use crate::op::{Append, At, Attention, GetRows, Index, Masking, MatMul, Penalize, Penalties, ShortConv};

    /// The only cover of a graph, or the one with the most nodes.
    fn largest(graph: &Graph, matchers: &[crate::Matcher]) -> Cover {
        let covers = cover(graph, matchers, &|_, _| Ok(())).unwrap();
        covers.into_iter().max_by_key(|cover| cover.nodes.len()).unwrap()
    }

    fn info(graph: &Graph, cover: &Cover, bound: &[(Bound, u64)]) -> KernelInfo {
        KernelInfo::new(graph, cover, "kernel".into(), [1; 3], bound)
    }

    #[test]
    fn rows_that_are_looked_up_count_without_the_others() {
        let mut graph = Graph::new();
        let table = graph.weight("table", &[100, 64], DType::Packed(Format::Q4_0)).unwrap();
        let ids = graph.input("ids", &[3], DType::I32).unwrap();
        let looked_up = graph.push(GetRows { index: Index::Ids }, &[table, ids]).unwrap();
        graph.output(looked_up, "rows").unwrap();
        let cover = largest(&graph, &[]);
        // A row is two blocks of 18 bytes; results are 3 rows of 64 floats.
        let bound = [(Bound::Input(0), 100 * 36), (Bound::Input(1), 12), (Bound::Output(0), 3 * 256)];
        let info = info(&graph, &cover, &bound);
        assert_eq!((info.traffic, info.role), (Traffic::fixed(3 * 36 + 12 + 3 * 256), Role::Embedding));
    }

    #[test]
    fn a_cache_counts_as_far_as_it_is_written_or_looked_at() {
        let mut graph = Graph::new();
        let q = graph.input("q", &[2, 4 * 16], DType::F32).unwrap();
        let row = graph.input("row", &[2, 32], DType::F32).unwrap();
        let [k, v] = ["k", "v"].map(|name| graph.state(name, &[1000, 32], DType::F32).unwrap());
        let k = graph.push(Append { at: At::Position }, &[k, row]).unwrap();
        let masking = Masking { causal: true, cached: true, window: 50, ..Masking::default() };
        let op = Attention { n_head: 4, n_head_kv: 2, scale: 1.0, softcap: 0.0, max_bias: 0.0, masking, sinks: false };
        let attended = graph.push(op, &[q, k, v]).unwrap();
        graph.output(attended, "attended").unwrap();
        let covers = cover(&graph, &[], &|_, _| Ok(())).unwrap();
        let append = info(&graph, &covers[0], &[(Bound::Output(0), 128_000), (Bound::Input(1), 256)]);
        assert_eq!((append.traffic, append.role), (Traffic::fixed(2 * 128 + 256), Role::Cache));
        let bound = [(Bound::Input(0), 512), (Bound::Input(1), 128_000), (Bound::Input(2), 128_000)];
        let attention = info(&graph, &covers[1], &bound);
        assert_eq!(attention.traffic, Traffic { fixed: 512, per_token: 256, window: Some(50) });
        let bytes = |position, rows| attention.traffic.of(&StepParams::at(position, rows));
        assert_eq!([bytes(0, 2), bytes(40, 2), bytes(900, 2), bytes(900, 1)], [2, 42, 51, 50].map(|n| 512 + n * 256));
    }

    #[test]
    fn states_that_are_rewritten_are_read_and_written() {
        let mut graph = Graph::new();
        let state = graph.external(Kind::State(Update::Replace), "before", &[2, 64], DType::F32).unwrap();
        let x = graph.input("x", &[1, 64], DType::F32).unwrap();
        let taps = graph.weight("taps", &[64, 3], DType::F32).unwrap();
        graph.push_multi(ShortConv.into(), &[state, x, taps]).unwrap();
        let cover = largest(&graph, &[]);
        let at = |id: TensorId| cover.outputs.iter().position(|out| graph.root(*out) == id).unwrap();
        let once = [(Bound::Output(at(state)), 512)];
        let twice = [(Bound::Output(at(state)), 512), (Bound::Input(0), 512)];
        assert_eq!([&once[..], &twice].map(|bound| info(&graph, &cover, bound).traffic), [Traffic::fixed(1024); 2]);
    }

    #[test]
    fn histories_count_as_long_as_they_are() {
        let mut graph = Graph::new();
        let logits = graph.input("logits", &[1, 100], DType::F32).unwrap();
        let history = graph.state("history", &[500], DType::I32).unwrap();
        let bias = graph.input("bias", &[1, 100], DType::F32).unwrap();
        let penalties = graph.input("penalties", &[1, Penalties::COLS], DType::F32).unwrap();
        let adjusted = graph.push(Penalize, &[logits, history, bias, penalties]).unwrap();
        graph.output(adjusted, "adjusted").unwrap();
        let cover = largest(&graph, &[]);
        let info = info(&graph, &cover, &[(Bound::Input(1), 2000), (Bound::Between, 7)]);
        assert_eq!(info.traffic, Traffic { fixed: 7, per_token: 4, window: None });
    }

    #[test]
    fn of_the_kernels_of_a_cover_each_has_its_own_purpose() {
        let mut graph = Graph::new();
        let q = graph.input("q", &[1, 64], DType::F32).unwrap();
        let [k, v] = ["k", "v"].map(|name| graph.state(name, &[100, 32], DType::F32).unwrap());
        let w = graph.weight("w", &[64, 64], DType::Packed(Format::Q4_0)).unwrap();
        let masking = Masking { causal: true, cached: true, ..Masking::default() };
        let op = Attention { n_head: 4, n_head_kv: 2, scale: 1.0, softcap: 0.0, max_bias: 0.0, masking, sinks: false };
        let attended = graph.push(op, &[q, k, v]).unwrap();
        let y = graph.push(MatMul, &[attended, w]).unwrap();
        graph.output(y, "y").unwrap();
        let cover = largest(&graph, &[AttentionLinear::matcher, LinearQkv::matcher]);
        assert_eq!(cover.nodes.len(), 2);
        let place = |id: TensorId| Bound::Input(cover.inputs.iter().position(|input| *input == id).unwrap());
        let weights = 64 * 2 * 18;
        let attention = info(&graph, &cover, &[(place(k), 12_800), (place(v), 12_800), (Bound::Between, 256)]);
        let product = info(&graph, &cover, &[(Bound::Between, 256), (place(w), weights), (Bound::Output(0), 256)]);
        assert_eq!([attention.role, product.role], [Role::Attention, Role::Matmul]);
        assert_eq!([attention.flops, product.flops], [0, 2 * 64 * 64]);
        assert_eq!(attention.traffic, Traffic { fixed: 256, per_token: 256, window: None });
        // Neither is what moves bytes between them, and a kernel that prepares a product is part of it.
        assert_eq!(info(&graph, &cover, &[(Bound::Between, 256)]).role, Role::Attention);
        let mut graph = Graph::new();
        let x = graph.input("x", &[4, 64], DType::F32).unwrap();
        let w = graph.weight("w", &[64, 64], DType::Packed(Format::Q4_0)).unwrap();
        let y = graph.push(MatMul, &[x, w]).unwrap();
        graph.output(y, "y").unwrap();
        let cover = largest(&graph, &[]);
        assert_eq!(info(&graph, &cover, &[(Bound::Input(0), 1024), (Bound::Between, 1)]).role, Role::Matmul);
    }
}
