//! Feed-forward layers: a gated linear unit, or a mixture of experts.

use backend_api::op::{GetRows, Glu, GluKind, Groups, Index, MatMul, MatMulId, Route, UnaryKind, WeightedSum, Xielu};
use backend_api::{DType, TensorId};

use super::keys::{Keys, MAX_WIDTH};
use super::recorder::{Recorded, Recorder};
use super::weights::Contents;
use crate::error::ModelError;
use crate::gguf::TensorInfo;

pub(super) use backend_api::op::Gate;

/// Largest number of experts, far above that of any known model.
const MAX_EXPERTS: usize = 1 << 12;

/// Layer that an expert is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Expert {
    /// A gated linear unit.
    Glu(GluKind),
    /// An activation between two products.
    Plain(UnaryKind),
    /// The square of what is above zero, between two products.
    SquaredRelu,
}

/// Mixture of experts, with its routing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Experts {
    /// Number of experts.
    pub count: usize,
    /// Width of an expert.
    pub n_ff: usize,
    /// Layer that each expert is.
    pub kind: Expert,
    /// Routing. Its bias is used if the file has a tensor for it.
    pub route: Route,
}

/// Feed-forward layer of a block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum FeedForward {
    /// A gated linear unit with so many columns.
    Glu(GluKind, usize),
    /// A gated linear unit whose file has the rows of both matrices in one tensor.
    Fused(GluKind, usize),
    /// An activation between two products, with so many columns.
    Plain(UnaryKind, usize),
    /// The square of what is above zero, between two products.
    SquaredRelu(usize),
    /// A parabola above zero that bends towards a line below it, between two products.
    Xielu(Xielu, usize),
    /// A mixture of experts.
    Experts(Experts),
}

impl FeedForward {
    /// Returns the width of the layer, or of an expert.
    pub fn width(&self) -> usize {
        match *self {
            FeedForward::Glu(_, n_ff) | FeedForward::Fused(_, n_ff) | FeedForward::Plain(_, n_ff) => n_ff,
            FeedForward::SquaredRelu(n_ff) | FeedForward::Xielu(_, n_ff) => n_ff,
            FeedForward::Experts(Experts { n_ff, .. }) => n_ff,
        }
    }
}

/// Key of the width of the shared expert, which all tokens are routed to.
const SHARED: &str = "expert_shared_feed_forward_length";

impl Keys<'_> {
    /// Returns SwiGLU experts of `n_ff` columns, whose weights sum up to 1. The gating function is that of the file, or
    /// else `gate`.
    pub fn experts(&self, gate: Gate, n_ff: usize) -> Result<Experts, ModelError> {
        self.experts_of(gate, n_ff, self.size("expert_used_count", Route::MAX, None)?)
    }

    /// Returns such experts, of which a token goes to `k`.
    pub fn experts_of(&self, gate: Gate, n_ff: usize, k: usize) -> Result<Experts, ModelError> {
        let count = self.size("expert_count", MAX_EXPERTS, None)?;
        let most = count.min(Route::MAX);
        if !(1..=most).contains(&k) {
            return Err(self.wrong("expert_used_count", format!("{k} is not in 1 to {most}")));
        }
        let gate = match self.get::<u32>("expert_gating_func")? {
            None | Some(0) => gate,
            Some(1) => Gate::Softmax,
            Some(2) => Gate::Sigmoid,
            Some(3) => Gate::SoftmaxOfChosen,
            Some(4) => return Err(self.wrong("expert_gating_func", "the gate sqrt-softplus is not supported")),
            Some(other) => return Err(self.wrong("expert_gating_func", format!("the gate {other} is not known"))),
        };
        let groups = self.groups(count, k)?;
        let scale = self.nonzero("expert_weights_scale", None)?.unwrap_or(1.0);
        let route = Route { k, gate, biased: false, normalised: true, scale, groups };
        Ok(Experts { count, n_ff, kind: Expert::Glu(GluKind::Swiglu), route })
    }

    /// Returns the groups that are chosen before `k` of so many experts, if there are several.
    fn groups(&self, experts: usize, k: usize) -> Result<Option<Groups>, ModelError> {
        const COUNT: &str = "expert_group_count";
        const USED: &str = "expert_group_used_count";
        if self.get::<u32>(COUNT)?.is_none_or(|count| count < 2) {
            return Ok(None);
        }
        let count = self.size(COUNT, Route::MAX_GROUPS, None)?;
        if !experts.is_multiple_of(count) || experts / count < 2 {
            return Err(self.wrong(COUNT, format!("{experts} experts make no {count} groups of two or more")));
        }
        let used = self.size(USED, count - 1, None)?;
        if experts / count * used < k {
            return Err(self.wrong(USED, format!("{used} groups of {} experts have no {k}", experts / count)));
        }
        Ok(Some(Groups { count, used }))
    }

    /// Returns the width of the shared expert, if there is one.
    pub fn shared_expert(&self) -> Result<Option<usize>, ModelError> {
        let shared = self.get::<u64>(SHARED)?.filter(|n_ff| *n_ff > 0);
        shared.map(|_| self.size(SHARED, MAX_WIDTH, None)).transpose()
    }

    /// Returns a SwiGLU with the file's width, or experts of that width if the file has some.
    pub fn feed_forward(&self) -> Result<FeedForward, ModelError> {
        let n_ff = self.size("feed_forward_length", MAX_WIDTH, None)?;
        Ok(match self.get::<u64>("expert_count")? {
            Some(n) if n > 0 => FeedForward::Experts(self.experts(Gate::Softmax, n_ff)?),
            _ => FeedForward::Glu(GluKind::Swiglu, n_ff),
        })
    }
}

impl Recorder<'_> {
    /// Records the feed-forward layer of a block on normed rows.
    pub fn feed_forward(&mut self, layer: &FeedForward, x: TensorId) -> Recorded {
        if let FeedForward::Experts(experts) = layer {
            return self.experts(experts, x);
        }
        let n_embd = self.cols(x);
        let y = self.activated(layer, x)?;
        self.linear("ffn_down", n_embd, y)
    }

    /// Records the feed-forward layer without its last product.
    pub fn activated(&mut self, layer: &FeedForward, x: TensorId) -> Recorded {
        match *layer {
            FeedForward::Glu(kind, n_ff) => self.glu(kind, n_ff, x),
            FeedForward::Fused(kind, n_ff) => self.fused_glu("ffn_up", kind, n_ff, x),
            FeedForward::Plain(kind, n_ff) => {
                let y = self.linear("ffn_up", n_ff, x)?;
                self.unary(kind, y)
            }
            FeedForward::SquaredRelu(n_ff) => {
                let y = self.linear("ffn_up", n_ff, x)?;
                self.squared_relu(y)
            }
            FeedForward::Xielu(xielu, n_ff) => {
                let y = self.linear("ffn_up", n_ff, x)?;
                self.op(xielu, &[y])
            }
            FeedForward::Experts(experts) => self.experts(&experts, x),
        }
    }

    /// Records the square of what is above zero.
    pub fn squared_relu(&mut self, x: TensorId) -> Recorded {
        let x = self.unary(UnaryKind::Relu, x)?;
        self.mul(x, x)
    }

    /// Records the experts on normed rows that also decide which experts they go to.
    pub fn experts(&mut self, experts: &Experts, x: TensorId) -> Recorded {
        let logits = self.linear("ffn_gate_inp", experts.count, x)?;
        self.routed(experts, logits, x)
    }

    /// Records the experts on normed rows, which logits distribute.
    pub fn routed(&mut self, experts: &Experts, logits: TensorId, x: TensorId) -> Recorded {
        let Experts { count, n_ff, kind, route } = *experts;
        self.refuse_separate_experts()?;
        let route = Route { biased: self.has("exp_probs_b.bias"), ..route };
        let mut operands = vec![logits];
        if route.biased {
            operands.push(self.vector("exp_probs_b.bias", count)?);
        }
        let [ids, weights] = self.ops(route, &operands)?;
        let n_embd = self.cols(x);
        let y = match kind {
            Expert::Glu(kind) => {
                let halves = self.halves(experts, ids, x)?;
                self.op(Glu { kind }, &halves)?
            }
            Expert::Plain(kind) => {
                let y = self.expert("ffn_up_exps", n_ff, count, ids, x)?;
                self.unary(kind, y)?
            }
            Expert::SquaredRelu => {
                let y = self.expert("ffn_up_exps", n_ff, count, ids, x)?;
                self.squared_relu(y)?
            }
        };
        let y = self.expert("ffn_down_exps", n_embd, count, ids, y)?;
        self.op(WeightedSum, &[y, weights])
    }

    /// Records the gates and the up parts of experts, from two tensors or from one.
    fn halves(&mut self, experts: &Experts, ids: TensorId, x: TensorId) -> Result<[TensorId; 2], ModelError> {
        let Experts { count, n_ff, .. } = *experts;
        let name = "ffn_gate_up_exps";
        if !self.has(&format!("{name}.weight")) {
            let mut one = |name| self.expert(name, n_ff, count, ids, x);
            return Ok([one("ffn_gate_exps")?, one("ffn_up_exps")?]);
        }
        let half = |first| MatMulId { rows: n_ff, stride: 2 * n_ff, first };
        self.refuse(&[&format!("{name}.bias"), &format!("{name}.scale")])?;
        Ok([self.by_id(name, half(0), count, ids, x)?, self.by_id(name, half(n_ff), count, ids, x)?])
    }

    /// Records the shared expert, with its gate if the file has one.
    pub fn shared_expert(&mut self, kind: GluKind, n_ff: usize, x: TensorId) -> Recorded {
        let n_embd = self.cols(x);
        let parts = [("ffn_gate_shexp", n_ff), ("ffn_up_shexp", n_ff)];
        let halves = self.joint("ffn_gate_up_shexp", parts, x)?;
        let y = self.op(Glu { kind }, &halves)?;
        let y = self.linear("ffn_down_shexp", n_embd, y)?;
        if !self.has("ffn_gate_inp_shexp.weight") {
            return Ok(y);
        }
        let gate = self.score("ffn_gate_inp_shexp", x)?;
        let gate = self.unary(UnaryKind::Sigmoid, gate)?;
        self.mul(y, gate)
    }

    /// Records a score for each row: the product with a vector of the file.
    fn score(&mut self, name: &str, x: TensorId) -> Recorded {
        let (name, cols) = (self.scoped(&format!("{name}.weight")), self.cols(x));
        let vector = self.step.tensors.of_shape(&name, &[cols])?.clone();
        let (dtype, row) = (DType::Packed(vector.format), TensorInfo { shape: vec![1, cols], ..vector });
        let w = self.weight(name, &[1, cols], dtype, Contents::Tensors(vec![row]))?;
        self.op(MatMul, &[x, w])
    }

    /// Records the products with the matrices of the chosen experts, with the experts' scales and biases if the file
    /// has them.
    fn expert(&mut self, name: &str, rows: usize, count: usize, ids: TensorId, x: TensorId) -> Recorded {
        let mut y = self.by_id(name, MatMulId::dense(rows), count, ids, x)?;
        if self.has(&format!("{name}.scale")) {
            let scale = self.of_each(&format!("{name}.scale"), &[count], &[count, 1])?;
            let scale = self.op(GetRows { index: Index::Ids }, &[scale, ids])?;
            y = self.mul(y, scale)?;
        }
        if self.has(&format!("{name}.bias")) {
            let bias = self.of_each(&format!("{name}.bias"), &[count, rows], &[count, rows])?;
            let bias = self.op(GetRows { index: Index::Ids }, &[bias, ids])?;
            y = self.add(y, bias)?;
        }
        Ok(y)
    }

    fn by_id(&mut self, name: &str, op: MatMulId, count: usize, ids: TensorId, x: TensorId) -> Recorded {
        let (name, cols) = (self.scoped(&format!("{name}.weight")), self.cols(x));
        let tensor = self.step.tensors.of_shape(&name, &[count, op.stride, cols])?.clone();
        let dtype = DType::Packed(tensor.format);
        let w = self.weight(name, &[count * op.stride, cols], dtype, Contents::Tensors(vec![tensor]))?;
        self.op(op, &[x, w, ids])
    }

    /// Records floats of each expert: a tensor of the file as a table of another shape.
    fn of_each(&mut self, name: &str, shape: &[usize], table: &[usize]) -> Recorded {
        let name = self.scoped(name);
        let tensor = self.step.tensors.dense(&name, shape)?.clone();
        self.weight(name, table, DType::F32, Contents::Tensors(vec![tensor]))
    }

    fn refuse(&self, names: &[&str]) -> Result<(), ModelError> {
        match names.iter().find(|name| self.has(name)) {
            Some(name) => {
                let reason = "it is not supported where gates and up parts are in one tensor".into();
                Err(ModelError::Tensor { name: self.scoped(name), reason })
            }
            None => Ok(()),
        }
    }

    /// Refuses old files, which have a tensor for each expert.
    fn refuse_separate_experts(&self) -> Result<(), ModelError> {
        let old = "ffn_down.0.weight";
        if !self.has(old) {
            return Ok(());
        }
        let reason = "experts with tensors of their own are of an old version of the format, and not supported".into();
        Err(ModelError::Tensor { name: self.scoped(old), reason })
    }
}
