//! Several chains, and what is done with those who are left.

use std::collections::BTreeMap;

use anygpu_pool_proto::Range;

use super::{
    chain::{Chain, missing},
    input::{Aim, Model, Worker},
    latency::fastest,
};

/// A worker that holds a range in case another is lost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spare {
    /// The worker's id.
    pub worker: u64,
    /// Blocks that it holds.
    pub range: Range,
}

/// Assignment of all workers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Deal {
    /// Chains, the best first.
    pub chains: Vec<Chain>,
    /// Spares of their ranges.
    pub spares: Vec<Spare>,
}

/// Makes at most `most` chains, each the fastest of those who are left, and of all others spares: each of the range
/// that fewest stand by for, of those that it can hold; where that is equal, of which it lacks least.
pub fn deal(model: &Model, workers: &[Worker], aim: &Aim, most: usize) -> Deal {
    let mut left = workers.to_vec();
    let mut deal = Deal::default();
    while deal.chains.len() < most {
        let Some(chain) = fastest(model, &left, aim) else { break };
        left.retain(|worker| chain.stages.iter().all(|stage| stage.worker != worker.id));
        deal.chains.push(chain);
    }
    let mut cover: BTreeMap<Range, (u32, u32)> = BTreeMap::new();
    for stage in deal.chains.iter().flat_map(|chain| &chain.stages) {
        cover.entry(stage.range).or_default().0 += 1;
    }
    for worker in &left {
        let holds =
            |range: &Range| model.bytes(range) <= worker.memory && (worker.ends || !(range.embedding || range.head));
        let least = cover.iter().filter(|(range, _)| holds(range)).min_by(|a, b| {
            let covered = |&(stages, spares): &(u32, u32)| f64::from(spares) / f64::from(stages);
            let lacks = |range| missing(model, worker, range);
            covered(a.1).total_cmp(&covered(b.1)).then_with(|| lacks(a.0).cmp(&lacks(b.0)))
        });
        if let Some(range) = least.map(|(range, _)| *range) {
            cover.entry(range).or_default().1 += 1;
            deal.spares.push(Spare { worker: worker.id, range });
        }
    }
    deal
}
