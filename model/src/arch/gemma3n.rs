//! Gemma 3n, text: alternating updates of several residual streams, per-layer embeddings, a low-rank path beside
//! attention, and gates that are sparse in the first blocks.
//!
//! *Source*: Google, "Gemma 3n", 2025; Cai et al., "LAuReL: Learned Augmented Residual Layer", 2024.

use backend_api::TensorId;
use backend_api::op::{GluKind, Norm, RopeMode, UnaryKind};

use super::altup::AltUp;
use super::attention::Attention;
use super::keys::{Keys, MAX_WIDTH};
use super::per_layer::PerLayer;
use super::recorder::{Recorded, Recorder};
use super::rope::Rope;
use super::{Architecture, Sizes};
use crate::error::ModelError;

/// Period of blocks with full attention.
const PERIOD: usize = 5;
/// Number of blocks with keys and values of their own, which files do not say. Later blocks use those.
const BLOCKS_WITH_KEYS: usize = 20;
/// Number of blocks with sparse gates, and the standard deviations above the mean that gates must exceed: 95% do not.
const SPARSE_BLOCKS: usize = 10;
const SPARSE_ABOVE: f32 = 1.644_853_6;

#[derive(Debug)]
struct Gemma3n {
    sizes: Sizes,
    n_ff: usize,
    norm: Norm,
    /// Attention of each block.
    attention: Vec<Attention>,
    altup: AltUp,
    per_layer: PerLayer,
    softcap: Option<f32>,
}

pub(super) fn read(keys: &Keys<'_>) -> Result<Box<dyn Architecture>, ModelError> {
    let sizes = keys.sizes()?;
    let norm = keys.rms_norm()?;
    let rope = Rope::read(keys, &sizes, RopeMode::Neox)?;
    let local_rope = rope.plain("rope_table_swa", keys.positive("rope.freq_base_swa", Some(10_000.0))?);
    let global =
        Attention { scale: 1.0, qk_norm: Some(norm), v_norm: Some(norm), rope: Some(rope), ..Attention::new(&sizes) };
    let window = keys.size("attention.sliding_window", u32::MAX as usize, None)? as u32;
    let local = Attention { window, rope: Some(local_rope), ..global.clone() };
    if keys.get::<u32>("altup.active_idx")?.unwrap_or(0) != 0 {
        return Err(keys.wrong("altup.active_idx", "only 0 is supported: that blocks compute the first stream"));
    }
    let is_local = keys.windowed(sizes.n_blocks, PERIOD)?;
    let attention = |i: usize| if is_local[i] { local.clone() } else { global.clone() };
    Ok(Box::new(Gemma3n {
        sizes,
        n_ff: keys.size("feed_forward_length", MAX_WIDTH, None)?,
        norm,
        attention: Attention::shared(keys, BLOCKS_WITH_KEYS, &is_local, attention)?,
        altup: AltUp { streams: keys.size("altup.num_inputs", 16, Some(4))?, norm },
        per_layer: PerLayer { width: keys.size("embedding_length_per_layer_input", MAX_WIDTH, Some(256))?, norm },
        softcap: keys.nonzero("final_logit_softcapping", Some(30.0))?,
    }))
}

impl Gemma3n {
    /// Records the low-rank detour (LAuReL) that is added to its input.
    fn laurel(&self, m: &mut Recorder<'_>, x: TensorId) -> Recorded {
        let rank = m.rows_of("laurel_l", self.sizes.n_embd)?;
        let y = m.linear("laurel_l", rank, x)?;
        let y = m.linear("laurel_r", self.sizes.n_embd, y)?;
        let y = m.norm("laurel_post_norm", self.norm, y)?;
        m.add(y, x)
    }

    /// Records the gated linear unit. In the first blocks, only gates far above the mean are kept.
    fn feed_forward(&self, m: &mut Recorder<'_>, i: usize, x: TensorId) -> Recorded {
        if i >= SPARSE_BLOCKS {
            return m.glu(GluKind::GegluTanh, self.n_ff, x);
        }
        let gate = m.linear("ffn_gate", self.n_ff, x)?;
        let mean = m.row_mean(gate)?;
        let gate = m.sub(gate, mean)?;
        let squares = m.mul(gate, gate)?;
        let variance = m.row_mean(squares)?;
        let deviation = m.unary(UnaryKind::Sqrt, variance)?;
        let n = self.n_ff as f32;
        let least = m.scale(SPARSE_ABOVE * (n / (n - 1.0)).sqrt(), deviation)?;
        let gate = m.sub(gate, least)?;
        let gate = m.unary(UnaryKind::Relu, gate)?;
        let up = m.linear("ffn_up", self.n_ff, x)?;
        m.gated(GluKind::GegluTanh, gate, up)
    }
}

impl Architecture for Gemma3n {
    fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    fn hidden(&self) -> usize {
        self.altup.streams * self.sizes.n_embd
    }

    fn keys_of(&self, block: usize) -> usize {
        self.attention[block].kv_of.unwrap_or(block)
    }

    fn record(&self, m: &mut Recorder<'_>) -> Result<(), ModelError> {
        let Gemma3n { sizes: Sizes { n_embd, .. }, norm, altup, .. } = self;
        let x = m.input(|m| {
            let x = m.embed_scaled("token_embd")?;
            m.streams(altup, x)
        })?;
        let x = m.blocks(x, |m, i, x| {
            let p = m.predicted(altup, x)?;
            let active = m.slice(0, *n_embd, p)?;
            let a = m.norm("attn_norm", *norm, active)?;
            let laurel = self.laurel(m, a)?;
            let a = m.attention(&self.attention[i], a)?;
            let [a, p, active, laurel] = m.wanted([a, p, active, laurel])?;
            let a = m.linear("attn_output", *n_embd, a)?;
            let a = m.norm("post_attention_norm", *norm, a)?;
            let a = m.add(a, active)?;
            let a = m.add(a, laurel)?;
            let x = m.scale(0.5f32.sqrt(), a)?;
            let f = m.norm("ffn_norm", *norm, x)?;
            let f = self.feed_forward(m, i, f)?;
            let f = m.linear("ffn_down", *n_embd, f)?;
            let f = m.norm("post_ffw_norm", *norm, f)?;
            let x = m.add(f, x)?;
            let x = m.corrected(altup, p, x)?;
            let active = m.slice(0, *n_embd, x)?;
            let active = m.times("altup_correct_scale.weight", *n_embd, active)?;
            let e = m.per_layer(&self.per_layer, i, active)?;
            m.add_to_others(altup, x, e)
        })?;
        m.output(x, |m, x| {
            let x = m.joined(altup, x)?;
            let x = m.norm("output_norm", *norm, x)?;
            let logits = m.logits(x)?;
            m.softcap(self.softcap, logits)
        })
    }
}
