//! The arguments of `pool`.

use super::{HttpArgs, ModelArgs, OnDevice, bytes};
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueEnum};
use std::net::IpAddr;
use std::path::PathBuf;

/// Many machines as one.
#[derive(Debug, Subcommand)]
pub enum PoolCommand {
    /// Write the configuration of a NATS server for a pool, with passwords of its own
    ///
    /// anygpu pool config > pool.conf, and then nats-server -c pool.conf. What `pool serve` takes to reach it stands in its
    /// comments.
    Config(PoolConfigArgs),
    /// Coordinate a pool: serve a model that its workers compute, to clients of OpenAI's API
    ///
    /// Workers join by `anygpu pool work --coordinator http://HOST:PORT`, or with a page. Each gets some of the model's
    /// blocks. One that is lost is replaced, and texts go on as if nothing had happened.
    Serve(Box<PoolServeArgs>),
    /// Join a pool: compute some of its model's blocks
    ///
    /// Texts that others ask pass through this machine. Ctrl-C leaves.
    Work(Box<OnDevice<PoolWorkArgs>>),
    /// Simulate a pool: workers that come and go, and the coordinator's own code
    ///
    /// One seed gives one result, on every machine.
    Sim(PoolSimArgs),
}

/// Arguments of `pool config`.
#[derive(Debug, Clone, Args)]
pub struct PoolConfigArgs {
    /// The address that the server listens at; 0.0.0.0 is all of its machine's
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub host: IpAddr,
    /// What workers elsewhere reach this machine by [default: the address of --host]
    #[arg(long, value_name = "NAME")]
    pub public: Option<String>,
    /// Where pages are that ask the pool: `pool serve --cors`
    #[arg(long, value_name = "ORIGIN", default_value = "http://127.0.0.1:8000")]
    pub cors: String,
    /// The port for native workers
    #[arg(long, default_value_t = 4222)]
    pub port: u16,
    /// The port for pages
    #[arg(long, default_value_t = 9222)]
    pub websocket_port: u16,
    /// All workers are one user, and may speak for and listen to each other: for a server before 2.10, among friends
    #[arg(long)]
    pub shared: bool,
}

/// What workers hand over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SeamArg {
    /// Half the bytes. Part of what is computed: texts may differ from those of f32.
    F16,
    /// The text of one machine, to the last bit of what is handed over.
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
    /// The same as a user of its system account, by whom the end of a connection is known at once [default: heartbeats tell]
    #[arg(long, value_name = "URL", env = "ANYGPU_NATS_SYSTEM", hide_env_values = true, help_heading = "Pool")]
    pub nats_system: Option<String>,
    /// What workers reach the server by [default: what --nats says]
    #[arg(long, value_name = "URL", env = "ANYGPU_NATS_WORKERS", hide_env_values = true, help_heading = "Pool")]
    pub nats_workers: Option<String>,
    /// What pages reach the server by, such as ws://worker:SECRET@192.168.1.2:9222 [default: pages cannot join]
    #[arg(long, value_name = "URL", env = "ANYGPU_NATS_PAGES", hide_env_values = true, help_heading = "Pool")]
    pub nats_pages: Option<String>,
    /// What workers reach this program by [default: http:// and the address that it listens at]
    #[arg(long, value_name = "URL", help_heading = "Pool")]
    pub public: Option<String>,
    /// What workers hand over: half the bytes (f16), or all (f32)
    #[arg(long, value_enum, default_value = "f16", help_heading = "Pool")]
    pub seam: SeamArg,
    /// Tokens that the context holds [default: what the model was trained for, at most 2048]
    #[arg(long, value_name = "TOKENS", help_heading = "Pool")]
    pub n_ctx: Option<usize>,
    /// Chains of workers that are kept, if there are enough of them; each has the whole model
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000), help_heading = "Pool")]
    pub chains: u64,
    /// Workers that stand by for each stage, if there are enough of them
    #[arg(long, value_name = "N", default_value_t = 4, help_heading = "Pool")]
    pub spares: u32,
    /// Texts that a stage holds states for
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=255), help_heading = "Pool")]
    pub sessions: u32,
    /// Tokens between two copies of a text's states that go to who stands by; 0 makes none, and all is computed again
    #[arg(long, value_name = "TOKENS", default_value_t = 512, help_heading = "Pool")]
    pub snapshot: u32,
    /// The part of texts of which one stage is computed by a worker that stands by as well, from 0 to 1: who computes
    /// something else is banned. A dispute takes two that stand by for the stage
    #[arg(long, value_name = "PART", default_value_t = 0.0, value_parser = part, help_heading = "Pool")]
    pub check: f64,
    /// Only workers with this key see tokens: they have the first stage of each chain and the last one [default: all may]
    #[arg(long, value_name = "KEY", env = "ANYGPU_ENDS_KEY", hide_env_values = true, value_parser = NonEmptyStringValueParser::new(), help_heading = "Pool")]
    pub ends_key: Option<String>,
    /// Where texts under way are kept, so that a coordinator that starts again goes on with them [default: nowhere]
    #[arg(long, value_name = "FILE", help_heading = "Pool")]
    pub state: Option<PathBuf>,
}

/// Arguments of `pool work`.
#[derive(Debug, Clone, Args)]
pub struct PoolWorkArgs {
    /// The coordinator, such as http://192.168.1.2:8080
    #[arg(long, value_name = "URL", help_heading = "Pool")]
    pub coordinator: String,
    /// Memory that weights and states may take
    #[arg(long, value_name = "BYTES", value_parser = bytes, default_value = "2G", help_heading = "Pool")]
    pub memory: u64,
    /// The key of `pool serve --ends-key`, with which this worker may have a chain's first stage or its last one
    #[arg(long, value_name = "KEY", env = "ANYGPU_ENDS_KEY", hide_env_values = true, value_parser = NonEmptyStringValueParser::new(), help_heading = "Pool")]
    pub ends_key: Option<String>,
    /// Do not keep what was fetched of models for the next time
    #[arg(long, help_heading = "Pool")]
    pub no_keep: bool,
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
    /// Tokens of a prompt
    #[arg(long, value_name = "TOKENS", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=8192))]
    pub prompt: u32,
    /// Seconds that most workers do not stay beyond; 0 has all of them stay
    #[arg(long, default_value_t = 1800.0, value_parser = not_negative)]
    pub stay: f64,
    /// Instead of a day: failures that grow to one in 10 s for each of 10 workers, with a model that needs so many of them
    #[arg(long, value_name = "NEEDED", value_parser = clap::value_parser!(u32).range(1..=10), conflicts_with_all = ["workers", "hours", "requests", "prompt", "stay"])]
    pub churn: Option<u32>,
    /// Seconds over which failures grow
    #[arg(long, default_value_t = 600.0, value_parser = positive, requires = "churn")]
    pub seconds: f64,
    /// Share of the failures in which a worker stands still, with its connection there
    #[arg(long, default_value_t = 0.0, value_parser = not_negative, requires = "churn")]
    pub frozen: f64,
    /// Other machines than the thesis': what `cargo xtask pool --churn` measured
    #[arg(long, value_name = "FILE", requires = "churn")]
    pub machines: Option<PathBuf>,
    /// The report as JSON
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
