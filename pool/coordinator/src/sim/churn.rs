//! The protocol by which a thesis measured its pool's availability.
//!
//! *Source*: "An Architecture for Web-Based Distributed LLM Inference", TU Wien, 2026, section 6.5: 10 workers, of
//! which a model needs 1, 3 or 5; failures that grow from none to one in 10 s each over 600 s; absences of 1 to 10 s;
//! weights downloaded before.

use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde::{Deserialize, Serialize};

use super::{
    chance::exponential,
    report::Report,
    scenario::{Failure, Scenario},
    world::{Later, World},
};

/// Workers of the protocol.
const WORKERS: u64 = 10;
/// Seconds between two failures of a worker, at the end.
const EVERY: f64 = 10.0;
/// Seconds of an absence: least and most.
const AWAY: std::ops::Range<f64> = 1.0..10.0;

/// Seconds between two heartbeats.
const BEAT: f64 = 0.2;

/// A worker fails. *Units*: seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Loss {
    /// When.
    pub at: f64,
    /// Which one.
    pub worker: u64,
    /// When it is started again, after this.
    pub away: f64,
    /// Whether it stands still for that time, with its connection there, rather than ending.
    pub frozen: bool,
}

/// A model and the machines that it runs on. *Units*: bytes, seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Machines {
    /// Blocks of the model.
    pub blocks: u32,
    /// Numbers of a row of activations.
    pub width: u32,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Bytes of the embedding.
    pub embedding_bytes: u64,
    /// Bytes of the head.
    pub head_bytes: u64,
    /// Blocks that the head takes as long as.
    pub head_blocks: f64,
    /// Memory of each worker.
    pub memory: u64,
    /// Time of a row through a block: the fastest and the slowest worker's.
    pub block: (f64, f64),
    /// Rows of a prompt that take as long as one token.
    pub prompt_rows: f64,
    /// Time of a message to the broker and of one back, with what is around them.
    pub hop: f64,
    /// Bytes a second of a worker's connection: least and most.
    pub bandwidth: (f64, f64),
    /// Time to read and compile a range.
    pub compile: f64,
    /// Time in which a stage makes states for a text.
    pub open: f64,
    /// Time of a request to the coordinator and of an answer from there.
    pub ask: f64,
    /// Time until a worker that starts has said hello.
    pub start: f64,
    /// Rows between two snapshots; 0 makes none.
    pub snapshot: u32,
    /// Tokens of a prompt, and of an answer.
    pub tokens: (usize, usize),
}

impl Machines {
    /// Such as the thesis had, with a model that needs so many of them.
    pub fn needed(needed: u32) -> Machines {
        let blocks = 36;
        let (block_bytes, end_bytes) = (100 << 20, 100 << 20);
        Machines {
            blocks,
            width: 2560,
            block_bytes,
            embedding_bytes: end_bytes,
            head_bytes: end_bytes,
            head_blocks: 1.0,
            memory: u64::from(blocks.div_ceil(needed)) * block_bytes + if needed == 1 { 2 } else { 1 } * end_bytes,
            block: (0.5e-3, 1.5e-3),
            prompt_rows: 8.0,
            hop: 1e-3,
            bandwidth: (12e6, 118e6),
            compile: 0.8,
            open: 0.0,
            ask: 0.0,
            start: 0.0,
            snapshot: 512,
            tokens: (25, 128),
        }
    }
}

/// Outcome of the protocol.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Churn {
    /// Failures, in order of time.
    pub losses: Vec<Loss>,
    /// The simulation's result.
    pub report: Report,
}

/// Draws the failures of the protocol, in order. `frozen` is the share of failures that leave the connection open.
pub fn losses(seconds: f64, frozen: f64, seed: u64) -> Vec<Loss> {
    let mut chance = StdRng::seed_from_u64(seed);
    let mut losses = Vec::new();
    for worker in 0..WORKERS {
        let mut at = 0.0;
        loop {
            // Moments come at the last rate; in the beginning few of them are failures.
            at += exponential(&mut chance, 1.0 / EVERY);
            if at >= seconds {
                break;
            }
            if chance.random_bool((at / seconds).clamp(0.0, 1.0)) {
                let (away, frozen) = (chance.random_range(AWAY), chance.random_bool(frozen.clamp(0.0, 1.0)));
                losses.push(Loss { at, worker, away, frozen });
                at += away;
            }
        }
    }
    losses.sort_by(|one, other| one.at.total_cmp(&other.at));
    losses
}

/// Runs the protocol for a time in seconds. One answer is always under way, a token at a time.
pub fn churn(machines: &Machines, seconds: f64, frozen: f64, seed: u64) -> Churn {
    let Machines { blocks, width, block_bytes, embedding_bytes, head_bytes, head_blocks, .. } = *machines;
    let Machines { memory, block, prompt_rows, bandwidth, hop, compile, open, ask, start, .. } = *machines;
    let Machines { snapshot, tokens, .. } = *machines;
    let scenario = Scenario {
        seed,
        workers: WORKERS,
        seconds,
        blocks,
        width,
        block_bytes,
        embedding_bytes,
        head_bytes,
        head_blocks,
        memory: (memory, memory + 1),
        block,
        prompt_rows,
        bandwidth,
        regions: 1,
        hop: (hop, 0.0),
        compile,
        open,
        ask,
        start,
        beat: if frozen > 0.0 { BEAT } else { 0.0 },
        cached: true,
        failure: Failure::Ramp { every: EVERY },
        requests: 0.0,
        sun: 0.0,
        tokens,
        lap: 1,
        snapshot,
        check: 0.0,
    };
    let mut world = World::new(&scenario);
    for worker in 0..scenario.workers {
        world.after(0.0, Later::Come(worker));
    }
    world.always = true;
    world.after(0.0, Later::Ask);
    let losses = losses(seconds, frozen, seed);
    for (number, loss) in losses.iter().enumerate() {
        world.after(loss.at, Later::Other(number));
    }
    while let Some(what) = world.next() {
        match what {
            Later::Come(worker) => world.come(worker),
            Later::Other(number) => {
                let Loss { worker, away, frozen, .. } = losses[number];
                if frozen {
                    world.freeze(worker, away);
                } else {
                    let life = world.life(worker);
                    world.leave(worker, life);
                    // Who is lost while it starts begins anew.
                    world.after(away + start, Later::Come(worker));
                }
            }
            Later::Ask => world.ask(),
            Later::Leave(..) | Later::Tell(..) | Later::Hop(_) => {}
        }
    }
    Churn { losses, report: world.finish() }
}
