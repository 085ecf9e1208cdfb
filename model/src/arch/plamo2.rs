//! PLaMo 2: blocks of attention and of a Mamba whose channels share step sizes and decays head by head, with norms
//! before and after each layer.
//!
//! *Source*: Preferred Networks, "PLaMo 2 Technical Report", 2025.

use backend_api::op::{GluKind, Norm, RopeMode};

use super::attention::Attention;
use super::keys::{Keys, MAX_WIDTH};
use super::recorder::Recorder;
use super::recurrent::Ssm;
use super::rope::Rope;
use super::{Architecture, Sizes};
use crate::error::ModelError;

#[derive(Debug)]
struct Plamo2 {
    sizes: Sizes,
    norm: Norm,
    /// Attention of each block that has it.
    attention: Vec<Option<Attention>>,
    ssm: Ssm,
    n_ff: usize,
}

pub(super) fn read(keys: &Keys<'_>) -> Result<Box<dyn Architecture>, ModelError> {
    let heads = keys.heads_by_block()?;
    let Some([n_head, n_head_kv]) = heads.iter().flatten().next() else {
        return Err(keys.wrong("attention.head_count_kv", "one block must attend"));
    };
    let width = keys.size("attention.key_length", MAX_WIDTH / n_head, None)?;
    let value = keys.size("attention.value_length", MAX_WIDTH / n_head, Some(width))?;
    let sizes = keys.sizes_with(*n_head, *n_head_kv, width)?;
    let norm = keys.rms_norm()?;
    let attention = Attention {
        value_dim: Some(value),
        scale: 1.0 / (value as f32).sqrt(),
        qk_norm: Some(norm),
        rope: Some(Rope::read(keys, &sizes, RopeMode::Neox)?),
        ..Attention::new(&sizes)
    };
    Ok(Box::new(Plamo2 {
        sizes,
        norm,
        attention: attention.by_block(&heads),
        ssm: Ssm::of_heads(keys)?,
        n_ff: keys.size("feed_forward_length", MAX_WIDTH, None)?,
    }))
}

impl Architecture for Plamo2 {
    fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    fn record(&self, m: &mut Recorder<'_>) -> Result<(), ModelError> {
        let Plamo2 { sizes: Sizes { n_embd, .. }, norm, .. } = self;
        let x = m.input(|m| m.embed("token_embd"))?;
        let x = m.blocks(x, |m, i, x| {
            let a = m.norm("attn_norm", *norm, x)?;
            let (a, output) = match &self.attention[i] {
                Some(attention) => (m.attention(attention, a)?, "attn_output"),
                None => (m.mamba_of_heads(&self.ssm, *norm, a)?, "ssm_out"),
            };
            let [a, x] = m.wanted([a, x])?;
            let a = m.linear(output, *n_embd, a)?;
            let a = m.norm("post_attention_norm", *norm, a)?;
            let x = m.add(a, x)?;
            let f = m.norm("ffn_norm", *norm, x)?;
            let f = m.fused_glu("ffn_up", GluKind::Swiglu, self.n_ff, f)?;
            let f = m.linear("ffn_down", *n_embd, f)?;
            let f = m.norm("post_ffw_norm", *norm, f)?;
            m.add(f, x)
        })?;
        m.output(x, |m, x| m.normed_logits(*norm, x))
    }
}
