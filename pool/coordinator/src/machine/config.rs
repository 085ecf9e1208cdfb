//! Settings of a pool.

use crate::{Micros, plan::Model};

/// Settings. *Units*: microseconds, rows, tokens.
#[derive(Debug, Clone)]
pub struct Config {
    /// The model's sizes.
    pub model: Model,
    /// Chains that are wanted, whether or not anybody asks.
    pub chains: usize,
    /// Spares that a stage has at most; whoever is left keeps nothing until it is wanted.
    pub spares: u32,
    /// Sessions that a chain takes for each of its stages.
    pub sessions_per_stage: usize,
    /// Sessions that a chain takes at most: what each of its workers holds states for.
    pub sessions: usize,
    /// Sessions that may wait.
    pub queue: usize,
    /// Rows of a prompt's step.
    pub chunk: u32,
    /// Rows of a prompt that take as long as one token.
    pub prompt_rows: f64,
    /// Tokens of a lap. A real pool has 1; a simulation of many workers looks less closely.
    pub lap: u32,
    /// Rows between two snapshots for the spare of a stage; 0 makes none. States of a row are many times its activations:
    /// until there are hundreds, computing them again takes less than sending them.
    pub snapshot: u32,
    /// Medians that a step may take.
    pub medians: u64,
    /// Time that a step may take at least.
    pub patience: Micros,
    /// Time without a word after which a worker is not counted on, two heartbeats at least: who has missed a deadline as
    /// well is suspect, and who stands by is the last to be chosen.
    pub quiet: Micros,
    /// Time that a chain waits for a worker before it is given up and its workers dealt anew.
    pub give_up: Micros,
    /// Time without a word after which a worker is gone.
    pub silence: Micros,
    /// Time that workers have to follow when the coordinator's own connection is there again after a break. Until it has
    /// passed nobody is lost for silence that was not heard since.
    pub grace: Micros,
    /// Time that a worker has to compile a range, beside its download; four times as much while it speaks.
    pub prepare: Micros,
    /// Time between two plans.
    pub replan: Micros,
    /// Time between two looks for a better chain; 0 never looks.
    pub improve: Micros,
    /// The part of its time by which a chain has to be better to take another's place.
    pub gain: f64,
    /// Workers that a plan chooses among.
    pub candidates: usize,
    /// Probability that one stage of a text is checked.
    pub check: f64,
    /// Time that a check may take after its text has ended, and a further worker to settle a dispute.
    pub settle: Micros,
    /// Seconds that a worker of which nothing is known is expected to stay.
    pub life: f64,
}

impl Config {
    /// The settings of a pool of a model.
    pub fn new(model: Model) -> Config {
        Config {
            model,
            chains: 1,
            spares: 4,
            sessions_per_stage: 2,
            sessions: usize::MAX,
            queue: 10_000,
            chunk: 64,
            prompt_rows: 8.0,
            lap: 1,
            snapshot: 512,
            medians: 4,
            patience: 150_000,
            quiet: 500_000,
            give_up: 10_000_000,
            silence: 15_000_000,
            grace: 5_000_000,
            prepare: 30_000_000,
            replan: 100_000,
            improve: 30_000_000,
            gain: 0.2,
            candidates: 256,
            check: 0.0,
            settle: 60_000_000,
            life: 600.0,
        }
    }
}
