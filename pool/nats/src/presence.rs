//! Connections of workers, as the server reports them.

use serde::Deserialize;

/// Where a server tells of connections that were closed.
pub(crate) const CLOSED: &str = "$SYS.ACCOUNT.*.DISCONNECT";

#[derive(Deserialize)]
struct Closed {
    server: Server,
    client: Closing,
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize)]
struct Server {
    id: String,
}

#[derive(Deserialize)]
struct Closing {
    id: u64,
}

/// Why a server that ends closes all connections. Who has one comes back by another.
const SHUTDOWN: &str = "Server Shutdown";

/// The connection that an event tells of, as workers name theirs. Nothing of a server that ends: nobody is gone by that.
pub(crate) fn closed(payload: &[u8]) -> Option<String> {
    let Closed { server, client, reason } = serde_json::from_slice(payload).ok()?;
    (reason != SHUTDOWN).then(|| format!("{}/{}", server.id, client.id))
}

/// Where a server is asked to close a connection, and with what words.
pub(crate) fn kick(connection: &str) -> Option<(String, Vec<u8>)> {
    let (server, client) = connection.split_once('/')?;
    let client: u64 = client.parse().ok()?;
    let plain = !server.is_empty() && server.bytes().all(|byte| byte.is_ascii_alphanumeric());
    plain.then(|| (format!("$SYS.REQ.SERVER.{server}.KICK"), format!("{{\"cid\":{client}}}").into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_name_connections() {
        let event = br#"{"type":"io.nats.server.advisory.v1.client_disconnect","server":{"name":"n","id":"NDAB"},
            "client":{"acc":"$G","id":23,"user":"worker"},"reason":"Client Closed"}"#;
        assert_eq!(closed(event).as_deref(), Some("NDAB/23"));
        assert_eq!(closed(b"{}"), None);
        let ends = br#"{"server":{"id":"NDAB"},"client":{"id":23},"reason":"Server Shutdown"}"#;
        assert_eq!(closed(ends), None);
        assert_eq!(kick("NDAB/23").map(|it| it.0).as_deref(), Some("$SYS.REQ.SERVER.NDAB.KICK"));
        assert_eq!(kick("a.b.>/23"), None);
    }
}
