//! A chain: which worker has which range.

use anygpu_pool_proto::Range;

use super::input::{Model, Worker};

/// One worker's part of a chain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stage {
    /// The worker's id.
    pub worker: u64,
    /// Blocks that it computes.
    pub range: Range,
}

/// Stages that together are a model, the first one first. *Units*: seconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Chain {
    /// The stages.
    pub stages: Vec<Stage>,
    /// Time of a token through all of them.
    pub token: f64,
    /// Time of a token in the slowest: with as many sessions as stages, one token comes in each such time.
    pub slowest: f64,
    /// Time until all have downloaded what they lack.
    pub download: f64,
    /// Objective that was minimised: time of a token, with the expected time of losses and downloads.
    pub cost: f64,
}

/// Blocks and ends of one worker, by its index.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    pub worker: usize,
    pub blocks: u32,
    pub embedding: bool,
    pub head: bool,
}

/// The chain of these shares: the embedding's worker first, the head's last, those between in the order of what they
/// have cached.
pub(super) fn place(model: &Model, workers: &[Worker], mut shares: Vec<Share>, cost: f64) -> Chain {
    shares.sort_by_key(|share| {
        let cached = workers[share.worker].cached.map_or(u32::MAX, |range| range.first);
        (share.head, !share.embedding, cached, workers[share.worker].id)
    });
    let mut chain = Chain { stages: Vec::with_capacity(shares.len()), token: 0.0, slowest: 0.0, download: 0.0, cost };
    let mut first = 0;
    for share in shares {
        let worker = &workers[share.worker];
        let range = Range { first, end: first + share.blocks, embedding: share.embedding, head: share.head };
        first = range.end;
        let time = worker.time(model, share.blocks, share.head);
        chain.token += time;
        chain.slowest = chain.slowest.max(time);
        chain.download = chain.download.max(missing(model, worker, &range) as f64 / worker.bandwidth);
        chain.stages.push(Stage { worker: worker.id, range });
    }
    chain
}

/// Weights of a range that a worker lacks.
pub(super) fn missing(model: &Model, worker: &Worker, range: &Range) -> u64 {
    let had = worker.cached.map_or(0, |cached| {
        let (first, end) = (range.first.max(cached.first), range.end.min(cached.end));
        model.parts(end.saturating_sub(first), range.embedding && cached.embedding, range.head && cached.head)
    });
    model.weights(range) - had
}
