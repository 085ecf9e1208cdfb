//! Conformance cases: a graph of one operator (or one fused pattern), seeded inputs, a tolerance.
//!
//! Cases are data; the `conformance` crate runs them on every backend and compares with the CPU reference.

use crate::backend::BackendInfo;
use crate::format::Format;
use crate::graph::{Graph, Node, TensorId};
use crate::op::{self, Op};
use crate::step::StepParams;
use crate::tensor::{DType, Kind, Tensor};

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

impl Fill {
    /// What [`Backend::write`](crate::Backend::write) is given to fill a whole tensor, from a seed.
    pub fn bytes(&self, tensor: &Tensor, seed: u64) -> Vec<u8> {
        let mut random = Random(seed ^ 0x9E37_79B9_7F4A_7C15);
        let (rows, cols) = (tensor.shape.rows(), tensor.shape.cols());
        if let DType::Packed(format) = tensor.dtype {
            return random.blocks(format, tensor.shape.len());
        }
        let mut values = Vec::with_capacity(tensor.shape.len());
        for row in 0..rows {
            match self {
                Fill::Uniform(lo, hi) => values.extend((0..cols).map(|_| lo + (hi - lo) * random.unit())),
                Fill::Blocks => values.extend((0..cols).map(|_| random.unit() - 0.5)),
                Fill::Integers(below) => values.extend((0..cols).map(|_| random.below(*below) as f32)),
                Fill::Shuffled => {
                    let start = values.len();
                    values.extend((0..cols).map(|i| i as f32));
                    (1..cols).rev().for_each(|i| values.swap(start + i, start + random.below(i as u32 + 1) as usize));
                }
                Fill::Descending(hi) => {
                    let mut at = *hi;
                    values.extend((0..cols).map(|_| {
                        at -= 0.01 + 0.5 * random.unit();
                        at
                    }));
                }
                Fill::Values(list) => values.extend((0..cols).map(|i| list[(row * cols + i) % list.len()])),
                Fill::Mask => {
                    values.extend((0..cols).map(|i| if i == 0 || random.below(4) > 0 { 0.0 } else { -1e30 }));
                }
            }
        }
        match tensor.dtype {
            DType::I32 => values.iter().flat_map(|v| (*v as i32).to_le_bytes()).collect(),
            DType::F16 => values.iter().flat_map(|v| half::f16::from_f32(*v).to_le_bytes()).collect(),
            _ => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        }
    }
}

/// SplitMix64: small, and good enough for test data.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// In [0, 1).
    fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / 16_777_216.0
    }

    fn below(&mut self, n: u32) -> u32 {
        (self.next() % u64::from(n.max(1))) as u32
    }

    fn blocks(&mut self, format: Format, elements: usize) -> Vec<u8> {
        let spec = format.spec();
        let mut bytes = Vec::new();
        for _ in 0..elements / spec.block_len {
            if matches!(format, Format::F32 | Format::BF16) {
                let value = (2.0 * self.unit() - 1.0).to_le_bytes();
                bytes.extend(&value[4 - spec.block_bytes..]);
                continue;
            }
            let start = bytes.len();
            bytes.extend((0..spec.block_bytes).map(|_| self.next() as u8));
            for at in spec.halves {
                // A random sign and fraction; the exponent is that of a small number, now and then a subnormal one.
                let largest = if spec.block_len == 1 { 14 } else { 9 };
                let exponent = if self.below(16) == 0 { 0 } else { largest - self.below(5) as u16 };
                let half = (self.next() as u16 & 0x83FF) | exponent << 10;
                bytes[start + at..start + at + 2].copy_from_slice(&half.to_le_bytes());
            }
        }
        bytes
    }
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

    /// A state of halves, uniform in [-1, 1).
    pub fn halves(&mut self, shape: &[usize]) -> TensorId {
        self.external(Kind::State, shape, DType::F16, Fill::Uniform(-1.0, 1.0))
    }

    /// A KV cache: a state of floats or halves.
    pub fn cache(&mut self, halves: bool, shape: &[usize]) -> TensorId {
        if halves { self.halves(shape) } else { self.state(shape) }
    }

    /// What attention reads: an input of floats, or halves, which only a state can have.
    pub fn keys(&mut self, halves: bool, shape: &[usize]) -> TensorId {
        if halves { self.halves(shape) } else { self.input(shape) }
    }

    /// A state of ids below a bound.
    pub fn history(&mut self, n_ctx: usize, below: u32) -> TensorId {
        self.external(Kind::State, &[n_ctx], DType::I32, Fill::Integers(below))
    }
}

impl Case {
    /// The largest NMSE allowed on a backend, which may be one that approximates some products.
    pub fn tolerance_on(&self, backend: &BackendInfo) -> f64 {
        let approximated = |node: &Node| {
            let operands = self.graph.operands(node);
            let lookup = matches!(node.op, Op::GetRows(_) | Op::Embed(_));
            let several = operands.first().is_some_and(|x| x.shape.rows() > 1);
            !lookup && several && operands.iter().any(|t| matches!(t.dtype, DType::Packed(_)))
        };
        let widened = self.graph.nodes().iter().any(approximated);
        if widened { self.tolerance.max(backend.products.tolerance()) } else { self.tolerance }
    }

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
        let (op_name, mut tolerance) = (op.name(), op.tolerance());
        let mut builder = Operands::default();
        let inputs = operands(&mut builder);
        let Operands { mut graph, fills } = builder;
        let outputs = graph.push_multi(op, &inputs).expect("cases are well-formed");
        for (index, id) in outputs.into_iter().enumerate() {
            if graph.tensor(id).dtype == DType::F16 {
                tolerance = tolerance.max(op::F16);
            }
            if graph.tensor(id).kind == Kind::Temporary {
                graph.output(id, format!("result{index}")).expect("a temporary can become an output");
            }
        }
        let of = |id: TensorId| fills.iter().find(|(f, _)| *f == id).map(|(_, fill)| fill.clone());
        let fills = graph.externals().map(|(id, _)| of(id).unwrap_or(Fill::Values(vec![0.0]))).collect();
        Case { op: op_name, name: name.into(), graph, fills, step, tolerance }
    }
}
