//! `attention`: scaled dot-product attention in its flash form, token-major.
//!
//! *Operands*: q `[m, n_head * d]`, k `[n, n_head_kv * d]`, v `[n, n_head_kv * dv]`; with `masking.explicit` also a
//! mask that is added to the scores, `[m, n]` for all heads or `[n_head, m, n]`; with `sinks` also `[n_head]`, last.
//! *Results*: `[m, n_head * dv]`. Query head `h` uses KV head `h * n_head_kv / n_head`; scores are `scale * (q . k)`,
//! then `softcap * tanh(scores / softcap)` if there is a cap, then lowered by [`Attention::slope`] times the distance of query and
//! key, then masked; softmax; weighted sum of v.
//! A sink is one more score of its head, whose value is zero: it takes a share and adds nothing.
//! A mask hides the keys whose scores it brings down to [`HIDDEN`] or less: those where it is minus infinity, or f32's lowest
//! number. A row without a key that is seen gives zeros, whether a mask hides its keys or a position does. Over a cache, rows beyond the step's real ones are not specified: nobody
//! reads them.
//! *Source*: Vaswani et al., "Attention Is All You Need", 2017; Dao et al., "FlashAttention", 2022; of sinks: OpenAI,
//! "gpt-oss-120b & gpt-oss-20b Model Card", 2025; of slopes: Press et al., "Train Short, Test Long: Attention with Linear
//! Biases Enables Input Length Extrapolation", 2022.

use super::describe::{Describe, F32, Output, ensure, floats, floats_of_any_codec, shape};
use crate::step::StepParams;
use crate::tensor::{DType, Tensor};

/// Scores that are this or less once a mask is added are those of hidden keys. Some drivers have no infinities.
pub const HIDDEN: f32 = -3.0e38;

/// Which keys a query may see. Query row `i` has the position `i + first`, where `first` is the step's position if the
/// keys are `cached`, else `n - m` (the last query sees the last key).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Masking {
    /// Keys after the query's position are hidden.
    pub causal: bool,
    /// If not 0: with causal masking, keys `window` or more positions before the query are hidden; without, keys more than
    /// `window / 2` positions before or after it.
    pub window: u32,
    /// The keys are those of all positions from 0 on, such as a cache. They are filled up to the step's position plus rows;
    /// the rest is hidden.
    pub cached: bool,
    /// An operand is added to the scores.
    pub explicit: bool,
}

impl Masking {
    /// Returns the position of query row `i` among the keys, for `m` queries, `n` keys.
    pub fn place(&self, i: usize, m: usize, n: usize, step: &StepParams) -> usize {
        if self.cached { step.position as usize + i } else { (n + i).saturating_sub(m) }
    }

    /// The half-open range of keys that query row `i` may see, for `m` queries, `n` keys.
    pub fn visible(&self, i: usize, m: usize, n: usize, step: &StepParams) -> (usize, usize) {
        let filled = if self.cached { (step.position as usize + step.rows as usize).min(n) } else { n };
        let at = self.place(i, m, n, step);
        let (before, after) = match (self.causal, self.window as usize) {
            (true, 0) => (at, 0),
            (true, window) => (window - 1, 0),
            (false, 0) => (at, filled),
            (false, window) => (window / 2, window / 2),
        };
        let end = filled.min(at.saturating_add(after).saturating_add(1));
        (at.saturating_sub(before).min(end), end)
    }
}

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Attention {
    /// Query heads.
    pub n_head: usize,
    /// Key and value heads; divides `n_head`.
    pub n_head_kv: usize,
    /// Multiplies the dot products.
    pub scale: f32,
    /// Soft cap of the scores; 0 = none.
    pub softcap: f32,
    /// Exponent of the slopes of linear biases (ALiBi); 0 = no biases.
    pub max_bias: f32,
    /// Which keys are seen.
    pub masking: Masking,
    /// Whether each head has a score without a key.
    pub sinks: bool,
}

impl Attention {
    /// How many operands it takes.
    pub fn operands(&self) -> usize {
        3 + usize::from(self.masking.explicit) + usize::from(self.sinks)
    }

    /// The place of the sinks among its operands.
    pub fn sinks_at(&self) -> Option<usize> {
        self.sinks.then(|| self.operands() - 1)
    }

    /// Returns the largest power of two of heads, and the logarithm to base 2 of the ratio of slopes of neighbouring ones of
    /// so many; nothing without biases.
    pub fn slopes(&self) -> Option<(usize, f32)> {
        let heads = 1 << self.n_head.checked_ilog2()?;
        (self.max_bias != 0.0).then(|| (heads, -self.max_bias / heads as f32))
    }

    /// Returns what each position between query and key takes from the scores of a head. Slopes of a power of two of heads
    /// are a geometric series; further heads have those that lie between.
    pub fn slope(&self, head: usize) -> f64 {
        let Some((heads, ratio)) = self.slopes() else { return 0.0 };
        let at = if head < heads { (head + 1) as f64 } else { (head - heads) as f64 + 0.5 };
        (f64::from(ratio) * at).exp2()
    }

    /// How many rows of the mask lie between those of one head and the next: none where all heads have the same.
    pub fn mask_rows(&self, inputs: &[&Tensor]) -> usize {
        let apart = self.masking.explicit && inputs[3].shape.rank() == 3;
        if apart { inputs[0].shape.dim(0) } else { 0 }
    }

    /// The width of a key head and of a value head.
    pub fn head_dims(&self, inputs: &[&Tensor]) -> (usize, usize) {
        (inputs[1].shape.cols() / self.n_head_kv, inputs[2].shape.cols() / self.n_head_kv)
    }
}

impl Describe for Attention {
    const NAME: &'static str = "attention";
    const TOLERANCE: f64 = F32;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let expected = self.operands();
        ensure(inputs.len() == expected, || format!("takes {expected} operands, not {}", inputs.len()))?;
        floats(&inputs[..1])?;
        floats_of_any_codec(&inputs[1..3])?;
        floats(&inputs[3..])?;
        let (q, k, v) = (inputs[0].shape, inputs[1].shape, inputs[2].shape);
        let matrices = inputs[..3].iter().all(|t| t.shape.rank() == 2);
        ensure(matrices, || "operands must be matrices of tokens".into())?;
        let (h, g) = (self.n_head, self.n_head_kv);
        ensure(h > 0 && g > 0 && h.is_multiple_of(g), || format!("{g} KV heads do not divide {h} heads"))?;
        let whole = k.cols().is_multiple_of(g) && v.cols().is_multiple_of(g);
        ensure(whole && q.cols() == k.cols() / g * h, || "widths do not match the heads".into())?;
        ensure(k.dim(0) == v.dim(0), || "k and v have different lengths".into())?;
        ensure(self.scale.is_finite() && self.softcap >= 0.0, || "scale and soft cap must be finite".into())?;
        let slopes = self.max_bias.is_finite() && self.max_bias >= 0.0;
        ensure(slopes, || "the exponent of slopes must be finite and not negative".into())?;
        if self.masking.explicit {
            let (mask, m, n) = (inputs[3].shape, q.dim(0), k.dim(0));
            let fits = mask.dims().eq([m, n]) || mask.dims().eq([h, m, n]);
            ensure(fits, || format!("the mask must be [{m}, {n}], or [{h}, {m}, {n}]"))?;
        }
        if let Some(at) = self.sinks_at() {
            ensure(inputs[at].shape.dims().eq([h]), || format!("the sinks must be [{h}]"))?;
        }
        Ok(vec![Output::New(shape(&[q.dim(0), v.cols() / g * h])?, DType::F32)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_of_further_heads_lie_between_those_of_a_power_of_two() {
        let slopes = |n_head, max_bias| -> Vec<f64> {
            let masking = Masking::default();
            let op = Attention { n_head, n_head_kv: 1, scale: 1.0, softcap: 0.0, max_bias, masking, sinks: false };
            (0..n_head).map(|head| op.slope(head)).collect()
        };
        assert_eq!(slopes(4, 8.0), [0.25, 0.0625, 0.015625, 0.00390625]);
        assert_eq!(slopes(6, 4.0), [0.5, 0.25, 0.125, 0.0625, 0.5_f64.sqrt(), 0.125_f64.sqrt()]);
        assert_eq!(slopes(3, 0.0), [0.0; 3]);
    }
}
