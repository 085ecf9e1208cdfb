//! Llama 2 and 3, SmolLM and SmolLM2, TinyLlama: RMS norms, rotary positions, grouped-query attention, SwiGLU.
//!
//! *Source*: Touvron et al., "Llama 2: Open Foundation and Fine-Tuned Chat Models", 2023.

use backend_api::op::{GluKind, Norm, NormKind, RopeMode, RopeTable, Yarn};

use super::keys::Keys;
use super::weights::Weights;
use super::{Block, FeedForward, MAX_BLOCKS, MAX_N_CTX, MAX_WIDTH, Parts, Positions, Sizes, choose_n_ctx, output, qkv};
use crate::error::ModelError;

pub(super) fn parts(
    keys: &Keys<'_>,
    weights: &mut Weights<'_>,
    n_ctx: Option<usize>,
) -> Result<Parts, ModelError> {
    let n_ctx_train = keys.size("context_length", MAX_N_CTX, None)?;
    let n_embd = keys.size("embedding_length", MAX_WIDTH, None)?;
    let n_head = keys.size("attention.head_count", MAX_WIDTH, None)?;
    let n_head_kv = keys.size("attention.head_count_kv", n_head, Some(n_head))?;
    let n_ff = keys.size("feed_forward_length", MAX_WIDTH, None)?;
    let n_blocks = keys.size("block_count", MAX_BLOCKS, None)?;
    let head_dim = keys.size("attention.key_length", MAX_WIDTH, Some(n_embd / n_head))?;
    if keys.size("attention.value_length", MAX_WIDTH, Some(head_dim))? != head_dim {
        return Err(keys.wrong("attention.value_length", "values as wide as keys are needed"));
    }
    if !n_head.is_multiple_of(n_head_kv) {
        return Err(keys.wrong("attention.head_count_kv", format!("{n_head_kv} does not divide {n_head} query heads")));
    }
    if keys.get::<u64>("expert_count")?.is_some_and(|n| n > 0) {
        return Err(keys.wrong("expert_count", "mixtures of experts are not supported"));
    }
    let norm = Norm { kind: NormKind::Rms, eps: keys.positive("attention.layer_norm_rms_epsilon", None)? };
    let sizes = Sizes {
        n_ctx: choose_n_ctx(n_ctx, n_ctx_train)?,
        n_ctx_train,
        n_embd,
        n_head,
        n_head_kv,
        head_dim,
        n_vocab: weights.rows_of("token_embd.weight", n_embd)?,
    };

    let token_embd = weights.matrix("token_embd.weight", sizes.n_vocab, n_embd)?;
    let table = rope_table(keys, &sizes)?;
    let n_dims = table.n_dims;
    let table = weights.rope(sizes.n_ctx, table, "rope_freqs.weight")?;
    let positions = Positions::Rope { table, n_dims, mode: RopeMode::Normal };
    let mut blocks = Vec::new();
    for i in 0..n_blocks {
        let block = format!("blk.{i}");
        let half = |name: &str| (format!("{block}.{name}"), n_ff);
        blocks.push(Block {
            attn_norm: weights.norm(&format!("{block}.attn_norm"), norm, n_embd)?,
            qkv: qkv(weights, &block, &sizes)?,
            attn_output: weights.linear(&format!("{block}.attn_output"), n_embd, n_head * head_dim)?,
            ffn_norm: weights.norm(&format!("{block}.ffn_norm"), norm, n_embd)?,
            feed_forward: FeedForward::Gated(
                GluKind::Swiglu,
                weights.joint(&format!("{block}.ffn_gate_up"), &[half("ffn_gate"), half("ffn_up")], n_embd)?,
                weights.linear(&format!("{block}.ffn_down"), n_embd, n_ff)?,
            ),
        });
    }
    let output_norm = weights.norm("output_norm", norm, n_embd)?;
    let output = output(weights, token_embd, &sizes)?;
    Ok(Parts { sizes, token_embd, positions, blocks, output_norm, output })
}

/// The angles: the base, and linear or YaRN scaling.
fn rope_table(keys: &Keys<'_>, sizes: &Sizes) -> Result<RopeTable, ModelError> {
    let n_dims = keys.size("rope.dimension_count", sizes.head_dim, Some(sizes.head_dim))?;
    if !n_dims.is_multiple_of(2) {
        return Err(keys.wrong("rope.dimension_count", format!("{n_dims} channels make no pairs")));
    }
    let mut table = RopeTable::plain(n_dims, keys.positive("rope.freq_base", Some(10_000.0))?);
    let legacy = keys.get::<f32>("rope.scale_linear")?;
    let factor = keys.get::<f32>("rope.scaling.factor")?.or(legacy).unwrap_or(1.0);
    if !(factor.is_finite() && factor >= 0.0) {
        return Err(keys.wrong("rope.scaling.factor", format!("{factor} is no positive number")));
    }
    let scale = if factor == 0.0 { 1.0 } else { 1.0 / factor };
    match keys.get::<&str>("rope.scaling.type")?.unwrap_or("linear") {
        "none" => {}
        "linear" => table.freq_scale = scale,
        "yarn" => {
            table.freq_scale = scale;
            table.magnitude = keys.positive("rope.scaling.attn_factor", Some(1.0))?;
            let n_ctx_orig = keys.size("rope.scaling.original_context_length", MAX_N_CTX, Some(sizes.n_ctx_train))?;
            table.yarn = Some(Yarn {
                ext_factor: keys.positive("rope.scaling.yarn_ext_factor", Some(1.0))?,
                beta_fast: keys.positive("rope.scaling.yarn_beta_fast", Some(32.0))?,
                beta_slow: keys.positive("rope.scaling.yarn_beta_slow", Some(1.0))?,
                n_ctx_orig: n_ctx_orig as u32,
            });
        }
        _ => return Err(keys.wrong("rope.scaling.type", "only none, linear and yarn are supported")),
    }
    Ok(table)
}
