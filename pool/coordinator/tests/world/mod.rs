//! A coordinator and workers in one process: what a broker would carry goes by channels.

use std::collections::{HashMap, HashSet, VecDeque};
use std::num::NonZeroUsize;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use anygpu::native::{NativeHost, block_on};
use anygpu::{BytesSource, Choice, Engine, EngineOptions, GenerateOptions, SelectOptions};
use anygpu_pool::dispatch::{Dispatcher, Out, Served};
use anygpu_pool::plan::Model;
use anygpu_pool::{Config, End, Micros};
use anygpu_pool_proto::{Assign, Hello, Manifest, Rung, Sampling, Seam, Step, Token, VERSION, Wire};
use anygpu_pool_worker::{Delivery, Message, Models, OpenFuture, Opened, Thread, Worker};
use sha2::{Digest, Sha256};

const GAB: &[u8] = include_bytes!("../../../../models/gab-q4_0.gguf");
pub const TOKENS: usize = 24;
const CONTEXT: u32 = 128;
/// Three workers are needed at least: a worker has room for three units, and the model has eight.
const MODEL: Model =
    Model { blocks: 6, block_bytes: 1, block_states: 0, embedding_bytes: 1, head_bytes: 1, head_blocks: 1.0 };
const MEMORY: u64 = 3;

struct Gab;

fn manifest() -> Manifest {
    let chunk = 64 << 10;
    Manifest { bytes: GAB.len() as u64, chunk, digests: GAB.chunks(chunk as usize).flat_map(Sha256::digest).collect() }
}

impl Models for Gab {
    fn open<'a>(&'a self, _: &'a Assign) -> OpenFuture<'a> {
        Box::pin(async { Ok(Opened { source: Box::new(BytesSource(GAB)), manifest: manifest(), kept: None }) })
    }
}

fn select(backend: Choice) -> SelectOptions {
    SelectOptions { backend, cpu_threads: NonZeroUsize::new(1), ..Default::default() }
}

/// Event for the transport.
enum Came {
    /// By a worker.
    Sent(String, Message),
    Answered(u64, Vec<u8>),
}

pub struct World {
    pub dispatcher: Dispatcher,
    /// So far.
    joined: u64,
    pub workers: HashMap<String, Thread>,
    /// Workers that send something else than they computed.
    pub liars: HashSet<String>,
    pub banned: Vec<String>,
    /// Subjects that the coordinator listens to.
    ears: HashSet<String>,
    /// The last step that each worker got.
    pub passed: HashMap<String, Message>,
    post: Sender<Came>,
    came: Receiver<Came>,
    begun: Instant,
    pub said: HashMap<u64, Vec<u32>>,
    pub ended: HashMap<u64, End>,
}

#[allow(dead_code, reason = "each test file uses its part")]
impl World {
    /// Makes a world in which another worker checks one stage of this share of the sessions.
    pub fn new(seam: Seam, check: f64) -> World {
        let quick = Config { snapshot: 6, chunk: 4, patience: 20_000_000, silence: 600_000_000, ..Config::new(MODEL) };
        // Nobody says anything while it computes here, as there are no heartbeats.
        let config = Config { check, quiet: 20_000_000, ..quick };
        let digest = Sha256::digest(manifest().to_wire().unwrap()).to_vec();
        let (address, context, sessions) = ("gab".into(), CONTEXT, 8);
        let served = Served { address, digest, seam, context, sessions, chunk: 4, ends: None };
        let (post, came) = channel();
        let dispatcher = Dispatcher::new(config, [7; 32], served);
        let (workers, said, ended) = (HashMap::new(), HashMap::new(), HashMap::new());
        let (liars, banned, ears, begun) = (HashSet::new(), Vec::new(), HashSet::new(), Instant::now());
        let passed = HashMap::new();
        World { dispatcher, joined: 0, workers, liars, banned, ears, passed, post, came, begun, said, ended }
    }

    pub fn now(&self) -> Micros {
        self.begun.elapsed().as_micros() as u64
    }

    pub fn join(&mut self, backend: Choice) {
        self.joined += 1;
        let hello = Hello {
            version: VERSION,
            rung: Rung::Cpu.into(),
            memory: MEMORY,
            block_micros: 500,
            bandwidth: 1 << 30,
            hop_micros: 100,
            sessions: 8,
            ..Hello::default()
        };
        let now = self.now();
        let (welcome, out) = self.dispatcher.joined(now, self.joined, &hello.to_wire().unwrap(), 1000).unwrap();
        let (post, name, own) = (self.post.clone(), welcome.worker.clone(), welcome.worker.clone());
        let make = move || Worker::new(name, Box::new(Gab), select(backend), Rc::new(NativeHost::default()));
        let send = move |message| drop(post.send(Came::Sent(own.clone(), message)));
        let thread = Thread::spawn(make, send).unwrap();
        self.workers.insert(welcome.worker, thread);
        self.carry(out);
    }

    /// Returns the worker of a stage.
    pub fn stage(&self, stage: usize) -> String {
        self.dispatcher.picture().chains[0].stages[stage].worker.clone().unwrap()
    }

    /// Sends a message to the coordinator, from any sender.
    pub fn says(&mut self, subject: &str, message: &impl Wire) {
        let out = self.dispatcher.came(self.now(), subject, &message.to_wire().unwrap());
        self.carry(out);
    }

    /// The worker of a stage ends without a word.
    pub fn lose(&mut self, stage: usize) {
        let name = self.stage(stage);
        self.workers.remove(&name);
        let out = self.dispatcher.left(self.now(), &name);
        self.carry(out);
    }

    fn deliver(&self, message: Message, answer: Option<Box<dyn FnOnce(Vec<u8>) + Send>>) {
        let worker = message.subject.split('.').nth(2).unwrap();
        // Whoever is gone takes nothing.
        if let Some(thread) = self.workers.get(worker) {
            assert!(thread.deliver(Delivery { message, answer }));
        }
    }

    pub fn carry(&mut self, out: Vec<Out>) {
        let mut all = VecDeque::from(out);
        while let Some(out) = all.pop_front() {
            match out {
                Out::Send { subject, payload } => all.extend(self.pass(Message { subject, payload })),
                Out::Ask { id, subject, payload } => {
                    let post = self.post.clone();
                    let answer = move |reply| drop(post.send(Came::Answered(id, reply)));
                    self.deliver(Message { subject, payload }, Some(Box::new(answer)));
                }
                Out::Listen(subject) => assert!(self.ears.insert(subject)),
                Out::Unlisten(subject) => assert!(self.ears.remove(&subject)),
                Out::Say(session, _, token) => self.said.entry(session).or_default().push(token),
                Out::End(session, why) => drop(self.ended.insert(session, why)),
                Out::Greet(worker) => panic!("{worker} was thought to be gone"),
                Out::Ban { worker, .. } => {
                    self.workers.remove(&worker);
                    self.banned.push(worker);
                }
            }
        }
    }

    /// Brings a message to the worker that it is for, and to the coordinator if it listens.
    pub fn pass(&mut self, message: Message) -> Vec<Out> {
        let all = message.subject.rsplit_once('.').map(|(lease, _)| format!("{lease}.*")).unwrap_or_default();
        let heard = match self.ears.contains(&all) {
            true => self.dispatcher.came(self.now(), &message.subject, &message.payload),
            false => Vec::new(),
        };
        self.passed.extend(message.subject.split('.').nth(2).map(|worker| (worker.to_owned(), message.clone())));
        self.deliver(message, None);
        heard
    }

    /// Goes on until something holds.
    pub fn until(&mut self, holds: impl Fn(&World) -> bool) {
        let last = Instant::now() + Duration::from_secs(60);
        while !holds(self) {
            assert!(Instant::now() < last, "nothing comes of it: {:?}", self.dispatcher.coordinator().counts());
            let out = match self.came.recv_timeout(Duration::from_millis(20)) {
                // Who is banned has no connection any more.
                Ok(Came::Sent(from, _)) if self.banned.contains(&from) => Vec::new(),
                Ok(Came::Sent(from, message)) => {
                    let message = if self.liars.contains(&from) { lie(message) } else { message };
                    match message.subject.starts_with("pool.w.") {
                        true => self.pass(message),
                        false => self.dispatcher.came(self.now(), &message.subject, &message.payload),
                    }
                }
                Ok(Came::Answered(id, reply)) => self.dispatcher.answered(self.now(), id, Some(&reply)),
                Err(RecvTimeoutError::Timeout) => self.dispatcher.tick(self.now()),
                Err(RecvTimeoutError::Disconnected) => panic!("nobody is left"),
            };
            self.carry(out);
        }
    }

    pub fn tokens(&self, session: u64) -> usize {
        self.said.get(&session).map_or(0, Vec::len)
    }
}

/// Another message in the place of one: noise of a hundredth on activations, the next token for a token.
fn lie(Message { subject, payload }: Message) -> Message {
    let payload = match (Step::from_wire(&payload), Token::from_wire(&payload)) {
        (Ok(mut step), _) if subject.starts_with("pool.w.") => {
            for (at, number) in step.activations.chunks_exact_mut(4).enumerate() {
                let value = f32::from_le_bytes(number.try_into().unwrap());
                let noise = if at % 2 == 0 { 1.01 } else { 0.99 };
                number.copy_from_slice(&(value * noise).to_le_bytes());
            }
            step.to_wire().unwrap()
        }
        (_, Ok(token)) if subject.starts_with("pool.out.") => Token { id: token.id ^ 1, ..token }.to_wire().unwrap(),
        _ => payload,
    };
    Message { subject, payload }
}

/// A prompt and the answer of a machine that has the whole model.
pub fn alone(prompt: &str, sampling: Sampling) -> (Vec<u32>, Vec<u32>) {
    let options = EngineOptions { select: select(Choice::Cpu), n_ctx: Some(CONTEXT as usize), ..Default::default() };
    let host = Rc::new(NativeHost::default());
    let engine = block_on(Engine::load(&BytesSource(GAB), &options, host, &mut |_| {})).unwrap();
    let prompt = engine.encode(prompt).unwrap();
    let Sampling { temperature, top_k, top_p, seed } = sampling;
    let asked = GenerateOptions {
        max_tokens: Some(TOKENS),
        stop_tokens: Some(Vec::new()),
        sampling: anygpu::Sampling::Random { temperature, top_k, top_p, seed },
        ..engine.generate_options()
    };
    let mut session = engine.session().unwrap();
    let answer = block_on(engine.generate(&mut session, &prompt, &asked, &mut |_| {})).unwrap();
    (prompt, answer.tokens)
}
