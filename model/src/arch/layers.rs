//! Layers: the vocabulary of architectures. They are recorded with their weights.
//!
//! Weights have their names in the file, without `blk.N.`. Callers give the widths of results; widths of operands are
//! known.

use backend_api::format::ROW_ALIGN;
use backend_api::op::{
    self, Binary, BinaryKind, GetRows, Glu, GluKind, Index, Masking, MatMul, Norm, NormKind, Scale, ShortConv, Slice,
    Unary, UnaryKind,
};
use backend_api::{DType, TensorId, Update};

use super::part::{Part, width};
use super::recorder::{Recorded, Recorder};
use super::weights::Contents;
use super::{Pooling, Sizes};
use crate::error::ModelError;

impl Recorder<'_> {
    /// Records a matrix in the file's format, from a single tensor or from stacked parts.
    pub fn matrix(&mut self, name: &str, parts: &[Part<'_>], cols: usize) -> Recorded {
        let rows = |part: &Part<'_>| {
            let name = self.scoped(&format!("{}.weight", part.name));
            Ok(part.of(self.step.tensors.of_shape(&name, &[part.whole(), cols])?))
        };
        let tensors = parts.iter().map(rows).collect::<Result<Vec<_>, ModelError>>()?.concat();
        let dtype = DType::Packed(tensors[0].format);
        self.weight(self.scoped(&format!("{name}.weight")), &[width(parts), cols], dtype, Contents::Tensors(tensors))
    }

    /// Adds the bias, if the file has one, from a single vector or from concatenated parts.
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

    /// Returns whether the file has a tensor of the block.
    pub fn has(&self, name: &str) -> bool {
        self.step.tensors.find(&self.scoped(name)).is_some()
    }

    /// Records the embeddings of the tokens.
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

    /// Records the tokens' rows in a table with so many rows and columns.
    pub fn rows_of_tokens(&mut self, name: &str, rows: usize, cols: usize) -> Recorded {
        let history = self.history()?;
        let table = self.matrix(name, &[(name, rows).into()], cols)?;
        self.op(GetRows { index: Index::Tokens { rows: self.step.rows } }, &[table, history])
    }

    /// Records the embeddings of the positions.
    pub fn embed_positions(&mut self, name: &str) -> Recorded {
        let table = self.matrix(name, &[(name, self.step.sizes.n_ctx_train).into()], self.step.sizes.n_embd)?;
        self.op(GetRows { index: Index::Positions { rows: self.step.rows } }, &[table])
    }

    /// Adds the embedding of the first token type, if the file has types. Only pairs of texts use another one.
    pub fn add_type(&mut self, name: &str, x: TensorId) -> Recorded {
        let (key, width) = (format!("{name}.weight"), self.step.sizes.n_embd);
        let row = match self.step.tensors.find(&key) {
            None => return Ok(x),
            // If there is a single type, files may leave out that dimension.
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

    /// Records `cap * tanh(x / cap)`, if there is a cap.
    pub fn softcap(&mut self, cap: Option<f32>, x: TensorId) -> Recorded {
        let Some(cap) = cap else { return Ok(x) };
        let x = self.scale(1.0 / cap, x)?;
        let x = self.unary(UnaryKind::Tanh, x)?;
        self.scale(cap, x)
    }

    /// Records a norm of rows. A layer norm also has a bias, which is zero if the file does not have one.
    pub fn norm(&mut self, name: &str, norm: Norm, x: TensorId) -> Recorded {
        // Some files have the name without the suffix.
        let gamma = if self.has(name) { name.to_owned() } else { format!("{name}.weight") };
        let each = self.step.tensors.find(&self.scoped(&gamma)).is_some_and(|tensor| tensor.shape.len() == 2);
        // Each head may have weights of its own.
        let len = if each { self.cols(x) } else { self.cols(x) / norm.heads };
        let gamma = if each { self.flat(&gamma, len)? } else { self.vector(&gamma, len)? };
        let mut operands = vec![x, gamma];
        if norm.kind == NormKind::Layer {
            let bias = format!("{name}.bias");
            operands.push(match self.has(&bias) {
                true => self.vector(&bias, len)?,
                false => self.weight(self.scoped(&bias), &[len], DType::F32, Contents::Constant(0.0))?,
            });
        }
        self.op(norm, &operands)
    }

    /// Records a norm without weights.
    pub fn unit(&mut self, norm: Norm, x: TensorId) -> Recorded {
        let len = self.cols(x) / norm.heads;
        let ones = self.weight(format!("ones.{len}"), &[len], DType::F32, Contents::Constant(1.0))?;
        let mut operands = vec![x, ones];
        if norm.kind == NormKind::Layer {
            operands.push(self.weight(format!("zeros.{len}"), &[len], DType::F32, Contents::Constant(0.0))?);
        }
        self.op(norm, &operands)
    }

    /// Multiplies each column by a number of its own, or all columns by one number.
    pub fn times(&mut self, name: &str, len: usize, x: TensorId) -> Recorded {
        let factors = self.vector(name, len)?;
        self.mul(x, factors)
    }

    /// Multiplies the channels of each head by a number of the head.
    pub fn times_heads(&mut self, n_head: usize, x: TensorId, factors: TensorId) -> Recorded {
        let (rows, cols) = (self.rows(x), self.cols(x));
        let heads = self.shaped(&[rows, n_head, cols / n_head], x)?;
        let factors = self.shaped(&[self.rows(factors), n_head, 1], factors)?;
        let y = self.mul(heads, factors)?;
        self.shaped(&[rows, cols], y)
    }

    /// Divides each column by a number of its own.
    pub fn divided(&mut self, name: &str, x: TensorId) -> Recorded {
        let divisors = self.vector(name, self.cols(x))?;
        self.op(Binary { kind: BinaryKind::Div }, &[x, divisors])
    }

    /// Records a projection to `rows` columns, with the bias if the file has one.
    pub fn linear(&mut self, name: &str, rows: usize, x: TensorId) -> Recorded {
        self.projection(name, &[(name, rows).into()], x)
    }

    /// Records a projection by stacked parts.
    pub fn projection(&mut self, name: &str, parts: &[Part<'_>], x: TensorId) -> Recorded {
        let weight = self.matrix(name, parts, self.cols(x))?;
        let mut y = self.op(MatMul, &[x, weight])?;
        if self.is_scaled(name) {
            y = self.times(&format!("{name}.scale"), 1, y)?;
        }
        self.biased(name, parts, y)
    }

    /// Records several projections of one input. They are a single matrix, called `name`, if the file has it or if its
    /// tensors can be stacked, which saves dispatches; otherwise separate ones.
    pub fn joint<'p, const N: usize>(
        &mut self,
        name: &str,
        parts: [impl Into<Part<'p>>; N],
        x: TensorId,
    ) -> Result<[TensorId; N], ModelError> {
        let (parts, mut results) = (parts.map(Into::into), [x; N]);
        let y = if self.has(&format!("{name}.weight")) {
            let y = self.linear(name, width(&parts), x)?;
            // Files with a joint matrix may have separate biases.
            if self.has(&format!("{name}.bias")) { y } else { self.biased(name, &parts, y)? }
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

    /// Returns whether the file has a factor of a whole product. Vectors of that name are other things.
    fn is_scaled(&self, name: &str) -> bool {
        self.step.tensors.find(&self.scoped(&format!("{name}.scale"))).is_some_and(|tensor| tensor.shape == [1])
    }

    /// Selects columns.
    pub fn slice(&mut self, start: usize, len: usize, x: TensorId) -> Recorded {
        self.op(Slice { start, len }, &[x])
    }

    /// Splits columns into parts of these widths.
    pub fn columns<const N: usize>(&mut self, y: TensorId, lens: [usize; N]) -> Result<[TensorId; N], ModelError> {
        let (mut results, mut start) = ([y; N], 0);
        for (result, len) in results.iter_mut().zip(lens) {
            *result = self.slice(start, len, y)?;
            start += len;
        }
        Ok(results)
    }

    /// Returns whether tensors can be stacked: they have one format, all or none have a bias, none has a factor, and
    /// they are written in whole texels.
    fn stackable(&self, parts: &[Part<'_>]) -> bool {
        let kind = |part: &Part<'_>| {
            let weight = self.step.tensors.find(&self.scoped(&format!("{}.weight", part.name)));
            (weight.map(|tensor| tensor.format), self.has(&format!("{}.bias", part.name)))
        };
        let same = parts.windows(2).all(|pair| kind(&pair[0]) == kind(&pair[1]));
        let scaled = parts.iter().any(|part| self.is_scaled(part.name));
        same && !scaled && parts.iter().all(|part| part.rows.is_multiple_of(ROW_ALIGN))
    }

    /// Records a gated linear unit of `n_ff` columns: the gate and up projections, and their combination.
    pub fn glu(&mut self, kind: GluKind, n_ff: usize, x: TensorId) -> Recorded {
        let halves = self.joint("ffn_gate_up", [("ffn_gate", n_ff), ("ffn_up", n_ff)], x)?;
        self.op(Glu { kind }, &halves)
    }

    /// Returns the rows of a matrix of the block, for an input of so many columns.
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

    /// Records one projection, and splits its columns into three parts.
    pub fn thirds(&mut self, name: &str, len: usize, x: TensorId) -> Result<[TensorId; 3], ModelError> {
        let y = self.linear(name, 3 * len, x)?;
        self.columns(y, [len; 3])
    }

    /// Records a convolution of each channel along the last `taps` tokens.
    pub fn short_conv(&mut self, name: &str, taps: usize, x: TensorId) -> Recorded {
        let (name, shape) = (self.scoped(&format!("{name}.weight")), [self.cols(x), taps]);
        let tensor = self.step.tensors.dense(&name, &shape)?.clone();
        let kernel = self.weight(name.clone(), &shape, DType::F32, Contents::Tensors(vec![tensor]))?;
        let before = self.state(format!("{name}.before"), &[taps - 1, shape[0]], DType::F32, Update::Replace)?;
        let [y, _] = self.ops(ShortConv, &[before, x, kernel])?;
        Ok(y)
    }

    /// Records the logits: the `output` projection, or the token embedding if the file ties them.
    pub fn logits(&mut self, x: TensorId) -> Recorded {
        self.hidden = Some(x);
        if self.step.head.embedding {
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

    /// Records the pooling of a text's vectors, and the projections or the classifier that may follow it.
    pub fn pool(&mut self, x: TensorId) -> Recorded {
        let mut x = x;
        if self.step.pooling == Some(Pooling::Mean) && self.step.rows > 1 {
            let row = self.op(GetRows { index: Index::First }, &[x])?;
            x = self.op(mean(self.cols(x)), &[row, x, x])?;
        }
        if let Some(classifier) = self.step.classifier {
            return self.scores(classifier, x);
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

/// Largest head width that every backend handles well.
const EASY_HEAD: usize = 256;

/// Makes the mean of the step's rows: attention that weights all rows equally, whatever the query. Columns are split
/// into heads, since rows may be wider than heads can be.
fn mean(cols: usize) -> op::Attention {
    let n_head = (1..cols).find(|n| cols.is_multiple_of(*n) && cols / n <= EASY_HEAD).unwrap_or(cols);
    let masking = Masking { cached: true, ..Masking::default() };
    op::Attention { n_head, n_head_kv: n_head, scale: 0.0, softcap: 0.0, max_bias: 0.0, masking, sinks: false }
}
