//! Somebody who knows a pool's address, has no part in what it computes, and tries to.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Time in which the server has to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Secret that the stranger's name is derived from.
const SECRET: &str = "00000000000000000000000000000000";

/// Connects as workers do, then speaks for others and listens to them: the server refuses each. `pool` and `state` are what
/// the coordinator says of its pool.
pub fn tries(pool: &Value, state: &Value) -> Result<()> {
    let tcp = pool["tcp"].as_str().context("the pool names no server")?;
    let (user, server) = tcp.trim_start_matches("nats://").rsplit_once('@').context("the address names no user")?;
    let (user, password) = user.split_once(':').context("the address has no password")?;
    let victim = state["chains"][0]["stages"][0]["worker"].as_str().context("no stage has a worker")?;

    let wrong = Nats::connect(server, user, "guessed", SECRET)?;
    wrong.expects("Authorization Violation").context("with another password")?;
    Nats::connect(server, user, password, "")?.expects("Authorization Violation").context("without a secret")?;
    for (says, refused) in [
        ("SUB pool.w.*.> 1\r\n".to_owned(), "Permissions Violation for Subscription"),
        (format!("SUB pool.w.{victim}.> 1\r\n"), "Permissions Violation for Subscription"),
        ("SUB pool.out.> 1\r\n".into(), "Permissions Violation for Subscription"),
        ("SUB _INBOX.> 1\r\n".into(), "Permissions Violation for Subscription"),
        ("SUB $SYS.REQ.USER.AUTH 1\r\n".into(), "Permissions Violation for Subscription"),
        (format!("PUB pool.out.{victim}.1 2\r\nno\r\n"), "Permissions Violation for Publish"),
        (format!("PUB pool.up.{victim}.at 2\r\nno\r\n"), "Permissions Violation for Publish"),
        (format!("PUB pool.w.{victim}.ctl 2\r\nno\r\n"), "Permissions Violation for Publish"),
        (format!("PUB pool.w.{victim}.hello 0\r\n\r\n"), "Permissions Violation for Publish"),
        (format!("PUB pool.w.{victim}.s.guess.{victim} 2\r\nno\r\n"), "Permissions Violation for Publish"),
    ] {
        let nats = Nats::connect(server, user, password, SECRET)?;
        nats.expects("PONG").context("a worker that may connect does not")?;
        (&nats.0).write_all(says.as_bytes())?;
        nats.expects(refused).with_context(|| format!("{says:?}"))?;
    }
    Ok(())
}

/// As much of a client as that takes.
struct Nats(TcpStream);

impl Nats {
    fn connect(server: &str, user: &str, pass: &str, secret: &str) -> Result<Nats> {
        let mut stream = TcpStream::connect(server).with_context(|| format!("cannot reach {server}"))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let options = serde_json::json!({
            "verbose": false, "pedantic": false, "lang": "none", "version": "0", "protocol": 1,
            "user": user, "pass": pass, "name": format!("stranger {secret}"),
        });
        stream.write_all(format!("CONNECT {options}\r\nPING\r\n").as_bytes())?;
        Ok(Nats(stream))
    }

    /// Waits for a line that has this.
    fn expects(&self, words: &str) -> Result<()> {
        let mut heard = String::new();
        for line in BufReader::new(&self.0).lines() {
            let line = line.with_context(|| format!("the server says no {words:?}, but {heard:?}"))?;
            if line.contains(words) {
                return Ok(());
            }
            heard = line;
        }
        bail!("the server says no {words:?}, and at last {heard:?}")
    }
}
