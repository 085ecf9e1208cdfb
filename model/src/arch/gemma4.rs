//! Gemma 4, text: blocks with a window have heads of a different width, scores are not scaled, values are normed, and
//! the last blocks use the keys and values of earlier ones. Small models have per-layer embeddings; larger ones have
//! experts beside the feed-forward layer.
//!
//! *Source*: Google DeepMind, "Gemma 4", model card, 2026.

use backend_api::TensorId;
use backend_api::op::{GluKind, Norm, RopeMode, RopeTable};

use super::attention::Attention;
use super::experts::{Expert, Experts, Gate};
use super::keys::{Keys, MAX_WIDTH};
use super::per_layer::PerLayer;
use super::recorder::{Recorded, Recorder};
use super::rope::Rope;
use super::{Architecture, Sizes};
use crate::error::ModelError;

#[derive(Debug)]
struct Gemma4 {
    sizes: Sizes,
    n_ff: Vec<usize>,
    norm: Norm,
    /// Attention of each block.
    attention: Vec<Attention>,
    per_layer: Option<PerLayer>,
    experts: Option<Experts>,
    softcap: Option<f32>,
}

pub(super) fn read(keys: &Keys<'_>) -> Result<Box<dyn Architecture>, ModelError> {
    let n_head = keys.size("attention.head_count", MAX_WIDTH, None)?;
    let heads_kv = keys.sizes_by_block("attention.head_count_kv", n_head, Some(n_head))?;
    let sizes = keys.sizes_of(n_head, heads_kv[0])?;
    let norm = keys.rms_norm()?;
    let width = keys.get::<u32>("embedding_length_per_layer_input")?.unwrap_or(0) as usize;
    Ok(Box::new(Gemma4 {
        sizes,
        n_ff: keys.sizes_by_block("feed_forward_length", MAX_WIDTH, None)?,
        norm,
        attention: attention(keys, &sizes, norm, &heads_kv)?,
        per_layer: (width > 0).then_some(PerLayer { width, norm }),
        experts: experts(keys)?,
        softcap: keys.nonzero("final_logit_softcapping", None)?,
    }))
}

/// Returns the experts of each block, if the model has some.
fn experts(keys: &Keys<'_>) -> Result<Option<Experts>, ModelError> {
    if keys.get::<u32>("expert_count")?.unwrap_or(0) == 0 {
        return Ok(None);
    }
    let n_ff = keys.size("expert_feed_forward_length", MAX_WIDTH, None)?;
    Ok(Some(Experts { kind: Expert::Glu(GluKind::GegluTanh), ..keys.experts(Gate::Softmax, n_ff)? }))
}

/// Returns the attention of each block.
fn attention(keys: &Keys<'_>, sizes: &Sizes, norm: Norm, heads_kv: &[usize]) -> Result<Vec<Attention>, ModelError> {
    let rope = Rope::read(keys, sizes, RopeMode::Neox)?;
    let head_dim = keys.size("attention.key_length_swa", MAX_WIDTH / sizes.n_head, Some(sizes.head_dim))?;
    if keys.size("attention.value_length_swa", MAX_WIDTH, Some(head_dim))? != head_dim {
        return Err(keys.wrong("attention.value_length_swa", "values as wide as keys are needed"));
    }
    let angles = RopeTable::plain(
        keys.size("rope.dimension_count_swa", head_dim, Some(head_dim))?,
        keys.positive("rope.freq_base_swa", Some(10_000.0))?,
    );
    let local_rope = Rope { table: "rope_table_swa", angles, factors: None, mode: rope.mode };
    let global =
        Attention { scale: 1.0, qk_norm: Some(norm), v_norm: Some(norm), rope: Some(rope), ..Attention::new(sizes) };
    let window = keys.size("attention.sliding_window", u32::MAX as usize, None)? as u32;
    let local = Attention { head_dim, window, rope: Some(local_rope), ..global.clone() };
    let is_local = keys.listed_windows(sizes.n_blocks)?;
    let is_local = is_local.ok_or_else(|| keys.wrong("attention.sliding_window_pattern", "it must list all blocks"))?;

    let shared = keys.get::<u32>("attention.shared_kv_layers")?.unwrap_or(0) as usize;
    Attention::shared(keys, sizes.n_blocks.saturating_sub(shared), &is_local, |i| {
        let kind = if is_local[i] { &local } else { &global };
        let v_is_k = keys.tensors.find(&format!("blk.{i}.attn_v.weight")).is_none();
        Attention { heads_kv: heads_kv[i], v_is_k, ..kind.clone() }
    })
}

impl Gemma4 {
    /// Joins the result of the feed-forward layer with that of experts on the same rows.
    fn with_experts(&self, m: &mut Recorder<'_>, experts: &Experts, x: TensorId, made: TensorId) -> Recorded {
        let logits = m.unit(self.norm, x)?;
        let logits = m.scale(1.0 / (self.sizes.n_embd as f32).sqrt(), logits)?;
        let logits = m.times("ffn_gate_inp.scale", self.sizes.n_embd, logits)?;
        let logits = m.linear("ffn_gate_inp", experts.count, logits)?;
        let e = m.norm("pre_ffw_norm_2", self.norm, x)?;
        let e = m.routed(experts, logits, e)?;
        let e = m.norm("post_ffw_norm_2", self.norm, e)?;
        let made = m.norm("post_ffw_norm_1", self.norm, made)?;
        m.add(e, made)
    }
}

impl Architecture for Gemma4 {
    fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    fn keys_of(&self, block: usize) -> usize {
        self.attention[block].kv_of.unwrap_or(block)
    }

    fn record(&self, m: &mut Recorder<'_>) -> Result<(), ModelError> {
        let Gemma4 { sizes: Sizes { n_embd, .. }, norm, .. } = self;
        let x = m.input(|m| m.embed_scaled("token_embd"))?;
        let x = m.blocks(x, |m, i, x| {
            let a = m.norm("attn_norm", *norm, x)?;
            let a = m.attention(&self.attention[i], a)?;
            let [a, x] = m.wanted([a, x])?;
            let a = m.linear("attn_output", *n_embd, a)?;
            let a = m.norm("post_attention_norm", *norm, a)?;
            let x = m.add(a, x)?;
            let f = m.norm("ffn_norm", *norm, x)?;
            let f = m.glu(GluKind::GegluTanh, self.n_ff[i], f)?;
            let f = m.linear("ffn_down", *n_embd, f)?;
            let f = match &self.experts {
                Some(experts) if m.has("ffn_gate_inp.weight") => self.with_experts(m, experts, x, f)?,
                _ => f,
            };
            let f = m.norm("post_ffw_norm", *norm, f)?;
            let mut x = m.add(f, x)?;
            if let Some(per_layer) = &self.per_layer {
                let e = m.per_layer(per_layer, i, x)?;
                x = m.add(e, x)?;
            }
            if m.has("layer_output_scale.weight") { m.times("layer_output_scale.weight", 1, x) } else { Ok(x) }
        })?;
        m.output(x, |m, x| {
            let x = m.norm("output_norm", *norm, x)?;
            let logits = m.logits(x)?;
            m.softcap(self.softcap, logits)
        })
    }
}
