//! Decoders that read alike, dense or with experts: one page for the block, and a row for each family.
//!
//! A row says what its family has instead of Llama's: the norm, the pairs that rotate, the order of the layers, the
//! feed-forward layer. What only one family has is in the function of its row.
//!
//! *Source*: Touvron et al., "LLaMA: Open and Efficient Foundation Language Models", 2023; of layers side by side: Wang
//! and Komatsuzaki, "GPT-J-6B", 2021; of norms after layers: Ding et al., "CogView", 2021.

use backend_api::TensorId;
use backend_api::op::{Clamp, GluKind, Norm, RopeMode, UnaryKind, Xielu};

use super::attention::{Attention, Temperature};
use super::experts::{Expert, Experts, FeedForward, Gate};
use super::keys::{Keys, MAX_BLOCKS, MAX_WIDTH};
use super::mla::Latent;
use super::recorder::{Recorded, Recorder};
use super::rope::{Rope, Sections};
use super::{Architecture, Sizes};
use crate::error::ModelError;

/// Norm of the residual stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Normed {
    /// Root mean square, with weights.
    Rms,
    /// Mean and variance, with weights, and a bias if the file has one.
    Layer,
    /// Root mean square, without weights.
    BareRms,
    /// Mean and variance, without weights.
    BareLayer,
}

/// Order of a block's attention, feed-forward layer and norms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// One layer after the other, each on a norm of the stream.
    Sequential,
    /// As [`Self::Sequential`], with a norm of each result, too.
    Sandwich,
    /// One after the other, on the stream itself, with a norm of each result.
    Post,
    /// Both on one norm of the stream.
    Parallel,
    /// Both on the stream, each on a norm of its own.
    ParallelNorms,
}

/// Feed-forward layer without experts, whose width is the file's.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// [`FeedForward::Glu`].
    Glu(GluKind),
    /// [`FeedForward::Fused`].
    Fused(GluKind),
    /// [`FeedForward::Plain`].
    Plain(UnaryKind),
    /// [`FeedForward::SquaredRelu`].
    SquaredRelu,
}

impl Kind {
    fn of_width(self, n_ff: usize) -> FeedForward {
        match self {
            Kind::Glu(kind) => FeedForward::Glu(kind, n_ff),
            Kind::Fused(kind) => FeedForward::Fused(kind, n_ff),
            Kind::Plain(kind) => FeedForward::Plain(kind, n_ff),
            Kind::SquaredRelu => FeedForward::SquaredRelu(n_ff),
        }
    }
}

/// How queries and keys are normed: head by head, if not said otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QkNorm {
    /// Before they are rotated.
    Before,
    /// After that.
    After,
    /// Before that, all heads of a row together.
    Rows,
}

/// Which width of the shared expert a file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shared {
    /// There is none.
    No,
    /// So many times the width of an expert as there are shared ones.
    Counted,
    /// Its own width or that of an expert, so many times.
    CountedOwn,
    /// Its own width; without it, there is none.
    Own,
    /// Its own width or that of the dense layer.
    OwnOrDense,
    /// Its own width, and both matrices in one tensor.
    Fused,
}

/// Experts of a family.
#[derive(Debug, Clone, Copy)]
struct Mixture {
    /// Function that makes scores, and whether the file may name another one.
    gate: (Gate, bool),
    /// Whether weights are divided by their sum; if `None`, the file says so.
    normalised: Option<bool>,
    /// Whether the file may name a factor of the weights.
    scaled: bool,
    /// Whether experts have a width of their own, rather than that of the dense layer.
    own_width: bool,
    /// The shared expert.
    shared: Shared,
    /// Whether the stream itself is routed, before attention.
    early: bool,
    /// Activation.
    kind: GluKind,
}

/// Experts that most families have.
const SOFTMAX: Mixture = Mixture {
    gate: (Gate::Softmax, false),
    normalised: Some(true),
    scaled: false,
    own_width: true,
    shared: Shared::No,
    early: false,
    kind: GluKind::Swiglu,
};

/// Experts as in DeepSeek-V3: the file says how they are weighed.
const WEIGHED: Mixture =
    Mixture { gate: (Gate::Sigmoid, true), normalised: None, scaled: true, shared: Shared::Counted, ..SOFTMAX };

/// Choices of a family.
#[derive(Debug, Clone, Copy)]
pub(super) struct Family {
    norm: Normed,
    /// Pairs that rotate; `None` without a rotation.
    rope: Option<RopeMode>,
    layout: Layout,
    feed_forward: Kind,
    /// Name of the norm before the feed-forward layer.
    ffn_norm: &'static str,
    /// Norm of queries and keys.
    qk_norm: Option<QkNorm>,
    /// Whether embeddings of positions are added.
    positions: bool,
    /// Experts, where the file has some.
    experts: Option<Mixture>,
    /// Whether attention is latent.
    latent: bool,
    /// Whether files list heads and widths block by block.
    by_block: bool,
    /// Whether norms follow attention and activation, before the last products of both layers.
    sub_norms: bool,
    /// Reads what only this family has.
    own: fn(&Keys<'_>, &mut Dense) -> Result<(), ModelError>,
}

/// Llama, as files have it.
const LLAMA: Family = Family {
    norm: Normed::Rms,
    rope: Some(RopeMode::Normal),
    layout: Layout::Sequential,
    feed_forward: Kind::Glu(GluKind::Swiglu),
    ffn_norm: "ffn_norm",
    qk_norm: None,
    positions: false,
    experts: None,
    latent: false,
    by_block: false,
    sub_norms: false,
    own: |_, _| Ok(()),
};

/// Llama with rotated halves.
const HALVES: Family = Family { rope: Some(RopeMode::Neox), ..LLAMA };

/// Llama with rotated halves, and norms of queries and keys.
const HEADS: Family = Family { qk_norm: Some(QkNorm::Before), ..HALVES };

/// GPT-2 with rotated halves.
const GPT: Family = Family { norm: Normed::Layer, feed_forward: Kind::Plain(UnaryKind::GeluTanh), ..HALVES };

/// Layers between norms, with gate and up matrices in one tensor.
const GLM: Family = Family { feed_forward: Kind::Fused(GluKind::Swiglu), ..LLAMA };

/// Families, by their names in files.
pub(super) const FAMILIES: &[(&str, Family)] = &[
    ("afmoe", Family { layout: Layout::Sandwich, own: afmoe, experts: Some(WEIGHED), ..HEADS }),
    ("apertus", Family { own: xielu, ..HEADS }),
    ("arcee", Family { feed_forward: Kind::SquaredRelu, ..LLAMA }),
    ("baichuan", Family { rope: None, own: baichuan, ..LLAMA }),
    ("bailingmoe2", Family { experts: Some(Mixture { shared: Shared::CountedOwn, ..WEIGHED }), ..HEADS }),
    ("bitnet", Family { sub_norms: true, ..HALVES }),
    ("bloom", Family { rope: None, own: bloom, ..GPT }),
    ("chatglm", GLM),
    ("codeshell", GPT),
    ("cohere2", Family { norm: Normed::Layer, layout: Layout::Parallel, own: cohere2, ..LLAMA }),
    ("command-r", Family { norm: Normed::Layer, layout: Layout::Parallel, own: command_r, ..LLAMA }),
    ("deci", Family { by_block: true, ..LLAMA }),
    (
        "deepseek",
        Family { experts: Some(Mixture { gate: (Gate::Softmax, false), normalised: Some(false), ..WEIGHED }), ..LLAMA },
    ),
    (
        "deepseek2",
        Family {
            latent: true,
            own: deepseek2,
            experts: Some(Mixture { gate: (Gate::Softmax, true), ..WEIGHED }),
            ..LLAMA
        },
    ),
    ("dots1", Family { experts: Some(WEIGHED), ..HEADS }),
    ("dream", Family { own: unfactored, ..HALVES }),
    ("ernie4_5", LLAMA),
    ("ernie4_5-moe", Family { experts: Some(Mixture { shared: Shared::Own, ..SOFTMAX }), ..LLAMA }),
    ("exaone", HALVES),
    ("exaone4", Family { layout: Layout::Post, own: exaone4, ..HEADS }),
    ("falcon", Family { layout: Layout::Parallel, ..GPT }),
    ("gemma", Family { feed_forward: Kind::Glu(GluKind::GegluTanh), own: gemma, ..HALVES }),
    ("glm4", Family { layout: Layout::Sandwich, own: sections, ..GLM }),
    ("glm4moe", Family { ffn_norm: "post_attention_norm", own: glm4moe, experts: Some(WEIGHED), ..HALVES }),
    ("gptneox", Family { own: gptneox, ..GPT }),
    (
        "granite_swa",
        Family {
            own: granite_swa,
            experts: Some(Mixture { own_width: false, shared: Shared::Fused, ..SOFTMAX }),
            ..LLAMA
        },
    ),
    ("hunyuan-dense", Family { qk_norm: Some(QkNorm::After), own: hunyuan, ..HALVES }),
    (
        "hunyuan-moe",
        Family {
            qk_norm: Some(QkNorm::After),
            experts: Some(Mixture { own_width: false, shared: Shared::OwnOrDense, ..SOFTMAX }),
            ..HALVES
        },
    ),
    ("hunyuan_vl", Family { qk_norm: Some(QkNorm::After), own: hunyuan, ..HALVES }),
    ("internlm2", Family { own: unfactored, ..LLAMA }),
    ("jais", Family { norm: Normed::Layer, rope: None, own: jais, ..LLAMA }),
    ("jais2", Family { feed_forward: Kind::SquaredRelu, ..GPT }),
    ("llada", Family { own: unfactored, ..LLAMA }),
    ("maincoder", Family { qk_norm: Some(QkNorm::After), ..LLAMA }),
    ("minicpm", Family { own: minicpm, ..LLAMA }),
    ("minicpm3", Family { latent: true, own: minicpm3, ..HALVES }),
    (
        "minimax-m2",
        Family {
            qk_norm: Some(QkNorm::Rows),
            experts: Some(Mixture { own_width: false, gate: (Gate::Sigmoid, true), ..SOFTMAX }),
            ..HALVES
        },
    ),
    ("mpt", Family { rope: None, own: mpt, ..GPT }),
    ("muse-glimmer", Family { layout: Layout::Sandwich, qk_norm: Some(QkNorm::Before), own: muse, ..LLAMA }),
    ("nanbeige", Family { own: nanbeige, ..LLAMA }),
    ("nemotron", Family { feed_forward: Kind::SquaredRelu, ..GPT }),
    ("olmo", Family { norm: Normed::BareLayer, own: clamped, ..LLAMA }),
    (
        "olmoe",
        Family {
            qk_norm: Some(QkNorm::Rows),
            experts: Some(Mixture { own_width: false, normalised: Some(false), ..SOFTMAX }),
            ..HALVES
        },
    ),
    ("openelm", Family { by_block: true, ..HEADS }),
    ("orion", Family { norm: Normed::Layer, ..HALVES }),
    ("paddleocr", Family { own: sections, ..LLAMA }),
    ("pangu-embedded", HALVES),
    ("phi2", Family { layout: Layout::Parallel, ..GPT }),
    ("plamo", Family { layout: Layout::Parallel, ..HALVES }),
    ("plamo3", Family { layout: Layout::Sandwich, feed_forward: Kind::Fused(GluKind::Swiglu), own: plamo3, ..HEADS }),
    ("plm", Family { latent: true, feed_forward: Kind::SquaredRelu, own: plm, ..LLAMA }),
    ("qwen", Family { own: half_width, ..HALVES }),
    (
        "qwen2moe",
        Family { experts: Some(Mixture { normalised: Some(false), shared: Shared::OwnOrDense, ..SOFTMAX }), ..HALVES },
    ),
    ("qwen2vl", Family { own: sections, ..HALVES }),
    ("qwen3vl", Family { own: interleaved, ..HEADS }),
    ("refact", Family { rope: None, own: refact, ..LLAMA }),
    ("seed_oss", Family { ffn_norm: "post_attention_norm", ..HALVES }),
    (
        "smallthinker",
        Family {
            own: smallthinker,
            experts: Some(Mixture { gate: (Gate::Sigmoid, true), early: true, kind: GluKind::Reglu, ..SOFTMAX }),
            ..HALVES
        },
    ),
    ("spark2_5", Family { feed_forward: Kind::Glu(GluKind::GegluTanh), by_block: true, own: spark, ..HALVES }),
    ("stablelm", Family { norm: Normed::Layer, own: stablelm, ..HALVES }),
    ("starcoder", Family { rope: None, positions: true, ..GPT }),
    ("starcoder2", GPT),
    ("talkie", Family { norm: Normed::BareRms, qk_norm: Some(QkNorm::After), own: talkie, ..HALVES }),
    ("xverse", LLAMA),
];

/// Families that read in both directions, and embed texts.
pub(super) const ENCODERS: &[(&str, Family)] = &[
    ("eurobert", HALVES),
    ("llama-embed", LLAMA),
    ("neo-bert", Family { feed_forward: Kind::Fused(GluKind::Swiglu), ..LLAMA }),
];

/// Name of the divisors of activations that quantised MPT has.
const ACT_SCALES: &str = "ffn.act.scales";

/// Name of the embeddings that are recorded once.
const EMBEDDED: &str = "embedded";

/// Exponent of the slopes of families whose files do not name one.
const MAX_BIAS: f32 = 8.0;

/// Attention and feed-forward layer of one block.
#[derive(Debug, Clone)]
struct Block {
    /// Attention; `None` where the block has none.
    attention: Option<Attention>,
    /// Whether a product takes the place of attention.
    linear: bool,
    /// Feed-forward layer. If its width is 0, the whole block does nothing.
    feed_forward: FeedForward,
    /// Width of the expert that all tokens go to; 0 = none.
    shared: usize,
}

/// A decoder of such a family.
#[derive(Debug)]
pub(super) struct Dense {
    family: Family,
    sizes: Sizes,
    norm: Norm,
    /// Norm of the layers' results.
    post_norm: Norm,
    blocks: Vec<Block>,
    /// Number of blocks in the file, which may run several times.
    stored: usize,
    /// Whether the last norm also goes before such blocks run again.
    norms_loops: bool,
    /// Whether the embeddings are brought to unit size.
    unit_embedding: bool,
    /// Whether the embeddings go through a norm with weights.
    norms_embedding: bool,
    /// Whether each block adds the embeddings again, with a factor of its own.
    adds_embedding: bool,
    /// Factors of the embedding, of the layers' results, and of the logits.
    embedding_scale: f32,
    residual_scale: f32,
    logit_scale: f32,
    /// Soft cap of the logits, after their factor.
    softcap: Option<f32>,
}

/// Reads a file of the family that its metadata names.
pub(super) fn read(keys: &Keys<'_>) -> Result<Box<dyn Architecture>, ModelError> {
    let name = keys.tensors.architecture;
    let Some((_, family)) = FAMILIES.iter().chain(ENCODERS).find(|(other, _)| *other == name) else {
        return Err(keys.wrong("block_count", "this is no family of dense decoders"));
    };
    let sizes = match family {
        Family { by_block: true, .. } => keys.hybrid_sizes()?.0,
        Family { latent: true, .. } => keys.predicting_one(keys.latent_sizes()?)?,
        _ => keys.predicting_one(keys.sizes()?)?,
    };
    let norm = match family.norm {
        Normed::Rms | Normed::BareRms => keys.rms_norm()?,
        Normed::Layer | Normed::BareLayer => keys.layer_norm()?,
    };
    let mut dense = Dense {
        family: *family,
        sizes,
        norm,
        post_norm: norm,
        blocks: Vec::new(),
        stored: sizes.n_blocks,
        norms_loops: false,
        unit_embedding: false,
        norms_embedding: false,
        adds_embedding: false,
        embedding_scale: 1.0,
        residual_scale: 1.0,
        logit_scale: 1.0,
        softcap: None,
    };
    let attention = Attention {
        rope: family.rope.map(|mode| Rope::read(keys, &sizes, mode)).transpose()?,
        qk_norm: family.qk_norm.map(|_| norm),
        norm_last: family.qk_norm == Some(QkNorm::After),
        norm_rows: family.qk_norm == Some(QkNorm::Rows),
        ..Attention::new(&sizes)
    };
    let block = |n_ff| {
        let (feed_forward, attention) = (family.feed_forward.of_width(n_ff), Some(attention.clone()));
        Block { attention, linear: false, feed_forward, shared: 0 }
    };
    if family.by_block {
        let heads = keys.counts_by_block("attention.head_count", sizes.n_blocks)?;
        let attending = keys.heads_by_block()?;
        let widths = keys.counts_by_block("feed_forward_length", sizes.n_blocks)?;
        for (i, n_ff) in widths.into_iter().enumerate() {
            let attention = attending[i].map(|heads| attention.with_heads(heads));
            let linear = attention.is_none() && heads[i] > 0;
            dense.blocks.push(Block { attention, linear, ..block(n_ff) });
        }
    } else {
        let n_ff = keys.size("feed_forward_length", MAX_WIDTH, None)?;
        dense.blocks = vec![block(n_ff); sizes.n_blocks];
    }
    match family.experts {
        Some(mixture) if keys.get::<u64>("expert_count")?.unwrap_or(0) > 0 => dense.mix(keys, mixture)?,
        _ => keys.dense()?,
    }
    (family.own)(keys, &mut dense)?;
    Ok(Box::new(dense))
}

impl Dense {
    /// Gives all blocks experts but the first ones, which the file may except.
    fn mix(&mut self, keys: &Keys<'_>, mixture: Mixture) -> Result<(), ModelError> {
        let dense = keys.size("feed_forward_length", MAX_WIDTH, None)?;
        let used = keys.get::<u32>("expert_used_count")?.unwrap_or(1).max(1) as usize;
        let n_ff = match mixture.own_width {
            true => keys.size("expert_feed_forward_length", MAX_WIDTH, Some(dense / used))?,
            false => dense,
        };
        let mut experts = Experts { kind: Expert::Glu(mixture.kind), ..keys.experts(mixture.gate.0, n_ff)? };
        if !mixture.gate.1 {
            experts.route.gate = mixture.gate.0;
        }
        if !mixture.scaled {
            experts.route.scale = 1.0;
        }
        experts.route.normalised = match mixture.normalised {
            Some(normalised) => normalised,
            None => keys.get("expert_weights_norm")?.unwrap_or(false),
        };
        let count = keys.get::<u32>("expert_shared_count")?.unwrap_or(0).min(64) as usize;
        let shared = match mixture.shared {
            Shared::No => 0,
            Shared::Counted => n_ff * count,
            Shared::CountedOwn => keys.shared_expert()?.unwrap_or(n_ff) * count,
            Shared::Own | Shared::Fused => keys.shared_expert()?.unwrap_or(0),
            Shared::OwnOrDense => keys.shared_expert()?.unwrap_or(dense),
        };
        let lead = keys.get::<u32>("leading_dense_block_count")?.unwrap_or(0) as usize;
        self.blocks.iter_mut().skip(lead).for_each(|block| {
            (block.feed_forward, block.shared) = (FeedForward::Experts(experts), shared);
        });
        Ok(())
    }

    fn attentions(&mut self) -> impl Iterator<Item = &mut Attention> {
        self.blocks.iter_mut().filter_map(|block| block.attention.as_mut())
    }

    fn ropes(&mut self) -> impl Iterator<Item = &mut Rope> {
        self.attentions().filter_map(|attention| attention.rope.as_mut())
    }

    /// Gives some blocks a window. Their rotation becomes `local` of that of all.
    fn windows(&mut self, is_local: &[bool], window: u32, local: impl Fn(&Rope) -> Rope) {
        let blocks = self.blocks.iter_mut().zip(is_local).filter(|(_, is_local)| **is_local);
        for attention in blocks.filter_map(|(block, _)| block.attention.as_mut()) {
            attention.window = window;
            attention.rope.iter_mut().for_each(|rope| *rope = local(rope));
        }
    }

    /// Leaves out the rotation of blocks without a window.
    fn rotate_in_windows(&mut self) {
        self.attentions().filter(|attention| attention.window == 0).for_each(|attention| attention.rope = None);
    }

    /// Lowers scores by distance (ALiBi).
    fn slope(&mut self, max_bias: f32) {
        self.attentions().for_each(|attention| attention.max_bias = max_bias);
    }

    /// Norms queries and keys, head by head.
    fn norm_heads(&mut self) {
        let norm = self.norm;
        self.attentions().for_each(|attention| attention.qk_norm = Some(norm));
    }
}

/// Gemma: the embedding grows with the root of the width.
fn gemma(_: &Keys<'_>, d: &mut Dense) -> Result<(), ModelError> {
    d.embedding_scale = (d.sizes.n_embd as f32).sqrt();
    Ok(())
}

/// Ignores factors of angles.
fn unfactored(_: &Keys<'_>, d: &mut Dense) -> Result<(), ModelError> {
    d.ropes().for_each(|rope| rope.factors = None);
    Ok(())
}

/// Rotates by positions of several axes, of which a text has one.
fn sections(keys: &Keys<'_>, d: &mut Dense) -> Result<(), ModelError> {
    sectioned(keys, d, Sections::InTurn)
}

/// Rotates by positions of several axes, which take turns.
fn interleaved(keys: &Keys<'_>, d: &mut Dense) -> Result<(), ModelError> {
    sectioned(keys, d, Sections::Interleaved)
}

fn sectioned(keys: &Keys<'_>, d: &mut Dense, order: Sections) -> Result<(), ModelError> {
    d.ropes().try_for_each(|rope| rope.section(keys, order))
}

/// Hunyuan: the base grows with a factor of the file.
fn hunyuan(keys: &Keys<'_>, d: &mut Dense) -> Result<(), ModelError> {
    unfactored(keys, d)?;
    if let Some(alpha) = keys.nonzero("rope.scaling.alpha", None)? {
        let width = d.sizes.head_dim as f32;
        let grown = alpha.powf(width / (width - 2.0).max(1.0));
        d.ropes().for_each(|rope| rope.angles.freq_base *= grown);
    }
    sections(keys, d)
}

/// EXAONE 4: the largest has windows, and rotates only within them.
fn exaone4(keys: &Keys<'_>, d: &mut Dense) -> Result<(), ModelError> {
    const BLOCKS_OF_32B: usize = 64;
    if d.sizes.n_blocks == BLOCKS_OF_32B {
        let window = keys.get::<u32>("attention.sliding_window")?.unwrap_or(4096);
        d.windows(&keys.windowed(d.sizes.n_blocks, 4)?, window, Rope::clone);
        d.rotate_in_windows();
    }
    Ok(())
}

/// Command R: a factor of the logits; in the largest, norms of queries and keys.
fn command_r(keys: &Keys<'_>, d: &mut Dense) -> Result<(), ModelError> {
    const BLOCKS_WITH_NORMS: usize = 64;
    d.logit_scale = keys.nonzero("logit_scale", None)?.unwrap_or(1.0);
    if d.sizes.n_blocks >= BLOCKS_WITH_NORMS {
        d.norm_heads();
    }
    Ok(())
}

/// Command R7B: only blocks with a window rotate.
fn cohere2(keys: &Keys<'_>, d: &mut Dense) -> Result<(), ModelError> {
    d.logit_scale = keys.positive("logit_scale", None)?;
    unfactored(keys, d)?;
    d.windows(&keys.windowed(d.sizes.n_blocks, 4)?, window(keys)?, Rope::clone);
    d.rotate_in_windows();
    Ok(())
}

/// Muse Glimmer: gated attention, and only blocks with a window rotate.
fn muse(keys: &Keys<'_>, d: &mut Dense) -> Result<(), ModelError> {
    d.unit_embedding = true;
    d.post_norm.eps = 1e-8;
    d.logit_scale = keys.positive("logit_scale", None)?;
    d.softcap = keys.nonzero("final_logit_softcapping", Some(30.0))?;
    d.attentions().for_each(|attention| attention.gate = Some("attn_gate"));
    let base = base_of_windows(keys)?;
    let local = |rope: &Rope| rope.plain("rope_table_swa", base);
    d.windows(&keys.windowed(d.sizes.n_blocks, 4)?, window(keys)?, local);
    d.rotate_in_windows();
    Ok(())
}

/// Arcee's Trinity: gated attention, windows, and a rotation in three of four blocks.
fn afmoe(keys: &Keys<'_>, d: &mut Dense) -> Result<(), ModelError> {
    const PERIOD: usize = 4;
    gemma(keys, d)?;
    d.attentions().for_each(|attention| attention.gate = Some("attn_gate"));
    if let Some(window) = keys.get::<u32>("attention.sliding_window")?.filter(|window| *window > 0) {
        let base = base_of_windows(keys)?;
        let local = |rope: &Rope| rope.with_base("rope_table_swa", base);
        d.windows(&keys.windowed(d.sizes.n_blocks, PERIOD)?, window, local);
    }
    d.attentions().skip(PERIOD - 1).step_by(PERIOD).for_each(|attention| attention.rope = None);
    Ok(())
}

/// GLM-4.5: norms of queries and keys where the file has them.
fn glm4moe(keys: &Keys<'_>, d: &mut Dense) -> Result<(), ModelError> {
    normed_heads(keys, d);
    sections(keys, d)
}

/// SmallThinker: windows of one size; of four blocks, the first sees all and does not rotate.
fn smallthinker(keys: &Keys<'_>, d: &mut Dense) -> Result<(), ModelError> {
    const PERIOD: usize = 4;
    const WINDOW: u32 = 4096;
    if keys.get::<u32>("attention.sliding_window")?.unwrap_or(0) == 0 {
        return Ok(());
    }
    d.windows(&keys.windowed_after_the_first(d.sizes.n_blocks, PERIOD)?, WINDOW, Rope::clone);
    d.attentions().step_by(PERIOD).for_each(|attention| attention.rope = None);
    Ok(())
}

/// Norms queries and keys if the file has the weights.
fn normed_heads(keys: &Keys<'_>, d: &mut Dense) {
    if keys.tensors.find("blk.0.attn_q_norm.weight").is_some() {
        d.norm_heads();
    }
}

/// Returns for each block whether it has a window, which the file must list.
fn listed_windows(keys: &Keys<'_>, d: &Dense) -> Result<Vec<bool>, ModelError> {
    let listed = keys.listed_windows(d.sizes.n_blocks)?;
    listed.ok_or_else(|| keys.wrong("attention.sliding_window_pattern", "it must list the blocks with a window"))
}

/// Returns the size of the windows, which the file must name.
fn window(keys: &Keys<'_>) -> Result<u32, ModelError> {
    Ok(keys.size("attention.sliding_window", u32::MAX as usize, None)? as u32)
}

/// Returns the base of angles in windows: that of other blocks if the file names no other.
fn base_of_windows(keys: &Keys<'_>) -> Result<f32, ModelError> {
    let base = keys.positive("rope.freq_base", Some(10_000.0))?;
    keys.positive("rope.freq_base_swa", Some(base))
}

/// Spark: a gate for each head; in windows, other channels rotate by other angles.
fn spark(keys: &Keys<'_>, d: &mut Dense) -> Result<(), ModelError> {
    unfactored(keys, d)?;
    d.attentions().for_each(|attention| (attention.gate, attention.gates_heads) = (Some("attn_gate"), true));
    let all = keys.size("rope.dimension_count", d.sizes.head_dim, Some(d.sizes.head_dim))?;
    let n_dims = keys.pairs("rope.dimension_count_swa", d.sizes.head_dim, all)?;
    let base = base_of_windows(keys)?;
    let local = |rope: &Rope| {
        let mut rope = rope.with_base("rope_table_swa", base);
        rope.angles.n_dims = n_dims;
        rope
    };
    d.windows(&listed_windows(keys, d)?, window(keys)?, local);
    Ok(())
}

/// Talkie: norms without weights, a factor of each head of the queries, and the embeddings in each block again.
fn talkie(keys: &Keys<'_>, d: &mut Dense) -> Result<(), ModelError> {
    unfactored(keys, d)?;
    (d.unit_embedding, d.adds_embedding) = (true, true);
    d.logit_scale = keys.positive("logit_scale", None)?;
    d.attentions().for_each(|attention| attention.norm_factors = true);
    Ok(())
}

/// PLaMo 3: angles in windows have a base of their own.
fn plamo3(keys: &Keys<'_>, d: &mut Dense) -> Result<(), ModelError> {
    let Some(window) = keys.get::<u32>("attention.sliding_window")?.filter(|window| *window > 0) else { return Ok(()) };
    let base = keys.positive("rope.freq_base_swa", Some(10_000.0))?;
    let local = |rope: &Rope| rope.plain("rope_table_swa", base);
    d.windows(&keys.windowed(d.sizes.n_blocks, 8)?, window, local);
    Ok(())
}

/// Granite with windows: attention sinks, and Granite's factors.
fn granite_swa(keys: &Keys<'_>, d: &mut Dense) -> Result<(), ModelError> {
    d.logit_scale = 1.0 / keys.positive("logit_scale", None)?;
    d.embedding_scale = keys.nonzero("embedding_scale", None)?.unwrap_or(1.0);
    d.residual_scale = keys.nonzero("residual_scale", None)?.unwrap_or(1.0);
    let scale = keys.nonzero("attention.scale", None)?;
    let n_blocks = d.sizes.n_blocks;
    let window = window(keys)?;
    let is_local = listed_windows(keys, d)?;
    let rotates = keys.get::<Vec<bool>>("attention.rope_pattern")?.unwrap_or_else(|| vec![true; n_blocks]);
    if rotates.len() != n_blocks {
        let reason = format!("it lists {} blocks, but there are {n_blocks}", rotates.len());
        return Err(keys.wrong("attention.rope_pattern", reason));
    }
    for (i, attention) in d.attentions().enumerate() {
        attention.sinks = true;
        attention.scale = scale.unwrap_or(attention.scale);
        attention.window = if is_local[i] { window } else { 0 };
        attention.rope.take_if(|_| !rotates[i]);
    }
    Ok(())
}

/// DeepSeek 2 and 3: latent attention; the smaller ones project queries directly.
fn deepseek2(keys: &Keys<'_>, d: &mut Dense) -> Result<(), ModelError> {
    const Q_RANK: &str = "attention.q_lora_rank";
    let Sizes { n_blocks, n_vocab, .. } = d.sizes;
    let direct = matches!((n_blocks, n_vocab), (26 | 27, _) | (48, 128_256));
    let q_rank = match direct || keys.metadata.require::<u32>(&keys.key(Q_RANK))? == 0 {
        true => 0,
        false => keys.size(Q_RANK, MAX_WIDTH, None)?,
    };
    let latent = latent(keys, d, q_rank)?;
    let temperature = match keys.nonzero("attention.temperature_scale", None)? {
        Some(scale) => {
            let n_ctx_orig = keys.size("attention.temperature_length", u32::MAX as usize, None)? as u32;
            Some(Temperature { scale, n_ctx_orig })
        }
        None => None,
    };
    for attention in d.attentions() {
        attention.temperature = temperature;
        latent.stretch(keys, attention)?;
    }
    // Files of GLM-4.7-Flash leave the gate out.
    let unsaid = keys.get::<u32>("expert_gating_func")?.unwrap_or(0) == 0;
    if unsaid && matches!((n_blocks, n_vocab), (47 | 48, 154_880)) {
        for block in &mut d.blocks {
            if let FeedForward::Experts(experts) = &mut block.feed_forward {
                experts.route.gate = Gate::Sigmoid;
            }
        }
    }
    Ok(())
}

/// PLM: latent attention.
fn plm(keys: &Keys<'_>, d: &mut Dense) -> Result<(), ModelError> {
    latent(keys, d, 0).map(drop)
}

/// MiniCPM 3: latent attention, and MiniCPM's factors, which files do not name.
fn minicpm3(keys: &Keys<'_>, d: &mut Dense) -> Result<(), ModelError> {
    let Sizes { n_blocks, n_embd, .. } = d.sizes;
    d.embedding_scale = 12.0;
    d.residual_scale = 1.4 / (n_blocks as f32).sqrt();
    d.logit_scale = 256.0 / n_embd as f32;
    latent(keys, d, keys.size("attention.q_lora_rank", MAX_WIDTH, None)?).map(drop)
}

/// Makes attention latent.
fn latent(keys: &Keys<'_>, d: &mut Dense, q_rank: usize) -> Result<Latent, ModelError> {
    let latent = Latent::read(keys, &d.sizes, q_rank)?;
    for attention in d.attentions() {
        (attention.latent, attention.scale) = (Some(latent), latent.scale());
    }
    Ok(latent)
}

/// MiniCPM: Granite's factors, with defaults that depend on the size.
fn minicpm(keys: &Keys<'_>, d: &mut Dense) -> Result<(), ModelError> {
    let Sizes { n_blocks, n_embd, .. } = d.sizes;
    d.embedding_scale = keys.positive("embedding_scale", Some(12.0))?;
    d.residual_scale = keys.positive("residual_scale", Some(1.4 / (n_blocks as f32).sqrt()))?;
    d.logit_scale = 1.0 / keys.positive("logit_scale", Some(256.0 / n_embd as f32))?;
    Ok(())
}

/// Nanbeige: all blocks run several times, each time with keys and values of their own.
fn nanbeige(keys: &Keys<'_>, d: &mut Dense) -> Result<(), ModelError> {
    let loops = keys.size("num_loops", MAX_BLOCKS / d.stored, Some(1))?;
    d.norms_loops = !keys.get("skip_loop_final_norm")?.unwrap_or(false);
    d.sizes.n_blocks = loops * d.stored;
    d.blocks = d.blocks.iter().cycle().take(d.sizes.n_blocks).cloned().collect();
    Ok(())
}

/// OLMo: bounds of queries, keys and values.
fn clamped(keys: &Keys<'_>, d: &mut Dense) -> Result<(), ModelError> {
    let bound = keys.nonzero("attention.clamp_kqv", None)?;
    d.attentions().for_each(|attention| attention.clamp = bound.map(|bound| Clamp { lo: -bound, hi: bound }));
    Ok(())
}

/// GPT-NeoX: the file says whether layers are side by side.
fn gptneox(keys: &Keys<'_>, d: &mut Dense) -> Result<(), ModelError> {
    let parallel: bool = keys.metadata.require(&keys.key("use_parallel_residual"))?;
    d.family.layout = if parallel { Layout::ParallelNorms } else { Layout::Sequential };
    Ok(())
}

/// StableLM: layers are side by side where there is no second norm; norms of queries and keys where the file has them.
fn stablelm(keys: &Keys<'_>, d: &mut Dense) -> Result<(), ModelError> {
    if keys.tensors.find("blk.0.ffn_norm.weight").is_none() {
        d.family.layout = Layout::Parallel;
    }
    normed_heads(keys, d);
    Ok(())
}

/// Baichuan: the number of blocks says how positions are known.
fn baichuan(keys: &Keys<'_>, d: &mut Dense) -> Result<(), ModelError> {
    const BLOCKS_OF_7B: usize = 32;
    const BLOCKS_OF_13B: usize = 40;
    match d.sizes.n_blocks {
        BLOCKS_OF_7B => {
            let rope = Rope::read(keys, &d.sizes, RopeMode::Normal)?;
            d.attentions().for_each(|attention| attention.rope = Some(rope.clone()));
        }
        BLOCKS_OF_13B => d.slope(MAX_BIAS),
        _ => {}
    }
    Ok(())
}

/// BLOOM: a norm of the embeddings.
fn bloom(keys: &Keys<'_>, d: &mut Dense) -> Result<(), ModelError> {
    d.norms_embedding = true;
    refact(keys, d)
}

/// Refact: slopes that files do not name.
fn refact(_: &Keys<'_>, d: &mut Dense) -> Result<(), ModelError> {
    d.slope(MAX_BIAS);
    Ok(())
}

/// MPT: slopes, bounds, positions, and norms of queries and keys, where the file has them.
fn mpt(keys: &Keys<'_>, d: &mut Dense) -> Result<(), ModelError> {
    d.slope(keys.nonzero("attention.max_alibi_bias", None)?.unwrap_or(0.0));
    d.family.positions = keys.tensors.find("position_embd.weight").is_some();
    normed_heads(keys, d);
    d.attentions().for_each(|attention| attention.norm_rows = true);
    clamped(keys, d)
}

/// Jais: slopes, and scores that are divided by the width of a head.
fn jais(keys: &Keys<'_>, d: &mut Dense) -> Result<(), ModelError> {
    d.slope(keys.positive("attention.max_alibi_bias", None)?);
    let scale = 1.0 / d.sizes.head_dim as f32;
    d.attentions().for_each(|attention| attention.scale = scale);
    Ok(())
}

/// Qwen 1: files name twice the width.
fn half_width(_: &Keys<'_>, d: &mut Dense) -> Result<(), ModelError> {
    let feed_forward = d.family.feed_forward;
    for block in &mut d.blocks {
        block.feed_forward = feed_forward.of_width(block.feed_forward.width() / 2);
    }
    Ok(())
}

/// Apertus: an activation with parameters of each block.
fn xielu(keys: &Keys<'_>, d: &mut Dense) -> Result<(), ModelError> {
    let n = d.sizes.n_blocks;
    let [negative, positive, linear, eps] =
        ["alpha_n", "alpha_p", "beta", "eps"].map(|name| keys.floats(&format!("xielu.{name}"), n));
    let (negative, positive, linear, eps) = (negative?, positive?, linear?, eps?);
    let softplus = |x: f32| x.max(0.0) + (-x.abs()).exp().ln_1p();
    for (i, block) in d.blocks.iter_mut().enumerate() {
        let linear = linear[i];
        let (positive, negative) = (softplus(positive[i]), linear + softplus(negative[i]));
        let xielu = Xielu { positive, negative, linear, eps: eps[i] };
        block.feed_forward = FeedForward::Xielu(xielu, block.feed_forward.width());
    }
    Ok(())
}

impl Architecture for Dense {
    fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    fn record(&self, m: &mut Recorder<'_>) -> Result<(), ModelError> {
        let x = m.input(|m| m.once(EMBEDDED, |m| self.embedding(m)))?;
        let x = m.blocks(x, |m, i, x| {
            let again = i > 0 && i % self.stored == 0 && self.norms_loops;
            let x = if again { m.outside(|m| self.normed(m, "output_norm", x))? } else { x };
            m.use_weights_of(i % self.stored);
            self.block(m, &self.blocks[i], x)
        })?;
        m.output(x, |m, x| {
            // Encoders may name the norm otherwise.
            let name = if m.has("enc.output_norm.weight") { "enc.output_norm" } else { "output_norm" };
            let x = self.normed(m, name, x)?;
            let logits = m.logits(x)?;
            let logits = scaled(m, self.logit_scale, logits)?;
            m.softcap(self.softcap, logits)
        })
    }
}

impl Dense {
    fn embedding(&self, m: &mut Recorder<'_>) -> Recorded {
        let mut x = m.embed("token_embd")?;
        if self.unit_embedding {
            x = m.unit(self.norm, x)?;
        }
        if self.norms_embedding {
            x = self.normed(m, "token_embd_norm", x)?;
        }
        x = scaled(m, self.embedding_scale, x)?;
        if self.family.positions {
            let positions = m.embed_positions("position_embd")?;
            x = m.add(x, positions)?;
        }
        Ok(x)
    }

    fn normed(&self, m: &mut Recorder<'_>, name: &str, x: TensorId) -> Recorded {
        match self.family.norm {
            Normed::BareRms | Normed::BareLayer => m.unit(self.norm, x),
            Normed::Rms | Normed::Layer => m.norm(name, self.norm, x),
        }
    }

    fn block(&self, m: &mut Recorder<'_>, block: &Block, x: TensorId) -> Recorded {
        let (layout, n_embd) = (self.family.layout, self.sizes.n_embd);
        if block.feed_forward.width() == 0 {
            let [x] = m.wanted([x])?;
            return Ok(x);
        }
        let (x, h, n) = self.attended(m, block, x)?;
        let f = match layout {
            Layout::Parallel => n,
            Layout::ParallelNorms => self.normed(m, self.family.ffn_norm, x)?,
            Layout::Post => h,
            Layout::Sequential | Layout::Sandwich => self.normed(m, self.family.ffn_norm, h)?,
        };
        let f = match &block.feed_forward {
            FeedForward::Experts(experts) => self.experts(m, experts, block.shared, x, f)?,
            layer if self.family.sub_norms || m.has(ACT_SCALES) => {
                let f = m.activated(layer, f)?;
                let f = if self.family.sub_norms {
                    m.norm("ffn_sub_norm", self.norm, f)?
                } else {
                    m.divided(ACT_SCALES, f)?
                };
                m.linear("ffn_down", n_embd, f)?
            }
            layer => m.feed_forward(layer, f)?,
        };
        let y = self.added(m, "post_ffw_norm", f, h)?;
        if !self.adds_embedding {
            return Ok(y);
        }
        let embedded = m.once(EMBEDDED, |m| self.embedding(m))?;
        let [embedded] = m.wanted([embedded])?;
        let embedded = m.times("layer_output_scale.weight", 1, embedded)?;
        m.add(y, embedded)
    }

    /// Records attention. Returns the rows that are wanted of the stream before and after it, and of its norm.
    fn attended(
        &self,
        m: &mut Recorder<'_>,
        block: &Block,
        x: TensorId,
    ) -> Result<(TensorId, TensorId, TensorId), ModelError> {
        let n_embd = self.sizes.n_embd;
        if block.attention.is_none() && !block.linear {
            let [x] = m.wanted([x])?;
            return Ok((x, x, x));
        }
        let n = if self.family.layout == Layout::Post { x } else { self.normed(m, "attn_norm", x)? };
        // Of two norms, the second is attention's.
        let own = if m.has("attn_norm_2.weight") { self.normed(m, "attn_norm_2", x)? } else { n };
        let a = match &block.attention {
            Some(attention) => m.attention(attention, own)?,
            None => own,
        };
        let [mut a, wanted] = m.wanted([a, x])?;
        // Of rows that are left out, no norm is needed, either.
        let n = if wanted == x || self.family.layout != Layout::Parallel {
            n
        } else {
            self.normed(m, "attn_norm", wanted)?
        };
        let x = wanted;
        if self.family.sub_norms {
            a = m.norm("attn_sub_norm", self.norm, a)?;
        }
        let a = m.linear("attn_output", n_embd, a)?;
        let h = self.added(m, "post_attention_norm", a, x)?;
        Ok((x, h, n))
    }

    /// Records the experts on `f`, and the shared one. `x` is the input of the block.
    fn experts(&self, m: &mut Recorder<'_>, experts: &Experts, shared: usize, x: TensorId, f: TensorId) -> Recorded {
        let mixture = self.family.experts.unwrap_or(SOFTMAX);
        let logits = m.linear("ffn_gate_inp", experts.count, if mixture.early { x } else { f })?;
        let y = m.routed(experts, logits, f)?;
        if shared == 0 {
            return Ok(y);
        }
        let s = match mixture.shared {
            Shared::Fused => {
                let s = m.fused_glu("ffn_up_shexp", mixture.kind, shared, f)?;
                m.linear("ffn_down_shexp", self.sizes.n_embd, s)?
            }
            _ => m.shared_expert(mixture.kind, shared, f)?,
        };
        m.add(y, s)
    }

    /// Adds a layer's result to the stream, perhaps normed and scaled.
    fn added(&self, m: &mut Recorder<'_>, post: &str, y: TensorId, x: TensorId) -> Recorded {
        let mut y = y;
        if matches!(self.family.layout, Layout::Sandwich | Layout::Post) {
            y = m.norm(post, self.post_norm, y)?;
        }
        let y = scaled(m, self.residual_scale, y)?;
        m.add(y, x)
    }
}

/// Multiplies by a factor, unless it is 1.
fn scaled(m: &mut Recorder<'_>, factor: f32, x: TensorId) -> Recorded {
    if factor == 1.0 { Ok(x) } else { m.scale(factor, x) }
}
