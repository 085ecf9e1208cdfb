//! Connections to a server.

use std::time::Duration;

use anygpu_pool_proto::limits::MESSAGE_BYTES;
use async_nats::{Client, ConnectOptions};

use crate::PoolError;

/// Time between two attempts to connect again.
const AGAIN: Duration = Duration::from_millis(100);
/// Time in which a server has to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Connects, once: later breaks are mended by the client, again and again.
pub(crate) async fn connect(server: &str, name: &str) -> Result<Client, PoolError> {
    let (address, user) = parted(server);
    // The client leaves out what an address says of the user.
    let options = match user {
        Some((name, password)) => ConnectOptions::with_user_and_password(name.into(), password.into()),
        None => ConnectOptions::new(),
    };
    let options =
        options.name(name).connection_timeout(PATIENCE).ping_interval(PATIENCE).reconnect_delay_callback(|_| AGAIN);
    options
        .connect(&address)
        .await
        .map_err(|error| PoolError::Connect { server: address.clone(), reason: error.to_string() })
}

/// The same, with a server that lets a pool's messages through.
pub(crate) async fn connect_for_pool(server: &str, name: &str) -> Result<Client, PoolError> {
    let client = connect(server, name).await?;
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
