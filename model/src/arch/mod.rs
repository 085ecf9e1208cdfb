//! Architectures: from a file's metadata to a [`Recipe`], and from that to graphs.
//!
//! All decoder-only transformers here share one skeleton (embedding, blocks of attention and feed-forward, head). An
//! architecture says in data which pieces its blocks are made of; only [`graph`](Recipe::graph) records operators.

use backend_api::DType;
use backend_api::op::{GluKind, Norm, RopeMode, UnaryKind};
use std::str::FromStr;

use crate::error::ModelError;
use crate::gguf::{Gguf, shown};

mod gpt2;
mod graph;
mod keys;
mod llama;
mod weights;

pub use graph::{HISTORY, Head, LOGITS};
pub use weights::{Contents, Weight};

use keys::Keys;
use weights::Weights;

/// The context that is made unless another one is asked for; KV caches of whole training contexts fill small GPUs.
const DEFAULT_N_CTX: usize = 2048;
/// Positions and ids must stay exact where backends hold them as floats.
const MAX_N_CTX: usize = 1 << 24;
/// Far above any model known.
const MAX_WIDTH: usize = 1 << 20;
const MAX_BLOCKS: usize = 1 << 12;

/// An architecture: its name in files and what reads its metadata.
type Architecture = (&'static str, fn(&Keys<'_>, &mut Weights<'_>, Option<usize>) -> Result<Parts, ModelError>);

const ARCHITECTURES: &[Architecture] = &[("gpt2", gpt2::parts), ("llama", llama::parts)];

/// An entry of [`Recipe::weights`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct WeightId(usize);

/// A matmul with an optional bias.
#[derive(Debug, Clone, Copy)]
struct Linear {
    weight: WeightId,
    bias: Option<WeightId>,
}

/// Projections of one input: one matrix for all of them, or one for each.
#[derive(Debug)]
struct Joint {
    linears: Vec<Linear>,
    widths: Vec<usize>,
}

#[derive(Debug, Clone, Copy)]
struct NormWeights {
    norm: Norm,
    gamma: WeightId,
    beta: Option<WeightId>,
}

#[derive(Debug)]
enum FeedForward {
    /// Gate and up, then down.
    Gated(GluKind, Joint, Linear),
    /// Up, then down.
    Plain(UnaryKind, Linear, Linear),
}

#[derive(Debug)]
struct Block {
    attn_norm: NormWeights,
    qkv: Joint,
    attn_output: Linear,
    ffn_norm: NormWeights,
    feed_forward: FeedForward,
}

#[derive(Debug, Clone, Copy)]
enum Positions {
    /// A learned row for each position, added to the token's.
    Learned(WeightId),
    /// Rotated queries and keys.
    Rope { table: WeightId, n_dims: usize, mode: RopeMode },
}

/// What an architecture says of a model.
#[derive(Debug)]
struct Parts {
    sizes: Sizes,
    token_embd: WeightId,
    positions: Positions,
    blocks: Vec<Block>,
    output_norm: NormWeights,
    output: Linear,
}

/// The sizes of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Tokens that the context holds.
    pub n_ctx: usize,
    /// Tokens of the training context.
    pub n_ctx_train: usize,
    /// Width of the residual stream.
    pub n_embd: usize,
    /// Query heads.
    pub n_head: usize,
    /// Key and value heads.
    pub n_head_kv: usize,
    /// Channels of a head.
    pub head_dim: usize,
    /// Size of the vocabulary.
    pub n_vocab: usize,
}

/// What the KV cache holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KvCache {
    /// Floats, as they were computed.
    #[default]
    F32,
    /// Floats rounded to halves, in half the memory of a GPU. Keys and values beyond 65,504 become infinite.
    F16,
}

impl KvCache {
    fn dtype(self) -> DType {
        match self {
            KvCache::F32 => DType::F32,
            KvCache::F16 => DType::F16,
        }
    }
}

impl FromStr for KvCache {
    type Err = String;

    fn from_str(text: &str) -> Result<KvCache, String> {
        match text {
            "f32" => Ok(KvCache::F32),
            "f16" => Ok(KvCache::F16),
            other => Err(format!("a KV cache of {other:?} is not known; choose f32 or f16")),
        }
    }
}

/// A model as data: sizes, the weights to load, and how blocks are put together.
#[derive(Debug)]
pub struct Recipe {
    architecture: &'static str,
    parts: Parts,
    weights: Vec<Weight>,
    kv_cache: KvCache,
}

impl Recipe {
    /// Reads what a file says of its model. `n_ctx` is the context wanted; by default the training context, but at
    /// most 2048.
    ///
    /// *Errors*: an architecture that is not supported, malformed metadata, missing or misshapen tensors, a context
    /// longer than the model allows.
    pub fn new(gguf: &Gguf, n_ctx: Option<usize>) -> Result<Recipe, ModelError> {
        let found: &str = gguf.metadata.require("general.architecture")?;
        let Some(&(architecture, parts)) = ARCHITECTURES.iter().find(|(name, _)| *name == found) else {
            let supported = ARCHITECTURES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
            return Err(ModelError::Architecture { found: shown(found), supported });
        };
        let keys = Keys { metadata: &gguf.metadata, architecture };
        let mut weights = Weights { gguf, architecture, list: Vec::new() };
        let parts = parts(&keys, &mut weights, n_ctx)?;
        Ok(Recipe { architecture, parts, weights: weights.list, kv_cache: KvCache::default() })
    }

    /// The same with another KV cache.
    pub fn with_kv_cache(self, kv_cache: KvCache) -> Recipe {
        Recipe { kv_cache, ..self }
    }

    /// The architecture's name.
    pub fn architecture(&self) -> &'static str {
        self.architecture
    }

    /// The sizes.
    pub fn sizes(&self) -> &Sizes {
        &self.parts.sizes
    }

    /// The number of blocks.
    pub fn n_blocks(&self) -> usize {
        self.parts.blocks.len()
    }

    /// What is to be loaded, in the order of use.
    pub fn weights(&self) -> &[Weight] {
        &self.weights
    }
}

/// The context to make.
fn choose_n_ctx(asked: Option<usize>, n_ctx_train: usize) -> Result<usize, ModelError> {
    let n_ctx = asked.unwrap_or(n_ctx_train.min(DEFAULT_N_CTX));
    if (1..=n_ctx_train).contains(&n_ctx) {
        return Ok(n_ctx);
    }
    Err(ModelError::Context { asked: n_ctx, limit: n_ctx_train })
}

/// The head: `output`, or the token embedding where a file ties them.
fn output(weights: &mut Weights<'_>, token_embd: WeightId, sizes: &Sizes) -> Result<Linear, ModelError> {
    if weights.gguf.tensor("output.weight").is_some() {
        return weights.linear("output", sizes.n_vocab, sizes.n_embd);
    }
    let bias = match weights.gguf.tensor("output.bias") {
        Some(_) => Some(weights.vector("output.bias", sizes.n_vocab)?),
        None => None,
    };
    Ok(Linear { weight: token_embd, bias })
}

/// The query, key and value projections, which some files have as one.
fn qkv(weights: &mut Weights<'_>, block: &str, sizes: &Sizes) -> Result<Joint, ModelError> {
    let (q, kv) = (sizes.n_head * sizes.head_dim, sizes.n_head_kv * sizes.head_dim);
    let fused = format!("{block}.attn_qkv");
    if weights.gguf.tensor(&format!("{fused}.weight")).is_some() {
        let linear = weights.linear(&fused, q + 2 * kv, sizes.n_embd)?;
        return Ok(Joint { linears: vec![linear], widths: vec![q, kv, kv] });
    }
    let part = |name: &str, rows| (format!("{block}.{name}"), rows);
    weights.joint(&fused, &[part("attn_q", q), part("attn_k", kv), part("attn_v", kv)], sizes.n_embd)
}
