//! Multi-head latent attention (MLA): the keys and values of all heads are projections of one short vector of a token,
//! and beside it one rotated key serves all heads. The cache holds nothing else.
//!
//! Scores are computed in the absorbed form: a head's query goes through the transposed matrix of its keys, so that it
//! meets the latent vectors themselves. There is one head of keys, which are also the values; what each head sums up
//! goes through the matrix of its values.
//!
//! *Source*: DeepSeek-AI, "DeepSeek-V2: A Strong, Economical, and Efficient Mixture-of-Experts Language Model", 2024.

use backend_api::op::{Append, At, Concat, MatMulId, Norm, Permute};
use backend_api::{DType, Format, Shape, TensorId};

use super::Sizes;
use super::attention::Attention;
use super::keys::{Keys, MAX_WIDTH};
use super::part::Part;
use super::recorder::{Recorded, Recorder};
use super::weights::Contents;
use crate::error::ModelError;

/// Key of the width of the latent vector.
const RANK: &str = "attention.kv_lora_rank";
/// Key of the channels of a head that rotate.
const ROTATING: &str = "rope.dimension_count";

/// Widths of latent attention.
#[derive(Debug, Clone, Copy)]
pub(super) struct Latent {
    /// Width of the latent vector of keys and values.
    rank: usize,
    /// Width of the latent vector of queries; 0 = they are projected directly.
    q_rank: usize,
    /// Channels of a head's query that do not rotate, and of those that do.
    parts: [usize; 2],
    /// Channels of a head's value.
    value: usize,
    /// Norm of latent vectors.
    norm: Norm,
}

impl Latent {
    /// Reads the widths. `q_rank` is the width of the latent vector of queries, or 0.
    pub fn read(keys: &Keys<'_>, sizes: &Sizes, q_rank: usize) -> Result<Latent, ModelError> {
        let (rank, rotating) = (keys.size(RANK, MAX_WIDTH, None)?, keys.size(ROTATING, MAX_WIDTH, None)?);
        // Files whose matrices are split for the absorbed form name the widths of the latent vectors as the usual ones.
        let split = keys.get::<u32>("attention.key_length_mla")?.is_some_and(|width| width > 0);
        let [key, value] = if split {
            ["attention.key_length_mla", "attention.value_length_mla"]
        } else {
            ["attention.key_length", "attention.value_length"]
        };
        let limit = MAX_WIDTH / sizes.n_head;
        let whole = sizes.n_embd / sizes.n_head;
        let width = keys.size(key, limit, Some(whole))?;
        let Some(still) = width.checked_sub(rotating).filter(|still| *still > 0) else {
            return Err(keys.wrong(key, format!("{width} channels leave none beside the {rotating} that rotate")));
        };
        let value = keys.size(value, limit, Some(whole))?;
        Ok(Latent { rank, q_rank, parts: [still, rotating], value, norm: keys.rms_norm()? })
    }

    /// Returns the factor of scores without a stretched context.
    pub fn scale(&self) -> f32 {
        1.0 / (self.parts.iter().sum::<usize>() as f32).sqrt()
    }

    /// Makes the rotation and the scores of DeepSeek: the factor that a longer context gives scores is in the file.
    pub fn stretch(&self, keys: &Keys<'_>, a: &mut Attention) -> Result<(), ModelError> {
        let Some(rope) = &mut a.rope else { return Ok(()) };
        let log = (1.0 / rope.angles.freq_scale).ln();
        let multiplier = keys.nonzero("rope.scaling.yarn_log_multiplier", None)?;
        if multiplier.is_some() && rope.angles.yarn.is_some() {
            let factor = keys.positive("rope.scaling.attn_factor", Some(1.0))?;
            rope.angles.magnitude = factor / (1.0 + 0.1 * log);
        }
        let grown = rope.angles.magnitude * (1.0 + 0.1 * log) * (1.0 + multiplier.unwrap_or(0.0) * log);
        a.scale = self.scale() * grown * grown;
        Ok(())
    }
}

impl Keys<'_> {
    /// Returns the sizes of a transformer with latent attention: those of its absorbed form.
    pub fn latent_sizes(&self) -> Result<Sizes, ModelError> {
        let n_head = self.size("attention.head_count", MAX_WIDTH, None)?;
        let head_dim = self.size(RANK, MAX_WIDTH, None)? + self.size(ROTATING, MAX_WIDTH, None)?;
        self.sizes_with(n_head, 1, head_dim)
    }
}

impl Recorder<'_> {
    /// Records the queries of the step, and the keys of all positions so far, which are also the values.
    pub fn latent(&mut self, a: &Attention, l: &Latent, x: TensorId) -> Result<(TensorId, TensorId), ModelError> {
        let Latent { rank, q_rank, parts, norm, .. } = *l;
        let [_, rotating] = parts;
        let (t, heads, all) = (self.rows(x), a.heads, a.heads * parts.iter().sum::<usize>());
        let first = if q_rank == 0 { ("attn_q", all) } else { ("attn_q_a", q_rank) };
        let [mut q, kv] = self.joint("attn_q_kv", [first, ("attn_kv_a_mqa", rank + rotating)], x)?;
        let [c, k] = self.columns(kv, [rank, rotating])?;
        let c = self.norm("attn_kv_a_norm", norm, c)?;
        let k = self.rotated(a, 1, k)?;
        let mut keys = self.op(Concat { axis: 1 }, &[c, k])?;
        if q_rank > 0 {
            q = self.norm("attn_q_a_norm", norm, q)?;
            q = self.linear("attn_q_b", all, q)?;
        }
        let q = self.view(&[t, heads, all / heads], q)?;
        let [still, turned] = self.columns(q, parts)?;
        let turned = self.view(&[t, heads * rotating], turned)?;
        let turned = self.rotated(a, heads, turned)?;
        let turned = self.view(&[t, heads, rotating], turned)?;
        let w = self.keys_of_heads(l, heads)?;
        let still = self.op(MatMulId::dense(rank), &[still, w])?;
        let q = self.op(Concat { axis: 2 }, &[still, turned])?;
        let q = self.view(&[t, heads * (rank + rotating)], q)?;
        // An embedding step has no cache.
        if !self.step.head.embedding {
            let cache = self.cache("k_cache", rank + rotating)?;
            keys = self.op(Append { at: At::Position }, &[cache, keys])?;
        }
        Ok((q, keys))
    }

    /// Records the values of heads, from their sums of keys.
    pub fn latent_values(&mut self, a: &Attention, l: &Latent, x: TensorId) -> Recorded {
        let (t, heads) = (self.rows(x), a.heads);
        let x = self.view(&[t, heads, l.rank + l.parts[1]], x)?;
        let x = self.slice(0, l.rank, x)?;
        let w = match self.has("attn_kv_b.weight") {
            true => self.matrix("attn_v_b", &[Part::dealt("attn_kv_b", heads, &[l.parts[0], l.value], 1)], l.rank)?,
            false => self.of_heads("attn_v_b", [heads, l.value, l.rank])?,
        };
        let y = self.op(MatMulId::dense(l.value), &[x, w])?;
        self.view(&[t, heads * l.value], y)
    }

    /// Records the matrices that take a head's query to latent vectors. Old files have those of keys, which are
    /// transposed.
    fn keys_of_heads(&mut self, l: &Latent, heads: usize) -> Recorded {
        let (name, [still, _]) = ("attn_k_b", l.parts);
        if !self.has("attn_kv_b.weight") {
            return self.of_heads(name, [heads, l.rank, still]);
        }
        let turns = [still, l.value];
        let part = Part::dealt("attn_kv_b", heads, &turns, 0);
        let tensor = self.step.tensors.of_shape(&self.scoped("attn_kv_b.weight"), &[part.whole(), l.rank])?;
        let (dtype, contents) = (DType::Packed(Format::F32), Contents::Transposed(part.of(tensor)));
        self.weight(self.scoped(&format!("{name}.weight")), &[heads * l.rank, still], dtype, contents)
    }

    /// Records the matrices of heads that are stacked in a tensor.
    fn of_heads(&mut self, name: &str, shape: [usize; 3]) -> Recorded {
        let name = self.scoped(&format!("{name}.weight"));
        let [heads, rows, cols] = shape;
        let tensor = self.step.tensors.stack(&name, shape, 0..heads)?;
        let dtype = DType::Packed(tensor.format);
        self.weight(name, &[heads * rows, cols], dtype, Contents::Tensors(vec![tensor]))
    }

    /// Records the elements of a tensor in another shape.
    fn view(&mut self, shape: &[usize], x: TensorId) -> Recorded {
        let perm = (0..shape.len()).collect();
        self.op(Permute { view: Shape::new(shape)?, perm }, &[x])
    }
}
