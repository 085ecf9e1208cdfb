//! Architectures: from a file's metadata to a [`Recipe`], and from that to graphs.
//!
//! Each architecture is a file: hyperparameters, and one function that goes through the model as its paper does. What it
//! does is recorded as a graph; which weights and states that takes follows from it.

use std::fmt::Debug;
use std::ops::Range;

use backend_api::Graph;

use crate::error::ModelError;
use crate::gguf::{Gguf, shown};
use crate::identity::Identifier;
use crate::kv_cache::KvCache;

mod altup;
mod attention;
mod bert;
mod choose;
mod experts;
mod falcon_h1;
#[cfg(test)]
mod families;
mod gemma2;
mod gemma3;
mod gemma3n;
mod gemma4;
mod gpt2;
mod gpt_oss;
mod granite;
mod granite_hybrid;
mod keys;
mod layers;
mod lfm2;
mod llama;
mod mamba;
mod mamba2;
mod mistral3;
mod modern_bert;
mod nomic_bert;
mod olmo2;
mod part;
mod per_layer;
mod phi3;
mod pooling;
mod qwen2;
mod qwen3;
mod qwen35;
mod recorder;
mod recurrent;
mod rope;
mod smollm3;
mod state;
#[cfg(test)]
mod tests;
mod weights;

pub use attention::Temperature;
pub use pooling::Pooling;
pub use state::{HISTORY, StateSpec};
pub use weights::{Contents, Weight};

use keys::Keys;
use recorder::{Recorder, Step};
use weights::Tensors;

/// The output of [`Head::Logits`] and [`Head::AllLogits`].
pub const LOGITS: &str = "logits";
/// The name of the tokens that a graph with [`Head::AllGreedy`], [`Head::AllSample`] or [`Head::AllAdjusted`] makes.
pub const CHOSEN: &str = "chosen";
/// The input `[1, n_vocab]` of heads with adjusted logits: what is added to each.
pub const BIAS: &str = "bias";
/// The input of heads with adjusted logits that [`Penalties`](backend_api::op::Penalties) are.
pub const PENALTIES: &str = "penalties";
/// The output of heads that tell probabilities: that of the chosen token, and those of the likeliest.
pub const PROBABILITIES: &str = "probabilities";
/// The likeliest tokens, likewise.
pub const BEST: &str = "best";
/// The output of [`Head::Embedding`].
pub const EMBEDDING: &str = "embedding";
/// The input `[rows, n_embd]` of a stage that does not embed tokens: what the stage before made. Models with several
/// streams hand over all of them.
pub const HIDDEN_IN: &str = "hidden_in";
/// The output of a stage without a head, likewise: what the next stage goes on from.
pub const HIDDEN_OUT: &str = "hidden_out";

/// An architecture of which a file's hyperparameters were read.
trait Architecture: Debug {
    /// The sizes.
    fn sizes(&self) -> &Sizes;

    /// Columns of what one stage hands to the next.
    fn hidden(&self) -> usize {
        self.sizes().n_embd
    }

    /// The block whose keys and values a block uses: its own or one before it, which must be in the same stage.
    fn keys_of(&self, block: usize) -> usize {
        block
    }

    /// Goes through the model: its input, its blocks, its output.
    fn record(&self, m: &mut Recorder<'_>) -> Result<(), ModelError>;
}

/// Reads hyperparameters.
type Read = fn(&Keys<'_>) -> Result<Box<dyn Architecture>, ModelError>;

/// The architectures by the names that files give them.
const ARCHITECTURES: &[(&str, Read)] = &[
    ("gpt2", gpt2::read),
    ("llama", llama::read),
    ("qwen2", qwen2::read),
    ("qwen3", qwen3::read),
    ("gemma2", gemma2::read),
    ("gemma3", gemma3::read),
    ("gemma3n", gemma3n::read),
    ("gemma4", gemma4::read),
    ("phi3", phi3::read),
    ("smollm3", smollm3::read),
    ("mistral3", mistral3::read),
    ("olmo2", olmo2::read),
    ("granite", granite::read),
    ("lfm2", lfm2::read),
    ("qwen3moe", qwen3::read_moe),
    ("granitemoe", granite::read_moe),
    ("lfm2moe", lfm2::read_moe),
    ("gpt-oss", gpt_oss::read),
    ("mamba", mamba::read),
    ("mamba2", mamba2::read),
    ("falcon-h1", falcon_h1::read),
    ("granitehybrid", granite_hybrid::read),
    ("qwen35", qwen35::read),
    ("qwen35moe", qwen35::read),
    ("qwen3next", qwen35::read_next),
];

/// Readers of encoders: models whose tokens see each other whatever their order, and that make no text.
const ENCODERS: &[(&str, Read)] = &[
    ("bert", bert::read),
    ("nomic-bert", nomic_bert::read),
    ("modern-bert", modern_bert::read),
    ("gemma-embedding", gemma3::read),
];

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
    /// Blocks.
    pub n_blocks: usize,
    /// Size of the vocabulary.
    pub n_vocab: usize,
}

/// Output after the blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Head {
    /// Nothing: keys and values are all that a prefill leaves but for its last part.
    None,
    /// The best token, written into the history after the step's rows.
    Greedy,
    /// A token drawn from the best [`TopK::MAX`](backend_api::op::TopK::MAX), written likewise.
    Sample,
    /// The best token after each row, as the output [`CHOSEN`] `[rows]`: what verifies a draft.
    AllGreedy,
    /// A token drawn after each row likewise.
    AllSample,
    /// A token written likewise, of logits that are adjusted by penalties and biases: those in [`PENALTIES`] and [`BIAS`].
    Adjusted {
        /// Whether it is drawn; else it is the best one.
        sample: bool,
        /// Whether the outputs [`PROBABILITIES`] and [`BEST`] are made, of the logits as they were.
        log_probs: bool,
    },
    /// A token after each row as the output [`CHOSEN`], of logits that are adjusted likewise.
    AllAdjusted {
        /// Whether it is drawn; else it is the best one.
        sample: bool,
    },
    /// A token after each row, written into the history after it: that of a sequence of its own, as in the graphs of
    /// [`Recipe::graph_of_sequences`].
    Each {
        /// Whether it is drawn; else it is the best one.
        sample: bool,
    },
    /// The logits of the last row, as the output [`LOGITS`] `[1, n_vocab]`.
    Logits,
    /// The logits of all rows `[rows, n_vocab]`.
    AllLogits,
    /// The embedding of a whole text, as the output [`EMBEDDING`] `[1, width]`; `[rows, width]` if nothing is pooled.
    /// The step begins at position 0 and needs no KV cache.
    Embedding,
}

/// A part of a model that a machine may run by itself. Stages hand over activations: the output [`HIDDEN_OUT`] of one is
/// the input [`HIDDEN_IN`] of the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// Whether it embeds the tokens; its blocks then begin with the first.
    pub embed: bool,
    /// Its blocks.
    pub blocks: Range<usize>,
    /// Whether it makes the logits; its blocks then end with the last.
    pub head: bool,
}

impl Stage {
    /// All of a model.
    fn whole(sizes: &Sizes) -> Stage {
        Stage { embed: true, blocks: 0..sizes.n_blocks, head: true }
    }

    /// Refuses what no model can be cut into.
    fn check(&self, sizes: &Sizes) -> Result<(), ModelError> {
        let Range { start, end } = self.blocks;
        let why = if start > end || end > sizes.n_blocks {
            format!("are not among the model's {}", sizes.n_blocks)
        } else if self.embed && start > 0 {
            "cannot follow the embedding; begin with block 0".into()
        } else if self.head && end < sizes.n_blocks {
            format!("cannot go before the head; end with block {}", sizes.n_blocks)
        } else if start == end && !self.embed && !self.head {
            "leave nothing to do; give the stage a block, the embedding or the head".into()
        } else {
            return Ok(());
        };
        Err(ModelError::Options(format!("a stage's blocks {start}..{end} {why}")))
    }
}

/// A model, or a stage of one, as data: sizes, the weights to load, and graphs of its steps.
#[derive(Debug)]
pub struct Recipe {
    architecture: Box<dyn Architecture>,
    tensors: Tensors,
    stage: Stage,
    kv_cache: KvCache,
    causal: bool,
    pooling: Option<Pooling>,
    weights: Vec<Weight>,
    identifier: Identifier,
}

impl Recipe {
    /// Reads what a file says of its model. `n_ctx` is the context wanted; by default the training context, but at
    /// most 2048.
    ///
    /// *Errors*: an architecture that is not supported, malformed metadata, missing or misshapen tensors, a context
    /// longer than the model allows.
    pub fn new(gguf: &Gguf, n_ctx: Option<usize>) -> Result<Recipe, ModelError> {
        let found: &str = gguf.metadata.require("general.architecture")?;
        let all = || ARCHITECTURES.iter().chain(ENCODERS);
        let Some(&(name, read)) = all().find(|(name, _)| *name == found) else {
            // With experts a family goes by the same name and "moe"; it is named once, so that the list stays short.
            let known = |name: &str| all().any(|(other, _)| *other == name);
            let families = all().map(|(name, _)| *name).filter(|name| !name.strip_suffix("moe").is_some_and(known));
            let supported = families.collect::<Vec<_>>().join(", ");
            return Err(ModelError::Architecture { found: shown(found), supported });
        };
        let tensors = Tensors::new(gguf, name);
        let keys = Keys { metadata: &gguf.metadata, tensors: &tensors, n_ctx };
        let architecture = read(&keys)?;
        let encodes = ENCODERS.iter().any(|(encoder, _)| *encoder == name);
        let causal = keys.get("attention.causal")?.unwrap_or(!encodes);
        let pooling = Pooling::read(&keys, encodes || !causal)?;
        let stage = Stage::whole(architecture.sizes());
        let (kv_cache, weights) = (KvCache::default(), Vec::new());
        let identifier = Identifier::new(name, &gguf.metadata);
        Recipe { architecture, tensors, stage, kv_cache, causal, pooling, weights, identifier }.with_listed_weights()
    }

    fn with_listed_weights(self) -> Result<Recipe, ModelError> {
        let head = if self.pooling.is_some() { Head::Embedding } else { Head::Logits };
        let weights = self.record(1, head, self.sizes().n_ctx)?.into_weights();
        Ok(Recipe { weights, ..self })
    }

    /// Makes an embedding model that pools in this way, whatever the file says.
    ///
    /// *Errors*: tensors that pooling needs are missing or misshapen.
    pub fn with_pooling(self, pooling: Pooling) -> Result<Recipe, ModelError> {
        Recipe { pooling: Some(pooling), ..self }.with_listed_weights()
    }

    /// Sets the dtype of the KV cache.
    pub fn with_kv_cache(self, kv_cache: KvCache) -> Recipe {
        Recipe { kv_cache, ..self }
    }

    /// A part of the same model: its weights, states and graphs are those of the stage alone.
    ///
    /// *Errors*: blocks that the model does not have, or that cannot be next to its embedding or head.
    pub fn with_stage(self, stage: Stage) -> Result<Recipe, ModelError> {
        stage.check(self.sizes())?;
        if let Some(block) = stage.blocks.clone().find(|block| self.keys_of(*block) < stage.blocks.start) {
            let (start, of) = (stage.blocks.start, self.keys_of(block));
            let why =
                format!("block {block} uses the keys of block {of}, so that no stage can begin with block {start}");
            return Err(ModelError::Options(why));
        }
        Recipe { stage, ..self }.with_listed_weights()
    }

    /// The architecture's name.
    pub fn architecture(&self) -> &'static str {
        self.tensors.architecture
    }

    /// The sizes of the whole model.
    pub fn sizes(&self) -> &Sizes {
        self.architecture.sizes()
    }

    /// The number of blocks of the whole model.
    pub fn n_blocks(&self) -> usize {
        self.sizes().n_blocks
    }

    /// Columns of what one stage hands to the next.
    pub fn hidden(&self) -> usize {
        self.architecture.hidden()
    }

    /// Whether the stage looks at tokens: the first one does, and any where blocks have inputs of their own.
    ///
    /// *Errors*: as [`Self::graph`].
    pub fn reads_tokens(&self) -> Result<bool, ModelError> {
        Ok(self.graph(1, Head::Logits)?.externals().any(|(_, tensor)| tensor.name == HISTORY))
    }

    /// The block whose keys and values a block uses: its own or one before it. A stage has both or neither.
    pub fn keys_of(&self, block: usize) -> usize {
        self.architecture.keys_of(block)
    }

    /// The part of the model that this is.
    pub fn stage(&self) -> &Stage {
        &self.stage
    }

    /// Whether it is all of the model.
    pub fn is_whole(&self) -> bool {
        self.stage == Stage::whole(self.sizes())
    }

    /// How it makes one vector of a text, if it is an embedding model: those make no text.
    pub fn pooling(&self) -> Option<Pooling> {
        self.pooling
    }

    /// The head of the steps that the model is for.
    pub fn head(&self) -> Head {
        if self.pooling.is_some() { Head::Embedding } else { Head::Greedy }
    }

    /// Returns the dtype of the KV cache.
    pub fn kv_cache(&self) -> KvCache {
        self.kv_cache
    }

    /// The beginning of the model's identity, to which loading adds what it reads.
    pub(crate) fn identifier(&self) -> Identifier {
        self.identifier.clone()
    }

    /// Returns the weights to load, in the order of use.
    pub fn weights(&self) -> &[Weight] {
        &self.weights
    }

    /// The states that a session needs, in the order of use, with caches of the whole context.
    ///
    /// *Errors*: sizes that do not fit together.
    pub fn states(&self) -> Result<Vec<StateSpec>, ModelError> {
        self.states_for(self.sizes().n_ctx)
    }

    /// Returns the states with caches that have room for so many positions.
    ///
    /// *Errors*: as [`Self::states`].
    pub fn states_for(&self, capacity: usize) -> Result<Vec<StateSpec>, ModelError> {
        Ok(self.record(1, self.head(), capacity)?.into_states())
    }

    /// The graph of a step of up to `rows` tokens. Its externals have the same names, shapes and dtypes whatever the
    /// rows and the head, so that programs share their storages; but for [`HIDDEN_IN`] and outputs, which have `rows`.
    ///
    /// With [`Head::None`] the last stage hands nothing over. A stage before it does not mind the head.
    ///
    /// *Errors*: sizes that do not fit together; a stage that has nothing to do for this head; text of an embedding
    /// model, or an embedding of another one.
    pub fn graph(&self, rows: usize, head: Head) -> Result<Graph, ModelError> {
        self.graph_for(rows, head, self.sizes().n_ctx)
    }

    /// Records the graph with caches that have room for so many positions: those of [`Self::states_for`].
    ///
    /// *Errors*: as [`Self::graph`].
    pub fn graph_for(&self, rows: usize, head: Head, capacity: usize) -> Result<Graph, ModelError> {
        self.record(rows, head, capacity)?.into_graph()
    }

    /// The graph of a step that advances up to `rows` of so many sequences by a token each, which [`Head::Each`] chooses. Its
    /// states are those of [`Self::states_of_sequences`].
    ///
    /// *Errors*: as [`Self::graph`]; fewer than two sequences.
    pub fn graph_of_sequences(
        &self,
        rows: usize,
        sample: bool,
        capacity: usize,
        sequences: usize,
    ) -> Result<Graph, ModelError> {
        self.record_of(rows, Head::Each { sample }, capacity, sequences)?.into_graph()
    }

    /// The states of so many sequences, one after another in each, with room for so many positions of each.
    ///
    /// *Errors*: as [`Self::states`]; fewer than two sequences.
    pub fn states_of_sequences(&self, capacity: usize, sequences: usize) -> Result<Vec<StateSpec>, ModelError> {
        Ok(self.record_of(1, Head::Each { sample: false }, capacity, sequences)?.into_states())
    }

    fn record(&self, rows: usize, head: Head, capacity: usize) -> Result<Recorder<'_>, ModelError> {
        self.record_of(rows, head, capacity, 1)
    }

    fn record_of(
        &self,
        rows: usize,
        head: Head,
        capacity: usize,
        sequences: usize,
    ) -> Result<Recorder<'_>, ModelError> {
        if matches!(head, Head::Each { .. }) != (sequences > 1) {
            let why = format!("{head:?} is not for steps of {sequences} sequences; ask for two or more, and for each");
            return Err(ModelError::Options(why));
        }
        let Recipe { tensors, stage, kv_cache, causal, pooling, .. } = self;
        match (head, pooling) {
            (Head::Embedding, None) => return Err(ModelError::NoPooling { architecture: self.architecture() }),
            (Head::Embedding, Some(_)) | (_, None) => {}
            (_, Some(_)) => return Err(ModelError::NoText { architecture: self.architecture() }),
        }
        let (sizes, causal, pooling) = (self.sizes(), *causal, *pooling);
        let hidden = self.architecture.hidden();
        let kv_cache = *kv_cache;
        let step = Step { tensors, sizes, stage, kv_cache, capacity, sequences, causal, pooling, rows, head, hidden };
        let mut recorder = Recorder::new(step);
        self.architecture.record(&mut recorder)?;
        Ok(recorder)
    }
}
