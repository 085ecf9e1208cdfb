//! The arguments of `pool`.

use clap::{Args, Subcommand};

/// Many machines as one.
#[derive(Debug, Subcommand)]
pub enum PoolCommand {
    /// Simulate a pool: workers that come and go, and the coordinator's own code
    ///
    /// One seed gives one result, on every machine.
    Sim(PoolSimArgs),
}

/// Arguments of `pool sim`.
#[derive(Debug, Clone, Args)]
pub struct PoolSimArgs {
    /// Workers, there or away
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub workers: u64,
    /// Chances follow from it
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Hours that are simulated
    #[arg(long, default_value_t = 24.0, value_parser = positive)]
    pub hours: f64,
    /// Requests an hour for each worker
    #[arg(long, default_value_t = 0.5, value_parser = positive)]
    pub requests: f64,
    /// Seconds that most workers do not stay beyond; 0 has all of them stay
    #[arg(long, default_value_t = 1800.0, value_parser = not_negative)]
    pub stay: f64,
    /// Instead of a day: failures that grow to one in 10 s for each of 10 workers over 600 s, with a model that needs
    /// so many of them
    #[arg(long, value_name = "NEEDED", value_parser = clap::value_parser!(u32).range(1..=10), conflicts_with_all = ["workers", "hours", "requests", "stay"])]
    pub churn: Option<u32>,
    /// The report as JSON
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

fn not_negative(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|it| it.is_finite() && *it >= 0.0);
    number.ok_or_else(|| "give a number that is not negative".to_string())
}

fn positive(text: &str) -> Result<f64, String> {
    not_negative(text).ok().filter(|it| *it > 0.0).ok_or_else(|| "give a number above 0".to_string())
}
