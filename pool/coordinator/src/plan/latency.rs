//! The chain whose tokens cost least.

use super::{
    chain::{Chain, Share, place},
    input::{Aim, Model, Worker},
};

/// Ends placed so far: the embedding in bit 0, the head in bit 1.
const ENDS: usize = 4;

/// Range that a worker was given on the way to a state.
#[derive(Clone, Copy, Default)]
struct Given {
    blocks: u32,
    ends: u8,
    used: bool,
}

/// The chain that costs least, exactly; none where the workers cannot hold the model.
///
/// Dynamic programming over workers; a state is how many blocks are covered and which ends are placed. A worker with
/// the embedding *and* the head is a chain of its own: it cannot be first and last of a longer one. An asker to whom
/// both ends are pinned is given as two workers of the same id, each with a part of its memory.
///
/// *Shapes*: takes [`states`] steps and a few bytes for each worker and state.
pub fn fastest(model: &Model, workers: &[Worker], aim: &Aim) -> Option<Chain> {
    fastest_within(model, workers, aim, &|_, _| Some(model.blocks))
}

/// The chain that costs least of those whose workers have at most `most` blocks, by
/// worker and whether it has the head; with none, it may not have that end at all.
pub(super) fn fastest_within(
    model: &Model,
    workers: &[Worker],
    aim: &Aim,
    most: &dyn Fn(usize, bool) -> Option<u32>,
) -> Option<Chain> {
    let blocks = model.blocks as usize;
    let width = (blocks + 1) * ENDS;
    let mut best = vec![f64::INFINITY; width];
    best[0] = 0.0;
    let mut given = vec![Given::default(); width * workers.len()];
    let mut alone: Option<(f64, usize)> = None;
    for (index, worker) in workers.iter().enumerate() {
        let row = &mut given[index * width..][..width];
        let before = best.clone();
        // A worker adds one of these to a state: no end, the embedding, the head.
        for ends in [0u8, 1, 2] {
            let (embedding, head) = (ends & 1 > 0, ends & 2 > 0);
            let Some(most) = most(index, head) else { continue };
            for count in u32::from(ends == 0)..=most.min(model.blocks) {
                let Some(cost) = worker.cost(model, aim, count, embedding, head) else { break };
                for from in 0..=blocks - count as usize {
                    for placed in (0..ENDS).filter(|placed| placed & usize::from(ends) == 0) {
                        let now = before[from * ENDS + placed] + cost;
                        let to = (from + count as usize) * ENDS + (placed | usize::from(ends));
                        if now < best[to] {
                            best[to] = now;
                            row[to] = Given { blocks: count, ends, used: true };
                        }
                    }
                }
            }
        }
        if most(index, true).is_some_and(|most| most >= model.blocks)
            && let Some(cost) = worker.cost(model, aim, model.blocks, true, true)
            && alone.is_none_or(|(least, _)| cost < least)
        {
            alone = Some((cost, index));
        }
    }
    let cost = best[width - 1];
    if let Some((least, worker)) = alone.filter(|(least, _)| *least <= cost) {
        let all = Share { worker, blocks: model.blocks, embedding: true, head: true };
        return Some(place(model, workers, vec![all], least));
    }
    if cost.is_infinite() {
        return None;
    }
    let mut shares = Vec::new();
    let mut state = width - 1;
    for index in (0..workers.len()).rev() {
        let given = given[index * width + state];
        if given.used {
            let (embedding, head) = (given.ends & 1 > 0, given.ends & 2 > 0);
            shares.push(Share { worker: index, blocks: given.blocks, embedding, head });
            state -= given.blocks as usize * ENDS + usize::from(given.ends);
        }
    }
    Some(place(model, workers, shares, cost))
}

/// Steps that [`fastest`] takes at most: workers times blocks that one may have, times states.
pub fn states(model: &Model, workers: &[Worker]) -> u64 {
    let fits = |worker: &Worker| (worker.memory / model.taken(1, false, false).max(1)).min(model.blocks.into()) + 1;
    workers.iter().map(fits).sum::<u64>() * u64::from(model.blocks + 1) * (ENDS * 3) as u64
}
