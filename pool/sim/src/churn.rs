//! The protocol by which a thesis measured its pool's availability.
//!
//! *Source*: "An Architecture for Web-Based Distributed LLM Inference", TU Wien, 2026, section 6.5: 10 workers, of
//! which a model needs 1, 3 or 5; failures that grow from none to one in 10 s each over 600 s; absences of 1 to 10 s;
//! weights downloaded before.

use rand::RngExt;
use serde::Serialize;

use crate::{
    chance::exponential,
    report::Report,
    scenario::{Failure, Scenario},
    world::{Later, World},
};

/// What came of the protocol.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Churn {
    /// Workers that the model needs.
    pub needed: u32,
    /// Failures that were made.
    pub failures: u64,
    /// The simulation's result.
    pub report: Report,
}

/// Runs the protocol with a model that needs so many of its 10 workers, for a time in seconds. One answer is always
/// under way, a token at a time.
pub fn churn(needed: u32, seconds: f64, seed: u64) -> Churn {
    let blocks: u32 = 36;
    let (block_bytes, end_bytes) = (100 << 20, 100 << 20);
    let most = u64::from(blocks.div_ceil(needed)) * block_bytes + if needed == 1 { 2 } else { 1 } * end_bytes;
    let failure = Failure::Ramp { every: 10.0, least: 1.0, most: 10.0 };
    let scenario = Scenario {
        seed,
        workers: 10,
        seconds,
        blocks,
        width: 2560,
        block_bytes,
        end_bytes,
        memory: (most, most + 1),
        block: (0.5e-3, 1.5e-3),
        bandwidth: (12e6, 118e6),
        regions: 1,
        hop: (1e-3, 0.0),
        compile: 0.8,
        cached: true,
        failure,
        requests: 0.0,
        sun: 0.0,
        tokens: (25, 128),
        lap: 1,
        snapshot: 32,
        check: 0.0,
    };
    let mut world = World::new(&scenario);
    let mut failures = 0;
    for worker in 0..scenario.workers {
        world.after(0.0, Later::Come(worker));
    }
    let next = |world: &mut World, worker| {
        let wait = exponential(&mut world.chance, 0.1);
        // A life that no worker has: the moment may be one of a failure, or of none.
        world.after(wait, Later::Leave(worker, u64::MAX));
    };
    (0..scenario.workers).for_each(|worker| next(&mut world, worker));
    while let Some(what) = world.next() {
        match what {
            Later::Come(worker) => world.come(worker),
            Later::Leave(worker, _) => {
                // Moments come at the last rate; in the beginning few of them are failures.
                let part = world.now as f64 * 1e-6 / seconds;
                let life = world.life(worker);
                if world.chance.random_bool(part.clamp(0.0, 1.0)) && world.leave(worker, life) {
                    failures += 1;
                    let away = world.chance.random_range(1.0..10.0);
                    world.after(away, Later::Come(worker));
                }
                next(&mut world, worker);
            }
            Later::Ask | Later::Tell(..) | Later::Hop(_) => {}
        }
        if world.open() == 0 {
            world.ask();
        }
    }
    Churn { needed, failures, report: world.finish() }
}
