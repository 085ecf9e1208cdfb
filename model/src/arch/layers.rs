//! The words that architectures are written in: layers, recorded with their weights.
//!
//! Names of weights are those of the file without `blk.N.`; widths of results are given, widths of operands known.

use backend_api::format::ROW_ALIGN;
use backend_api::op::{
    self, Binary, BinaryKind, GetRows, Glu, GluKind, Index, Masking, MatMul, Norm, NormKind, Scale, ShortConv, Slice,
    Unary, UnaryKind,
};
use backend_api::{DType, TensorId, Update};

use super::part::{Part, width};
use super::recorder::{Recorded, Recorder};
use super::weights::Contents;
use super::{Head, Pooling, Sizes};
use crate::error::ModelError;

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

    /// Records the embeddings, scaled by the square root of the width of the residual stream.
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

    /// Records the product of an activated gate and its input.
    pub fn gated(&mut self, kind: GluKind, gate: TensorId, up: TensorId) -> Recorded {
        self.op(Glu { kind }, &[gate, up])
    }

    /// Records a gated layer whose file has the rows of both matrices in one tensor of that name.
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
