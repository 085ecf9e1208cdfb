//! Alternating updates (AltUp): several residual streams, of which each block computes one. The others are predicted
//! from all streams before the block, and corrected by the computed one.
//!
//! *Source*: Baykal et al., "Alternating Updates for Efficient Transformers", 2023; Google, "Gemma 3n", 2025.

use std::ops::Range;

use backend_api::op::{Concat, MatMul, Norm, Permute, Scale, UnaryKind};
use backend_api::{DType, Shape, TensorId};

use super::recorder::{Recorded, Recorder};
use super::weights::Contents;

/// Parallel streams, of which the first is computed. A row has all of them, one after the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct AltUp {
    pub streams: usize,
    pub norm: Norm,
}

/// Offset that avoids a division by the length 0 of a zero row; far below the length of any other row.
const TINY: f32 = 1e-30;

impl Recorder<'_> {
    /// Records all streams: the first, and projections of it that are scaled to its length.
    pub fn streams(&mut self, a: &AltUp, x: TensorId) -> Recorded {
        let (others, n_embd) = (a.streams - 1, self.cols(x));
        let y = self.stacked("altup_proj", [others, n_embd, n_embd], 0..others, x)?;
        let length = self.length(x)?;
        let y = self.unit(Norm { heads: others, eps: TINY, ..a.norm }, y)?;
        let y = self.mul(y, length)?;
        self.beside(x, y)
    }

    /// Records the predicted streams after the block.
    pub fn predicted(&mut self, a: &AltUp, x: TensorId) -> Recorded {
        let (rows, n) = (self.rows(x), a.streams);
        let n_embd = self.cols(x) / n;
        let first = self.slice(0, n_embd, x)?;
        let routed = self.modalities(a, first)?;
        let mix = self.linear("altup_predict_coef", n * n, routed)?;
        let mix = self.shaped(&[rows, n, n], mix)?;
        let columns = self.permuted(&[rows, n, n_embd], &[0, 2, 1], x)?;
        let mixed = self.op(MatMul, &[mix, columns])?;
        let mixed = self.shaped(&[rows, n * n_embd], mixed)?;
        self.add(mixed, x)
    }

    /// Corrects the predicted streams by the difference of `computed` to the first of them.
    pub fn corrected(&mut self, a: &AltUp, predicted: TensorId, computed: TensorId) -> Recorded {
        let (rows, n, n_embd) = (self.rows(computed), a.streams, self.cols(computed));
        let first = self.slice(0, n_embd, predicted)?;
        let moved = self.sub(computed, first)?;
        let moved = self.shaped(&[rows, 1, n_embd], moved)?;
        let routed = self.modalities(a, computed)?;
        let by = self.linear("altup_correct_coef", n, routed)?;
        let by = self.op(Scale { factor: 1.0, bias: 1.0 }, &[by])?;
        let by = self.shaped(&[rows, n, 1], by)?;
        let moved = self.mul(by, moved)?;
        let moved = self.shaped(&[rows, n * n_embd], moved)?;
        self.add(moved, predicted)
    }

    /// Adds `x` to all streams but the first.
    pub fn add_to_others(&mut self, a: &AltUp, streams: TensorId, x: TensorId) -> Recorded {
        let (rows, others, n_embd) = (self.rows(x), a.streams - 1, self.cols(x));
        let first = self.slice(0, n_embd, streams)?;
        let rest = self.slice(n_embd, others * n_embd, streams)?;
        let rest = self.shaped(&[rows, others, n_embd], rest)?;
        let x = self.shaped(&[rows, 1, n_embd], x)?;
        let rest = self.add(rest, x)?;
        let rest = self.shaped(&[rows, others * n_embd], rest)?;
        self.beside(first, rest)
    }

    /// Records the mean of the first stream and of projections of the others that are scaled to its length.
    pub fn joined(&mut self, a: &AltUp, streams: TensorId) -> Recorded {
        let n_embd = self.cols(streams) / a.streams;
        let first = self.slice(0, n_embd, streams)?;
        let length = self.length(first)?;
        let mut sum = first;
        for i in 1..a.streams {
            let x = self.slice(i * n_embd, n_embd, streams)?;
            let x = self.stacked("altup_unembd_proj", [a.streams - 1, n_embd, n_embd], i - 1..i, x)?;
            let x = self.unit(Norm { eps: TINY, ..a.norm }, x)?;
            let x = self.mul(x, length)?;
            sum = self.add(x, sum)?;
        }
        self.scale(1.0 / a.streams as f32, sum)
    }

    /// Records the coefficients of predictions and corrections.
    fn modalities(&mut self, a: &AltUp, x: TensorId) -> Recorded {
        let n_embd = self.cols(x) as f32;
        let x = self.norm("altup_router_norm", a.norm, x)?;
        let x = self.scale(1.0 / n_embd, x)?;
        let x = self.linear("altup_router", a.streams, x)?;
        self.unary(UnaryKind::Tanh, x)
    }

    /// Records the root mean square of each row.
    fn length(&mut self, x: TensorId) -> Recorded {
        let squares = self.mul(x, x)?;
        let mean = self.row_mean(squares)?;
        self.unary(UnaryKind::Sqrt, mean)
    }

    /// Records the mean of each row: a product with a matrix of one row.
    pub fn row_mean(&mut self, x: TensorId) -> Recorded {
        let cols = self.cols(x);
        let share = Contents::Constant(1.0 / cols as f32);
        let weights = self.weight(format!("mean.{cols}"), &[1, cols], DType::F32, share)?;
        self.op(MatMul, &[x, weights])
    }

    /// Records the projections by some of a tensor's stacked matrices, side by side.
    fn stacked(&mut self, name: &str, shape: [usize; 3], which: Range<usize>, x: TensorId) -> Recorded {
        let [_, rows, cols] = shape;
        let tensor = format!("{name}.weight");
        let matrices = self.step.tensors.stack(&tensor, shape, which.clone())?;
        let (shape, dtype) = ([which.len() * rows, cols], DType::Packed(matrices.format));
        let contents = Contents::Tensors(vec![matrices]);
        let weight = self.weight(format!("{tensor}.{}", which.start), &shape, dtype, contents)?;
        self.op(MatMul, &[x, weight])
    }

    /// Concatenates columns.
    pub fn beside(&mut self, a: TensorId, b: TensorId) -> Recorded {
        self.op(Concat { axis: 1 }, &[a, b])
    }

    /// Records a change of shape.
    pub fn shaped(&mut self, shape: &[usize], x: TensorId) -> Recorded {
        let perm: Vec<usize> = (0..shape.len()).collect();
        self.permuted(shape, &perm, x)
    }

    fn permuted(&mut self, view: &[usize], perm: &[usize], x: TensorId) -> Recorded {
        let view = Shape::new(view)?;
        self.op(Permute { view, perm: perm.to_vec() }, &[x])
    }
}
