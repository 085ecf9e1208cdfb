//! The server.

use super::{DraftArgs, LoadArgs, bytes};
use anygpu::Pooling;
use anygpu::handle::Limits;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use std::net::{IpAddr, Ipv4Addr};

/// What to serve, where, and to whom.
#[derive(Debug, Clone, Args)]
pub struct ServeArgs {
    #[command(flatten)]
    pub load: LoadArgs,
    #[command(flatten)]
    pub draft: DraftArgs,
    #[command(flatten)]
    pub http: HttpArgs,
    /// Conversations that take turns, a few tokens each; the next one begins when one of them has ended
    #[arg(long, value_name = "N", default_value_t = Limits::default().begun, value_parser = at_most_a_million)]
    pub parallel: usize,
    /// What conversations may take of host memory while others have their turns, such as 2G [default: what --parallel of them take, at least 256M]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub session_memory: Option<u64>,
    /// Serve embeddings, pooled in this way: mean, cls (the first), or last [default: what the file says]
    #[arg(long, value_name = "mean|cls|last")]
    pub pooling: Option<Pooling>,
}

/// Where a server listens, and whom it answers.
#[derive(Debug, Clone, Args)]
pub struct HttpArgs {
    /// The address to listen at; 0.0.0.0 is all of this machine's
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", value_parser = address)]
    pub host: IpAddr,
    /// The port to listen at; 0 is any that is free
    #[arg(long, default_value_t = 8080)]
    pub port: u16,
    /// Only answer requests with this key (Authorization: Bearer KEY); /health needs none
    #[arg(long, value_name = "KEY", env = "ANYGPU_API_KEY", hide_env_values = true, value_parser = NonEmptyStringValueParser::new())]
    pub api_key: Option<String>,
    /// Let pages of this origin, such as https://example.org, or of all (*) ask; may be given several times [default: none]
    #[arg(long, value_name = "ORIGIN")]
    pub cors: Vec<String>,
    /// Answer requests that call the server by this name, as a proxy may, or by any (*); may be given several times. Addresses
    /// and localhost always may, and with --api-key all names [default: none]
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub allowed_host: Vec<String>,
    /// Refuse fields of requests that are not known, instead of noting them in the header x-anygpu-warning
    #[arg(long)]
    pub strict: bool,
    /// Another name that requests may give the model; may be given several times
    #[arg(long, value_name = "NAME")]
    pub alias: Vec<String>,
    /// Requests that are answered or wait at a time; more are told to come again
    #[arg(long, value_name = "N", default_value_t = Limits::default().requests, value_parser = at_most_a_million)]
    pub queue: usize,
    /// The longest request
    #[arg(long, value_name = "BYTES", value_parser = bytes, default_value = "8M")]
    pub max_body: u64,
}

/// More would be a slip.
fn at_most_a_million(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|n| (1..=1_000_000).contains(n));
    number.ok_or_else(|| "give a number from 1 to 1000000".into())
}

/// A name as the head of a request has it, without a port.
fn name(text: &str) -> Result<String, String> {
    let sound = text == "*" || !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
    if sound {
        Ok(text.into())
    } else {
        Err("give a name such as box.example, without a scheme and a port, or *".into())
    }
}

/// An address of this machine; browsers and people say localhost for one of them.
fn address(text: &str) -> Result<IpAddr, String> {
    if text == "localhost" {
        return Ok(Ipv4Addr::LOCALHOST.into());
    }
    text.parse().map_err(|_| "give an address such as 127.0.0.1, 0.0.0.0 or ::1".into())
}
