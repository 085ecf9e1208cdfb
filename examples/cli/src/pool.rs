//! `pool`: many machines as one.

use anygpu_pool_sim::{Failure, Scenario, churn, day};
use anyhow::Result;
use serde::Serialize;

use crate::{
    args::pool::{PoolCommand, PoolSimArgs},
    output,
};

/// Runs `pool`.
pub fn run(command: &PoolCommand) -> Result<()> {
    match command {
        PoolCommand::Sim(args) => simulate(args),
    }
}

fn simulate(args: &PoolSimArgs) -> Result<()> {
    if let Some(needed) = args.churn {
        let churn = churn(needed, 600.0, args.seed);
        let text = format!("{} failures, {needed} of 10 workers needed\n{}", churn.failures, churn.report);
        return show(args.json, &churn, &text);
    }
    let all = Scenario::volunteers(args.workers, args.seed);
    let failure = match all.failure {
        _ if args.stay == 0.0 => Failure::Never,
        Failure::Weibull { shape, away, .. } => Failure::Weibull { scale: args.stay, shape, away },
        other => other,
    };
    let report = day(&Scenario { seconds: args.hours * 3600.0, requests: args.requests, failure, ..all });
    show(args.json, &report, &report.to_string())
}

fn show(json: bool, report: &impl Serialize, text: &str) -> Result<()> {
    Ok(if json { output::json(report) } else { output::text(&format!("{text}\n")) }?)
}
