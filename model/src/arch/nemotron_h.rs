//! Nemotron-H: each block is a single layer, which is Mamba 2, attention without a rotation, or a feed-forward layer
//! whose activation squares what is above zero. Newer models have experts there, which may work on a narrower vector.
//!
//! *Source*: NVIDIA, "Nemotron-H: A Family of Accurate and Efficient Hybrid Mamba-Transformer Models", 2025; "Nemotron 3
//! Nano", 2025.

use backend_api::TensorId;
use backend_api::op::{Norm, NormKind, Route};

use super::attention::Attention;
use super::experts::{Expert, Experts, FeedForward, Gate};
use super::keys::{Heads, Keys};
use super::recorder::{Recorded, Recorder};
use super::recurrent::Ssm;
use super::{Architecture, Sizes};
use crate::error::ModelError;

/// Layer of a block.
#[derive(Debug)]
enum Layer {
    Scan,
    Attention(Box<Attention>),
    FeedForward(FeedForward),
}

#[derive(Debug)]
struct NemotronH {
    sizes: Sizes,
    norm: Norm,
    ssm: Ssm,
    layers: Vec<Layer>,
}

pub(super) fn read(keys: &Keys<'_>) -> Result<Box<dyn Architecture>, ModelError> {
    let (sizes, heads) = keys.hybrid_sizes()?;
    let eps = keys.positive("attention.layer_norm_rms_epsilon", Some(keys.layer_norm()?.eps))?;
    let attention = Attention::new(&sizes);
    let widths = keys.counts_by_block("feed_forward_length", sizes.n_blocks)?;
    let feed_forward = feed_forward(keys, &widths)?;
    let layer = |(heads, feed_forward): (Heads, Option<FeedForward>)| match (heads, feed_forward) {
        (_, Some(feed_forward)) => Layer::FeedForward(feed_forward),
        (Some(heads), None) => Layer::Attention(Box::new(attention.with_heads(heads))),
        (None, None) => Layer::Scan,
    };
    Ok(Box::new(NemotronH {
        sizes: keys.predicting_one(sizes)?,
        norm: Norm { kind: NormKind::Rms, eps, heads: 1 },
        ssm: Ssm::read(keys)?,
        layers: heads.into_iter().zip(feed_forward).map(layer).collect(),
    }))
}

/// Returns the feed-forward layer of each block that has one.
fn feed_forward(keys: &Keys<'_>, widths: &[usize]) -> Result<Vec<Option<FeedForward>>, ModelError> {
    const WIDTH: &str = "expert_feed_forward_length";
    let is_dense = keys.get::<u64>("expert_count")?.unwrap_or(0) == 0;
    if is_dense {
        return Ok(widths.iter().map(|n_ff| (*n_ff > 0).then_some(FeedForward::SquaredRelu(*n_ff))).collect());
    }
    let used = keys.counts_by_block("expert_used_count", widths.len())?;
    let own = match keys.metadata.value(&keys.key(WIDTH)) {
        Some(_) => keys.counts_by_block(WIDTH, widths.len())?,
        None => widths.iter().zip(&used).map(|(n_ff, k)| n_ff / k.max(&1)).collect(),
    };
    let normalised = keys.get("expert_weights_norm")?.unwrap_or(false);
    let layer = |i: usize| {
        if widths[i] == 0 {
            return Ok(None);
        }
        if own[i] == 0 {
            return Err(keys.wrong(WIDTH, format!("the experts of block {i} have no width")));
        }
        let experts = keys.experts_of(Gate::Sigmoid, own[i], used[i])?;
        let route = Route { gate: Gate::Sigmoid, normalised, ..experts.route };
        Ok(Some(FeedForward::Experts(Experts { kind: Expert::SquaredRelu, route, ..experts })))
    };
    (0..widths.len()).map(layer).collect()
}

impl NemotronH {
    fn feed_forward(&self, m: &mut Recorder<'_>, layer: &FeedForward, x: TensorId) -> Recorded {
        let FeedForward::Experts(experts) = layer else { return m.feed_forward(layer, x) };
        let (n_embd, down, up) = (self.sizes.n_embd, "ffn_latent_down", "ffn_up_shexp");
        let logits = m.linear("ffn_gate_inp", experts.count, x)?;
        let mut y = if m.has("ffn_latent_down.weight") {
            let z = m.linear(down, m.rows_of(down, n_embd)?, x)?;
            let y = m.routed(experts, logits, z)?;
            m.linear("ffn_latent_up", n_embd, y)?
        } else {
            m.routed(experts, logits, x)?
        };
        if m.has("ffn_up_shexp.weight") {
            let s = m.linear(up, m.rows_of(up, n_embd)?, x)?;
            let s = m.squared_relu(s)?;
            let s = m.linear("ffn_down_shexp", n_embd, s)?;
            y = m.add(y, s)?;
        }
        Ok(y)
    }
}

impl Architecture for NemotronH {
    fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    fn record(&self, m: &mut Recorder<'_>) -> Result<(), ModelError> {
        let NemotronH { sizes: Sizes { n_embd, .. }, norm, ssm, .. } = self;
        let x = m.input(|m| m.embed("token_embd"))?;
        let x = m.blocks(x, |m, i, x| {
            let normed = |m: &mut Recorder<'_>, x| m.norm("attn_norm", *norm, x);
            let (y, x) = match &self.layers[i] {
                Layer::Scan => {
                    let y = normed(m, x)?;
                    let y = m.mamba2(ssm, y)?;
                    let [y, x] = m.wanted([y, x])?;
                    (m.ssm_out(ssm, *norm, y)?, x)
                }
                Layer::Attention(attention) => {
                    let y = normed(m, x)?;
                    let y = m.attention(attention, y)?;
                    let [y, x] = m.wanted([y, x])?;
                    (m.linear("attn_output", *n_embd, y)?, x)
                }
                Layer::FeedForward(layer) => {
                    let [x] = m.wanted([x])?;
                    let y = normed(m, x)?;
                    (self.feed_forward(m, layer, y)?, x)
                }
            };
            m.add(y, x)
        })?;
        m.output(x, |m, x| m.normed_logits(*norm, x))
    }
}
