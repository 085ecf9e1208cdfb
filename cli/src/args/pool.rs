//! The arguments of `pool` and its commands.

use super::{HttpArgs, ModelArgs, OnDevice, bytes};
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueEnum};
use std::net::IpAddr;
use std::path::PathBuf;

/// The commands of `pool`.
#[derive(Debug, Subcommand)]
pub enum PoolCommand {
    /// Print the configuration of a NATS server for a pool, with new passwords
    ///
    /// Run anygpu pool config > pool.conf, and then nats-server -c pool.conf. Comments in that file have the options
    /// with which `pool serve` reaches the server.
    Config(PoolConfigArgs),
    /// Coordinate a pool: serve a model that its workers compute, for clients of OpenAI's API
    ///
    /// Workers join with `anygpu pool work --coordinator http://HOST:PORT`, or with a web page. Each gets some of the
    /// model's blocks. A worker that is lost is replaced, and texts continue as if nothing had happened.
    Serve(Box<PoolServeArgs>),
    /// Join a pool: compute some of its model's blocks
    ///
    /// Other people's texts pass through this machine. Ctrl-C leaves the pool.
    Work(Box<OnDevice<PoolWorkArgs>>),
    /// Simulate a pool: workers that come and go, with the real coordinator's code
    ///
    /// A seed always gives the same result, on every machine.
    Sim(PoolSimArgs),
}

/// Arguments of `pool config`.
#[derive(Debug, Clone, Args)]
pub struct PoolConfigArgs {
    /// The address that the server listens on; 0.0.0.0 is every address of its machine
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub host: IpAddr,
    /// The name or address by which other machines reach this one [default: the address of --host]
    #[arg(long, value_name = "NAME")]
    pub public: Option<String>,
    /// The origin of web pages that use the pool: `pool serve --cors`
    #[arg(long, value_name = "ORIGIN", default_value = "http://127.0.0.1:8000")]
    pub cors: String,
    /// The port for native workers
    #[arg(long, default_value_t = 4222)]
    pub port: u16,
    /// The WebSocket port, for web pages
    #[arg(long, default_value_t = 9222)]
    pub websocket_port: u16,
    /// Let all workers share one user, who can read and send each other's messages: for a server before 2.10, among
    /// friends
    #[arg(long)]
    pub shared: bool,
}

/// The data type of activations between workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SeamArg {
    /// Half the bytes. Rounding is part of the computation: texts may differ from those of f32.
    F16,
    /// Exact: the text is the one that a single machine generates.
    F32,
}

/// Arguments of `pool serve`.
#[derive(Debug, Clone, Args)]
pub struct PoolServeArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    #[command(flatten)]
    pub http: HttpArgs,
    /// The NATS server, such as nats://coordinator:SECRET@127.0.0.1:4222 (`pool config` writes it)
    #[arg(
        long,
        value_name = "URL",
        env = "ANYGPU_NATS",
        hide_env_values = true,
        default_value = "nats://127.0.0.1:4222",
        help_heading = "Pool"
    )]
    pub nats: String,
    /// The NATS server, with a user of its system account. With it, the end of a connection is noticed at once
    /// [default: only heartbeats tell]
    #[arg(long, value_name = "URL", env = "ANYGPU_NATS_SYSTEM", hide_env_values = true, help_heading = "Pool")]
    pub nats_system: Option<String>,
    /// The NATS server's URL for workers [default: the one of --nats]
    #[arg(long, value_name = "URL", env = "ANYGPU_NATS_WORKERS", hide_env_values = true, help_heading = "Pool")]
    pub nats_workers: Option<String>,
    /// The NATS server's URL for web pages, such as ws://worker:SECRET@192.168.1.2:9222 [default: pages cannot join]
    #[arg(long, value_name = "URL", env = "ANYGPU_NATS_PAGES", hide_env_values = true, help_heading = "Pool")]
    pub nats_pages: Option<String>,
    /// The URL by which workers reach this program [default: http:// and the address that it listens on]
    #[arg(long, value_name = "URL", help_heading = "Pool")]
    pub public: Option<String>,
    /// Data type of the activations between workers: f16 (half the bytes) or f32 (exact)
    #[arg(long, value_enum, default_value = "f16", help_heading = "Pool")]
    pub seam: SeamArg,
    /// Size of the context in tokens [default: what the model was trained for, at most 2048]
    #[arg(long, value_name = "TOKENS", help_heading = "Pool")]
    pub n_ctx: Option<usize>,
    /// Number of chains of workers, if there are enough of them; each chain has the whole model
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000), help_heading = "Pool")]
    pub chains: u64,
    /// Number of spare workers for each stage, if there are enough of them
    #[arg(long, value_name = "N", default_value_t = 4, help_heading = "Pool")]
    pub spares: u32,
    /// Number of texts whose states (such as the KV cache) a stage holds
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=255), help_heading = "Pool")]
    pub sessions: u32,
    /// Tokens between two copies of a text's states to a spare worker; 0 sends none, and a lost stage is computed again
    #[arg(long, value_name = "TOKENS", default_value_t = 512, help_heading = "Pool")]
    pub snapshot: u32,
    /// Share of the texts that are checked, from 0 to 1: a spare worker computes one stage as well, and a worker that
    /// computes something else is banned. Settling a dispute takes two spare workers for the stage
    #[arg(long, value_name = "PART", default_value_t = 0.0, value_parser = part, help_heading = "Pool")]
    pub check: f64,
    /// Let only workers with this key see tokens: only they get the first and the last stage of a chain [default: all
    /// may]
    #[arg(long, value_name = "KEY", env = "ANYGPU_ENDS_KEY", hide_env_values = true, value_parser = NonEmptyStringValueParser::new(), help_heading = "Pool")]
    pub ends_key: Option<String>,
    /// File for the texts under way, so that a restarted coordinator continues them [default: none]
    #[arg(long, value_name = "FILE", help_heading = "Pool")]
    pub state: Option<PathBuf>,
}

/// Arguments of `pool work`.
#[derive(Debug, Clone, Args)]
pub struct PoolWorkArgs {
    /// The coordinator, such as http://192.168.1.2:8080
    #[arg(long, value_name = "URL", help_heading = "Pool")]
    pub coordinator: String,
    /// Most memory for weights and states, such as 800M or 6G
    #[arg(long, value_name = "BYTES", value_parser = bytes, default_value = "2G", help_heading = "Pool")]
    pub memory: u64,
    /// The key of `pool serve --ends-key`, which lets this worker have the first or the last stage of a chain
    #[arg(long, value_name = "KEY", env = "ANYGPU_ENDS_KEY", hide_env_values = true, value_parser = NonEmptyStringValueParser::new(), help_heading = "Pool")]
    pub ends_key: Option<String>,
    /// Do not keep downloaded parts of models for the next time
    #[arg(long, help_heading = "Pool")]
    pub no_keep: bool,
}

/// Arguments of `pool sim`.
#[derive(Debug, Clone, Args)]
pub struct PoolSimArgs {
    /// Number of workers, including those that are away
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub workers: u64,
    /// Seed of everything that is random
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Hours to simulate
    #[arg(long, default_value_t = 24.0, value_parser = positive)]
    pub hours: f64,
    /// Requests per hour for each worker
    #[arg(long, default_value_t = 0.5, value_parser = positive)]
    pub requests: f64,
    /// Tokens of each prompt
    #[arg(long, value_name = "TOKENS", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=8192))]
    pub prompt: u32,
    /// Seconds after which most workers have left; 0 makes all of them stay
    #[arg(long, default_value_t = 1800.0, value_parser = not_negative)]
    pub stay: f64,
    /// Simulate growing failures instead of a day: 10 workers, a model that needs this many of them, and at the end a
    /// failure every 10 s for each
    #[arg(long, value_name = "NEEDED", value_parser = clap::value_parser!(u32).range(1..=10), conflicts_with_all = ["workers", "hours", "requests", "prompt", "stay"])]
    pub churn: Option<u32>,
    /// Seconds over which the failures grow
    #[arg(long, default_value_t = 600.0, value_parser = positive, requires = "churn")]
    pub seconds: f64,
    /// Share of the failures in which a worker freezes while its connection stays open
    #[arg(long, default_value_t = 0.0, value_parser = not_negative, requires = "churn")]
    pub frozen: f64,
    /// Machines that `cargo xtask pool --churn` measured, instead of those of the thesis
    #[arg(long, value_name = "FILE", requires = "churn")]
    pub machines: Option<PathBuf>,
    /// Print the report as JSON
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

fn not_negative(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|it| it.is_finite() && *it >= 0.0);
    number.ok_or_else(|| "give a number that is not negative".to_string())
}

fn part(text: &str) -> Result<f64, String> {
    not_negative(text).ok().filter(|it| *it <= 1.0).ok_or_else(|| "give a number from 0 to 1".to_string())
}

fn positive(text: &str) -> Result<f64, String> {
    not_negative(text).ok().filter(|it| *it > 0.0).ok_or_else(|| "give a number above 0".to_string())
}
