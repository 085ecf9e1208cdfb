//! Inputs of planning: a model, workers, and the aim of a chain.

use anygpu_pool_proto::Range;

/// A model's sizes. *Units*: bytes. States are those of all sessions of a worker.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Model {
    /// Number of blocks.
    pub blocks: u32,
    /// Weights of a block.
    pub block_bytes: u64,
    /// States of a block.
    pub block_states: u64,
    /// Weights of the embedding.
    pub embedding_bytes: u64,
    /// Weights of the head. A tied one takes the embedding's again, where it is another worker that has it.
    pub head_bytes: u64,
    /// Blocks that the head's product takes as long as.
    pub head_blocks: f64,
}

impl Model {
    /// Returns the memory that a range takes at a worker.
    pub fn bytes(&self, range: &Range) -> u64 {
        self.taken(range.blocks(), range.embedding, range.head)
    }

    /// Returns the bytes that a worker downloads for a range.
    pub fn weights(&self, range: &Range) -> u64 {
        self.parts(range.blocks(), range.embedding, range.head)
    }

    /// Blocks that a row through a range takes as long as.
    pub fn work(&self, range: &Range) -> f64 {
        f64::from(range.blocks()) + if range.head { self.head_blocks } else { 0.0 }
    }

    /// Returns the memory that so many blocks take, with the ends.
    pub(super) fn taken(&self, blocks: u32, embedding: bool, head: bool) -> u64 {
        self.parts(blocks, embedding, head) + u64::from(blocks) * self.block_states
    }

    /// Weights of so many blocks with the ends.
    pub(super) fn parts(&self, blocks: u32, embedding: bool, head: bool) -> u64 {
        u64::from(blocks) * self.block_bytes
            + if embedding { self.embedding_bytes } else { 0 }
            + if head { self.head_bytes } else { 0 }
    }
}

/// Measured properties of a worker. *Units*: seconds, bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Worker {
    /// Number of the worker.
    pub id: u64,
    /// Bytes that it may take.
    pub memory: u64,
    /// Time of one row through one block.
    pub block: f64,
    /// Time of a hop to it, readback included.
    pub hop: f64,
    /// Losses a second that are expected of it.
    pub hazard: f64,
    /// Bytes a second that it downloads.
    pub bandwidth: f64,
    /// The range that it has weights of.
    pub cached: Option<Range>,
    /// Whether it may see token ids: the first stage and the last do. Where these are pinned to who asks, nobody else.
    pub ends: bool,
}

/// Aim of a chain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Aim {
    /// Seconds that a loss takes to recover from.
    pub recovery: f64,
    /// Seconds that a token takes, roughly: a loss anywhere stops the whole chain.
    pub token: f64,
    /// Tokens that the chain is expected to make: what downloads are spread over.
    pub tokens: f64,
}

impl Worker {
    /// Seconds a token that this worker costs a chain with so many blocks and ends; none where they do not fit.
    ///
    /// *Source*: time of the hop and the blocks; the losses that are expected of it during a token, times the length of
    /// a recovery; and the download of what it lacks, spread over the chain's tokens.
    pub(super) fn cost(&self, model: &Model, aim: &Aim, blocks: u32, embedding: bool, head: bool) -> Option<f64> {
        if model.taken(blocks, embedding, head) > self.memory || ((embedding || head) && !self.ends) {
            return None;
        }
        let cached = self
            .cached
            .map_or(0, |it| model.parts(blocks.min(it.blocks()), embedding && it.embedding, head && it.head));
        let download = (model.parts(blocks, embedding, head) - cached) as f64 / self.bandwidth;
        Some(self.time(model, blocks, head) + self.hazard * aim.token * aim.recovery + download / aim.tokens)
    }

    /// Seconds that a token takes here.
    pub(super) fn time(&self, model: &Model, blocks: u32, head: bool) -> f64 {
        self.hop + self.block * (f64::from(blocks) + if head { model.head_blocks } else { 0.0 })
    }
}
