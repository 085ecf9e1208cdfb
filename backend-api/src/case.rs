//! A conformance case: a small graph (one primitive, or what models record for a form), seeded inputs, a tolerance.
//!
//! Cases are data; the `conformance` crate runs them on every backend and compares with the CPU reference.

use crate::backend::BackendInfo;
use crate::codec::Codec;
use crate::form::Form;
use crate::format::Format;
use crate::graph::{Graph, Node, TensorId};
use crate::op::{EXACT, Op};
use crate::step::StepParams;
use crate::tensor::{DType, Kind, Tensor, Update};

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
    /// Each 16 bits these, in blocks of weight formats too: what a broken file may have.
    Bits(u16),
    /// A mask: rows of 0 and a large negative number, the first column always 0.
    Mask,
}

impl Fill {
    /// Descending numbers before one value, which is at this index of the tensor; behind it the same again.
    pub fn odd_one(at: usize, value: f32) -> Fill {
        let mut values: Vec<f32> = (0..at).map(|i| -(i as f32)).collect();
        values.push(value);
        Fill::Values(values)
    }

    /// Rows of a mask for so many keys, some of them `hidden`: those of every third row all, of the next all but one.
    pub fn hiding(keys: usize, hidden: f32) -> Fill {
        let partly = (0..keys).map(|key| if key % 3 == 1 { hidden } else { -(key as f32) });
        let all_but_one = (0..keys).map(|key| if key == keys / 2 { 0.5 } else { hidden });
        Fill::Values(vec![hidden; keys].into_iter().chain(all_but_one).chain(partly).collect())
    }

    /// Makes the bytes that [`Backend::write`](crate::Backend::write) takes to fill a whole tensor, from a seed.
    pub fn bytes(&self, tensor: &Tensor, seed: u64) -> Vec<u8> {
        let mut random = Random(seed ^ 0x9E37_79B9_7F4A_7C15);
        let (rows, cols) = (tensor.shape.rows(), tensor.shape.cols());
        if let DType::Packed(format) = tensor.dtype {
            let bytes = random.blocks(format, tensor.shape.len());
            let Fill::Bits(bits) = self else { return bytes };
            return bits.to_le_bytes().into_iter().cycle().take(bytes.len()).collect();
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
                Fill::Bits(bits) => {
                    values.extend((0..cols).map(|_| f32::from_bits(u32::from(*bits) * 0x1_0001)));
                }
                Fill::Mask => {
                    values.extend((0..cols).map(|i| if i == 0 || random.below(4) > 0 { 0.0 } else { -1e30 }));
                }
            }
        }
        match tensor.dtype {
            DType::I32 => values.iter().flat_map(|v| (*v as i32).to_le_bytes()).collect(),
            DType::Coded(codec) => codec.encode(&values),
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
        let (spec, mut bytes) = (format.spec(), Vec::new());
        for _ in 0..elements / spec.block_len {
            spec.random_block(&mut || self.next(), &mut bytes);
        }
        bytes
    }
}

/// One conformance case.
#[derive(Debug, Clone)]
pub struct Case {
    /// The form under test: a primitive, or several nodes.
    pub op: &'static str,
    /// Name of the case, unique for its form.
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

    /// A state of rows, uniform in [-1, 1), of floats or in a codec.
    pub fn state(&mut self, codec: Option<Codec>, shape: &[usize]) -> TensorId {
        let dtype = codec.map_or(DType::F32, DType::Coded);
        self.external(Kind::State(Update::Append), shape, dtype, Fill::Uniform(-1.0, 1.0))
    }

    /// A state of floats that steps rewrite, uniform in [-1, 1).
    pub fn replaced(&mut self, shape: &[usize]) -> TensorId {
        self.external(Kind::State(Update::Replace), shape, DType::F32, Fill::Uniform(-1.0, 1.0))
    }

    /// Adds the keys or values that attention reads: an input of floats, or a state for codecs that only a state can
    /// hold.
    pub fn keys(&mut self, codec: Option<Codec>, shape: &[usize]) -> TensorId {
        if codec.is_some() { self.state(codec, shape) } else { self.input(shape) }
    }

    /// A node with one result.
    pub fn push(&mut self, op: impl Into<Op>, inputs: &[TensorId]) -> TensorId {
        self.graph.push(op, inputs).expect("cases are well-formed")
    }

    /// The nodes of a form.
    pub fn form(&mut self, form: impl Into<Form>, inputs: &[TensorId]) -> Vec<TensorId> {
        form.into().record(&mut self.graph, inputs).expect("cases are well-formed")
    }

    /// A state of ids below a bound.
    pub fn history(&mut self, n_ctx: usize, below: u32) -> TensorId {
        self.external(Kind::State(Update::Append), &[n_ctx], DType::I32, Fill::Integers(below))
    }
}

impl Case {
    /// The seed of an external; the same on every backend.
    pub fn seed(&self, index: usize) -> u64 {
        let text = self.op.bytes().chain(self.name.bytes());
        text.fold(index as u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01B3))
    }

    /// The largest NMSE allowed on a backend, which may be one that approximates some products.
    pub fn tolerance_on(&self, backend: &BackendInfo) -> f64 {
        let approximated = |node: &Node| {
            let operands = self.graph.operands(node);
            let quantised = |t: &&Tensor| matches!(t.dtype, DType::Packed(format) if format.spec().is_quantised());
            matches!(node.op, Op::MatMul(_)) && operands[0].shape.rows() > 1 && operands.iter().any(quantised)
        };
        let widened = self.graph.nodes().iter().any(approximated);
        if widened { self.tolerance.max(backend.products.tolerance()) } else { self.tolerance }
    }

    /// Rounds each row as a step of a single row rounds it.
    pub fn alike(mut self) -> Case {
        self.graph.round_rows_alike();
        self.name.push_str(", rows alike");
        self
    }

    /// A case of one form; `operands` makes its operands. What it makes and nobody uses becomes an output.
    ///
    /// # Panics
    /// If the operands do not fit: cases are part of the code.
    pub fn new(
        form: impl Into<Form>,
        name: impl Into<String>,
        step: StepParams,
        operands: impl FnOnce(&mut Operands) -> Vec<TensorId>,
    ) -> Case {
        let mut builder = Operands::default();
        let inputs = operands(&mut builder);
        builder.case_of_form(&form.into(), name.into(), step, &inputs)
    }

    /// A case of any nodes; `build` makes them with their operands, and gives what becomes an output.
    ///
    /// # Panics
    /// If operands do not fit: cases are part of the code.
    pub fn graph(
        op: &'static str,
        name: impl Into<String>,
        step: StepParams,
        build: impl FnOnce(&mut Operands) -> Vec<TensorId>,
    ) -> Case {
        let mut builder = Operands::default();
        let outputs = build(&mut builder);
        builder.case(op, name.into(), step, outputs)
    }
}

// Not generic: pages have a copy for each operator otherwise.
impl Operands {
    #[inline(never)]
    fn case_of_form(mut self, form: &Form, name: String, step: StepParams, inputs: &[TensorId]) -> Case {
        let outputs = form.record(&mut self.graph, inputs).expect("cases are well-formed");
        self.case(form.name(), name, step, outputs)
    }

    #[inline(never)]
    fn case(self, op: &'static str, name: String, step: StepParams, outputs: Vec<TensorId>) -> Case {
        let Operands { mut graph, fills } = self;
        for (index, id) in outputs.into_iter().enumerate() {
            if graph.tensor(id).kind == Kind::Temporary {
                graph.output(id, format!("result{index}")).expect("a temporary can become an output");
            }
        }
        let written = graph.nodes().iter().flat_map(|node| &node.outputs).map(|id| graph.tensor(*id).dtype);
        let rounded = written.map(|dtype| if let DType::Coded(codec) = dtype { codec.spec().tolerance } else { EXACT });
        let computed = graph.nodes().iter().map(|node| node.op.tolerance());
        let tolerance = computed.chain(rounded).fold(EXACT, f64::max);
        let of = |id: TensorId| fills.iter().find(|(f, _)| *f == id).map(|(_, fill)| fill.clone());
        let fills = graph.externals().map(|(id, _)| of(id).unwrap_or(Fill::Values(vec![0.0]))).collect();
        Case { op, name, graph, fills, step, tolerance }
    }
}
