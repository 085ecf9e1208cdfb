//! `self_attention`: from the fused projection, or from what it projects, to the heads: [`QkvAppend`], then
//! [`Attention`] over the caches.
//!
//! *Operands*: those of `project` without residual, or its result `[t, (n_head + 2 * n_head_kv) * head_dim]`; then
//! those of [`QkvAppend`] from the table on. *Results*: the heads `[t, n_head * head_dim]`; the K cache; the V cache.
//!
//! It is for backends whose kernels are several draws: one appends to the caches, later ones read them.

use super::{
    Attention, Describe, F32, Linear, Masking, Norm, NormKind, Output, QkvAppend, RopeMode, RopeTable, chained, ensure,
};
use crate::case::{Case, Fill};
use crate::format::Format;
use crate::step::StepParams;
use crate::tensor::{Kind, Tensor};

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SelfAttention {
    /// The projection to Q, K and V; none if operand 0 is its result.
    pub project: Option<Linear>,
    /// How the projection is split, rotated and appended.
    pub qkv: QkvAppend,
    /// Attention of the queries to the caches.
    pub attention: Attention,
}

impl SelfAttention {
    /// The operands before those that [`QkvAppend`] has besides its first, and those; `None` if there are too few.
    pub fn operands<'a, T>(&self, list: &'a [T]) -> Option<(&'a [T], &'a [T])> {
        let rest = 2 + usize::from(self.qkv.rope.is_some());
        list.len().checked_sub(rest).filter(|front| *front > 0).map(|front| list.split_at(front))
    }
}

impl Describe for SelfAttention {
    const NAME: &'static str = "self_attention";
    const TOLERANCE: f64 = F32;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let (front, rest) = self.operands(inputs).ok_or_else(|| format!("does not take {} operands", inputs.len()))?;
        if let Some(linear) = &self.project {
            return chained(linear, front.len(), &SelfAttention { project: None, ..*self }, inputs);
        }
        let Masking { cached, explicit, .. } = self.attention.masking;
        ensure(cached && !explicit, || "attention must be to the caches, without an explicit mask".into())?;
        let heads = (self.attention.n_head, self.attention.n_head_kv) == (self.qkv.n_head, self.qkv.n_head_kv);
        ensure(heads, || "attention has other heads than the projection".into())?;
        let mut parts = self.qkv.infer(inputs)?;
        let Some(Output::New(shape, dtype)) = parts.first().cloned() else { return Err("there are no queries".into()) };
        let q = Tensor { name: "q".into(), shape, dtype, kind: Kind::Temporary };
        let caches = &rest[rest.len() - 2..];
        parts.splice(..1, self.attention.infer(&[&q, caches[0], caches[1]])?);
        Ok(parts)
    }

    fn cases() -> Vec<Case> {
        type Row = (&'static str, Option<(Format, Linear)>, [usize; 4], Option<(usize, RopeMode)>, u32, StepParams);
        let normal = |n| Some((n, RopeMode::Normal));
        let neox = |n| Some((n, RopeMode::Neox));
        let layer = Norm { kind: NormKind::Layer, eps: 1e-5 };
        let biased = Linear { norm: Some(layer), bias: true, ..Linear::PLAIN };
        let rms = Linear { norm: Some(Norm { kind: NormKind::Rms, eps: 1e-5 }), ..Linear::PLAIN };
        let (q4, q8) = (Format::Q4_0, Format::Q8_0);
        // (name, projection, [rows, heads, KV heads, width of a head], rope, window, step)
        let rows: &[Row] = &[
            ("decode", None, [1, 9, 3, 64], normal(64), 0, StepParams::at(20, 1)),
            ("decode neox", None, [1, 4, 2, 32], neox(32), 0, StepParams::at(30, 1)),
            ("first token", None, [1, 4, 4, 32], normal(32), 0, StepParams::at(0, 1)),
            ("full cache", None, [1, 4, 2, 16], neox(16), 0, StepParams::at(47, 1)),
            ("some channels rotate", None, [1, 2, 1, 32], normal(12), 0, StepParams::at(9, 1)),
            ("some channels rotate, neox", None, [1, 2, 1, 32], neox(24), 0, StepParams::at(9, 1)),
            ("window", None, [1, 4, 2, 16], normal(16), 5, StepParams::at(19, 1)),
            ("no rope", None, [1, 8, 8, 64], None, 0, StepParams::at(33, 1)),
            ("odd heads", None, [1, 3, 1, 6], normal(6), 0, StepParams::at(5, 1)),
            ("prefill", None, [5, 4, 2, 16], normal(16), 0, StepParams::at(3, 5)),
            ("projected", Some((q4, biased)), [1, 8, 8, 64], None, 0, StepParams::at(21, 1)),
            ("projected, rms norm", Some((q8, rms)), [1, 2, 2, 16], None, 0, StepParams::at(0, 1)),
            ("projected, plain", Some((Format::F16, Linear::PLAIN)), [1, 3, 3, 24], None, 4, StepParams::at(47, 1)),
            ("projected, grouped heads", Some((q4, rms)), [1, 4, 2, 16], normal(16), 0, StepParams::at(7, 1)),
            ("projected, prefill", Some((q4, biased)), [4, 2, 2, 16], None, 0, StepParams::at(7, 4)),
        ];
        let halves: &[Row] = &[
            ("halves", None, [1, 9, 3, 64], normal(64), 0, StepParams::at(20, 1)),
            ("halves, no rope", None, [1, 8, 8, 64], None, 0, StepParams::at(33, 1)),
            ("halves, prefill", None, [5, 4, 2, 16], neox(16), 0, StepParams::at(3, 5)),
            ("halves, projected", Some((q4, biased)), [1, 8, 8, 64], None, 0, StepParams::at(21, 1)),
            (
                "halves, projected, plain",
                Some((Format::F16, Linear::PLAIN)),
                [1, 3, 3, 24],
                None,
                4,
                StepParams::at(47, 1),
            ),
        ];
        let rows = rows.iter().map(|row| (row, false)).chain(halves.iter().map(|row| (row, true)));
        rows.map(|(&(name, project, [t, n_head, n_head_kv, head_dim], rope, window, step), halves)| {
            let masking = Masking { causal: true, cached: true, window, ..Masking::default() };
            let scale = 1.0 / (head_dim as f32).sqrt();
            let op = SelfAttention {
                project: project.map(|(_, linear)| linear),
                qkv: QkvAppend { n_head, n_head_kv, head_dim, rope },
                attention: Attention { n_head, n_head_kv, scale, softcap: 0.0, masking },
            };
            Case::new(op, name, step, |o| {
                let width = (n_head + 2 * n_head_kv) * head_dim;
                let mut list = Vec::new();
                if let Some((format, linear)) = project {
                    let k = 64;
                    list.push(o.input(&[t, k]));
                    list.extend((0..linear.norm.map_or(0, |n| n.kind.params())).map(|_| o.weight(&[k])));
                    list.push(o.packed(format, width, k));
                    if linear.bias {
                        list.push(o.weight(&[width]));
                    }
                } else {
                    list.push(o.input(&[t, width]));
                }
                if let Some((n, _)) = rope {
                    let table = RopeTable::plain(n, 10_000.0).rows((0..48).map(|p| p * 5));
                    list.push(o.filled(&[48, n], Fill::Values(table)));
                }
                let cache = [48, n_head_kv * head_dim];
                list.extend([o.cache(halves, &cache), o.cache(halves, &cache)]);
                list
            })
        })
        .collect()
    }
}
