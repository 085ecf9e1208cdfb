//! Connections to a server.

use std::time::Duration;

use anygpu_pool_proto::limits::MESSAGE_BYTES;
use async_nats::{Client, ConnectOptions, Event};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::PoolError;
use crate::grant::inboxes;

/// Time between two attempts to connect again.
const AGAIN: Duration = Duration::from_millis(100);
/// Delay between attempts of a worker: the coordinator, which is asked whether workers may connect, comes before
/// them.
const AFTER: Duration = Duration::from_millis(300);
/// Time in which a server has to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Connects, once: later breaks are mended by the client, again and again.
pub(crate) async fn connect(server: &str, name: &str) -> Result<Client, PoolError> {
    connect_as(server, options(server, name)).await
}

fn options(server: &str, name: &str) -> ConnectOptions {
    // The client leaves out what an address says of the user.
    let options = match parted(server).1 {
        Some((name, password)) => ConnectOptions::with_user_and_password(name.into(), password.into()),
        None => ConnectOptions::new(),
    };
    options.name(name).connection_timeout(PATIENCE).ping_interval(PATIENCE).reconnect_delay_callback(|_| AGAIN)
}

async fn connect_as(server: &str, options: ConnectOptions) -> Result<Client, PoolError> {
    let (address, _) = parted(server);
    options
        .connect(&address)
        .await
        .map_err(|error| PoolError::Connect { server: address.clone(), reason: error.to_string() })
}

/// Connects a coordinator to a server that lets a pool's messages through. The other end of the channel tells whether
/// the connection is up.
pub(crate) async fn connect_coordinator(server: &str) -> Result<(Client, UnboundedReceiver<bool>), PoolError> {
    let (tell, breaks) = unbounded_channel();
    let options = options(server, "anygpu coordinator").event_callback(move |event| {
        let there = match event {
            Event::Connected => Some(true),
            Event::Disconnected => Some(false),
            _ => None,
        };
        // Nobody listens any more once the coordinator has ended.
        let _ = there.map(|there| tell.send(there));
        async {}
    });
    Ok((lets_through(connect_as(server, options).await?)?, breaks))
}

/// Connects a worker, whose name follows from its secret.
pub(crate) async fn connect_worker(server: &str, secret: &str) -> Result<Client, PoolError> {
    let inboxes = inboxes(&anygpu_pool_worker::name(secret));
    let options = options(server, &format!("anygpu worker {secret}")).custom_inbox_prefix(inboxes);
    lets_through(connect_as(server, options.reconnect_delay_callback(|_| AFTER)).await?)
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
    lets_through(connect(server, "anygpu").await?).map(|_| ())
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
