//! The words that architectures are written in: layers, recorded with their weights.
//!
//! Names of weights are those of the file without `blk.N.`; widths of results are given, widths of operands known.

use backend_api::format::ROW_ALIGN;
use backend_api::op::{
    self, Append, At, Binary, BinaryKind, GetRows, Glu, GluKind, Index, Masking, MatMul, Norm, NormKind, Scale,
    ShortConv, Slice, Unary, UnaryKind,
};
use backend_api::{DType, TensorId, Update};

use super::keys::Keys;
use super::part::{Part, width};
use super::recorder::{Recorded, Recorder};
use super::rope::Rope;
use super::weights::Contents;
use super::{Head, Pooling, Sizes};
use crate::error::ModelError;

/// Attention of a block over its own keys and values: causal, unless the model says otherwise.
#[derive(Debug, Clone)]
pub(super) struct Attention {
    /// Query heads.
    pub heads: usize,
    /// Key and value heads.
    pub heads_kv: usize,
    /// Channels of a head.
    pub head_dim: usize,
    /// Multiplies the scores.
    pub scale: f32,
    /// Soft cap of the scores; 0 = none.
    pub softcap: f32,
    /// Positions that a query looks back, itself included, or around itself where attention is not causal; 0 = all.
    pub window: u32,
    /// Norm of queries and keys: of each head, or of all heads of a row at once.
    pub qk_norm: Option<Norm>,
    /// Whether that norm is of all heads at once.
    pub norm_rows: bool,
    /// Norm of values, without weights, if there is one.
    pub v_norm: Option<Norm>,
    /// Whether values are the keys as they are projected.
    pub v_is_k: bool,
    /// Another block whose keys and values are used; `None` = its own.
    pub kv_of: Option<usize>,
    /// What queries are multiplied with as positions grow.
    pub temperature: Option<Temperature>,
    /// Whether each head has a score without a key.
    pub sinks: bool,
    /// Rotation of queries and keys.
    pub rope: Option<Rope>,
    /// Whether a gate for each channel multiplies what heads give: the rows of a head's gate follow those of its query.
    pub gated: bool,
}

impl Attention {
    /// Plain attention: scores over the root of the head's width.
    pub fn new(sizes: &Sizes) -> Attention {
        Attention {
            heads: sizes.n_head,
            heads_kv: sizes.n_head_kv,
            head_dim: sizes.head_dim,
            scale: 1.0 / (sizes.head_dim as f32).sqrt(),
            softcap: 0.0,
            window: 0,
            qk_norm: None,
            norm_rows: false,
            v_norm: None,
            v_is_k: false,
            kv_of: None,
            temperature: None,
            sinks: false,
            rope: None,
            gated: false,
        }
    }

    /// The rows of a head's query and of its gate.
    fn turns(&self) -> [usize; 2] {
        [self.head_dim; 2]
    }

    /// The attention of blocks of which the first `owners` have keys and values: those after them use what the last
    /// two have, of which one sees a window and one sees all.
    pub fn shared(
        keys: &Keys<'_>,
        owners: usize,
        is_local: &[bool],
        of: impl Fn(usize) -> Attention,
    ) -> Result<Vec<Attention>, ModelError> {
        let mut all: Vec<Attention> = (0..is_local.len()).map(of).collect();
        for i in owners..all.len() {
            let kept = owners.wrapping_sub(if is_local[i] { 2 } else { 1 });
            let kind = |block: usize| all.get(block).map(|a| (a.window, a.heads_kv, a.head_dim));
            if kind(kept) != kind(i) {
                let reason = format!("block {i} finds no keys of its kind in the two blocks before block {owners}");
                return Err(keys.wrong("attention.shared_kv_layers", reason));
            }
            all[i].kv_of = Some(kept);
        }
        Ok(all)
    }
}

/// A factor of queries that is 1 within the original context and grows with its multiples, so that attention over more
/// keys stays as sharp.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Temperature {
    /// Multiplies the logarithm.
    pub scale: f32,
    /// The original context.
    pub n_ctx_orig: u32,
}

impl Temperature {
    /// The factors of some positions: `1 + scale ln(1 + floor(position / n_ctx_orig))`, computed in f64.
    pub fn rows(&self, positions: impl Iterator<Item = u32>) -> Vec<f32> {
        let factor = |position| 1.0 + f64::from(self.scale) * f64::from(1 + position / self.n_ctx_orig).ln();
        positions.map(|position| factor(position) as f32).collect()
    }
}

impl Recorder<'_> {
    /// A matrix in the file's format: that of one name, or parts one below the other.
    fn matrix(&mut self, name: &str, parts: &[Part<'_>], cols: usize) -> Recorded {
        let rows = |part: &Part<'_>| {
            let name = self.scoped(&format!("{}.weight", part.name));
            Ok(part.of(self.step.tensors.of_shape(&name, &[part.whole(), cols])?))
        };
        let tensors = parts.iter().map(rows).collect::<Result<Vec<_>, ModelError>>()?.concat();
        let dtype = DType::Packed(tensors[0].format);
        self.weight(self.scoped(&format!("{name}.weight")), &[width(parts), cols], dtype, Contents::Tensors(tensors))
    }

    /// Adds the bias that the file may have: one vector, or parts one after the other.
    pub fn biased(&mut self, name: &str, parts: &[Part<'_>], y: TensorId) -> Recorded {
        if !parts.iter().all(|part| self.has(&format!("{}.bias", part.name))) {
            return Ok(y);
        }
        let values = |part: &Part<'_>| {
            let name = self.scoped(&format!("{}.bias", part.name));
            Ok(part.of(self.step.tensors.vector(&name, part.whole())?))
        };
        let contents = Contents::Tensors(parts.iter().map(values).collect::<Result<Vec<_>, ModelError>>()?.concat());
        let bias = self.weight(self.scoped(&format!("{name}.bias")), &[width(parts)], DType::F32, contents)?;
        self.add(y, bias)
    }

    pub fn vector(&mut self, name: &str, len: usize) -> Recorded {
        let name = self.scoped(name);
        let tensor = self.step.tensors.vector(&name, len)?.clone();
        self.weight(name, &[len], DType::F32, Contents::Tensors(vec![tensor]))
    }

    /// Whether the file has a tensor of the block's.
    pub fn has(&self, name: &str) -> bool {
        self.step.tensors.find(&self.scoped(name)).is_some()
    }

    /// The rows of the tokens.
    pub fn embed(&mut self, name: &str) -> Recorded {
        self.rows_of_tokens(name, self.step.sizes.n_vocab, self.step.sizes.n_embd)
    }

    /// The same, as long as the residual stream is wide.
    pub fn embed_scaled(&mut self, name: &str) -> Recorded {
        self.once(&format!("{name}.scaled"), |m| {
            let x = m.embed(name)?;
            m.scale((m.step.sizes.n_embd as f32).sqrt(), x)
        })
    }

    /// The rows that the tokens have in a table of so many rows and columns.
    pub fn rows_of_tokens(&mut self, name: &str, rows: usize, cols: usize) -> Recorded {
        let history = self.history()?;
        let table = self.matrix(name, &[(name, rows).into()], cols)?;
        self.op(GetRows { index: Index::Tokens { rows: self.step.rows } }, &[table, history])
    }

    /// The rows of the positions.
    pub fn embed_positions(&mut self, name: &str) -> Recorded {
        let table = self.matrix(name, &[(name, self.step.sizes.n_ctx_train).into()], self.step.sizes.n_embd)?;
        self.op(GetRows { index: Index::Positions { rows: self.step.rows } }, &[table])
    }

    /// Adds the row that stands for the first kind of tokens, where the file has it. Only pairs of texts have another.
    pub fn add_type(&mut self, name: &str, x: TensorId) -> Recorded {
        let (key, width) = (format!("{name}.weight"), self.step.sizes.n_embd);
        let row = match self.step.tensors.find(&key) {
            None => return Ok(x),
            // Where there is one kind, files may leave out that it is one.
            Some(tensor) if tensor.shape.len() == 1 => self.vector(&key, width)?,
            Some(_) => {
                let table = self.matrix(name, &[(name, self.step.tensors.rows_of(&key, width)?).into()], width)?;
                self.op(GetRows { index: Index::First }, &[table])?
            }
        };
        self.add(x, row)
    }

    /// A number for each row, by its position.
    fn temperature(&mut self, temperature: Temperature) -> Recorded {
        const NAME: &str = "attn_temperature";
        let shape = [self.step.sizes.n_ctx, 1];
        let table = self.weight(NAME.into(), &shape, DType::F32, Contents::Temperature(temperature))?;
        let index = Index::Positions { rows: self.step.rows };
        self.once(&format!("{NAME}.rows"), |m| m.op(GetRows { index }, &[table]))
    }

    pub fn add(&mut self, a: TensorId, b: TensorId) -> Recorded {
        self.op(Binary { kind: BinaryKind::Add }, &[a, b])
    }

    pub fn sub(&mut self, a: TensorId, b: TensorId) -> Recorded {
        self.op(Binary { kind: BinaryKind::Sub }, &[a, b])
    }

    pub fn mul(&mut self, a: TensorId, b: TensorId) -> Recorded {
        self.op(Binary { kind: BinaryKind::Mul }, &[a, b])
    }

    pub fn unary(&mut self, kind: UnaryKind, x: TensorId) -> Recorded {
        self.op(Unary { kind }, &[x])
    }

    pub fn scale(&mut self, factor: f32, x: TensorId) -> Recorded {
        self.op(Scale { factor, bias: 0.0 }, &[x])
    }

    /// `cap * tanh(x / cap)`, if there is a cap.
    pub fn softcap(&mut self, cap: Option<f32>, x: TensorId) -> Recorded {
        let Some(cap) = cap else { return Ok(x) };
        let x = self.scale(1.0 / cap, x)?;
        let x = self.unary(UnaryKind::Tanh, x)?;
        self.scale(cap, x)
    }

    /// Rows brought to unit size; layer norm has a bias besides, which is zero where the file has none.
    pub fn norm(&mut self, name: &str, norm: Norm, x: TensorId) -> Recorded {
        let len = self.cols(x) / norm.heads;
        // Some files have the name without the suffix.
        let gamma = if self.has(name) { name.to_owned() } else { format!("{name}.weight") };
        let mut operands = vec![x, self.vector(&gamma, len)?];
        if norm.kind == NormKind::Layer {
            let bias = format!("{name}.bias");
            operands.push(match self.has(&bias) {
                true => self.vector(&bias, len)?,
                false => self.weight(self.scoped(&bias), &[len], DType::F32, Contents::Constant(0.0))?,
            });
        }
        self.op(norm, &operands)
    }

    /// An RMS norm without weights.
    pub fn unit(&mut self, norm: Norm, x: TensorId) -> Recorded {
        let len = self.cols(x) / norm.heads;
        let ones = self.weight(format!("ones.{len}"), &[len], DType::F32, Contents::Constant(1.0))?;
        self.op(norm, &[x, ones])
    }

    /// Each column times a number of its own, or all times one.
    pub fn times(&mut self, name: &str, len: usize, x: TensorId) -> Recorded {
        let factors = self.vector(name, len)?;
        self.mul(x, factors)
    }

    /// A projection to `rows` columns, with the bias that the file may have.
    pub fn linear(&mut self, name: &str, rows: usize, x: TensorId) -> Recorded {
        self.projection(name, &[(name, rows).into()], x)
    }

    /// A projection to the rows of some parts, one below the other.
    pub fn projection(&mut self, name: &str, parts: &[Part<'_>], x: TensorId) -> Recorded {
        let weight = self.matrix(name, parts, self.cols(x))?;
        let y = self.op(MatMul, &[x, weight])?;
        self.biased(name, parts, y)
    }

    /// Several projections of one input: as one matrix, called `name`, if the file has it, or if its tensors can lie one
    /// below the other, which spares dispatches; else one by one.
    pub fn joint<'p, const N: usize>(
        &mut self,
        name: &str,
        parts: [impl Into<Part<'p>>; N],
        x: TensorId,
    ) -> Result<[TensorId; N], ModelError> {
        let (parts, mut results) = (parts.map(Into::into), [x; N]);
        let y = if self.has(&format!("{name}.weight")) {
            self.linear(name, width(&parts), x)?
        } else if self.stackable(&parts) {
            self.projection(name, &parts, x)?
        } else {
            for (i, (result, part)) in results.iter_mut().zip(parts).enumerate() {
                let name = if part.turn.is_some() { format!("{}.{i}", part.name) } else { part.name.into() };
                *result = self.projection(&name, &[part], x)?;
            }
            return Ok(results);
        };
        self.columns(y, parts.map(|part| part.rows))
    }

    /// Some columns.
    pub fn slice(&mut self, start: usize, len: usize, x: TensorId) -> Recorded {
        self.op(Slice { start, len }, &[x])
    }

    /// Columns side by side, so many each.
    pub fn columns<const N: usize>(&mut self, y: TensorId, lens: [usize; N]) -> Result<[TensorId; N], ModelError> {
        let (mut results, mut start) = ([y; N], 0);
        for (result, len) in results.iter_mut().zip(lens) {
            *result = self.slice(start, len, y)?;
            start += len;
        }
        Ok(results)
    }

    /// Whether tensors can lie one below the other: in one format, all or none with a bias, and written in whole texels.
    fn stackable(&self, parts: &[Part<'_>]) -> bool {
        let kind = |part: &Part<'_>| {
            let weight = self.step.tensors.find(&self.scoped(&format!("{}.weight", part.name)));
            (weight.map(|tensor| tensor.format), self.has(&format!("{}.bias", part.name)))
        };
        let same = parts.windows(2).all(|pair| kind(&pair[0]) == kind(&pair[1]));
        same && parts.iter().all(|part| part.rows.is_multiple_of(ROW_ALIGN))
    }

    /// A gated unit of `n_ff` columns: gate and up projections, and what joins them.
    pub fn glu(&mut self, kind: GluKind, n_ff: usize, x: TensorId) -> Recorded {
        let halves = self.joint("ffn_gate_up", [("ffn_gate", n_ff), ("ffn_up", n_ff)], x)?;
        self.op(Glu { kind }, &halves)
    }

    /// The rows that a matrix of the block's has, for an input of so many columns.
    pub fn rows_of(&self, name: &str, cols: usize) -> Result<usize, ModelError> {
        self.step.tensors.rows_of(&self.scoped(&format!("{name}.weight")), cols)
    }

    /// What joins a gate with what it lets through.
    pub fn gated(&mut self, kind: GluKind, gate: TensorId, up: TensorId) -> Recorded {
        self.op(Glu { kind }, &[gate, up])
    }

    /// The same where the file has the rows of both in one tensor of that name.
    pub fn fused_glu(&mut self, name: &str, kind: GluKind, n_ff: usize, x: TensorId) -> Recorded {
        let both = self.linear(name, 2 * n_ff, x)?;
        let halves = self.columns(both, [n_ff; 2])?;
        self.op(Glu { kind }, &halves)
    }

    /// One projection, and the three parts of its columns.
    pub fn thirds(&mut self, name: &str, len: usize, x: TensorId) -> Result<[TensorId; 3], ModelError> {
        let y = self.linear(name, 3 * len, x)?;
        self.columns(y, [len; 3])
    }

    /// A convolution of each channel along the tokens, this one the last of so many.
    pub fn short_conv(&mut self, name: &str, taps: usize, x: TensorId) -> Recorded {
        let (name, shape) = (self.scoped(&format!("{name}.weight")), [self.cols(x), taps]);
        let tensor = self.step.tensors.dense(&name, &shape)?.clone();
        let kernel = self.weight(name.clone(), &shape, DType::F32, Contents::Tensors(vec![tensor]))?;
        let before = self.state(format!("{name}.before"), &[taps - 1, shape[0]], DType::F32, Update::Replace)?;
        let [y, _] = self.ops(ShortConv, &[before, x, kernel])?;
        Ok(y)
    }

    /// Attention from the normed input to the joined heads, without the projection that follows.
    pub fn attention(&mut self, a: &Attention, x: TensorId) -> Recorded {
        let gate = a.gated.then(|| self.projection("attn_q.gate", &[Part::dealt("attn_q", a.heads, &a.turns(), 1)], x));
        let (mut q, [keys, values]) = match a.kv_of {
            None => self.queries_keys_values(a, x)?,
            Some(block) => {
                let q = self.linear("attn_q", a.heads * a.head_dim, x)?;
                let q = self.normed(a, "attn_q_norm", a.heads, q)?;
                (self.rotated(a, a.heads, q)?, self.kept(block)?)
            }
        };
        if let Some(temperature) = a.temperature {
            let factors = self.temperature(temperature)?;
            q = self.mul(q, factors)?;
        }
        let attention = op::Attention {
            n_head: a.heads,
            n_head_kv: a.heads_kv,
            scale: a.scale,
            softcap: a.softcap,
            masking: Masking { causal: self.step.causal, cached: true, window: a.window, ..Masking::default() },
            sinks: a.sinks,
        };
        let mut operands = vec![q, keys, values];
        if a.sinks {
            operands.push(self.vector("attn_sinks.weight", a.heads)?);
        }
        let heads = self.op(attention, &operands)?;
        let Some(gate) = gate else { return Ok(heads) };
        let gate = self.unary(UnaryKind::Sigmoid, gate?)?;
        self.mul(heads, gate)
    }

    /// Queries, and all keys and values so far, which blocks after this one may use, too.
    fn queries_keys_values(&mut self, a: &Attention, x: TensorId) -> Result<(TensorId, [TensorId; 2]), ModelError> {
        let (q, kv, turns) = (a.heads * a.head_dim, a.heads_kv * a.head_dim, a.turns());
        let q = if a.gated { Part::dealt("attn_q", a.heads, &turns, 0) } else { ("attn_q", q).into() };
        let [q, k, mut v] = if a.v_is_k {
            let [q, k] = self.joint("attn_qk", [q, ("attn_k", kv).into()], x)?;
            [q, k, k]
        } else {
            self.joint("attn_qkv", [q, ("attn_k", kv).into(), ("attn_v", kv).into()], x)?
        };
        let q = self.normed(a, "attn_q_norm", a.heads, q)?;
        let k = self.normed(a, "attn_k_norm", a.heads_kv, k)?;
        if let Some(norm) = a.v_norm {
            v = self.unit(Norm { heads: a.heads_kv, ..norm }, v)?;
        }
        let q = self.rotated(a, a.heads, q)?;
        let k = self.rotated(a, a.heads_kv, k)?;
        let all = match self.step.head {
            // All keys are those of the step.
            Head::Embedding => [k, v],
            _ => {
                let (k_cache, v_cache) = (self.cache("k_cache", kv)?, self.cache("v_cache", kv)?);
                let keys = self.op(Append { at: At::Position }, &[k_cache, k])?;
                [keys, self.op(Append { at: At::Position }, &[v_cache, v])?]
            }
        };
        self.keep(all);
        Ok((q, all))
    }

    /// Queries or keys, normed if the model does that.
    fn normed(&mut self, a: &Attention, name: &str, n_head: usize, x: TensorId) -> Recorded {
        match a.qk_norm {
            Some(norm) => self.norm(name, Norm { heads: if a.norm_rows { 1 } else { n_head }, ..norm }, x),
            None => Ok(x),
        }
    }

    /// Queries or keys, rotated likewise.
    fn rotated(&mut self, a: &Attention, n_head: usize, x: TensorId) -> Recorded {
        match &a.rope {
            Some(rope) => self.rope(rope, n_head, x),
            None => Ok(x),
        }
    }

    fn rope(&mut self, rope: &Rope, n_head: usize, x: TensorId) -> Recorded {
        let n_dims = rope.angles.n_dims;
        let factors = rope.factors.map(|name| self.step.tensors.vector(name, n_dims / 2)).transpose()?.cloned();
        let contents = Contents::Rope(rope.angles.clone(), factors);
        let table = self.weight(rope.table.into(), &[self.step.sizes.n_ctx, n_dims], DType::F32, contents)?;
        self.op(op::Rope { n_head, n_dims, mode: rope.mode }, &[x, table])
    }

    /// Logits: the `output` projection, or the token embedding's where a file ties them.
    pub fn logits(&mut self, x: TensorId) -> Recorded {
        self.hidden = Some(x);
        if self.step.head == Head::Embedding {
            return Ok(x);
        }
        let Sizes { n_vocab, n_embd, .. } = *self.step.sizes;
        if self.has("output.weight") {
            return self.linear("output", n_vocab, x);
        }
        let weight = self.matrix("token_embd", &[("token_embd", n_vocab).into()], n_embd)?;
        let y = self.op(MatMul, &[x, weight])?;
        self.biased("output", &[("output", n_vocab).into()], y)
    }

    /// One vector of those of a text's tokens, and the projections that may follow.
    pub fn pool(&mut self, x: TensorId) -> Recorded {
        let mut x = x;
        if self.step.pooling == Some(Pooling::Mean) && self.step.rows > 1 {
            let row = self.op(GetRows { index: Index::First }, &[x])?;
            x = self.op(mean(self.cols(x)), &[row, x, x])?;
        }
        for name in ["dense_2", "dense_3"] {
            let weight = format!("{name}.weight");
            if self.has(&weight) {
                x = self.linear(name, self.step.tensors.rows_of(&weight, self.cols(x))?, x)?;
            }
        }
        Ok(x)
    }
}

/// The most channels of a head that every backend takes with ease.
const EASY_HEAD: usize = 256;

/// The mean of the step's rows: attention that gives each the same weight, whatever it is asked. Columns are dealt to
/// heads, since there is no limit to how wide rows may be.
fn mean(cols: usize) -> op::Attention {
    let n_head = (1..cols).find(|n| cols.is_multiple_of(*n) && cols / n <= EASY_HEAD).unwrap_or(cols);
    let masking = Masking { cached: true, ..Masking::default() };
    op::Attention { n_head, n_head_kv: n_head, scale: 0.0, softcap: 0.0, masking, sinks: false }
}
