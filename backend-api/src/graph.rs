//! The graph: operators over tensors in SSA form. A malformed graph cannot be built.

use crate::error::Error;
use crate::format::Format;
use crate::op::Op;
use crate::tensor::{DType, Kind, Shape, Tensor};
use std::fmt;

/// Halves of a 16-byte texel.
const HALVES: usize = crate::format::TEXEL / 2;

/// A tensor of one graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TensorId(u32);

impl TensorId {
    /// Its index among the graph's tensors.
    pub fn index(self) -> usize {
        self.0 as usize
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
#[derive(Debug, Clone, Default)]
pub struct Graph {
    tensors: Vec<Tensor>,
    /// For each tensor the one whose storage it shares: itself, or the state that an append node continues.
    roots: Vec<TensorId>,
    nodes: Vec<Node>,
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Graph {
        Graph::default()
    }

    fn add(&mut self, tensor: Tensor, root: Option<TensorId>) -> TensorId {
        let id = TensorId(self.tensors.len() as u32);
        self.tensors.push(tensor);
        self.roots.push(root.unwrap_or(id));
        id
    }

    /// Adds a weight, a state or an input.
    ///
    /// *Errors*: a shape that cannot be, a packed tensor that is no matrix weight, rows that are no whole blocks, halves
    /// that are no state.
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
        if !matches!(kind, Kind::Weight | Kind::State | Kind::Input) {
            return refused("only weights, states and inputs come from outside");
        }
        if let DType::Packed(format) = dtype {
            if kind != Kind::Weight || shape.rank() != 2 {
                return refused("packed tensors are matrices of weights");
            }
            format.row_bytes(shape.cols()).map_err(|e| Error::Invalid(format!("{name}: {e}")))?;
        }
        if dtype == DType::F16 && (kind != Kind::State || shape.rank() != 2 || !shape.cols().is_multiple_of(HALVES)) {
            return refused("halves are states, matrices whose rows are multiples of 8; use f32");
        }
        Ok(self.add(Tensor { name, shape, dtype, kind }, None))
    }

    /// Adds a weight.
    ///
    /// *Errors*: as [`Self::external`].
    pub fn weight(&mut self, name: impl Into<String>, shape: &[usize], dtype: DType) -> Result<TensorId, Error> {
        self.external(Kind::Weight, name, shape, dtype)
    }

    /// Adds a state.
    ///
    /// *Errors*: as [`Self::external`].
    pub fn state(&mut self, name: impl Into<String>, shape: &[usize], dtype: DType) -> Result<TensorId, Error> {
        self.external(Kind::State, name, shape, dtype)
    }

    /// Adds an input.
    ///
    /// *Errors*: as [`Self::external`].
    pub fn input(&mut self, name: impl Into<String>, shape: &[usize], dtype: DType) -> Result<TensorId, Error> {
        self.external(Kind::Input, name, shape, dtype)
    }

    /// Applies an operator and gives its results.
    ///
    /// *Errors*: operands that do not fit the operator; the message names it with their shapes and dtypes.
    pub fn push_multi(&mut self, op: Op, inputs: &[TensorId]) -> Result<Vec<TensorId>, Error> {
        let operands: Vec<&Tensor> = inputs.iter().map(|id| &self.tensors[id.index()]).collect();
        let described = || {
            let list: Vec<String> = operands.iter().map(|t| t.to_string()).collect();
            format!("{}({})", op.name(), list.join(", "))
        };
        let results = op.infer(&operands).map_err(|why| Error::Invalid(format!("{}: {why}", described())))?;
        let mut outputs = Vec::with_capacity(results.len());
        for (index, result) in results.into_iter().enumerate() {
            let (tensor, root) = match result {
                crate::op::Output::New(shape, dtype) => {
                    let name = format!("{}.{}", op.name(), self.tensors.len());
                    (Tensor { name, shape, dtype, kind: Kind::Temporary }, None)
                }
                crate::op::Output::Continues(operand) => {
                    let state = inputs[operand];
                    if self.tensors[state.index()].kind != Kind::State {
                        return Err(Error::Invalid(format!(
                            "{}: result {index} continues operand {operand}, which is no state",
                            op.name()
                        )));
                    }
                    (self.tensors[state.index()].clone(), Some(self.root(state)))
                }
            };
            outputs.push(self.add(tensor, root));
        }
        self.nodes.push(Node { op, inputs: inputs.to_vec(), outputs: outputs.clone() });
        Ok(outputs)
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
    /// *Errors*: the tensor is no temporary.
    pub fn output(&mut self, id: TensorId, name: impl Into<String>) -> Result<(), Error> {
        let tensor = &mut self.tensors[id.index()];
        if tensor.kind != Kind::Temporary {
            return Err(Error::Invalid(format!("{} is no temporary, so it cannot become an output", tensor.name)));
        }
        tensor.kind = Kind::Output;
        tensor.name = name.into();
        Ok(())
    }

    /// The same graph with all matrices that are in weight formats in this one, whose blocks their rows must be made of.
    pub fn with_weights_in(mut self, format: Format) -> Graph {
        for tensor in &mut self.tensors {
            tensor.dtype = tensor.dtype.in_format(format);
        }
        self
    }

    /// A tensor.
    pub fn tensor(&self, id: TensorId) -> &Tensor {
        &self.tensors[id.index()]
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
    pub fn tensors(&self) -> impl Iterator<Item = (TensorId, &Tensor)> {
        self.tensors.iter().enumerate().map(|(i, t)| (TensorId(i as u32), t))
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
