//! The arguments of `serve`, and those of every HTTP server.

use super::{DraftArgs, LoadArgs, bytes};
use anygpu::Pooling;
use anygpu::handle::Limits;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use std::net::{IpAddr, Ipv4Addr};

/// The arguments of `serve`.
#[derive(Debug, Clone, Args)]
pub struct ServeArgs {
    #[command(flatten)]
    pub load: LoadArgs,
    #[command(flatten)]
    pub draft: DraftArgs,
    #[command(flatten)]
    pub http: HttpArgs,
    /// Conversations that run at a time, in turns of a few tokens; the next one begins when one of them has ended
    #[arg(long, value_name = "N", default_value_t = Limits::default().begun, value_parser = at_most_a_million)]
    pub parallel: usize,
    /// Most host memory for the states of conversations that wait for their turn, such as 2G [default: what --parallel
    /// of them take, at least 256M]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub session_memory: Option<u64>,
    /// Most device memory for conversations that advance in the same steps, such as 8G; those that grow too long for it advance
    /// in smaller groups, or take turns [default: as much as the weights take, at least 1G, or 2G on the CPU]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub batch_memory: Option<u64>,
    /// Serve embeddings with this pooling: mean, cls (the first), or last; or rank, for the scores of a reranker [default:
    /// what the file says]
    #[arg(long, value_name = "mean|cls|last|rank")]
    pub pooling: Option<Pooling>,
}

/// The address of a server, and the requests that it accepts.
#[derive(Debug, Clone, Args)]
pub struct HttpArgs {
    /// The address to listen on; 0.0.0.0 is every address of this machine
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", value_parser = address)]
    pub host: IpAddr,
    /// The port to listen on; 0 is any free port
    #[arg(long, default_value_t = 8080)]
    pub port: u16,
    /// Accept only requests with this key (Authorization: Bearer KEY); /health does not need it
    #[arg(long, value_name = "KEY", env = "ANYGPU_API_KEY", hide_env_values = true, value_parser = NonEmptyStringValueParser::new())]
    pub api_key: Option<String>,
    /// Accept browser requests from pages of this origin, such as https://example.org, or of any (*); may be given
    /// several times [default: none]
    #[arg(long, value_name = "ORIGIN")]
    pub cors: Vec<String>,
    /// Accept requests whose Host header has this name, as those of a proxy may, or any name (*); may be given several
    /// times. IP addresses and localhost are always accepted, and every name is with --api-key [default: none]
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub allowed_host: Vec<String>,
    /// Refuse requests with fields that are unknown or have no effect, instead of naming these in the header
    /// x-anygpu-warning
    #[arg(long)]
    pub strict: bool,
    /// Another name by which requests may call the model; may be given several times
    #[arg(long, value_name = "NAME")]
    pub alias: Vec<String>,
    /// Most requests that are answered or wait at a time; further ones get 503 with Retry-After
    #[arg(long, value_name = "N", default_value_t = Limits::default().requests, value_parser = at_most_a_million)]
    pub queue: usize,
    /// Size of the largest request
    #[arg(long, value_name = "BYTES", value_parser = bytes, default_value = "8M")]
    pub max_body: u64,
}

/// Parses a number. More than a million counts as a mistake.
fn at_most_a_million(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|n| (1..=1_000_000).contains(n));
    number.ok_or_else(|| "give a number from 1 to 1000000".into())
}

/// Parses a name as the `Host` header has it, without a port.
fn name(text: &str) -> Result<String, String> {
    let sound = text == "*" || !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
    if sound {
        Ok(text.into())
    } else {
        Err("give a name such as box.example, without a scheme and a port, or *".into())
    }
}

/// Parses an address of this machine. `localhost` is 127.0.0.1.
fn address(text: &str) -> Result<IpAddr, String> {
    if text == "localhost" {
        return Ok(Ipv4Addr::LOCALHOST.into());
    }
    text.parse().map_err(|_| "give an address such as 127.0.0.1, 0.0.0.0 or ::1".into())
}
