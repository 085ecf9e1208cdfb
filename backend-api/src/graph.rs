//! The graph: operators over tensors in SSA form. A malformed graph cannot be built.

use crate::error::Error;
use crate::format::Format;
use crate::op::Op;
use crate::tensor::{DType, Kind, Shape, Tensor, Update};
use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

/// A tensor of one graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TensorId {
    index: u32,
    graph: u32,
}

impl TensorId {
    /// Its index among the graph's tensors.
    pub fn index(self) -> usize {
        self.index as usize
    }
}

/// One operator applied to tensors.
#[derive(Debug, Clone)]
pub struct Node {
    /// The operator with its parameters.
    pub op: Op,
    /// Operands, in the order that the operator's page gives.
    pub inputs: Vec<TensorId>,
    /// Results, likewise.
    pub outputs: Vec<TensorId>,
}

/// Nodes in the order of execution. Each tensor is made once, before it is used.
#[derive(Debug, Clone)]
pub struct Graph {
    /// Number in the ids of its tensors that tells them from those of other graphs. Copies share it.
    id: u32,
    tensors: Vec<Tensor>,
    /// For each tensor the one whose storage it shares: itself, or the state that it continues.
    roots: Vec<TensorId>,
    /// For each tensor the one that continues it.
    continued: Vec<Option<TensorId>>,
    nodes: Vec<Node>,
    rows_alike: bool,
    sequences: usize,
}

impl Default for Graph {
    fn default() -> Graph {
        static GRAPHS: AtomicU32 = AtomicU32::new(0);
        let id = GRAPHS.fetch_add(1, Ordering::Relaxed);
        Graph {
            id,
            tensors: Vec::new(),
            roots: Vec::new(),
            continued: Vec::new(),
            nodes: Vec::new(),
            rows_alike: false,
            sequences: 1,
        }
    }
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Graph {
        Graph::default()
    }

    /// Asks for rows that are rounded, to the last bit, as a step of one row rounds them: what verifies a draft must not depend
    /// on it. Backends give it for as many rows as their
    /// [`verify_rows`](crate::BackendInfo::verify_rows); further rows are computed as always.
    pub fn round_rows_alike(&mut self) {
        self.rows_alike = true;
    }

    /// Makes each row of a step one of a sequence of its own. Of a state, which has as many times the rows, each sequence has
    /// as many, one after another. For backends whose [`batch_rows`](crate::BackendInfo::batch_rows) are more than 1.
    pub fn take_rows_of(&mut self, sequences: usize) {
        self.sequences = sequences.max(1);
    }

    /// How many sequences states hold: 1 unless each row of a step is one of another sequence.
    pub fn sequences(&self) -> usize {
        self.sequences
    }

    /// The rows of a tensor; of a state, those of one sequence.
    pub(crate) fn rows_of_one(&self, id: TensorId) -> usize {
        let tensor = self.tensor(id);
        let all = tensor.shape.dims().next().unwrap_or(0);
        if matches!(tensor.kind, Kind::State(_)) { all / self.sequences } else { all }
    }

    /// A tensor as the operators have it: of a state, the part of one sequence.
    fn of_one(&self, id: TensorId) -> Cow<'_, Tensor> {
        let tensor = &self.tensors[id.index()];
        if self.sequences == 1 || !matches!(tensor.kind, Kind::State(_)) {
            return Cow::Borrowed(tensor);
        }
        let mut dims: Vec<usize> = tensor.shape.dims().collect();
        dims.iter_mut().take(1).for_each(|rows| *rows = self.rows_of_one(id));
        // Fewer rows than those of a shape that there is.
        let shape = Shape::new(&dims).unwrap_or(tensor.shape);
        Cow::Owned(Tensor { shape, ..tensor.clone() })
    }

    /// Whether rows are to be rounded as a step of one row rounds them.
    pub fn rows_alike(&self) -> bool {
        self.rows_alike
    }

    fn add(&mut self, tensor: Tensor, root: Option<TensorId>) -> TensorId {
        let id = self.id_of(self.tensors.len());
        self.tensors.push(tensor);
        self.roots.push(root.unwrap_or(id));
        self.continued.push(None);
        id
    }

    fn id_of(&self, index: usize) -> TensorId {
        TensorId { index: index as u32, graph: self.id }
    }

    /// Checks that an id is one of this graph, and of a state as it is now.
    fn check(&self, id: TensorId) -> Result<(), Error> {
        if id.graph != self.id || id.index() >= self.tensors.len() {
            return Err(Error::Invalid(format!("tensor #{} belongs to another graph", id.index())));
        }
        match self.continued[id.index()] {
            Some(next) => Err(Error::Invalid(format!(
                "#{} is the state {} as it was before a node wrote to it; use that node's result #{}",
                id.index(),
                self.tensors[id.index()].name,
                next.index()
            ))),
            None => Ok(()),
        }
    }

    /// Adds a weight, a state or an input.
    ///
    /// *Errors*: a shape that cannot be, a packed tensor that is not a weight matrix, rows that are not a multiple of the
    /// block length, a codec on a tensor that is not a state.
    pub fn external(
        &mut self,
        kind: Kind,
        name: impl Into<String>,
        shape: &[usize],
        dtype: DType,
    ) -> Result<TensorId, Error> {
        let name = name.into();
        let shape = Shape::new(shape).map_err(|e| Error::Invalid(format!("{name}: {e}")))?;
        let refused = |why: &str| Err(Error::Invalid(format!("{name} ({dtype} {shape}): {why}")));
        if !matches!(kind, Kind::Weight | Kind::State(_) | Kind::Input) {
            return refused("only weights, states and inputs come from outside");
        }
        if let DType::Packed(format) = dtype {
            if kind != Kind::Weight || shape.rank() != 2 {
                return refused("packed tensors are matrices of weights");
            }
            format.row_bytes(shape.cols()).map_err(|e| Error::Invalid(format!("{name}: {e}")))?;
        }
        if let DType::Coded(codec) = dtype {
            let block = codec.spec().block_len;
            if !matches!(kind, Kind::State(_)) || shape.rank() != 2 || !shape.cols().is_multiple_of(block) {
                let why = format!("{dtype} is for states that are matrices of rows of a multiple of {block}; use f32");
                return refused(&why);
            }
        }
        Ok(self.add(Tensor { name, shape, dtype, kind }, None))
    }

    /// Adds a weight.
    ///
    /// *Errors*: as [`Self::external`].
    pub fn weight(&mut self, name: impl Into<String>, shape: &[usize], dtype: DType) -> Result<TensorId, Error> {
        self.external(Kind::Weight, name, shape, dtype)
    }

    /// Adds a state that rows are appended to.
    ///
    /// *Errors*: as [`Self::external`].
    pub fn state(&mut self, name: impl Into<String>, shape: &[usize], dtype: DType) -> Result<TensorId, Error> {
        self.external(Kind::State(Update::Append), name, shape, dtype)
    }

    /// Adds an input.
    ///
    /// *Errors*: as [`Self::external`].
    pub fn input(&mut self, name: impl Into<String>, shape: &[usize], dtype: DType) -> Result<TensorId, Error> {
        self.external(Kind::Input, name, shape, dtype)
    }

    /// Applies an operator and gives its results.
    ///
    /// *Errors*: operands that do not fit the operator (the message names it with their shapes and dtypes), that belong to
    /// another graph, or that are a state as it was before a node wrote to it.
    pub fn push_multi(&mut self, op: Op, inputs: &[TensorId]) -> Result<Vec<TensorId>, Error> {
        for id in inputs {
            self.check(*id).map_err(|e| Error::Invalid(format!("{}: {e}", op.name())))?;
        }
        let operands: Vec<Cow<'_, Tensor>> = inputs.iter().map(|id| self.of_one(*id)).collect();
        let operands: Vec<&Tensor> = operands.iter().map(AsRef::as_ref).collect();
        let described = || {
            let list: Vec<String> = operands.iter().map(|t| t.to_string()).collect();
            format!("{}({})", op.name(), list.join(", "))
        };
        let results = op.infer(&operands).map_err(|why| Error::Invalid(format!("{}: {why}", described())))?;
        let mut outputs = Vec::with_capacity(results.len());
        let mut continued = Vec::new();
        for (index, result) in results.into_iter().enumerate() {
            let (tensor, root) = match result {
                crate::op::Output::New(shape, dtype) => {
                    let name = format!("{}.{}", op.name(), self.tensors.len());
                    (Tensor { name, shape, dtype, kind: Kind::Temporary }, None)
                }
                crate::op::Output::Continues(operand) => {
                    let state = inputs[operand];
                    if !matches!(self.tensors[state.index()].kind, Kind::State(_)) || continued.contains(&state) {
                        return Err(Error::Invalid(format!(
                            "{}: result {index} continues operand {operand}, which is not a state, or which another \
                             result already continues",
                            op.name()
                        )));
                    }
                    continued.push(state);
                    (self.tensors[state.index()].clone(), Some(self.root(state)))
                }
            };
            let id = self.add(tensor, root);
            if let Some(state) = root.and(continued.last()) {
                self.continued[state.index()] = Some(id);
            }
            outputs.push(id);
        }
        self.nodes.push(Node { op, inputs: inputs.to_vec(), outputs: outputs.clone() });
        Ok(outputs)
    }

    /// Returns how many experts the rows of an expert matmul go to at most, and how many there are.
    pub fn experts_read(&self, node: &Node) -> Option<(usize, usize)> {
        let (Op::MatMulId(op), [_, w, ids]) = (&node.op, node.inputs.as_slice()) else { return None };
        let chosen = self.tensor(*ids).shape.len() * op.rows;
        let all = self.tensor(*w).shape.rows();
        Some((chosen.min(all), all))
    }

    /// Applies an operator with one result.
    ///
    /// *Errors*: as [`Self::push_multi`], or an operator with several results.
    pub fn push(&mut self, op: impl Into<Op>, inputs: &[TensorId]) -> Result<TensorId, Error> {
        let op = op.into();
        let name = op.name();
        match self.push_multi(op, inputs)?.as_slice() {
            [one] => Ok(*one),
            many => Err(Error::Invalid(format!("{name} has {} results; use push_multi", many.len()))),
        }
    }

    /// Makes a temporary an output, which the caller can read.
    ///
    /// *Errors*: the tensor is not a temporary, or belongs to another graph.
    pub fn output(&mut self, id: TensorId, name: impl Into<String>) -> Result<(), Error> {
        self.check(id)?;
        let tensor = &mut self.tensors[id.index()];
        if tensor.kind != Kind::Temporary {
            return Err(Error::Invalid(format!("{} is not a temporary, so it cannot become an output", tensor.name)));
        }
        tensor.kind = Kind::Output;
        tensor.name = name.into();
        Ok(())
    }

    /// Leaves out the nodes after the last one that changes a state or makes an output, and the tensors after those.
    pub fn trim(&mut self) {
        let lasts = |id: &TensorId| matches!(self.tensor(*id).kind, Kind::State(_) | Kind::Output);
        let len = self.nodes.iter().rposition(|node| node.outputs.iter().any(lasts)).map_or(0, |last| last + 1);
        self.nodes.truncate(len);
        let tensors = self.nodes.last().and_then(|node| node.outputs.iter().max()).map_or(0, |id| id.index() + 1);
        self.tensors.truncate(tensors);
        self.roots.truncate(tensors);
        self.continued.truncate(tensors);
        self.continued.iter_mut().for_each(|next| *next = next.filter(|id| id.index() < tensors));
    }

    /// Replaces every packed weight's format by `format`; row lengths must be multiples of its block.
    pub fn with_weights_in(mut self, format: Format) -> Graph {
        for tensor in &mut self.tensors {
            tensor.dtype = tensor.dtype.in_format(format);
        }
        self
    }

    /// A tensor.
    ///
    /// # Panics
    /// If the id belongs to another graph with more tensors.
    pub fn tensor(&self, id: TensorId) -> &Tensor {
        &self.tensors[id.index()]
    }

    /// The state that a node makes of a state by writing to it, if one does.
    pub fn continued(&self, id: TensorId) -> Option<TensorId> {
        self.continued[id.index()]
    }

    /// The tensor whose storage `id` shares: itself, but for continued states.
    pub fn root(&self, id: TensorId) -> TensorId {
        self.roots[id.index()]
    }

    /// The nodes in order of execution.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// All tensors with their ids.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = (TensorId, &Tensor)> {
        self.tensors.iter().enumerate().map(|(i, t)| (self.id_of(i), t))
    }

    /// The tensors that need a storage of the caller's, in order; continued states are not listed again.
    pub fn externals(&self) -> impl Iterator<Item = (TensorId, &Tensor)> {
        self.tensors().filter(|(id, t)| t.kind.is_external() && self.root(*id) == *id)
    }

    /// The tensors of a node's operands.
    pub fn operands(&self, node: &Node) -> Vec<&Tensor> {
        node.inputs.iter().map(|id| self.tensor(*id)).collect()
    }
}

impl fmt::Display for Graph {
    /// One line a node: results = op(operands).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |ids: &[TensorId]| {
            ids.iter().map(|id| format!("%{} {}", id.index(), self.tensor(*id))).collect::<Vec<_>>().join(", ")
        };
        for node in &self.nodes {
            writeln!(f, "{} = {}({})", list(&node.outputs), node.op.name(), list(&node.inputs))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::{Append, At, Unary, UnaryKind};

    fn refusal<T: fmt::Debug>(result: Result<T, Error>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn what_comes_to_nothing_is_trimmed() {
        let mut graph = Graph::new();
        let neg = Unary { kind: UnaryKind::Neg };
        let state = graph.state("s", &[8, 4], DType::F32).unwrap();
        let x = graph.input("x", &[2, 4], DType::F32).unwrap();
        graph.push(Append { at: At::Position }, &[state, x]).unwrap();
        let unused = graph.input("unused", &[2, 4], DType::F32).unwrap();
        graph.push(neg, &[unused]).unwrap();
        graph.trim();
        assert_eq!(graph.nodes().len(), 1);
        assert_eq!(graph.externals().map(|(_, tensor)| tensor.name.as_str()).collect::<Vec<_>>(), ["s", "x"]);
        assert!(graph.push(neg, &[unused]).is_err() && graph.push(neg, &[x]).is_ok());
    }

    #[test]
    fn ids_of_other_graphs_are_refused() {
        let (mut one, mut other) = (Graph::new(), Graph::new());
        let mine = one.input("x", &[2, 4], DType::F32).unwrap();
        let foreign = other.input("x", &[2, 4], DType::F32).unwrap();
        let neg = Unary { kind: UnaryKind::Neg };
        assert!(refusal(one.push(neg, &[foreign])).contains("belongs to another graph"));
        assert!(refusal(one.output(foreign, "y")).contains("belongs to another graph"));
        assert!(one.clone().push(neg, &[mine]).is_ok(), "a copy knows the ids of its original");
    }

    #[test]
    fn a_state_is_continued_once_and_read_as_it_is_now() {
        let mut graph = Graph::new();
        let state = graph.state("s", &[8, 4], DType::F32).unwrap();
        let x = graph.input("x", &[2, 4], DType::F32).unwrap();
        let append = Append { at: At::Position };
        let now = graph.push(append, &[state, x]).unwrap();
        assert!(refusal(graph.push(append, &[state, x])).contains("before a node wrote to it"));
        assert!(refusal(graph.push(Unary { kind: UnaryKind::Neg }, &[state])).contains("use that node's result"));
        assert!(graph.push(Unary { kind: UnaryKind::Neg }, &[now]).is_ok());
        assert!(graph.push(append, &[now, x]).is_ok(), "the result can be written to again");
        assert_eq!(graph.continued(state), Some(now));
    }
}
