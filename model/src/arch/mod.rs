//! Architectures: they read a file's metadata into a [`Recipe`], which makes the graphs of steps.
//!
//! Each architecture is a file with its hyperparameters and one function that goes through the model as its paper does.
//! The function is recorded as a graph, and the weights and states follow from that.

use std::fmt::Debug;
use std::ops::Range;

use backend_api::Graph;

use crate::error::ModelError;
use crate::gguf::{Gguf, shown};

mod altup;
mod attention;
mod bert;
mod budget;
mod choose;
mod classifier;
mod decoder;
mod dense;
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
mod head;
mod hrm_text;
mod identity;
mod jamba;
mod keys;
mod kv_cache;
mod layers;
mod lfm2;
mod llama;
mod mamba;
mod mamba2;
mod mistral3;
mod mla;
mod modern_bert;
mod nemotron_h;
mod olmo2;
mod part;
mod per_layer;
mod phi3;
mod plamo2;
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
pub use choose::MAX_TOP;
pub use head::{Head, OutputRows, TokenChoice};
pub(crate) use identity::Identifier;
pub use identity::Identity;
pub use keys::DEFAULT_N_CTX;
pub use kv_cache::KvCache;
pub use pooling::Pooling;
pub(crate) use state::ALIGNED;
pub use state::{HISTORY, StateSpec};
pub use weights::{Contents, Weight};

use classifier::Classifier;
use keys::Keys;
use recorder::{Recorder, Step};
use weights::Tensors;

/// Name of the output of [`Head::logits`].
pub const LOGITS: &str = "logits";
/// Name of the output with a token after each row, in graphs whose [`Head::token`] is for all rows.
pub const CHOSEN: &str = "chosen";
/// Name of the input `[1, n_vocab]` of heads with adjusted logits: the bias of each token.
pub const BIAS: &str = "bias";
/// Name of the input of heads with adjusted logits: [`Penalties`](backend_api::op::Penalties).
pub const PENALTIES: &str = "penalties";
/// Name of the output of heads that report probabilities: those of the chosen token and of the likeliest ones.
pub const PROBABILITIES: &str = "probabilities";
/// Name of the output of heads that report probabilities: the ids of the likeliest tokens.
pub const BEST: &str = "best";
/// Name of the output of [`Head::embedding`].
pub const EMBEDDING: &str = "embedding";
/// Name of the input `[rows, n_embd]` of a stage that does not embed tokens: the output of the stage before. Models
/// with several residual streams pass all of them.
pub const HIDDEN_IN: &str = "hidden_in";
/// Name of the output `[rows, n_embd]` of a stage without a head: the input of the next stage.
pub const HIDDEN_OUT: &str = "hidden_out";

/// An architecture with the hyperparameters of a file.
trait Architecture: Debug {
    /// Returns the sizes.
    fn sizes(&self) -> &Sizes;

    /// Returns the width of the activations between stages.
    fn hidden(&self) -> usize {
        self.sizes().n_embd
    }

    /// Returns the block whose keys and values a block uses: itself, or an earlier one, which must be in the same
    /// stage.
    fn keys_of(&self, block: usize) -> usize {
        block
    }

    /// Records the model: its input, its blocks, its output.
    fn record(&self, m: &mut Recorder<'_>) -> Result<(), ModelError>;
}

/// Reader of an architecture's hyperparameters.
type Read = fn(&Keys<'_>) -> Result<Box<dyn Architecture>, ModelError>;

/// Architectures with a page of their own, by their names in files. Those of [`dense`] share one.
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
    ("nemotron_h", nemotron_h::read),
    ("nemotron_h_moe", nemotron_h::read),
    ("jamba", jamba::read),
    ("plamo2", plamo2::read),
    ("qwen35", qwen35::read),
    ("qwen35moe", qwen35::read),
    ("qwen3next", qwen35::read_next),
    ("hrm_text", hrm_text::read),
];

/// Number of architectures that are named where another one is refused.
const SHOWN: usize = 14;

/// Readers of encoders: models with bidirectional attention, which do not generate text.
const ENCODERS: &[(&str, Read)] = &[
    ("bert", bert::read),
    ("nomic-bert", bert::read),
    ("nomic-bert-moe", bert::read),
    ("jina-bert-v2", bert::read),
    ("jina-bert-v3", bert::read),
    ("modern-bert", modern_bert::read),
    ("gemma-embedding", gemma3::read),
];

/// Architectures of models that fill in masked tokens (diffusion): their tokens see each other, and have logits.
const DIFFUSERS: &[&str] = &["dream", "llada"];

/// Sizes of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Size of the context in tokens.
    pub n_ctx: usize,
    /// Size of the training context in tokens.
    pub n_ctx_train: usize,
    /// Width of the residual stream.
    pub n_embd: usize,
    /// Number of query heads.
    pub n_head: usize,
    /// Number of key and value heads.
    pub n_head_kv: usize,
    /// Width of a head.
    pub head_dim: usize,
    /// Number of blocks (layers).
    pub n_blocks: usize,
    /// Size of the vocabulary.
    pub n_vocab: usize,
}

/// A part of a model that a machine may run alone (pipeline parallelism). Stages pass activations: the output
/// [`HIDDEN_OUT`] of one is the input [`HIDDEN_IN`] of the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// Whether it embeds the tokens. Its blocks then begin with the first.
    pub embed: bool,
    /// The blocks.
    pub blocks: Range<usize>,
    /// Whether it computes the logits. Its blocks then end with the last.
    pub head: bool,
}

impl Stage {
    /// Makes the stage that is the whole model.
    fn whole(sizes: &Sizes) -> Stage {
        Stage { embed: true, blocks: 0..sizes.n_blocks, head: true }
    }

    /// Refuses a stage that cannot be a part of the model.
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

/// Description of a model, or of a stage of one: sizes, the weights to load, and graphs of its steps.
#[derive(Debug)]
pub struct Recipe {
    architecture: Box<dyn Architecture>,
    tensors: Tensors,
    stage: Stage,
    kv_cache: KvCache,
    causal: bool,
    pooling: Option<Pooling>,
    classifier: Option<Classifier>,
    weights: Vec<Weight>,
    identifier: Identifier,
}

impl Recipe {
    /// Reads the description of a file's model. `n_ctx` is the context size; by default that of training, but at most
    /// 2048.
    ///
    /// *Errors*: an unsupported architecture, malformed metadata, missing or misshapen tensors, a context longer than
    /// the model allows.
    pub fn new(gguf: &Gguf, n_ctx: Option<usize>) -> Result<Recipe, ModelError> {
        let found: &str = gguf.metadata.require("general.architecture")?;
        let dense = || dense::FAMILIES.iter().chain(dense::ENCODERS).map(|(name, _)| (*name, dense::read as Read));
        let all = || ARCHITECTURES.iter().chain(ENCODERS).copied().chain(dense());
        let Some((name, read)) = all().find(|(name, _)| *name == found) else {
            // Messages are short.
            let families: Vec<&str> = ARCHITECTURES.iter().map(|(name, _)| *name).take(SHOWN).collect();
            let supported = format!("{} and {} more", families.join(", "), all().count() - families.len());
            return Err(ModelError::Architecture { found: shown(found), supported });
        };
        let tensors = Tensors::new(gguf, name);
        let mut keys = Keys { metadata: &gguf.metadata, tensors: &tensors, n_ctx };
        let encodes = ENCODERS.iter().any(|(encoder, _)| *encoder == name)
            || dense::ENCODERS.iter().any(|(encoder, _)| *encoder == name);
        if encodes && let (Some(asked), Some(most)) = (n_ctx, keys.get::<u32>("context_length")?) {
            // Texts of encoders are read at once and do not go on: a larger limit is that of training.
            keys.n_ctx = Some(asked.min(most as usize));
        }
        let architecture = read(&keys)?;
        let diffuses = DIFFUSERS.contains(&name);
        let causal = !diffuses && keys.get("attention.causal")?.unwrap_or(!encodes);
        let pooling = Pooling::read(&keys, encodes || !causal && !diffuses)?;
        let classifier = Classifier::read(&keys)?;
        let stage = Stage::whole(architecture.sizes());
        let (kv_cache, weights) = (KvCache::default(), Vec::new());
        let identifier = Identifier::new(name, &gguf.metadata);
        Recipe { architecture, tensors, stage, kv_cache, causal, pooling, classifier, weights, identifier }
            .with_listed_weights()
    }

    fn with_listed_weights(self) -> Result<Recipe, ModelError> {
        let head = if self.pooling.is_some() { Head::EMBEDDING } else { Head::LOGITS };
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

    /// Restricts the description to a stage of the model: its weights, states and graphs.
    ///
    /// *Errors*: blocks that the model does not have, or that cannot be next to its embedding or head.
    pub fn with_stage(self, stage: Stage) -> Result<Recipe, ModelError> {
        stage.check(self.sizes())?;
        if self.pooling.is_none() {
            self.makes_text()?;
        }
        if let Some(block) = stage.blocks.clone().find(|block| self.keys_of(*block) < stage.blocks.start) {
            let (start, of) = (stage.blocks.start, self.keys_of(block));
            let why =
                format!("block {block} uses the keys of block {of}, so that no stage can begin with block {start}");
            return Err(ModelError::Options(why));
        }
        Recipe { stage, ..self }.with_listed_weights()
    }

    /// Returns the architecture's name.
    pub fn architecture(&self) -> &'static str {
        self.tensors.architecture
    }

    /// Returns the sizes of the whole model.
    pub fn sizes(&self) -> &Sizes {
        self.architecture.sizes()
    }

    /// Returns the number of blocks of the whole model.
    pub fn n_blocks(&self) -> usize {
        self.sizes().n_blocks
    }

    /// Returns the width of the activations between stages.
    pub fn hidden(&self) -> usize {
        self.architecture.hidden()
    }

    /// Returns whether the stage reads tokens: the first one does, and any stage whose blocks have per-layer
    /// embeddings.
    ///
    /// *Errors*: as [`Self::graph`].
    pub fn reads_tokens(&self) -> Result<bool, ModelError> {
        Ok(self.graph(1, Head::LOGITS)?.externals().any(|(_, tensor)| tensor.name == HISTORY))
    }

    /// Returns whether its blocks keep states. If they do not, a step without an output has no work: there are no
    /// blocks, or only feed-forward layers.
    ///
    /// *Errors*: as [`Self::states`].
    pub fn keeps_states(&self) -> Result<bool, ModelError> {
        Ok(self.states()?.iter().any(|state| state.name != HISTORY))
    }

    /// Returns the block whose keys and values a block uses: itself, or an earlier one, which is in the same stage.
    pub fn keys_of(&self, block: usize) -> usize {
        self.architecture.keys_of(block)
    }

    /// Returns the stage that this describes.
    pub fn stage(&self) -> &Stage {
        &self.stage
    }

    /// Returns whether it is the whole model.
    pub fn is_whole(&self) -> bool {
        self.stage == Stage::whole(self.sizes())
    }

    /// Returns the pooling of an embedding model; nothing for a language model.
    pub fn pooling(&self) -> Option<Pooling> {
        self.pooling
    }

    /// Checks that the model makes one vector of a text, or scores if `scores`.
    ///
    /// *Errors*: it makes something else.
    pub fn check_pooled(&self, scores: bool) -> Result<(), ModelError> {
        let architecture = self.architecture();
        match (self.pooling, scores) {
            (None, false) => Err(ModelError::NoPooling { architecture }),
            (Some(Pooling::Rank), false) => Err(ModelError::OnlyScores { architecture }),
            (Some(Pooling::Rank), true) => Ok(()),
            (_, true) => Err(ModelError::NoClassifier { architecture }),
            (Some(Pooling::None), false) => Err(ModelError::Options(
                "this model makes a vector of each token, not of a text; load it with a pooling, such as mean".into(),
            )),
            (Some(_), false) => Ok(()),
        }
    }

    /// Returns the usual head of the model's steps: that of an embedding or of a greedy token, or logits if the model
    /// does not choose tokens one by one.
    pub fn head(&self) -> Head {
        match (self.pooling, self.causal) {
            (Some(_), _) => Head::EMBEDDING,
            (None, true) => Head::GREEDY,
            (None, false) => Head::LOGITS,
        }
    }

    /// Returns whether tokens see only those before them. Otherwise a text is computed in a single step.
    pub fn is_causal(&self) -> bool {
        self.causal
    }

    /// Checks that the model continues texts, token by token.
    ///
    /// *Errors*: an embedding model, or one that fills in masked tokens.
    pub fn makes_text(&self) -> Result<(), ModelError> {
        let architecture = self.architecture();
        match (self.pooling, self.causal) {
            (Some(_), _) => Err(self.no_text()),
            (None, true) => Ok(()),
            (None, false) => Err(ModelError::Diffusion { architecture }),
        }
    }

    /// Returns the error of a model that makes vectors or scores, when text is asked for.
    pub fn no_text(&self) -> ModelError {
        let architecture = self.architecture();
        match self.pooling {
            Some(Pooling::Rank) => ModelError::OnlyScores { architecture },
            _ => ModelError::NoText { architecture },
        }
    }

    /// Returns the dtype of the KV cache.
    pub fn kv_cache(&self) -> KvCache {
        self.kv_cache
    }

    /// Returns the beginning of the model's identity, to which loading adds the weights.
    pub(crate) fn identifier(&self) -> Identifier {
        self.identifier.clone()
    }

    /// Returns the weights to load, in the order of use.
    pub fn weights(&self) -> &[Weight] {
        &self.weights
    }

    /// Returns the states of a session in the order of use, with caches for the whole context.
    ///
    /// *Errors*: inconsistent sizes.
    pub fn states(&self) -> Result<Vec<StateSpec>, ModelError> {
        self.states_for(self.sizes().n_ctx)
    }

    /// Returns the states with caches that have room for so many positions.
    ///
    /// *Errors*: as [`Self::states`].
    pub fn states_for(&self, capacity: usize) -> Result<Vec<StateSpec>, ModelError> {
        Ok(self.record(1, self.head(), capacity)?.into_states())
    }

    /// Makes the graph of a step of up to `rows` tokens. The names, shapes and dtypes of its external tensors do not
    /// depend on `rows` and `head`, so that programs share their storages; except for [`HIDDEN_IN`] and the outputs,
    /// which have `rows`.
    ///
    /// With [`Head::NONE`], the last stage has no output. Earlier stages ignore the head.
    ///
    /// *Errors*: inconsistent sizes; a stage without work for this head; text from an embedding model, or an embedding
    /// from a language model.
    pub fn graph(&self, rows: usize, head: Head) -> Result<Graph, ModelError> {
        self.graph_for(rows, head, self.sizes().n_ctx)
    }

    /// Makes the graph of a step with caches for so many positions: those of [`Self::states_for`].
    ///
    /// *Errors*: as [`Self::graph`].
    pub fn graph_for(&self, rows: usize, head: Head, capacity: usize) -> Result<Graph, ModelError> {
        self.record(rows, head, capacity)?.into_graph()
    }

    /// Makes the graph of a batched step: up to `rows` of so many sequences advance by one token each. Each row is the
    /// last one of its sequence. Its states are those of [`Self::states_of_sequences`].
    ///
    /// *Errors*: as [`Self::graph`]; fewer than two sequences; a head that chooses no token.
    pub fn graph_of_sequences(
        &self,
        rows: usize,
        head: Head,
        capacity: usize,
        sequences: usize,
    ) -> Result<Graph, ModelError> {
        if sequences < 2 || head.rows != OutputRows::Last || head.token.is_none() {
            let why = format!(
                "a step of {sequences} sequences cannot have the outputs {head:?}; ask for a token of two or more"
            );
            return Err(ModelError::Options(why));
        }
        self.record_of(rows, head, capacity, sequences)?.into_graph()
    }

    /// Returns the states of so many sequences. Each state has room for so many positions of each sequence, one
    /// sequence after another.
    ///
    /// *Errors*: as [`Self::states`]; fewer than two sequences.
    pub fn states_of_sequences(&self, capacity: usize, sequences: usize) -> Result<Vec<StateSpec>, ModelError> {
        Ok(self.record_of(1, Head::GREEDY, capacity, sequences)?.into_states())
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
        let Recipe { tensors, stage, kv_cache, causal, pooling, .. } = self;
        match (head.embedding, pooling) {
            (true, None) => return Err(ModelError::NoPooling { architecture: self.architecture() }),
            (false, Some(_)) => return Err(self.no_text()),
            (true, Some(_)) | (false, None) => {}
        }
        if head.token.is_some() || sequences > 1 {
            self.makes_text()?;
        }
        let (sizes, causal) = (self.sizes(), *causal);
        let classifier = self.classifier.filter(|_| *pooling == Some(Pooling::Rank));
        let pooling = match (*pooling, classifier) {
            (Some(Pooling::Rank), None) => return Err(ModelError::NoClassifier { architecture: self.architecture() }),
            (Some(Pooling::Rank), Some(classifier)) => Some(classifier.of),
            (other, _) => other,
        };
        let hidden = self.architecture.hidden();
        let kv_cache = *kv_cache;
        let step = Step {
            tensors,
            sizes,
            stage,
            kv_cache,
            capacity,
            sequences,
            causal,
            pooling,
            classifier,
            rows,
            head,
            hidden,
        };
        let mut recorder = Recorder::new(step);
        self.architecture.record(&mut recorder)?;
        Ok(recorder)
    }
}
