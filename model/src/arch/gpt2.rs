//! GPT-2: learned positions, layer norms, biases everywhere, a tanh GELU.
//!
//! *Source*: Radford et al., "Language Models are Unsupervised Multitask Learners", 2019.

use backend_api::op::{Norm, NormKind, UnaryKind};

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
    let n_ff = keys.size("feed_forward_length", MAX_WIDTH, Some(4 * n_embd))?;
    let n_blocks = keys.size("block_count", MAX_BLOCKS, None)?;
    if !n_embd.is_multiple_of(n_head) {
        return Err(keys.wrong("attention.head_count", format!("{n_head} heads do not divide the width {n_embd}")));
    }
    let norm = Norm { kind: NormKind::Layer, eps: keys.positive("attention.layer_norm_epsilon", None)? };
    let sizes = Sizes {
        n_ctx: choose_n_ctx(n_ctx, n_ctx_train)?,
        n_ctx_train,
        n_embd,
        n_head,
        n_head_kv: n_head,
        head_dim: n_embd / n_head,
        n_vocab: weights.rows_of("token_embd.weight", n_embd)?,
    };

    let token_embd = weights.matrix("token_embd.weight", sizes.n_vocab, n_embd)?;
    let positions = Positions::Learned(weights.matrix("position_embd.weight", n_ctx_train, n_embd)?);
    let mut blocks = Vec::new();
    for i in 0..n_blocks {
        let block = format!("blk.{i}");
        blocks.push(Block {
            attn_norm: weights.norm(&format!("{block}.attn_norm"), norm, n_embd)?,
            qkv: qkv(weights, &block, &sizes)?,
            attn_output: weights.linear(&format!("{block}.attn_output"), n_embd, n_embd)?,
            ffn_norm: weights.norm(&format!("{block}.ffn_norm"), norm, n_embd)?,
            feed_forward: FeedForward::Plain(
                UnaryKind::GeluTanh,
                weights.linear(&format!("{block}.ffn_up"), n_ff, n_embd)?,
                weights.linear(&format!("{block}.ffn_down"), n_embd, n_ff)?,
            ),
        });
    }
    let output_norm = weights.norm("output_norm", norm, n_embd)?;
    let output = output(weights, token_embd, &sizes)?;
    Ok(Parts { sizes, token_embd, positions, blocks, output_norm, output })
}
