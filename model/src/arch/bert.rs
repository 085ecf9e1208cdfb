//! Encoders with norms after each layer, and bidirectional attention: one page for the block, and a row for each family.
//!
//! The GELU is the tanh form, as in llama.cpp. The squared difference to the paper's is below 1e-5 of that of an
//! embedding.
//! *Source*: Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding", 2019;
//! of rotary positions and a gated unit: Nussbaum et al., "Nomic Embed: Training a Reproducible Long Context Text
//! Embedder", 2024; of others: Sturua et al., "jina-embeddings-v3: Multilingual Embeddings With Task LoRA", 2024.

use backend_api::op::{GluKind, Norm, RopeMode, UnaryKind};

use super::attention::Attention;
use super::experts::FeedForward;
use super::keys::{Keys, MAX_WIDTH};
use super::recorder::Recorder;
use super::rope::Rope;
use super::{Architecture, Sizes};
use crate::error::ModelError;

/// How a family tells positions apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Positions {
    /// By embeddings of positions.
    Learned,
    /// By rotated halves of queries and keys.
    Rotary,
}

/// Positions of a family, and the gate of its feed-forward layer, if it has one.
type Family = (&'static str, Positions, Option<GluKind>);

/// Families, by their names in files.
const FAMILIES: &[Family] = &[
    ("bert", Positions::Learned, None),
    ("nomic-bert", Positions::Rotary, Some(GluKind::Swiglu)),
    ("jina-bert-v3", Positions::Rotary, None),
];

#[derive(Debug)]
struct Bert {
    sizes: Sizes,
    norm: Norm,
    positions: Positions,
    attention: Attention,
    feed_forward: FeedForward,
}

pub(super) fn read(keys: &Keys<'_>) -> Result<Box<dyn Architecture>, ModelError> {
    let name = keys.tensors.architecture;
    let Some((_, positions, gate)) = FAMILIES.iter().find(|(other, ..)| *other == name).copied() else {
        return Err(keys.wrong("block_count", "this is no family of such encoders"));
    };
    let (sizes, norm) = (keys.sizes()?, keys.layer_norm()?);
    let n_ff = keys.size("feed_forward_length", MAX_WIDTH, None)?;
    let rope = match positions {
        Positions::Rotary => Some(Rope::read(keys, &sizes, RopeMode::Neox)?),
        Positions::Learned => None,
    };
    let attention = Attention { rope, ..Attention::new(&sizes) };
    let feed_forward = match gate {
        Some(gate) => FeedForward::Glu(gate, n_ff),
        None => FeedForward::Plain(UnaryKind::GeluTanh, n_ff),
    };
    Ok(Box::new(Bert { sizes, norm, positions, attention, feed_forward }))
}

impl Architecture for Bert {
    fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    fn record(&self, m: &mut Recorder<'_>) -> Result<(), ModelError> {
        let Bert { sizes: Sizes { n_embd, .. }, norm, positions, attention, .. } = self;
        let x = m.input(|m| {
            let mut x = m.embed("token_embd")?;
            if *positions == Positions::Learned {
                let positions = m.embed_positions("position_embd")?;
                x = m.add(x, positions)?;
            }
            let x = m.add_type("token_types", x)?;
            m.norm("token_embd_norm", *norm, x)
        })?;
        let x = m.blocks(x, |m, _, x| {
            let a = m.attention(attention, x)?;
            let [a, x] = m.wanted([a, x])?;
            let a = m.linear("attn_output", *n_embd, a)?;
            let x = m.add(a, x)?;
            let x = m.norm("attn_output_norm", *norm, x)?;
            let f = m.feed_forward(&self.feed_forward, x)?;
            let x = m.add(f, x)?;
            m.norm("layer_output_norm", *norm, x)
        })?;
        m.output(x, |_, x| Ok(x))
    }
}
