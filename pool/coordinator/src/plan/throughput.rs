//! The chain whose slowest stage is fastest: for many sessions at once.

use super::{
    chain::Chain,
    input::{Aim, Model, Worker},
    latency::fastest_within,
};

/// The chain whose slowest stage is fastest, and of those the one that costs least; none where the workers cannot hold
/// the model.
///
/// A stage's time is one of at most workers times blocks (with the head or without), so the least that suffices is
/// found by binary search among those.
pub fn busiest(model: &Model, workers: &[Worker], aim: &Aim) -> Option<Chain> {
    let mut times: Vec<f64> = workers
        .iter()
        .flat_map(|worker| (0..=model.blocks).map(move |blocks| (worker, blocks)))
        .flat_map(|(worker, blocks)| [false, true].map(|head| worker.time(model, blocks, head)))
        .collect();
    times.sort_by(f64::total_cmp);
    times.dedup();
    let slowest = times.partition_point(|&slowest| !holds(model, workers, slowest));
    let slowest = *times.get(slowest)?;
    fastest_within(model, workers, aim, &|worker, head| within(model, &workers[worker], slowest, head))
}

/// Blocks that a worker computes in a time; none where not even a hop is made.
fn within(model: &Model, worker: &Worker, time: f64, head: bool) -> Option<u32> {
    let fits = |blocks: &u32| worker.time(model, *blocks, head) <= time;
    let count = (0..=model.blocks).collect::<Vec<_>>().partition_point(fits);
    u32::try_from(count).ok()?.checked_sub(1)
}

/// Whether workers hold the model with no stage slower than `time`: the most blocks that can be covered, by the ends
/// that are placed, one worker after the other.
fn holds(model: &Model, workers: &[Worker], time: f64) -> bool {
    let mut covered: [Option<u32>; 4] = [Some(0), None, None, None];
    for worker in workers {
        let before = covered;
        let most = |embedding: bool, head: bool| {
            let free = worker.memory.checked_sub(model.taken(0, embedding, head))?;
            let fit = free.checked_div(model.taken(1, false, false)).unwrap_or(u64::MAX).min(model.blocks.into());
            let allowed = worker.ends || !(embedding || head);
            within(model, worker, time, head).filter(|_| allowed).map(|blocks| blocks.min(fit as u32))
        };
        if most(true, true) == Some(model.blocks) {
            return true;
        }
        for ends in [0usize, 1, 2] {
            let Some(most) = most(ends == 1, ends == 2) else { continue };
            for placed in (0..4).filter(|placed| placed & ends == 0) {
                let now = before[placed].map(|blocks| (blocks + most).min(model.blocks));
                covered[placed | ends] = covered[placed | ends].max(now);
            }
        }
    }
    covered[3] == Some(model.blocks)
}
