//! Results of a simulation.

use std::fmt;

use serde::Serialize;

use super::scenario::Scenario;

/// The middle and the ends of a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Quantiles {
    /// Half are below.
    pub p50: f64,
    /// Nine of ten are below.
    pub p90: f64,
    /// 99 of 100 are below.
    pub p99: f64,
}

impl Quantiles {
    /// Computes the quantiles of values.
    pub(super) fn of(mut values: Vec<f64>) -> Quantiles {
        values.sort_by(f64::total_cmp);
        let at = |part: f64| values.get((values.len() as f64 * part) as usize).copied().unwrap_or_default();
        Quantiles { p50: at(0.5), p90: at(0.9), p99: at(0.99) }
    }
}

/// Shortest time of a token that a user notices.
///
/// *Units*: seconds.
pub const STALL: f64 = 0.25;

/// The result of a simulation. *Units*: seconds, bytes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Scenario that was simulated.
    pub scenario: Scenario,
    /// Share of the time in which a chain was up, and no session of it waited for states that were lost. Of pools with
    /// several chains: in which one was up.
    pub availability: f64,
    /// Workers that were there, on average.
    pub present: f64,
    /// Chains that were up, on average.
    pub chains: f64,
    /// Requests that came.
    pub asked: u64,
    /// Requests that were answered.
    pub answered: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Tokens a second.
    pub tokens_per_second: f64,
    /// Time of a token within an answer.
    pub token: Quantiles,
    /// Time until the first token, waiting included.
    pub first: Quantiles,
    /// Time in which a text under way waited for its next token, or its first one, for longer than [`STALL`], all texts
    /// together.
    pub stalled: f64,
    /// Bytes of activations that crossed the broker, for each answer.
    pub bytes_per_answer: f64,
    /// Bytes of weights that were downloaded.
    pub downloaded: f64,
    /// Workers that left.
    pub lost: u64,
    /// Stages that were lost, and a spare took over.
    pub promoted: u64,
    /// Stages that a spare has instead of who is slower.
    pub exchanged: u64,
    /// Stages that a worker had to be prepared for.
    pub recruited: u64,
    /// Rows that were computed again.
    pub replayed: u64,
    /// Chains that were given up.
    pub given_up: u64,
    /// Chains that a better one replaced.
    pub replaced: u64,
    /// Events that the coordinator handled.
    pub events: u64,
}

impl Report {
    /// Nothing has happened yet.
    pub(super) fn of(scenario: &Scenario) -> Report {
        Report {
            scenario: scenario.clone(),
            availability: 0.0,
            present: 0.0,
            chains: 0.0,
            asked: 0,
            answered: 0,
            refused: 0,
            tokens_per_second: 0.0,
            token: Quantiles::default(),
            first: Quantiles::default(),
            stalled: 0.0,
            bytes_per_answer: 0.0,
            downloaded: 0.0,
            lost: 0,
            promoted: 0,
            exchanged: 0,
            recruited: 0,
            replayed: 0,
            given_up: 0,
            replaced: 0,
            events: 0,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = |it: Quantiles| format!("{:.3} / {:.3} / {:.3} s (p50 / p90 / p99)", it.p50, it.p90, it.p99);
        writeln!(
            f,
            "{} workers, {:.0} there on average, {:.0} s",
            self.scenario.workers, self.present, self.scenario.seconds
        )?;
        writeln!(f, "availability     {:.2} %", 100.0 * self.availability)?;
        writeln!(f, "chains up        {:.2} on average", self.chains)?;
        writeln!(f, "requests         {} asked, {} answered, {} refused", self.asked, self.answered, self.refused)?;
        writeln!(f, "tokens           {:.1} a second", self.tokens_per_second)?;
        writeln!(f, "a token          {}", times(self.token))?;
        writeln!(f, "the first token  {}", times(self.first))?;
        writeln!(f, "activations      {:.2} MB an answer", self.bytes_per_answer / 1e6)?;
        writeln!(f, "weights          {:.1} GB downloaded", self.downloaded / 1e9)?;
        writeln!(
            f,
            "workers lost     {}, stages promoted {}, recruited {}, exchanged {}",
            self.lost, self.promoted, self.recruited, self.exchanged
        )?;
        writeln!(f, "rows replayed    {}", self.replayed)?;
        write!(
            f,
            "chains           {} given up, {} replaced by better; {} events",
            self.given_up, self.replaced, self.events
        )
    }
}
