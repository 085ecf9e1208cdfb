//! `pool`: runs one model on many machines.

mod file;
mod page;
mod remote;
mod routes;
mod serve;
mod traces;
mod work;

use anygpu_pool::sim::{Failure, Machines, Scenario, churn, day};
use anygpu_pool_nats::{Server, Users};
use anyhow::{Context, Result, bail};
use serde::Serialize;
use std::fs;
use std::net::IpAddr;
use std::path::Path;

use crate::{
    args::pool::{PoolCommand, PoolConfigArgs, PoolSimArgs},
    output,
};

/// The default port of `pool serve`.
const SERVED: u16 = 8080;

/// Runs `pool`. Returns false: Ctrl-C is the normal way to end it, and does not count as an interruption.
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
    let PoolConfigArgs { host, port, websocket_port, shared, .. } = *args;
    let users = Users::new()?;
    let (here, there) = reached(host, args.public.as_deref())?;
    let Users { coordinator, worker, system } = &users;
    let mut how = format!(
        "# anygpu pool serve --nats nats://coordinator:{coordinator}@{here}:{port} --nats-system nats://system:{system}@{here}:{port} \\\n\
         #   --nats-workers nats://worker:{worker}@{there}:{port} --nats-pages ws://worker:{worker}@{there}:{websocket_port} \\\n\
         #   --cors {}",
        args.cors
    );
    if !host.is_loopback() {
        how += &format!(" --host {host} --public http://{there}:{SERVED}");
    }
    how += "\n";
    let server = Server { host: host.to_string(), port, websocket: websocket_port, users, shared };
    Ok(output::text(&format!("{how}{server}\n"))?)
}

/// Returns the addresses of a server for its own machine and for others.
fn reached(host: IpAddr, public: Option<&str>) -> Result<(String, String)> {
    let here = match host {
        IpAddr::V4(ip) if ip.is_unspecified() => "127.0.0.1".into(),
        IpAddr::V6(ip) if ip.is_unspecified() => "[::1]".into(),
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    };
    match public {
        Some(public) => Ok((here, public.to_owned())),
        None if host.is_unspecified() => bail!(
            "workers elsewhere cannot reach {host}; say by --public what they reach this machine by, such as 192.168.1.2 or \
             pool.example.org"
        ),
        None => Ok((here.clone(), here)),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    #[test]
    fn workers_elsewhere_are_told_what_they_can_reach() {
        let all = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let both = |here: &str, there: &str| (here.to_owned(), there.to_owned());
        assert_eq!(reached(IpAddr::V4(Ipv4Addr::LOCALHOST), None).unwrap(), both("127.0.0.1", "127.0.0.1"));
        assert_eq!(reached(IpAddr::V6(Ipv6Addr::LOCALHOST), None).unwrap(), both("[::1]", "[::1]"));
        assert_eq!(reached(all, Some("10.0.0.7")).unwrap(), both("127.0.0.1", "10.0.0.7"));
        assert!(reached(all, None).unwrap_err().to_string().contains("--public"));
    }
}
