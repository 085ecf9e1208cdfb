//! Scenarios of the simulation.

use serde::Serialize;

/// How workers fail.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub enum Failure {
    /// They stay for a Weibull-distributed time (scale in seconds, shape), and are back after one of the other scale.
    Weibull {
        /// Seconds that 63 % do not exceed.
        scale: f64,
        /// Below 1: who has stayed long stays longer.
        shape: f64,
        /// Mean length of absences.
        away: f64,
    },
    /// Their failures grow from none to one in `every` seconds each at the end.
    Ramp {
        /// Seconds between two failures of a worker, at the end.
        every: f64,
    },
    /// They do not.
    Never,
}

/// A pool, its workers, and what is asked of it. *Units*: seconds, bytes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scenario {
    /// One seed gives one result.
    pub seed: u64,
    /// Workers, there or away.
    pub workers: u64,
    /// Simulated time.
    pub seconds: f64,
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
    /// Memory of a worker: least and most.
    pub memory: (u64, u64),
    /// Time of a row through a block: the fastest and the slowest worker's.
    pub block: (f64, f64),
    /// Rows of a prompt that take as long as one token.
    pub prompt_rows: f64,
    /// Downloads a second: least and most.
    pub bandwidth: (f64, f64),
    /// Regions, which the sun passes one after the other. The broker is in the first.
    pub regions: u32,
    /// Time of a message to the broker from its own region, readback included; and what each region's distance adds.
    pub hop: (f64, f64),
    /// Time to read and compile a range, beside its download.
    pub compile: f64,
    /// Time in which a stage makes states for a text.
    pub open: f64,
    /// Time of a request to the coordinator and of an answer from there, beside the pool's.
    pub ask: f64,
    /// Time after its absence until a worker has said hello.
    pub start: f64,
    /// Time between two heartbeats; 0 for none, where nobody stands still.
    pub beat: f64,
    /// Whether all have all weights already.
    pub cached: bool,
    /// How workers fail.
    pub failure: Failure,
    /// Requests an hour, for each worker.
    pub requests: f64,
    /// How far requests and presences follow the sun: 0 not at all, 1 from nothing to twice the mean.
    pub sun: f64,
    /// Tokens of a prompt, and of an answer.
    pub tokens: (usize, usize),
    /// Tokens that are simulated as one.
    pub lap: u32,
    /// Rows between two snapshots; 0 makes none.
    pub snapshot: u32,
    /// Probability that one stage of a text is checked.
    pub check: f64,
}

impl Scenario {
    /// Volunteers all over the world with a model of 28 blocks in 4 bits, 1.1 GB, of which each holds between a
    /// quarter and all.
    pub fn volunteers(workers: u64, seed: u64) -> Scenario {
        Scenario {
            seed,
            workers,
            seconds: 86_400.0,
            blocks: 28,
            width: 2048,
            block_bytes: 30 << 20,
            embedding_bytes: 140 << 20,
            head_bytes: 140 << 20,
            head_blocks: 140.0 / 30.0,
            memory: (400 << 20, 1400 << 20),
            block: (0.2e-3, 3e-3),
            prompt_rows: 8.0,
            bandwidth: (1.5e6, 12e6),
            regions: 3,
            hop: (8e-3, 30e-3),
            compile: 2.0,
            open: 0.0,
            ask: 0.0,
            start: 0.0,
            beat: 0.0,
            cached: false,
            failure: Failure::Weibull { scale: 1800.0, shape: 0.6, away: 7200.0 },
            requests: 0.5,
            sun: 0.6,
            tokens: (64, 128),
            lap: 32,
            snapshot: 512,
            check: 0.0,
        }
    }
}
