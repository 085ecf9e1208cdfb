//! `pool`: many machines as one.

mod file;
mod remote;
mod routes;
mod serve;
mod work;

use anygpu_pool_nats::{Server, Users};
use anygpu_pool_sim::{Failure, Scenario, churn, day};
use anyhow::Result;
use serde::Serialize;

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
