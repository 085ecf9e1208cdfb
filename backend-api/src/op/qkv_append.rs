//! `qkv_append`: splits the fused projection into Q, K and V, rotates Q and K, and appends K and V to their caches.
//!
//! *Operands*: qkv `[t, (n_head + 2 * n_head_kv) * head_dim]`; with `rope` the table `[n_ctx, n_dims]`; K cache and V
//! cache, states `[n_ctx, n_head_kv * head_dim]` of floats or halves.
//! *Results*: q `[t, n_head * head_dim]`; the K cache; the V cache.

use super::{Describe, F32, Output, Rope, RopeMode, RopeTable, ensure, floats, floats_or_halves, shape};
use crate::case::{Case, Fill};
use crate::step::StepParams;
use crate::tensor::{DType, Kind, Tensor};

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QkvAppend {
    /// Query heads.
    pub n_head: usize,
    /// Key and value heads.
    pub n_head_kv: usize,
    /// Channels of a head.
    pub head_dim: usize,
    /// Rotating channels and pairing; none for models with learned positions.
    pub rope: Option<(usize, RopeMode)>,
}

impl Describe for QkvAppend {
    const NAME: &'static str = "qkv_append";
    const TOLERANCE: f64 = F32;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let expected = if self.rope.is_some() { 4 } else { 3 };
        ensure(inputs.len() == expected, || format!("takes {expected} operands, not {}", inputs.len()))?;
        let (front, caches) = inputs.split_at(expected - 2);
        floats(front)?;
        floats_or_halves(caches)?;
        ensure(caches[0].dtype == caches[1].dtype, || "caches have different dtypes".into())?;
        let qkv = inputs[0].shape;
        let (h, g, d) = (self.n_head, self.n_head_kv, self.head_dim);
        ensure(qkv.rank() == 2 && qkv.cols() == (h + 2 * g) * d, || "the width does not match the heads".into())?;
        let t = qkv.dim(0);
        let cache = |c: &Tensor| c.kind == Kind::State && c.shape.rank() == 2 && c.shape.cols() == g * d;
        ensure(caches.iter().all(|c| cache(c)), || format!("caches must be states [n_ctx, {}]", g * d))?;
        let n_ctx = caches[0].shape.dim(0);
        ensure(caches[1].shape.dim(0) == n_ctx && n_ctx >= t, || "caches do not fit".into())?;
        if let Some((n_dims, mode)) = self.rope {
            Rope { n_head: h, n_dims, mode }.check(d, t, inputs[1])?;
        }
        let q = Output::New(shape(&[t, h * d])?, DType::F32);
        Ok(vec![q, Output::Continues(expected - 2), Output::Continues(expected - 1)])
    }

    fn cases() -> Vec<Case> {
        // (name, rows, heads, KV heads, width of a head, rope, step), and whether the caches hold halves
        type Row = (&'static str, usize, usize, usize, usize, Option<(usize, RopeMode)>, StepParams);
        let rows: &[Row] = &[
            ("decode", 1, 9, 3, 64, Some((64, RopeMode::Normal)), StepParams::at(7, 1)),
            ("decode neox", 1, 4, 2, 32, Some((32, RopeMode::Neox)), StepParams::at(7, 1)),
            ("decode, no rope", 1, 8, 8, 64, None, StepParams::at(15, 1)),
            ("prefill", 5, 4, 2, 16, Some((16, RopeMode::Normal)), StepParams::at(0, 5)),
            ("prefill, fewer real rows", 5, 4, 2, 16, Some((16, RopeMode::Neox)), StepParams::at(3, 4)),
            ("partial", 2, 3, 3, 20, Some((12, RopeMode::Neox)), StepParams::at(3, 2)),
            ("odd heads", 3, 3, 1, 6, Some((4, RopeMode::Normal)), StepParams::at(1, 3)),
            ("prefill, no rope", 3, 2, 2, 10, None, StepParams::at(1, 3)),
        ];
        let halves: &[Row] = &[
            ("halves, decode", 1, 9, 3, 64, Some((64, RopeMode::Normal)), StepParams::at(7, 1)),
            ("halves, prefill neox", 5, 4, 2, 16, Some((16, RopeMode::Neox)), StepParams::at(3, 4)),
            ("halves, no rope", 3, 4, 4, 10, None, StepParams::at(1, 3)),
        ];
        let rows = rows.iter().map(|row| (row, false)).chain(halves.iter().map(|row| (row, true)));
        rows.map(|(&(name, t, h, g, d, rope, step), halves)| {
            Case::new(QkvAppend { n_head: h, n_head_kv: g, head_dim: d, rope }, name, step, |o| {
                let mut list = vec![o.input(&[t, (h + 2 * g) * d])];
                if let Some((n, _)) = rope {
                    let table = RopeTable::plain(n, 10_000.0).rows((0..16).map(|p| p * 5));
                    list.push(o.filled(&[16, n], Fill::Values(table)));
                }
                list.extend([o.cache(halves, &[16, g * d]), o.cache(halves, &[16, g * d])]);
                list
            })
        })
        .collect()
    }
}
