//! A worker that lies: an honest one, behind a relay that alters what it hands over.
//!
//! No program of ours can be asked to lie. The relay stands where a worker's connection to the NATS server goes through, and
//! reads as much of the protocol as it takes to find what is published.

use anygpu_pool_proto::{Step, Token, Wire};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write, copy};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread::spawn;

/// Bytes of a line of the protocol, and of a message, at most.
const LINE: u64 = 64 << 10;
const MESSAGE: usize = 16 << 20;

/// Starts such a relay, beside what stands in for the coordinator's `/pool.json`; it ends with this process. Gives what a
/// worker is told the coordinator is. `pool` is what the coordinator says of its pool.
pub fn relay(mut pool: Value) -> Result<String> {
    let tcp = pool["tcp"].as_str().context("the pool names no server")?;
    let (user, server) =
        tcp.trim_start_matches("nats://").rsplit_once('@').context("the server's address names no user")?;
    let (user, server) = (user.to_owned(), server.to_owned());
    let (nats, http) = (TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?);
    pool["tcp"] = format!("nats://{user}@{}", nats.local_addr()?).into();
    let (body, address) = (pool.to_string(), format!("http://{}", http.local_addr()?));
    spawn(move || {
        for stream in http.incoming().flatten() {
            let _ = tell(stream, &body);
        }
    });
    spawn(move || {
        for worker in nats.incoming().flatten() {
            // A connection that breaks is made again.
            let Ok(server) = TcpStream::connect(&server) else { continue };
            let _ = both_ways(worker, server);
        }
    });
    Ok(address)
}

/// Answers any request with the same.
fn tell(mut stream: TcpStream, body: &str) -> Result<()> {
    let mut line = String::new();
    let mut request = BufReader::new(stream.try_clone()?).take(LINE);
    while request.read_line(&mut line)? > 2 {
        line.clear();
    }
    let length = body.len();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n");
    Ok(stream.write_all(format!("{head}Connection: close\r\n\r\n{body}").as_bytes())?)
}

fn both_ways(worker: TcpStream, server: TcpStream) -> Result<()> {
    worker.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut down, mut to_worker) = (server.try_clone()?, worker.try_clone()?);
    spawn(move || {
        let _ = copy(&mut down, &mut to_worker);
        let _ = to_worker.shutdown(Shutdown::Both);
    });
    spawn(move || {
        let _ = alter(&worker, &server);
        let _ = server.shutdown(Shutdown::Both);
    });
    Ok(())
}

/// Passes on what a client says, but for what it publishes: of that, something else.
fn alter(worker: &TcpStream, mut server: &TcpStream) -> Result<()> {
    let mut worker = BufReader::new(worker);
    loop {
        let mut line = Vec::new();
        if worker.by_ref().take(LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let words = String::from_utf8_lossy(&line).into_owned();
        let words: Vec<&str> = words.split_whitespace().collect();
        let (&[verb, subject, ..], Some(size)) = (&words[..], words.last()) else {
            server.write_all(&line)?;
            continue;
        };
        match verb {
            "PUB" => {
                let size: usize = size.parse()?;
                if size > MESSAGE {
                    bail!("a message of {size} bytes");
                }
                let mut payload = vec![0; size + 2];
                worker.read_exact(&mut payload)?;
                payload.truncate(size);
                let payload = lie(subject, payload);
                let (_, before) = words.split_last().unwrap_or((&"", &[]));
                server.write_all(format!("{} {}\r\n", before.join(" "), payload.len()).as_bytes())?;
                server.write_all(&[&payload[..], b"\r\n"].concat())?;
            }
            "HPUB" => bail!("workers send no headers"),
            _ => server.write_all(&line)?,
        }
    }
}

/// Noise of a hundredth on activations, another token for a token.
fn lie(subject: &str, payload: Vec<u8>) -> Vec<u8> {
    let lied = if subject.starts_with("pool.w.") {
        Step::from_wire(&payload).ok().and_then(|mut step| {
            for (at, number) in step.activations.chunks_exact_mut(4).enumerate() {
                let noise = if at % 2 == 0 { 1.01 } else { 0.99 };
                let value = f32::from_le_bytes(number.try_into().ok()?);
                number.copy_from_slice(&(value * noise).to_le_bytes());
            }
            step.to_wire().ok()
        })
    } else if subject.starts_with("pool.out.") {
        Token::from_wire(&payload).ok().and_then(|token| Token { id: token.id ^ 1, ..token }.to_wire().ok())
    } else {
        None
    };
    lied.unwrap_or(payload)
}
