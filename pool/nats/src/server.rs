//! The server's configuration.

use std::fmt;

use anygpu_pool_proto::limits::MESSAGE_BYTES;

use crate::grant::{ACCOUNT, Authority, WORKER};
use crate::{PoolError, random};

/// Users of the server, with their permissions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Users {
    /// The password of `coordinator`, who may do all that a pool is made of.
    pub coordinator: String,
    /// The password of `worker`, which everybody who joins has.
    pub worker: String,
    /// The password of `system`, who is told of connections and may close them.
    pub system: String,
}

impl Users {
    /// With passwords that nobody foresees.
    ///
    /// *Errors*: the system has no chance to give.
    pub fn new() -> Result<Users, PoolError> {
        let password = || Ok::<_, PoolError>(format!("{:016x}{:016x}", random()?, random()?));
        Ok(Users { coordinator: password()?, worker: password()?, system: password()? })
    }
}

/// A server for one machine or one net. Shown, it is the file that `nats-server -c` reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Where it listens, such as 127.0.0.1.
    pub host: String,
    /// For native workers.
    pub port: u16,
    /// For pages.
    pub websocket: u16,
    /// Users of the server, with their permissions.
    pub users: Users,
    /// Whether all workers are one user, and may speak for each other: servers before 2.10 cannot ask the coordinator.
    pub shared: bool,
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Server { host, port, websocket, users: Users { coordinator, worker, system }, shared } = self;
        writeln!(f, "# A NATS server for a pool of anygpu: nats-server -c THIS_FILE")?;
        writeln!(f, "listen: \"{host}:{port}\"")?;
        writeln!(f, "max_payload: {MESSAGE_BYTES}")?;
        writeln!(f, "max_pending: {}", 8 * MESSAGE_BYTES)?;
        writeln!(f, "ping_interval: \"5s\"")?;
        writeln!(f, "ping_max: 2")?;
        writeln!(
            f,
            "# Without TLS: only for a net that is yours. Behind a proxy that has a certificate this stays as it is."
        )?;
        writeln!(f, "websocket {{ listen: \"{host}:{websocket}\", no_tls: true }}")?;
        if !shared {
            let issuer = Authority::new(coordinator).map_err(|_| fmt::Error)?.public();
            writeln!(f, "# The coordinator is asked what each worker may do.")?;
            writeln!(f, "authorization {{ timeout: 1, auth_callout {{")?;
            writeln!(f, "  issuer: {issuer}, account: {ACCOUNT}, auth_users: [coordinator, system]")?;
            writeln!(f, "}} }}")?;
        }
        writeln!(f, "accounts {{")?;
        writeln!(f, "  {ACCOUNT} {{ users: [")?;
        writeln!(f, "    {{ user: coordinator, password: \"{coordinator}\" }}")?;
        if *shared {
            writeln!(f, "    {{ user: {WORKER}, password: \"{worker}\", permissions: {{")?;
            writeln!(
                f,
                "      publish: [\"pool.hello\", \"pool.up.*.*\", \"pool.out.*.*\", \"pool.w.*.s.*.*\", \"_INBOX.>\"]"
            )?;
            writeln!(f, "      subscribe: [\"pool.w.*.>\", \"_INBOX.>\"]")?;
            writeln!(f, "    }} }}")?;
        }
        writeln!(f, "  ] }}")?;
        writeln!(f, "  SYS {{ users: [ {{ user: system, password: \"{system}\" }} ] }}")?;
        writeln!(f, "}}")?;
        writeln!(f, "system_account: SYS")
    }
}
