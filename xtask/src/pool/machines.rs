//! The processes of a pool, and those who ask it.

use crate::process::{Group, which};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Time in which a program has to answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time between two looks.
const LOOK: Duration = Duration::from_millis(50);

/// The server's program.
pub fn server() -> Option<PathBuf> {
    std::env::var_os("NATS_SERVER").map(PathBuf::from).or_else(|| which("nats-server"))
}

/// Whether a server asks the coordinator who may connect: since 2.10.
pub fn asks(server: &Path) -> Result<bool> {
    let version = Command::new(server).arg("--version").output().context("cannot start nats-server")?;
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    let mut numbers =
        version.rsplit('v').next().unwrap_or_default().split('.').map_while(|part| part.parse::<u32>().ok());
    Ok((numbers.next(), numbers.next()) >= (Some(2), Some(10)))
}

/// A worker's process, and its name in the pool.
struct Member {
    process: Group,
    name: Option<String>,
}

/// A pool on this machine, which ends with this.
pub struct Pool {
    anygpu: PathBuf,
    server: PathBuf,
    folder: PathBuf,
    /// How the coordinator is called.
    options: Vec<String>,
    /// The addresses that `pool config` says.
    addresses: Vec<String>,
    http: u16,
    nats: Option<Group>,
    coordinator: Option<Group>,
    members: Vec<Member>,
}

impl Pool {
    /// Starts a server and a coordinator.
    pub fn start(anygpu: &Path, server: &Path, options: &[&str]) -> Result<Pool> {
        let [port, websocket, http] = ports()?;
        let folder = crate::root().join("target").join("pool").join(port.to_string());
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let config = Command::new(anygpu)
            .args(["pool", "config", "--port", &port.to_string(), "--websocket-port", &websocket.to_string()])
            .args((!asks(server)?).then_some("--shared"))
            .output()
            .context("cannot start anygpu")?;
        fs::write(folder.join("nats.conf"), &config.stdout).context("cannot write the server's configuration")?;
        // The comments say how `pool serve` is to be called.
        let text = String::from_utf8_lossy(&config.stdout).into_owned();
        let words = text.lines().take_while(|line| line.starts_with("# ")).flat_map(str::split_whitespace);
        let addresses = words.skip_while(|word| !word.starts_with("--")).filter(|word| !"#\\".contains(*word));
        let addresses = addresses.take_while(|word| word.starts_with("--") || word.contains("://")).map(Into::into);
        let (anygpu, server, addresses) = (anygpu.into(), server.into(), addresses.collect());
        let options = options.iter().map(|option| (*option).into()).collect();
        let mut pool = Pool {
            anygpu,
            server,
            folder,
            options,
            addresses,
            http,
            nats: None,
            coordinator: None,
            members: Vec::new(),
        };
        pool.start_server()?;
        pool.start_coordinator()?;
        Ok(pool)
    }

    fn start_server(&mut self) -> Result<()> {
        let mut command = Command::new(&self.server);
        command.arg("-c").arg(self.folder.join("nats.conf"));
        let nats = self.nats.insert(Group::start(&mut command, |_| ()).context("cannot start nats-server")?);
        let begun = Instant::now();
        while !nats.tail(20).contains("Server is ready") {
            if nats.ended().is_some() || begun.elapsed() > PATIENCE {
                bail!("nats-server does not start: {}", nats.tail(5));
            }
            sleep(LOOK);
        }
        Ok(())
    }

    fn start_coordinator(&mut self) -> Result<()> {
        let mut command = Command::new(&self.anygpu);
        command.args(["pool", "serve", "--port", &self.http.to_string()]).args(&self.options).args(&self.addresses);
        command.args(["--snapshot", "32", "--state"]).arg(self.folder.join("state.json"));
        let coordinator =
            self.coordinator.insert(Group::start(&mut command, |_| ()).context("cannot start the coordinator")?);
        let begun = Instant::now();
        while !coordinator.tail(20).contains("serving ") {
            if coordinator.ended().is_some() || begun.elapsed() > PATIENCE {
                bail!("the coordinator does not start: {}", coordinator.tail(5));
            }
            sleep(LOOK);
        }
        Ok(())
    }

    /// Has a worker join, and waits until it has a name.
    pub fn join(&mut self, backend: &str, memory: &str) -> Result<()> {
        self.join_by(&format!("http://127.0.0.1:{}", self.http), backend, memory).map(drop)
    }

    /// Has a worker join that will lie. Gives its name.
    pub fn join_liar(&mut self, backend: &str, memory: &str) -> Result<String> {
        let address = super::liar::relay(self.says()?)?;
        self.join_by(&address, backend, memory)
    }

    fn join_by(&mut self, coordinator: &str, backend: &str, memory: &str) -> Result<String> {
        let mut command = Command::new(&self.anygpu);
        command.args(["pool", "work", "--coordinator", coordinator, "--no-keep"]);
        command.args(["--backend", backend, "--threads", "1", "--memory", memory]);
        let mut process = Group::start(&mut command, |_| ()).context("cannot start a worker")?;
        let begun = Instant::now();
        let name = loop {
            let said = process.tail(20);
            let name = said.lines().find_map(|line| line.split_once(" as ")?.1.split(';').next().map(str::to_owned));
            if let Some(name) = name {
                break name;
            }
            if process.ended().is_some() || begun.elapsed() > PATIENCE {
                bail!("a worker on {backend} does not join: {said}");
            }
            sleep(LOOK);
        };
        self.members.push(Member { process, name: Some(name.clone()) });
        Ok(name)
    }

    fn member(&mut self, name: &str) -> Result<usize> {
        let found = self.members.iter().position(|member| member.name.as_deref() == Some(name));
        found.with_context(|| format!("{name} is not one of ours"))
    }

    /// Ends a worker's process without a word.
    pub fn kill(&mut self, name: &str) -> Result<()> {
        let at = self.member(name)?;
        signal("-KILL", &self.members.swap_remove(at).process)
    }

    /// Has a worker's process stand still.
    pub fn freeze(&mut self, name: &str) -> Result<()> {
        let at = self.member(name)?;
        self.members[at].name = None;
        signal("-STOP", &self.members[at].process)
    }

    /// Ends the server, and starts it again.
    pub fn restart_server(&mut self) -> Result<()> {
        self.nats.take();
        self.start_server()
    }

    /// Ends the coordinator without a word, and starts it again.
    pub fn restart_coordinator(&mut self) -> Result<()> {
        if let Some(coordinator) = self.coordinator.take() {
            signal("-KILL", &coordinator)?;
        }
        self.start_coordinator()
    }

    /// What the coordinator wrote last.
    pub fn said(&self) -> String {
        self.coordinator.as_ref().map_or_else(String::new, |coordinator| coordinator.tail(3))
    }

    /// What the coordinator says of the pool.
    pub fn state(&self) -> Result<Value> {
        self.get("/state.json")
    }

    /// What the coordinator says to those who join.
    pub fn says(&self) -> Result<Value> {
        self.get("/pool.json")
    }

    fn get(&self, path: &str) -> Result<Value> {
        let mut body = String::new();
        self.send("GET", path, "", "")?.read_to_string(&mut body).with_context(|| format!("cannot read {path}"))?;
        let (_, body) = body.split_once("\r\n\r\n").context("the coordinator answers nothing")?;
        serde_json::from_str(body).with_context(|| format!("{path} is not JSON"))
    }

    /// Waits until the pool's state is as it is to be.
    pub fn until(&self, limit: Duration, else_: &str, holds: impl Fn(&Value) -> bool) -> Result<()> {
        let begun = Instant::now();
        loop {
            let state = self.state()?;
            if holds(&state) {
                return Ok(());
            }
            if begun.elapsed() > limit {
                bail!("{else_}: {state}");
            }
            sleep(LOOK);
        }
    }

    /// Asks for a text, as a stream. The same key is the same answer.
    pub fn ask(&self, request: &Value, key: &str) -> Result<Answer> {
        let headers = format!("Content-Type: application/json\r\nIdempotency-Key: {key}\r\n");
        let stream = self.send("POST", "/v1/completions", &headers, &request.to_string())?;
        Ok(Answer(BufReader::new(stream)))
    }

    fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> Result<TcpStream> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.http)).context("the coordinator cannot be reached")?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let length = body.len();
        let head =
            format!("{method} {path} HTTP/1.1\r\nHost: pool\r\nConnection: close\r\nContent-Length: {length}\r\n");
        stream.write_all(format!("{head}{headers}\r\n{body}").as_bytes())?;
        Ok(stream)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for member in &self.members {
            // What stands still takes no other signal.
            let _ = signal("-CONT", &member.process);
            let _ = signal("-KILL", &member.process);
        }
        self.members.clear();
        self.coordinator.take();
        self.nats.take();
        // Nobody needs it any more.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// An answer as it comes.
pub struct Answer(BufReader<TcpStream>);

impl Answer {
    /// The text of so many further tokens, or all that is left.
    pub fn read(&mut self, tokens: usize) -> Result<String> {
        let (mut text, mut count, mut line) = (String::new(), 0, String::new());
        while count < tokens {
            line.clear();
            if self.0.read_line(&mut line).context("the answer does not go on")? == 0 {
                bail!("the answer ends without an end, after {text:?}");
            }
            let Some(data) = line.trim_end().strip_prefix("data: ") else { continue };
            if data == "[DONE]" {
                break;
            }
            let event: Value = serde_json::from_str(data).with_context(|| format!("the answer has {data:?}"))?;
            if let Some(error) = event.get("error") {
                bail!("the answer ends with {error}");
            }
            text.push_str(event["choices"][0]["text"].as_str().unwrap_or_default());
            count += 1;
        }
        Ok(text)
    }
}

fn signal(signal: &str, process: &Group) -> Result<()> {
    let status =
        Command::new("kill").args([signal, &process.id().to_string()]).status().context("cannot start kill")?;
    if status.success() { Ok(()) } else { bail!("kill {signal} ended with {status}") }
}

/// Ports that are free.
fn ports<const N: usize>() -> Result<[u16; N]> {
    let listeners: Vec<TcpListener> =
        (0..N).map(|_| TcpListener::bind(("127.0.0.1", 0))).collect::<Result<_, _>>().context("no port is free")?;
    let mut ports = [0; N];
    for (port, listener) in ports.iter_mut().zip(&listeners) {
        *port = listener.local_addr()?.port();
    }
    Ok(ports)
}
