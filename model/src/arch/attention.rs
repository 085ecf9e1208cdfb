//! Attention of a block: its parameters, and how it is recorded.

use backend_api::op::{self, Append, At, Clamp, GetRows, Index, Masking, Norm, UnaryKind};
use backend_api::{DType, TensorId};

use super::Sizes;
use super::keys::{Heads, Keys};
use super::mla::Latent;
use super::part::Part;
use super::recorder::{Recorded, Recorder};
use super::rope::Rope;
use super::weights::Contents;
use crate::error::ModelError;

/// Attention of a block. It is causal in language models, and has keys and values of its own unless [`Self::kv_of`] is
/// set.
#[derive(Debug, Clone)]
pub(super) struct Attention {
    /// Number of query heads.
    pub heads: usize,
    /// Number of key and value heads.
    pub heads_kv: usize,
    /// Width of a query or key head.
    pub head_dim: usize,
    /// Width of a value head, if it is another one.
    pub value_dim: Option<usize>,
    /// Factor of the scores.
    pub scale: f32,
    /// Soft cap of the scores; 0 = none.
    pub softcap: f32,
    /// Exponent of the slopes of linear biases (ALiBi); 0 = no biases.
    pub max_bias: f32,
    /// Sliding window: positions that a query sees back, including itself, or around itself if attention is not causal;
    /// 0 = all.
    pub window: u32,
    /// Norm of queries and keys.
    pub qk_norm: Option<Norm>,
    /// Whether that norm is of all heads of a row together, rather than of each head.
    pub norm_rows: bool,
    /// Whether queries and keys are rotated before they are normed.
    pub norm_last: bool,
    /// Whether that norm does not have weights, but queries have a factor of each head.
    pub norm_factors: bool,
    /// Bounds of queries, keys and values, if there are some.
    pub clamp: Option<Clamp>,
    /// Norm of values, without weights, if there is one.
    pub v_norm: Option<Norm>,
    /// Whether values are the projected keys.
    pub v_is_k: bool,
    /// Earlier block whose keys and values are used; `None` = its own.
    pub kv_of: Option<usize>,
    /// Factor of queries that grows with the position.
    pub temperature: Option<Temperature>,
    /// Whether each head has an attention sink: a learned score without a key.
    pub sinks: bool,
    /// Rotation of queries and keys.
    pub rope: Option<Rope>,
    /// Whether a gate multiplies each channel of the heads' outputs. The rows of a head's gate follow those of its
    /// query.
    pub gated: bool,
    /// Matrix of such a gate, if it has one of its own.
    pub gate: Option<&'static str>,
    /// Whether that matrix has one row for each head, rather than for each channel.
    pub gates_heads: bool,
    /// Widths of latent attention, if it is that.
    pub latent: Option<Latent>,
}

impl Attention {
    /// Makes plain attention: scores are divided by the square root of the head's width.
    pub fn new(sizes: &Sizes) -> Attention {
        Attention {
            heads: sizes.n_head,
            heads_kv: sizes.n_head_kv,
            head_dim: sizes.head_dim,
            value_dim: None,
            scale: 1.0 / (sizes.head_dim as f32).sqrt(),
            softcap: 0.0,
            max_bias: 0.0,
            window: 0,
            qk_norm: None,
            norm_rows: false,
            norm_last: false,
            norm_factors: false,
            clamp: None,
            v_norm: None,
            v_is_k: false,
            kv_of: None,
            temperature: None,
            sinks: false,
            rope: None,
            gated: false,
            gate: None,
            gates_heads: false,
            latent: None,
        }
    }

    /// Returns the attention with so many query heads, and key and value heads.
    pub fn with_heads(&self, [heads, heads_kv]: [usize; 2]) -> Attention {
        Attention { heads, heads_kv, ..self.clone() }
    }

    /// Returns the attention of each block that has some.
    pub fn by_block(&self, heads: &[Heads]) -> Vec<Option<Attention>> {
        heads.iter().map(|heads| Some(self.with_heads((*heads)?))).collect()
    }

    /// Returns the rows of a head's query and of its gate.
    fn turns(&self) -> [usize; 2] {
        [self.head_dim; 2]
    }

    /// Makes the attention of all blocks if only the first `owners` have keys and values. Later blocks use those of the
    /// last two owners, of which one has a window and the other does not.
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

/// Factor of queries that is 1 within the original context and grows beyond it, so that attention over more keys stays
/// as sharp.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Temperature {
    /// Factor of the logarithm.
    pub scale: f32,
    /// Original context size.
    pub n_ctx_orig: u32,
}

impl Temperature {
    /// Returns the factors of some positions: `1 + scale ln(1 + floor(position / n_ctx_orig))`, computed in f64.
    pub fn rows(&self, positions: impl Iterator<Item = u32>) -> Vec<f32> {
        let factor = |position| 1.0 + f64::from(self.scale) * f64::from(1 + position / self.n_ctx_orig).ln();
        positions.map(|position| factor(position) as f32).collect()
    }
}

impl Recorder<'_> {
    /// Records attention from the normed input to the concatenated heads, without the output projection.
    pub fn attention(&mut self, a: &Attention, x: TensorId) -> Recorded {
        let gate = match a.gate {
            Some(name) => Some(self.linear(name, if a.gates_heads { a.heads } else { a.heads * a.head_dim }, x)),
            None if a.gated => {
                Some(self.projection("attn_q.gate", &[Part::dealt("attn_q", a.heads, &a.turns(), 1)], x))
            }
            None => None,
        };
        let (mut q, [keys, values]) = match (a.kv_of, &a.latent) {
            (None, Some(latent)) => {
                let (q, keys) = self.latent(a, latent, x)?;
                (q, [keys; 2])
            }
            (None, None) => self.queries_keys_values(a, x)?,
            (Some(block), _) => {
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
            max_bias: a.max_bias,
            masking: Masking { causal: self.step.causal, cached: true, window: a.window, ..Masking::default() },
            sinks: a.sinks,
        };
        let mut operands = vec![q, keys, values];
        if a.sinks {
            operands.push(self.vector("attn_sinks.weight", a.heads)?);
        }
        let mut heads = self.op(attention, &operands)?;
        if let Some(latent) = &a.latent {
            heads = self.latent_values(a, latent, heads)?;
        }
        let Some(gate) = gate else { return Ok(heads) };
        let gate = self.unary(UnaryKind::Sigmoid, gate?)?;
        if a.gates_heads { self.times_heads(a.heads, heads, gate) } else { self.mul(heads, gate) }
    }

    /// Records the queries of the step, and the keys and values of all positions so far. Later blocks may use the
    /// latter, too.
    fn queries_keys_values(&mut self, a: &Attention, x: TensorId) -> Result<(TensorId, [TensorId; 2]), ModelError> {
        let (q, kv, turns) = (a.heads * a.head_dim, a.heads_kv * a.head_dim, a.turns());
        let values = a.heads_kv * a.value_dim.unwrap_or(a.head_dim);
        let q = if a.gated { Part::dealt("attn_q", a.heads, &turns, 0) } else { ("attn_q", q).into() };
        let [q, k, mut v] = if a.v_is_k {
            let [q, k] = self.joint("attn_qk", [q, ("attn_k", kv).into()], x)?;
            [q, k, k]
        } else {
            self.joint("attn_qkv", [q, ("attn_k", kv).into(), ("attn_v", values).into()], x)?
        };
        let (mut q, mut k) = (q, k);
        if let Some(clamp) = a.clamp {
            for x in [&mut q, &mut k, &mut v] {
                *x = self.op(clamp, &[*x])?;
            }
        }
        if a.norm_last {
            (q, k) = (self.rotated(a, a.heads, q)?, self.rotated(a, a.heads_kv, k)?);
        }
        let mut q = self.normed(a, "attn_q_norm", a.heads, q)?;
        let mut k = self.normed(a, "attn_k_norm", a.heads_kv, k)?;
        if a.norm_factors {
            let factors = self.flat("attn_q_norm.weight", a.heads)?;
            q = self.times_heads(a.heads, q, factors)?;
        }
        if let Some(norm) = a.v_norm {
            v = self.unit(Norm { heads: a.heads_kv, ..norm }, v)?;
        }
        if !a.norm_last {
            (q, k) = (self.rotated(a, a.heads, q)?, self.rotated(a, a.heads_kv, k)?);
        }
        let all = if self.step.head.embedding || !self.step.causal {
            // A step of a whole text has no cache: its keys are all there are.
            [k, v]
        } else {
            let (k_cache, v_cache) = (self.cache("k_cache", kv)?, self.cache("v_cache", values)?);
            let keys = self.op(Append { at: At::Position }, &[k_cache, k])?;
            [keys, self.op(Append { at: At::Position }, &[v_cache, v])?]
        };
        self.keep(all);
        Ok((q, all))
    }

    /// Records the norm of queries or keys, if the model has one.
    fn normed(&mut self, a: &Attention, name: &str, n_head: usize, x: TensorId) -> Recorded {
        match a.qk_norm {
            Some(norm) => {
                let norm = Norm { heads: if a.norm_rows { 1 } else { n_head }, ..norm };
                if a.norm_factors { self.unit(norm, x) } else { self.norm(name, norm, x) }
            }
            None => Ok(x),
        }
    }

    /// Records the rotation of queries or keys, if the model has one.
    pub fn rotated(&mut self, a: &Attention, n_head: usize, x: TensorId) -> Recorded {
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

    /// Records the factor of each row, by its position.
    fn temperature(&mut self, temperature: Temperature) -> Recorded {
        const NAME: &str = "attn_temperature";
        let shape = [self.step.sizes.n_ctx, 1];
        let table = self.weight(NAME.into(), &shape, DType::F32, Contents::Temperature(temperature))?;
        let index = Index::Positions { rows: self.step.rows };
        self.once(&format!("{NAME}.rows"), |m| m.op(GetRows { index }, &[table]))
    }
}
