//! `pool serve`: a coordinator of workers, and an HTTP server for clients.

use super::file::Served;
use super::page;
use super::routes::{Pool, PoolModel, router};
use crate::args::HttpArgs;
use crate::args::pool::{PoolServeArgs, SeamArg};
use crate::output;
use crate::serve::{self, Answering, reached_at};
use anygpu::Stage;
use anygpu::handle::elsewhere::Elsewhere;
use anygpu::handle::{Limits, Status};
use anygpu_pool::Config;
use anygpu_pool::dispatch::Dispatcher;
use anygpu_pool::plan::Model;
use anygpu_pool_nats::{Coordinating, Telling, coordinate, load, random, reachable};
use anygpu_pool_proto::Seam;
use anyhow::{Context, Result, anyhow, bail};
use axum::http::Uri;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};

/// Time between two heartbeats of a worker. It is short, so that a frozen worker is noticed before the coordinator
/// relies on it.
const HEARTBEAT: Duration = Duration::from_millis(200);
/// Heartbeats that a worker may miss.
const MISSED: u32 = 30;

/// Runs `pool serve`.
pub fn run(args: &PoolServeArgs) -> Result<bool> {
    serve::listen(&http(args), &args.model.name(), async |address| open(args, address).await)
}

/// The server's arguments. The name by which others reach the program is an allowed host.
fn http(args: &PoolServeArgs) -> HttpArgs {
    let mut http = args.http.clone();
    let public = args.public.as_deref().and_then(|public| public.parse::<Uri>().ok());
    http.allowed_host.extend(public.as_ref().and_then(Uri::host).map(str::to_owned));
    http
}

async fn open(args: &PoolServeArgs, address: SocketAddr) -> Result<Answering> {
    let workers = args.nats_workers.as_ref().unwrap_or(&args.nats);
    let public = match &args.public {
        Some(public) => public.trim_end_matches('/').to_owned(),
        None if address.ip().is_unspecified() => bail!(
            "workers elsewhere cannot reach {}; say by --public what they reach this program by, such as \
             http://192.168.1.2:{}",
            address.ip(),
            address.port()
        ),
        None => reached_at(address),
    };
    for server in [Some(&args.nats), args.nats_system.as_ref()].into_iter().flatten() {
        reachable(server).await?;
    }
    let source = args.model.open()?;
    let elsewhere = Elsewhere::read(&*source, args.n_ctx).await?;
    let model = sizes(&elsewhere, args)?;
    let file = Served::new(&args.model)?;
    let model_address = format!("{public}/model.gguf");
    let pool = Pool {
        version: 1,
        tcp: workers.clone(),
        websocket: args.nats_pages.clone(),
        model: PoolModel {
            name: args.model.name(),
            address: model_address.clone(),
            digest: file.digest.iter().map(|byte| format!("{byte:02x}")).collect(),
            blocks: model.blocks,
            bytes: file.bytes,
            block_bytes: model.block_bytes + model.block_states,
            embedding_bytes: model.embedding_bytes,
            head_bytes: model.head_bytes,
            head_blocks: model.head_blocks,
            width: elsewhere.width(),
        },
    };
    let config = Config {
        chains: args.chains as usize,
        spares: args.spares,
        sessions_per_stage: (args.sessions as usize).div_ceil(2),
        sessions: args.sessions as usize,
        check: args.check,
        snapshot: args.snapshot,
        queue: args.http.queue,
        silence: (MISSED * HEARTBEAT).as_micros() as u64,
        ..Config::new(model)
    };
    let served = anygpu_pool::dispatch::Served {
        address: model_address,
        digest: file.digest.clone(),
        seam: match args.seam {
            SeamArg::F16 => Seam::F16,
            SeamArg::F32 => Seam::F32,
        },
        context: u32::try_from(elsewhere.n_ctx())?,
        sessions: held(args),
        chunk: config.chunk,
        ends: args.ends_key.clone(),
    };
    let facts = args.state.as_deref().map(load).transpose()?.unwrap_or_default();
    let mut seed = [0; 32];
    for part in seed.chunks_exact_mut(8) {
        part.copy_from_slice(&random()?.to_le_bytes());
    }
    let dispatcher = Dispatcher::restart(config, seed, served, facts.clone(), 0);
    let coordinating = Coordinating {
        server: args.nats.clone(),
        workers: workers.clone(),
        system: args.nats_system.clone(),
        heartbeat: HEARTBEAT,
        facts: args.state.clone(),
    };
    let status = Status { backend: "pool", adapter: format!("workers at {public}"), ..Status::default() };
    let limits = Limits { requests: args.http.queue, ..Limits::default() };
    let (handle, requests) = elsewhere.open(limits, status);
    let show = requests.status();
    let (send, asked) = mpsc::unbounded_channel();
    // Prompts are encoded on this thread, where that delays no token. The thread ends with the last handle, and the
    // coordinator ends with it.
    let read = move || {
        for request in requests {
            if send.send(request).is_err() {
                break;
            }
        }
    };
    let thread = thread::Builder::new().name("requests".into()).spawn(read).context("cannot start a thread")?;
    let (picture, pictured) = watch::channel(dispatcher.picture());
    let (traces, traced) = watch::channel(Vec::new());
    let telling = Telling { picture, traces, note: Box::new(|line: &str| output::note(line)) };
    let (say, ended) = oneshot::channel();
    tokio::spawn(async move {
        let outcome = coordinate(&coordinating, dispatcher, &facts, asked, telling).await;
        // The receiver is gone when the server stops.
        let _ = say.send(outcome);
    });
    let mut seen = pictured.clone();
    tokio::spawn(async move {
        while seen.changed().await.is_ok() {
            let (running, waiting) = (seen.borrow().running, seen.borrow().waiting);
            show(running, waiting);
        }
    });
    invite(args, &public);
    let ended = async {
        match ended.await {
            Ok(Err(error)) => error.into(),
            _ => anyhow!("the coordinator has ended; start again"),
        }
    };
    Ok(Answering {
        handle,
        thread,
        more: router(pool, file, pictured, traced).merge(page::router()),
        ended: Box::pin(ended),
    })
}

/// Prints how workers join, and where the pool's page is.
fn invite(args: &PoolServeArgs, public: &str) {
    output::note(&format!("  anygpu pool work --coordinator {public}"));
    if args.nats_pages.is_some() {
        output::note(&format!("  pages join by pool.html?coordinator={public}"));
        if args.http.cors.is_empty() {
            output::note("  and may not ask: --cors ORIGIN lets those of an origin, such as https://example.org");
        }
    }
    output::note(&format!("  {public}/ shows it"));
}

/// Returns the number of texts whose states a worker holds: those of its chain, and one that it checks.
fn held(args: &PoolServeArgs) -> u32 {
    args.sessions + u32::from(args.check > 0.0)
}

/// Returns the memory that the model's parts take on a worker.
fn sizes(elsewhere: &Elsewhere, args: &PoolServeArgs) -> Result<Model> {
    let blocks = elsewhere.blocks();
    let of = |embed, range: std::ops::Range<usize>, head| -> Result<(u64, u64)> {
        let taken = elsewhere.footprint(Stage { embed, blocks: range, head })?;
        Ok((taken.weights, u64::from(held(args)) * taken.states))
    };
    let (mut block_bytes, mut block_states) = (0, 0);
    for block in 0..blocks {
        let (weights, states) = of(false, block..block + 1, false)?;
        (block_bytes, block_states) = (block_bytes.max(weights), block_states.max(states));
    }
    // The states of the embedding and the head are the ids of a text's tokens. They are small, and counted as weights.
    let all = |(weights, states): (u64, u64)| weights + states;
    let first = all(of(false, 0..1, false)?);
    let last = all(of(false, blocks - 1..blocks, false)?);
    let embedding_bytes = all(of(true, 0..1, false)?).saturating_sub(first);
    let head_bytes = all(of(false, blocks - 1..blocks, true)?).saturating_sub(last);
    // The matmul with the head reads its weights at the same speed as blocks read theirs.
    let head_blocks = head_bytes as f64 / of(false, 0..1, false)?.0.max(1) as f64;
    let blocks = u32::try_from(blocks)?;
    Ok(Model { blocks, block_bytes, block_states, embedding_bytes, head_bytes, head_blocks })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::pool::PoolCommand;
    use crate::args::{Cli, Command};
    use clap::Parser;

    #[test]
    fn the_public_name_is_an_allowed_host() {
        let allowed = |args: &[&str]| {
            let all = [&["anygpu", "pool", "serve", "--nats", "nats://127.0.0.1:4222"], args].concat();
            match Cli::try_parse_from(all).unwrap().command {
                Some(Command::Pool(PoolCommand::Serve(args))) => http(&args).allowed_host,
                _ => panic!("another command"),
            }
        };
        assert_eq!(allowed(&["--public", "https://pool.example:8443/"]), ["pool.example"]);
        assert_eq!(allowed(&["--public", "http://pool.example", "--allowed-host", "box"]), ["box", "pool.example"]);
        assert!(allowed(&[]).is_empty());
    }
}
