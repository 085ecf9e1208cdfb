//! Encoders with norms after each layer, and bidirectional attention: one page for the block, and a row for each family.
//!
//! The GELU is the tanh form, as in llama.cpp. The squared difference to the paper's is below 1e-5 of that of an
//! embedding.
//! *Source*: Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding", 2019;
//! of rotary positions and a gated unit: Nussbaum et al., "Nomic Embed: Training a Reproducible Long Context Text
//! Embedder", 2024; of others: Sturua et al., "jina-embeddings-v3: Multilingual Embeddings With Task LoRA", 2024.

use backend_api::op::{GluKind, Norm, RopeMode, Route, UnaryKind};

use super::attention::Attention;
use super::experts::{Expert, Experts, FeedForward, Gate};
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
    /// By scores that distance lowers.
    Slopes,
}

/// Positions of a family, and the gate of its feed-forward layer, if it has one.
type Family = (&'static str, Positions, Option<GluKind>);

/// Families, by their names in files.
const FAMILIES: &[Family] = &[
    ("bert", Positions::Learned, None),
    ("nomic-bert", Positions::Rotary, Some(GluKind::Swiglu)),
    ("nomic-bert-moe", Positions::Rotary, None),
    ("jina-bert-v2", Positions::Slopes, Some(GluKind::GegluTanh)),
    ("jina-bert-v3", Positions::Rotary, None),
];

/// Exponent of the slopes, which files do not name.
const MAX_BIAS: f32 = 8.0;

#[derive(Debug)]
struct Bert {
    sizes: Sizes,
    norm: Norm,
    positions: Positions,
    attention: Attention,
    feed_forward: FeedForward,
    /// Experts, and the period of the blocks that have them.
    experts: Option<(usize, FeedForward)>,
}

pub(super) fn read(keys: &Keys<'_>) -> Result<Box<dyn Architecture>, ModelError> {
    let name = keys.tensors.architecture;
    let Some((_, positions, gate)) = FAMILIES.iter().find(|(other, ..)| *other == name).copied() else {
        return Err(keys.wrong("block_count", "this is no family of such encoders"));
    };
    let (sizes, norm) = (keys.sizes()?, keys.layer_norm()?);
    let n_ff = keys.size("feed_forward_length", MAX_WIDTH, None)?;
    let mut attention = Attention::new(&sizes);
    match positions {
        Positions::Learned => {}
        Positions::Rotary => attention.rope = Some(Rope::read(keys, &sizes, RopeMode::Neox)?),
        Positions::Slopes => attention.max_bias = MAX_BIAS,
    }
    if keys.tensors.find("blk.0.attn_q_norm.weight").is_some() {
        (attention.qk_norm, attention.norm_rows) = (Some(norm), true);
    }
    let has_gate = positions != Positions::Slopes || keys.tensors.find("blk.0.ffn_gate.weight").is_some();
    // A family's files may have the gate in the matrix of the layer's input, or none.
    let rows = keys.tensors.find("blk.0.ffn_up.weight").and_then(|tensor| tensor.shape.first().copied());
    let feed_forward = match gate {
        Some(gate) if has_gate => FeedForward::Glu(gate, n_ff),
        Some(gate) if rows == Some(2 * n_ff) => FeedForward::Fused(gate, n_ff),
        _ => FeedForward::Plain(UnaryKind::GeluTanh, n_ff),
    };
    let experts = (name == "nomic-bert-moe").then(|| experts(keys, n_ff)).transpose()?;
    Ok(Box::new(Bert { sizes, norm, positions, attention, feed_forward, experts }))
}

/// Reads the experts of every so many blocks.
fn experts(keys: &Keys<'_>, n_ff: usize) -> Result<(usize, FeedForward), ModelError> {
    let experts = keys.experts(Gate::Softmax, n_ff)?;
    let route = Route { gate: Gate::Softmax, normalised: false, scale: 1.0, ..experts.route };
    let experts = Experts { kind: Expert::Plain(UnaryKind::GeluTanh), route, ..experts };
    Ok((keys.size("moe_every_n_layers", MAX_WIDTH, None)?, FeedForward::Experts(experts)))
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
        let x = m.blocks(x, |m, i, x| {
            let a = m.attention(attention, x)?;
            let [a, input] = m.wanted([a, x])?;
            let a = m.linear("attn_output", *n_embd, a)?;
            let sum = m.add(a, input)?;
            let mut x = m.norm("attn_output_norm", *norm, sum)?;
            if m.has("attn_norm_2.weight") {
                // The block's input comes in once more.
                x = m.add(x, input)?;
                x = m.norm("attn_norm_2", *norm, x)?;
            }
            let feed_forward = match &self.experts {
                Some((period, experts)) if i % period == 1 => experts,
                _ => &self.feed_forward,
            };
            let f = m.feed_forward(feed_forward, x)?;
            let x = m.add(f, x)?;
            m.norm("layer_output_norm", *norm, x)
        })?;
        m.output(x, |_, x| Ok(x))
    }
}
