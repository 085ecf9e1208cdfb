//! Check of the `Host` header, against DNS rebinding. An attacker's page can make its own name resolve to this server.
//! To the browser both then have one origin, and only the name in the header tells the page from permitted ones.

use axum::http::uri::Authority;
use std::net::{IpAddr, Ipv6Addr};

/// Permitted names. IP addresses and localhost are always permitted, because nobody else can make them resolve to this
/// server.
pub struct Hosts {
    names: Vec<String>,
}

impl Hosts {
    /// Creates the list from the values of `--allowed-host`; `*` is any name.
    pub fn new(names: &[String]) -> Hosts {
        Hosts { names: names.iter().map(|name| plain(name)).collect() }
    }

    /// Returns whether a request may have this `Host` header, which may include a port.
    pub fn admit(&self, host: &str) -> bool {
        let Ok(authority) = host.parse::<Authority>() else { return false };
        let host = plain(authority.host());
        let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        address.is_some_and(|address| address.parse::<Ipv6Addr>().is_ok())
            || host.parse::<IpAddr>().is_ok()
            || host == "localhost"
            || host.ends_with(".localhost")
            || self.names.iter().any(|name| name == "*" || *name == host)
    }
}

/// Normalizes a name: lower case, and without a dot at the end.
fn plain(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names_that_are_allowed_pass() {
        let hosts = Hosts::new(&["Box.example".into()]);
        for host in ["127.0.0.1", "127.0.0.1:8080", "[::1]:80", "192.168.0.7:1", "LocalHost:8080", "a.localhost"] {
            assert!(hosts.admit(host), "{host}");
        }
        assert!(hosts.admit("box.EXAMPLE:8080") && hosts.admit("box.example."));
        for host in ["", "evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "a b"]
        {
            assert!(!hosts.admit(host), "{host}");
        }
        assert!(Hosts::new(&["*".into()]).admit("evil.example"));
    }
}
