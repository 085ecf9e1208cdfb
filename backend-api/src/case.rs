//! Conformance cases: a graph of one operator (or one fused pattern), seeded inputs, a tolerance.
//!
//! Cases are data; the `conformance` crate runs them on every backend and compares with the CPU reference.

use crate::format::Format;
use crate::graph::{Graph, TensorId};
use crate::op::Op;
use crate::step::StepParams;
use crate::tensor::{DType, Kind};

/// How an external tensor of a case is filled, always from the case's seed.
#[derive(Debug, Clone, PartialEq)]
pub enum Fill {
    /// Uniform in `[lo, hi)`.
    Uniform(f32, f32),
    /// Integers in `[0, below)`, as the tensor's dtype.
    Integers(u32),
    /// Each row a permutation of 0..n, so that no two elements of a row are equal.
    Shuffled,
    /// Each row descending, from `hi` down in random steps.
    Descending(f32),
    /// Random blocks of the weight format whose values are finite and of order 1, subnormal scales included.
    Blocks,
    /// These values, repeated as often as needed.
    Values(Vec<f32>),
    /// A mask: rows of 0 and a large negative number, the first column always 0.
    Mask,
}

/// One conformance case.
#[derive(Debug, Clone)]
pub struct Case {
    /// The operator under test.
    pub op: &'static str,
    /// What is particular to this case; unique for the operator.
    pub name: String,
    /// The graph; all its results are outputs or states.
    pub graph: Graph,
    /// A fill for each of the graph's externals; outputs have [`Fill::Values`] of zeros.
    pub fills: Vec<Fill>,
    /// The step that runs it.
    pub step: StepParams,
    /// The largest NMSE allowed; 0 means exact.
    pub tolerance: f64,
}

/// Builds the operands of a case.
#[derive(Debug, Default)]
pub struct Operands {
    graph: Graph,
    fills: Vec<(TensorId, Fill)>,
}

impl Operands {
    /// An operand of any kind.
    pub fn external(&mut self, kind: Kind, shape: &[usize], dtype: DType, fill: Fill) -> TensorId {
        let name = format!("operand{}", self.fills.len());
        let id = self.graph.external(kind, name, shape, dtype).expect("cases have well-formed operands");
        self.fills.push((id, fill));
        id
    }

    /// A dense f32 input, uniform in [-1, 1).
    pub fn input(&mut self, shape: &[usize]) -> TensorId {
        self.filled(shape, Fill::Uniform(-1.0, 1.0))
    }

    /// A dense f32 input.
    pub fn filled(&mut self, shape: &[usize], fill: Fill) -> TensorId {
        self.external(Kind::Input, shape, DType::F32, fill)
    }

    /// An input of ids below a bound.
    pub fn ids(&mut self, shape: &[usize], below: u32) -> TensorId {
        self.external(Kind::Input, shape, DType::I32, Fill::Integers(below))
    }

    /// A packed weight matrix.
    pub fn packed(&mut self, format: Format, rows: usize, k: usize) -> TensorId {
        self.external(Kind::Weight, &[rows, k], DType::Packed(format), Fill::Blocks)
    }

    /// A dense f32 weight, uniform in [-1, 1).
    pub fn weight(&mut self, shape: &[usize]) -> TensorId {
        self.external(Kind::Weight, shape, DType::F32, Fill::Uniform(-1.0, 1.0))
    }

    /// A dense f32 state, uniform in [-1, 1).
    pub fn state(&mut self, shape: &[usize]) -> TensorId {
        self.external(Kind::State, shape, DType::F32, Fill::Uniform(-1.0, 1.0))
    }

    /// A state of ids below a bound.
    pub fn history(&mut self, n_ctx: usize, below: u32) -> TensorId {
        self.external(Kind::State, &[n_ctx], DType::I32, Fill::Integers(below))
    }
}

impl Case {
    /// A case of one operator; `operands` makes its operands. All results become outputs.
    ///
    /// # Panics
    /// If the operands do not fit the operator: cases are part of the code.
    pub fn new(
        op: impl Into<Op>,
        name: impl Into<String>,
        step: StepParams,
        operands: impl FnOnce(&mut Operands) -> Vec<TensorId>,
    ) -> Case {
        let op = op.into();
        let (op_name, tolerance) = (op.name(), op.tolerance());
        let mut builder = Operands::default();
        let inputs = operands(&mut builder);
        let Operands { mut graph, fills } = builder;
        let outputs = graph.push_multi(op, &inputs).expect("cases are well-formed");
        for (index, id) in outputs.into_iter().enumerate() {
            if graph.tensor(id).kind == Kind::Temporary {
                graph.output(id, format!("result{index}")).expect("a temporary can become an output");
            }
        }
        let of = |id: TensorId| fills.iter().find(|(f, _)| *f == id).map(|(_, fill)| fill.clone());
        let fills = graph.externals().map(|(id, _)| of(id).unwrap_or(Fill::Values(vec![0.0]))).collect();
        Case { op: op_name, name: name.into(), graph, fills, step, tolerance }
    }
}
