//! Records the operators of a model.

use backend_api::op::{
    Append, ArgMax, At, Attention, Binary, BinaryKind, GetRows, Glu, Index, Masking, MatMul, Op, Rope, Sample, Slice,
    TopK, Unary,
};
use backend_api::{DType, Error, Graph, TensorId};

use super::{Block, FeedForward, Joint, Linear, NormWeights, Positions, Recipe, WeightId};

/// The state of token ids, one for each position.
pub const HISTORY: &str = "history";
/// The output of [`Head::Logits`] and [`Head::AllLogits`].
pub const LOGITS: &str = "logits";

/// What follows the blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Head {
    /// Nothing: keys and values are all that a prefill leaves but for its last part.
    None,
    /// The best token, written into the history after the step's rows.
    Greedy,
    /// A token drawn from the best [`TopK::MAX`], written likewise.
    Sample,
    /// The logits of the last row, as the output [`LOGITS`] `[1, n_vocab]`.
    Logits,
    /// The logits of all rows `[rows, n_vocab]`.
    AllLogits,
}

impl Recipe {
    /// The graph of a step of up to `rows` tokens. Its externals have the same names, shapes and dtypes whatever the
    /// rows and the head, so that programs share their storages.
    ///
    /// *Errors*: sizes that do not fit together.
    pub fn graph(&self, rows: usize, head: Head) -> Result<Graph, Error> {
        let parts = &self.parts;
        let mut r = Recorder::new(self)?;
        let token_embd = r.weight(parts.token_embd)?;
        let mut x = r.op(GetRows { index: Index::Tokens { rows } }, &[token_embd, r.history])?;
        if let Positions::Learned(table) = parts.positions {
            let table = r.weight(table)?;
            let learned = r.op(GetRows { index: Index::Positions { rows } }, &[table])?;
            x = r.add(x, learned)?;
        }
        // From the last block's attention on, only rows that the head wants are computed.
        let wanted = if head == Head::AllLogits || rows == 1 { None } else { Some(GetRows { index: Index::Last }) };
        for (i, block) in parts.blocks.iter().enumerate() {
            let last = i + 1 == parts.blocks.len();
            let mut attended = match r.attention(i, block, x, last && head == Head::None)? {
                Some(attended) => attended,
                None => return Ok(r.graph),
            };
            if let (true, Some(wanted)) = (last, &wanted) {
                attended = r.op(wanted.clone(), &[attended])?;
                x = r.op(wanted.clone(), &[x])?;
            }
            attended = r.linear(&block.attn_output, attended)?;
            x = r.add(attended, x)?;
            x = r.feed_forward(block, x)?;
        }
        x = r.norm(&parts.output_norm, x)?;
        x = r.linear(&parts.output, x)?;
        r.head(head, x)?;
        Ok(r.graph)
    }
}

struct Recorder<'a> {
    recipe: &'a Recipe,
    graph: Graph,
    /// The graph's tensors of weights met so far.
    weights: Vec<Option<TensorId>>,
    history: TensorId,
}

impl<'a> Recorder<'a> {
    fn new(recipe: &'a Recipe) -> Result<Recorder<'a>, Error> {
        let mut graph = Graph::new();
        let history = graph.state(HISTORY, &[recipe.parts.sizes.n_ctx], DType::I32)?;
        Ok(Recorder { recipe, graph, weights: vec![None; recipe.weights.len()], history })
    }

    fn op(&mut self, op: impl Into<Op>, operands: &[TensorId]) -> Result<TensorId, Error> {
        self.graph.push(op, operands)
    }

    fn weight(&mut self, WeightId(index): WeightId) -> Result<TensorId, Error> {
        if let Some(id) = self.weights[index] {
            return Ok(id);
        }
        let weight = &self.recipe.weights[index];
        let id = self.graph.weight(&weight.name, &weight.shape, weight.dtype)?;
        self.weights[index] = Some(id);
        Ok(id)
    }

    fn add(&mut self, a: TensorId, b: TensorId) -> Result<TensorId, Error> {
        self.op(Binary { kind: BinaryKind::Add }, &[a, b])
    }

    fn norm(&mut self, norm: &NormWeights, x: TensorId) -> Result<TensorId, Error> {
        let mut operands = vec![x, self.weight(norm.gamma)?];
        if let Some(beta) = norm.beta {
            operands.push(self.weight(beta)?);
        }
        self.op(norm.norm, &operands)
    }

    fn linear(&mut self, linear: &Linear, x: TensorId) -> Result<TensorId, Error> {
        let weight = self.weight(linear.weight)?;
        let mut y = self.op(MatMul, &[x, weight])?;
        if let Some(bias) = linear.bias {
            let bias = self.weight(bias)?;
            y = self.add(y, bias)?;
        }
        Ok(y)
    }

    fn joint(&mut self, joint: &Joint, x: TensorId) -> Result<Vec<TensorId>, Error> {
        let mut products = Vec::new();
        for linear in &joint.linears {
            products.push(self.linear(linear, x)?);
        }
        let &[product] = products.as_slice() else { return Ok(products) };
        let mut start = 0;
        let slices = joint.widths.iter().map(|&len| {
            let slice = Slice { start, len };
            start += len;
            self.op(slice, &[product])
        });
        slices.collect()
    }

    /// Attention without its output projection; nothing if only keys and values are wanted.
    fn attention(
        &mut self,
        i: usize,
        block: &Block,
        x: TensorId,
        append_only: bool,
    ) -> Result<Option<TensorId>, Error> {
        let sizes = self.recipe.parts.sizes;
        let x = self.norm(&block.attn_norm, x)?;
        let [mut q, mut k, v] = self.joint(&block.qkv, x)?.try_into().map_err(|_| {
            Error::Invalid(format!("block {i} projects to something else than queries, keys and values"))
        })?;
        if let Positions::Rope { table, n_dims, mode } = self.recipe.parts.positions {
            let table = self.weight(table)?;
            q = self.op(Rope { n_head: sizes.n_head, n_dims, mode }, &[q, table])?;
            k = self.op(Rope { n_head: sizes.n_head_kv, n_dims, mode }, &[k, table])?;
        }
        let shape = [sizes.n_ctx, sizes.n_head_kv * sizes.head_dim];
        let dtype = self.recipe.kv_cache.dtype();
        let k_cache = self.graph.state(format!("blk.{i}.k_cache"), &shape, dtype)?;
        let v_cache = self.graph.state(format!("blk.{i}.v_cache"), &shape, dtype)?;
        let keys = self.op(Append { at: At::Position }, &[k_cache, k])?;
        let values = self.op(Append { at: At::Position }, &[v_cache, v])?;
        if append_only {
            return Ok(None);
        }
        let attention = Attention {
            n_head: sizes.n_head,
            n_head_kv: sizes.n_head_kv,
            scale: 1.0 / (sizes.head_dim as f32).sqrt(),
            softcap: 0.0,
            masking: Masking { causal: true, cached: true, ..Masking::default() },
        };
        self.op(attention, &[q, keys, values]).map(Some)
    }

    fn feed_forward(&mut self, block: &Block, x: TensorId) -> Result<TensorId, Error> {
        let normed = self.norm(&block.ffn_norm, x)?;
        let (hidden, down) = match &block.feed_forward {
            FeedForward::Gated(kind, gate_up, down) => {
                let halves = self.joint(gate_up, normed)?;
                (self.op(Glu { kind: *kind }, &halves)?, down)
            }
            FeedForward::Plain(kind, up, down) => {
                let up = self.linear(up, normed)?;
                (self.op(Unary { kind: *kind }, &[up])?, down)
            }
        };
        let y = self.linear(down, hidden)?;
        self.add(y, x)
    }

    fn head(&mut self, head: Head, logits: TensorId) -> Result<(), Error> {
        let token = match head {
            Head::None => return Ok(()),
            Head::Logits | Head::AllLogits => return self.graph.output(logits, LOGITS),
            Head::Greedy => self.op(ArgMax, &[logits])?,
            Head::Sample => {
                let k = TopK::MAX.min(self.recipe.parts.sizes.n_vocab);
                let best = self.graph.push_multi(TopK { k }.into(), &[logits])?;
                self.op(Sample, &best)?
            }
        };
        self.op(Append { at: At::Next }, &[self.history, token])?;
        Ok(())
    }
}
