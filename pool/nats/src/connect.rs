//! Connections to a server.

use std::time::Duration;

use anygpu_pool_proto::limits::MESSAGE_BYTES;
use async_nats::{Client, ConnectOptions};

use crate::PoolError;
use crate::grant::inboxes;

/// Time between two attempts to connect again.
const AGAIN: Duration = Duration::from_millis(100);
/// Time in which a server has to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Connects, once: later breaks are mended by the client, again and again.
pub(crate) async fn connect(server: &str, name: &str) -> Result<Client, PoolError> {
    connect_as(server, name, "_INBOX").await
}

/// The same, with answers under a prefix.
async fn connect_as(server: &str, name: &str, inboxes: &str) -> Result<Client, PoolError> {
    let (address, user) = parted(server);
    // The client leaves out what an address says of the user.
    let options = match user {
        Some((name, password)) => ConnectOptions::with_user_and_password(name.into(), password.into()),
        None => ConnectOptions::new(),
    };
    let options = options.name(name).custom_inbox_prefix(inboxes);
    let options = options.connection_timeout(PATIENCE).ping_interval(PATIENCE).reconnect_delay_callback(|_| AGAIN);
    options
        .connect(&address)
        .await
        .map_err(|error| PoolError::Connect { server: address.clone(), reason: error.to_string() })
}

/// The same, with a server that lets a pool's messages through.
pub(crate) async fn connect_for_pool(server: &str, name: &str) -> Result<Client, PoolError> {
    lets_through(connect(server, name).await?)
}

/// The same for a worker, which goes by a name that follows from its secret.
pub(crate) async fn connect_worker(server: &str, secret: &str) -> Result<Client, PoolError> {
    let inboxes = inboxes(&anygpu_pool_worker::name(secret));
    lets_through(connect_as(server, &format!("anygpu worker {secret}"), &inboxes).await?)
}

fn lets_through(client: Client) -> Result<Client, PoolError> {
    match client.max_payload() {
        got if got < MESSAGE_BYTES => Err(PoolError::Payload { got, needed: MESSAGE_BYTES }),
        _ => Ok(client),
    }
}

/// Whether a server can be reached, and lets a pool's messages through.
///
/// *Errors*: neither.
pub async fn reachable(server: &str) -> Result<(), PoolError> {
    connect_for_pool(server, "anygpu").await.map(|_| ())
}

/// The server's names of itself and of the connection.
pub(crate) fn connection(client: &Client) -> String {
    let info = client.server_info();
    format!("{}/{}", info.server_id, info.client_id)
}

/// The password in an address, if it has one.
pub(crate) fn password(server: &str) -> &str {
    parted(server).1.map_or("", |(_, password)| password)
}

/// An address without its secrets, and the user with the password.
fn parted(server: &str) -> (String, Option<(&str, &str)>) {
    let parts = server.split_once("://").and_then(|(scheme, rest)| {
        let (user, host) = rest.rsplit_once('@')?;
        Some((format!("{scheme}://{host}"), user.split_once(':').unwrap_or((user, ""))))
    });
    match parts {
        Some((address, user)) => (address, Some(user)),
        None => (server.to_owned(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_stay_out_of_addresses() {
        let (address, user) = parted("nats://worker:secret@example.org:4222");
        assert_eq!((&*address, user), ("nats://example.org:4222", Some(("worker", "secret"))));
        assert_eq!(parted("nats://127.0.0.1:4222"), ("nats://127.0.0.1:4222".into(), None));
    }
}
