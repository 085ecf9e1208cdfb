//! `pool`: many machines as one.

mod file;
mod remote;
mod routes;
mod serve;
mod traces;
mod work;

use anygpu_pool_nats::{Server, Users};
use anygpu_pool_sim::{Failure, Machines, Scenario, churn, day};
use anyhow::{Context, Result};
use serde::Serialize;
use std::fs;
use std::path::Path;

use crate::{
    args::pool::{PoolCommand, PoolConfigArgs, PoolSimArgs},
    output,
};

/// Runs `pool`. It was never interrupted: Ctrl-C is the way to end what goes on.
pub fn run(command: &PoolCommand) -> Result<bool> {
    match command {
        PoolCommand::Config(args) => configure(args)?,
        PoolCommand::Serve(args) => return serve::run(args),
        PoolCommand::Work(on) => work::run(&on.args, &on.device)?,
        PoolCommand::Sim(args) => simulate(args)?,
    }
    Ok(false)
}

fn configure(args: &PoolConfigArgs) -> Result<()> {
    let PoolConfigArgs { host, port, websocket_port, shared } = *args;
    let users = Users::new()?;
    let here = if host.is_unspecified() { "127.0.0.1".into() } else { host.to_string() };
    let Users { coordinator, worker, system } = &users;
    let how = format!(
        "# anygpu pool serve --nats nats://coordinator:{coordinator}@{here}:{port} --nats-system nats://system:{system}@{here}:{port} \\\n\
         #   --nats-workers nats://worker:{worker}@{here}:{port} --nats-pages ws://worker:{worker}@{here}:{websocket_port}\n"
    );
    let server = Server { host: host.to_string(), port, websocket: websocket_port, users, shared };
    Ok(output::text(&format!("{how}{server}\n"))?)
}

fn simulate(args: &PoolSimArgs) -> Result<()> {
    if let Some(needed) = args.churn {
        let machines = match &args.machines {
            Some(file) => read(file)?,
            None => Machines::needed(needed),
        };
        let churn = churn(&machines, args.seconds, args.frozen, args.seed);
        let flows = 100.0 * (1.0 - churn.report.stalled / args.seconds);
        let text = format!(
            "{} failures, {needed} of 10 workers needed\n{}\ntokens flow      {flows:.2} % of the time",
            churn.losses.len(),
            churn.report
        );
        return show(args.json, &churn, &text);
    }
    let all = Scenario::volunteers(args.workers, args.seed);
    let failure = match all.failure {
        _ if args.stay == 0.0 => Failure::Never,
        Failure::Weibull { shape, away, .. } => Failure::Weibull { scale: args.stay, shape, away },
        other => other,
    };
    let (seconds, tokens) = (args.hours * 3600.0, (args.prompt as usize, all.tokens.1));
    let report = day(&Scenario { seconds, requests: args.requests, tokens, failure, ..all });
    show(args.json, &report, &report.to_string())
}

fn read(file: &Path) -> Result<Machines> {
    let text = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("{} has no machines as JSON", file.display()))
}

fn show(json: bool, report: &impl Serialize, text: &str) -> Result<()> {
    Ok(if json { output::json(report) } else { output::text(&format!("{text}\n")) }?)
}
