//! The processes of a pool.

use super::client::Client;
use crate::process::{Group, which};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Time in which a program has to answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time after which the coordinator has told its state anew.
const PICTURED: Duration = Duration::from_millis(600);
/// Time between two looks.
const LOOK: Duration = Duration::from_millis(50);

/// A server before 2.10, if the path has one: Debian's is.
pub fn older() -> Option<PathBuf> {
    which("nats-server").filter(|server| asks(server).is_ok_and(|asks| !asks))
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
    /// How the coordinator is called, addresses of `pool config` included.
    serve: Vec<String>,
    /// The coordinator.
    pub client: Client,
    /// The server's own account of what it carries.
    pub broker: Client,
    nats: Option<Group>,
    coordinator: Option<Group>,
    members: Vec<Member>,
}

impl Pool {
    /// Starts a server, and a coordinator with such options.
    pub fn start(anygpu: &Path, server: &Path, options: &[&str]) -> Result<Pool> {
        let [port, websocket, http, monitor] = ports()?;
        let folder = crate::root().join("target").join("pool").join(port.to_string());
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let config = Command::new(anygpu)
            .args(["pool", "config", "--port", &port.to_string(), "--websocket-port", &websocket.to_string()])
            .args((!asks(server)?).then_some("--shared"))
            .output()
            .context("cannot start anygpu")?;
        // The comments say how `pool serve` is to be called.
        let text = String::from_utf8_lossy(&config.stdout).into_owned();
        let watched = format!("{text}\nhttp: \"127.0.0.1:{monitor}\"\n");
        fs::write(folder.join("nats.conf"), watched).context("cannot write the server's configuration")?;
        let words = text.lines().take_while(|line| line.starts_with("# ")).flat_map(str::split_whitespace);
        let addresses = words.skip_while(|word| !word.starts_with("--")).filter(|word| !"#\\".contains(*word));
        let addresses = addresses.take_while(|word| word.starts_with("--") || word.contains("://")).map(Into::into);
        let port = http.to_string();
        let more = ["--port", &port].into_iter().chain(options.iter().copied()).map(Into::into);
        let serve = addresses.chain(more).collect();
        let (anygpu, server, client, broker) = (anygpu.into(), server.into(), Client(http), Client(monitor));
        let (nats, coordinator, members) = (None, None, Vec::new());
        let mut pool = Pool { anygpu, server, folder, serve, client, broker, nats, coordinator, members };
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
        command.args(["pool", "serve", "--state"]).arg(self.folder.join("state.json")).args(&self.serve);
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

    /// A worker's process, which keeps what it fetches in the pool's folder.
    pub fn worker(
        &self,
        backend: &str,
        memory: &str,
        on_line: impl FnMut(&str) + Send + Clone + 'static,
    ) -> Result<Group> {
        self.worker_of(&format!("http://127.0.0.1:{}", self.client.0), backend, memory, on_line)
    }

    fn worker_of(
        &self,
        coordinator: &str,
        backend: &str,
        memory: &str,
        on_line: impl FnMut(&str) + Send + Clone + 'static,
    ) -> Result<Group> {
        let mut command = Command::new(&self.anygpu);
        command.args(["pool", "work", "--coordinator", coordinator]);
        command.args(["--backend", backend, "--threads", "1", "--memory", memory]);
        command.env("XDG_CACHE_HOME", self.folder.join("cache"));
        Group::start(&mut command, on_line).context("cannot start a worker")
    }

    /// Has a worker join, and waits until it has a name.
    pub fn join(&mut self, backend: &str, memory: &str) -> Result<()> {
        self.join_by(&format!("http://127.0.0.1:{}", self.client.0), backend, memory).map(drop)
    }

    /// Has a worker join that will lie. Gives its name.
    pub fn join_liar(&mut self, backend: &str, memory: &str) -> Result<String> {
        let address = super::liar::relay(self.client.get("/pool.json")?)?;
        self.join_by(&address, backend, memory)
    }

    fn join_by(&mut self, coordinator: &str, backend: &str, memory: &str) -> Result<String> {
        let mut process = self.worker_of(coordinator, backend, memory, |_| ())?;
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

    /// Returns the last lines of the coordinator.
    pub fn said(&self) -> String {
        self.coordinator.as_ref().map_or_else(String::new, |coordinator| coordinator.tail(3))
    }

    /// Returns the coordinator's state of the pool once it has reported all events so far.
    pub fn settled(&self) -> Result<Value> {
        sleep(PICTURED);
        self.client.state()
    }

    /// Waits until the pool's state is as it is to be.
    pub fn until(&self, limit: Duration, else_: &str, holds: impl Fn(&Value) -> bool) -> Result<()> {
        let begun = Instant::now();
        loop {
            let state = self.client.state()?;
            if holds(&state) {
                return Ok(());
            }
            if begun.elapsed() > limit {
                bail!("{else_}: {state}");
            }
            sleep(LOOK);
        }
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

/// The least memory of a worker with which so many hold the model.
pub fn memory(model: &Value, needed: u32) -> Result<u64> {
    let bytes = |name: &str| model[name].as_u64().with_context(|| format!("the coordinator does not say {name}"));
    let (blocks, block) = (bytes("blocks")?, bytes("block_bytes")?);
    let (embedding, head) = (bytes("embedding_bytes")?, bytes("head_bytes")?);
    let fits = |memory: u64| {
        let left = |end: u64| memory.checked_sub(end).map(|left| left / block);
        match needed {
            1 => memory >= embedding + head + blocks * block,
            _ => left(embedding)
                .zip(left(head))
                .is_some_and(|(first, last)| first + last + u64::from(needed - 2) * (memory / block) >= blocks),
        }
    };
    let ends = [0, embedding, head, embedding + head];
    let sizes = ends.into_iter().flat_map(|end| (0..=blocks).map(move |count| end + count * block));
    sizes.filter(|memory| fits(*memory)).min().context("no memory is enough")
}

/// Has a signal sent to a process.
pub fn signal(signal: &str, process: &Group) -> Result<()> {
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
