//! Hyperparameters from metadata, with checks.

use backend_api::op::{Norm, NormKind};

use super::Sizes;
use super::rope::LONG_FACTORS;
use super::weights::Tensors;
use crate::error::ModelError;
use crate::gguf::{FromValue, Metadata, Value};

/// Default size of the context; KV caches of whole training contexts would fill small GPUs.
pub const DEFAULT_N_CTX: usize = 2048;
/// Largest context: positions and ids must be exact where backends keep them as floats.
const MAX_N_CTX: usize = 1 << 24;
/// Largest width, far above that of any known model.
pub(super) const MAX_WIDTH: usize = 1 << 20;
/// Largest number of blocks.
pub(super) const MAX_BLOCKS: usize = 1 << 12;
/// Key of the number of key and value heads, which some architectures have for each block.
const HEADS_KV: &str = "attention.head_count_kv";

/// Key of the list of blocks with a sliding window.
const PATTERN: &str = "attention.sliding_window_pattern";

/// Numbers of query heads and of key and value heads of a block, if it has attention.
pub(super) type Heads = Option<[usize; 2]>;

/// Metadata keys of one architecture, such as `llama.block_count`.
pub(super) struct Keys<'a> {
    pub metadata: &'a Metadata,
    pub tensors: &'a Tensors,
    /// The requested context size.
    pub n_ctx: Option<usize>,
}

impl<'a> Keys<'a> {
    /// Returns the full key.
    pub fn key(&self, key: &str) -> String {
        format!("{}.{key}", self.tensors.architecture)
    }

    /// Makes an error about a key.
    pub fn wrong(&self, key: &str, reason: impl Into<String>) -> ModelError {
        ModelError::Hyper { key: self.key(key), reason: reason.into() }
    }

    /// Returns a value that may be absent.
    pub fn get<T: FromValue<'a>>(&self, key: &str) -> Result<Option<T>, ModelError> {
        Ok(self.metadata.get(&self.key(key))?)
    }

    /// Returns a size from 1 to `limit`, or `default` if the key is absent. Without a default the key is required.
    /// Per-layer arrays are accepted if all layers agree.
    pub fn size(&self, key: &str, limit: usize, default: Option<usize>) -> Result<usize, ModelError> {
        let name = self.key(key);
        let size = match (self.metadata.value(&name), default) {
            (None, Some(default)) => default,
            (Some(Value::Uints(_) | Value::Ints(_) | Value::Longs(_)), _) => {
                let layers: Vec<u32> = self.metadata.require(&name)?;
                match layers.split_first() {
                    Some((first, rest)) if rest.iter().all(|l| l == first) => *first as usize,
                    _ => return Err(self.wrong(key, "it differs from layer to layer, which is not supported")),
                }
            }
            _ => self.metadata.require(&name)?,
        };
        if (1..=limit).contains(&size) {
            return Ok(size);
        }
        Err(self.wrong(key, format!("{size} is not in 1 to {limit}")))
    }

    /// Returns a size for each block, from a list or from a single value.
    pub fn sizes_by_block(&self, key: &str, limit: usize, default: Option<usize>) -> Result<Vec<usize>, ModelError> {
        let n_blocks = self.size("block_count", MAX_BLOCKS, None)?;
        let name = self.key(key);
        if !matches!(self.metadata.value(&name), Some(Value::Uints(_) | Value::Ints(_) | Value::Longs(_))) {
            return Ok(vec![self.size(key, limit, default)?; n_blocks]);
        }
        let listed: Vec<u32> = self.metadata.require(&name)?;
        if listed.len() != n_blocks {
            return Err(self.wrong(key, format!("it lists {} blocks, but there are {n_blocks}", listed.len())));
        }
        match listed.iter().find(|size| !(1..=limit).contains(&(**size as usize))) {
            Some(size) => Err(self.wrong(key, format!("{size} is not in 1 to {limit}"))),
            None => Ok(listed.into_iter().map(|size| size as usize).collect()),
        }
    }

    /// Returns a number for each block, from a list or from a single value. It may be 0.
    pub fn counts_by_block(&self, key: &str, n_blocks: usize) -> Result<Vec<usize>, ModelError> {
        let name = self.key(key);
        let listed: Vec<u32> = match self.metadata.value(&name) {
            Some(Value::Uints(_) | Value::Ints(_) | Value::Longs(_)) => self.metadata.require(&name)?,
            _ => vec![self.metadata.require(&name)?; n_blocks],
        };
        if listed.len() != n_blocks {
            return Err(self.wrong(key, format!("it lists {} blocks, but there are {n_blocks}", listed.len())));
        }
        match listed.iter().find(|count| **count as usize > MAX_WIDTH) {
            Some(count) => Err(self.wrong(key, format!("{count} is above {MAX_WIDTH}"))),
            None => Ok(listed.into_iter().map(|count| count as usize).collect()),
        }
    }

    /// Returns a finite number for each of `n` blocks, from a list or from a single value of the whole file.
    pub fn floats(&self, name: &str, n: usize) -> Result<Vec<f32>, ModelError> {
        let values = match self.metadata.value(name) {
            Some(Value::Floats(_)) => self.metadata.require::<Vec<f32>>(name)?,
            _ => vec![self.metadata.require(name)?; n],
        };
        if values.len() == n && values.iter().all(|value| value.is_finite()) {
            return Ok(values);
        }
        Err(ModelError::Hyper {
            key: name.into(),
            reason: format!("{n} finite numbers are needed, one for each block"),
        })
    }

    /// Returns the number of channels that rotate: pairs, of at most `limit` channels.
    pub fn pairs(&self, key: &str, limit: usize, default: usize) -> Result<usize, ModelError> {
        let n_dims = self.size(key, limit, Some(default))?;
        if n_dims.is_multiple_of(2) {
            return Ok(n_dims);
        }
        Err(self.wrong(key, format!("{n_dims} channels make no pairs")))
    }

    /// Returns the sizes without the last blocks that predict tokens beyond the next one (MTP). They are not used.
    pub fn predicting_one(&self, sizes: Sizes) -> Result<Sizes, ModelError> {
        let key = "nextn_predict_layers";
        let ahead = self.get::<u32>(key)?.unwrap_or(0) as usize;
        match sizes.n_blocks.checked_sub(ahead).filter(|blocks| *blocks > 0) {
            Some(n_blocks) => Ok(Sizes { n_blocks, ..sizes }),
            None => Err(self.wrong(key, format!("the model has but {} blocks", sizes.n_blocks))),
        }
    }

    /// Returns a positive, finite number.
    pub fn positive(&self, key: &str, default: Option<f32>) -> Result<f32, ModelError> {
        let value = match (self.get::<f32>(key)?, default) {
            (Some(value), _) => value,
            (None, Some(default)) => default,
            (None, None) => self.metadata.require(&self.key(key))?,
        };
        if value.is_finite() && value > 0.0 {
            return Ok(value);
        }
        Err(self.wrong(key, format!("{value} is not a positive number")))
    }

    /// Returns the sizes of a transformer.
    pub fn sizes(&self) -> Result<Sizes, ModelError> {
        let n_head = self.size("attention.head_count", MAX_WIDTH, None)?;
        self.sizes_of(n_head, self.size(HEADS_KV, n_head, Some(n_head))?)
    }

    /// Returns the heads of each block. A block without attention has 0 in the file.
    pub fn heads_by_block(&self) -> Result<Vec<Heads>, ModelError> {
        let n_blocks = self.size("block_count", MAX_BLOCKS, None)?;
        let heads = self.counts_by_block("attention.head_count", n_blocks)?;
        let heads_kv = match self.metadata.value(&self.key(HEADS_KV)) {
            Some(_) => self.counts_by_block(HEADS_KV, n_blocks)?,
            None => heads.clone(),
        };
        let blocks: Vec<[usize; 2]> = heads.into_iter().zip(heads_kv).map(|(heads, kv)| [heads, kv]).collect();
        let wrong = |[heads, kv]: &[usize; 2]| *kv > 0 && !heads.is_multiple_of(*kv);
        if let Some(block) = blocks.iter().position(wrong) {
            let [heads, kv] = blocks[block];
            return Err(self.wrong(HEADS_KV, format!("{kv} does not divide the {heads} query heads of block {block}")));
        }
        Ok(blocks.into_iter().map(|block| Some(block).filter(|[heads, kv]| *heads > 0 && *kv > 0)).collect())
    }

    /// Returns the sizes of a transformer in which only some blocks have attention, those of the first that has, and
    /// the heads of each block.
    pub fn hybrid_sizes(&self) -> Result<(Sizes, Vec<Heads>), ModelError> {
        let blocks = self.heads_by_block()?;
        match blocks.iter().flatten().next() {
            Some([heads, heads_kv]) => Ok((self.sizes_of(*heads, *heads_kv)?, blocks)),
            None => Err(self.wrong(HEADS_KV, "one block must attend")),
        }
    }

    /// Returns the sizes of a model without attention.
    pub fn sizes_without_heads(&self) -> Result<Sizes, ModelError> {
        Ok(Sizes { n_head: 0, n_head_kv: 0, head_dim: 0, ..self.sizes_of(1, 1)? })
    }

    /// Returns for each of the first `n_blocks` whether it has attention: all but those that are listed as recurrent
    /// or, without a list, the last of each `period` of blocks. Metadata may set the period.
    pub fn attending(&self, n_blocks: usize, period: usize) -> Result<Vec<bool>, ModelError> {
        let key = "attention.recurrent_layers";
        if let Some(recurrent) = self.get::<Vec<bool>>(key)? {
            if recurrent.len() < n_blocks {
                return Err(self.wrong(key, format!("it lists {} of {n_blocks} blocks", recurrent.len())));
            }
            return Ok(recurrent[..n_blocks].iter().map(|recurrent| !recurrent).collect());
        }
        let period = self.size("full_attention_interval", MAX_BLOCKS, Some(period))?;
        Ok((0..n_blocks).map(|i| (i + 1) % period == 0).collect())
    }

    /// Returns the sizes of a transformer with so many heads.
    pub fn sizes_of(&self, n_head: usize, n_head_kv: usize) -> Result<Sizes, ModelError> {
        let n_embd = self.size("embedding_length", MAX_WIDTH, None)?;
        if !n_head.is_multiple_of(n_head_kv) {
            let reason = format!("{n_head_kv} does not divide {n_head} query heads");
            return Err(self.wrong(HEADS_KV, reason));
        }
        let whole = n_embd.is_multiple_of(n_head).then_some(n_embd / n_head);
        if whole.is_none() && self.metadata.value(&self.key("attention.key_length")).is_none() {
            let reason = format!("{n_head} heads do not divide the width {n_embd}");
            return Err(self.wrong("attention.head_count", reason));
        }
        let head_dim = self.size("attention.key_length", MAX_WIDTH / n_head, whole)?;
        if self.size("attention.value_length", MAX_WIDTH, Some(head_dim))? != head_dim {
            return Err(self.wrong("attention.value_length", "values as wide as keys are needed"));
        }
        self.sizes_with(n_head, n_head_kv, head_dim)
    }

    /// Returns the sizes of a transformer with heads of a known width.
    pub fn sizes_with(&self, n_head: usize, n_head_kv: usize, head_dim: usize) -> Result<Sizes, ModelError> {
        let n_ctx_train = self.size("context_length", MAX_N_CTX, None)?;
        let n_embd = self.size("embedding_length", MAX_WIDTH, None)?;
        let n_ctx = self.n_ctx.unwrap_or(n_ctx_train.min(DEFAULT_N_CTX));
        // Files with factors for long contexts may name the original context that the model was trained with.
        // BLOOM's slopes go on beyond it.
        let unlimited = self.tensors.find(LONG_FACTORS).is_some() || self.tensors.architecture == "bloom";
        let limit = if unlimited { MAX_N_CTX } else { n_ctx_train };
        if !(1..=limit).contains(&n_ctx) {
            return Err(ModelError::Context { asked: n_ctx, limit });
        }
        Ok(Sizes {
            n_ctx,
            n_ctx_train,
            n_embd,
            n_head,
            n_head_kv,
            head_dim,
            n_blocks: self.size("block_count", MAX_BLOCKS, None)?,
            n_vocab: self.tensors.rows_of("token_embd.weight", n_embd)?,
        })
    }

    /// Refuses mixtures of experts.
    pub fn dense(&self) -> Result<(), ModelError> {
        match self.get::<u64>("expert_count")? {
            Some(n) if n > 0 => Err(self.wrong("expert_count", "mixtures of experts are not supported")),
            _ => Ok(()),
        }
    }

    /// Returns the RMS norm.
    pub fn rms_norm(&self) -> Result<Norm, ModelError> {
        let eps = self.positive("attention.layer_norm_rms_epsilon", None)?;
        Ok(Norm { kind: NormKind::Rms, eps, heads: 1 })
    }

    /// Returns the layer norm.
    pub fn layer_norm(&self) -> Result<Norm, ModelError> {
        let eps = self.positive("attention.layer_norm_epsilon", None)?;
        Ok(Norm { kind: NormKind::Layer, eps, heads: 1 })
    }

    /// Returns a positive number; 0 stands for nothing.
    pub fn nonzero(&self, key: &str, default: Option<f32>) -> Result<Option<f32>, ModelError> {
        match self.get::<f32>(key)? {
            None => Ok(default),
            Some(0.0) => Ok(None),
            Some(_) => self.positive(key, None).map(Some),
        }
    }

    /// Returns for each block whether it has a sliding window: as listed or, without a list, all but the last of each
    /// `period` of blocks. Metadata may set the period.
    pub fn windowed(&self, n_blocks: usize, period: usize) -> Result<Vec<bool>, ModelError> {
        self.windowed_but(n_blocks, period, |i, period| (i + 1) % period == 0)
    }

    /// Returns for each block whether it has a sliding window: without a list, all but the first of each period.
    pub fn windowed_after_the_first(&self, n_blocks: usize, period: usize) -> Result<Vec<bool>, ModelError> {
        self.windowed_but(n_blocks, period, |i, period| i % period == 0)
    }

    /// Returns for each block whether it has a sliding window, if the file has a list.
    pub fn listed_windows(&self, n_blocks: usize) -> Result<Option<Vec<bool>>, ModelError> {
        let Some(Value::Bools(_)) = self.metadata.value(&self.key(PATTERN)) else { return Ok(None) };
        let listed: Vec<bool> = self.metadata.require(&self.key(PATTERN))?;
        if listed.len() == n_blocks {
            return Ok(Some(listed));
        }
        Err(self.wrong(PATTERN, format!("it lists {} blocks, but there are {n_blocks}", listed.len())))
    }

    fn windowed_but(
        &self,
        n_blocks: usize,
        period: usize,
        sees_all: impl Fn(usize, usize) -> bool,
    ) -> Result<Vec<bool>, ModelError> {
        if let Some(listed) = self.listed_windows(n_blocks)? {
            return Ok(listed);
        }
        let period = self.size(PATTERN, MAX_BLOCKS, Some(period))?;
        Ok((0..n_blocks).map(|i| !sees_all(i, period)).collect())
    }
}
