//! A coordinator and workers in one process: what a broker would carry goes by channels.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use anygpu::native::{NativeHost, block_on};
use anygpu::{ByteSource, BytesSource, Choice, Engine, EngineOptions, GenerateOptions, SelectOptions};
use anygpu_pool::{Config, End, Micros, Request};
use anygpu_pool_dispatch::{CannotCheck, Dispatcher, Out, Served};
use anygpu_pool_plan::Model;
use anygpu_pool_proto::{Assign, Hello, Manifest, Rung, Sampling, Seam, VERSION, Wire};
use anygpu_pool_worker::{Delivery, Message, Models, OpenFuture, Thread, Worker};
use sha2::{Digest, Sha256};

const GAB: &[u8] = include_bytes!("../../../models/gab-q4_0.gguf");
const TOKENS: usize = 24;
const CONTEXT: u32 = 128;
/// Three workers are needed at least: a worker has room for three units, and the model has eight.
const MODEL: Model = Model { blocks: 6, block_bytes: 1, embedding_bytes: 1, head_bytes: 1, head_blocks: 1.0 };
const MEMORY: u64 = 3;

struct Gab;

fn manifest() -> Manifest {
    let chunk = 64 << 10;
    Manifest { bytes: GAB.len() as u64, chunk, digests: GAB.chunks(chunk as usize).flat_map(Sha256::digest).collect() }
}

impl Models for Gab {
    fn open<'a>(&'a self, _: &'a Assign) -> OpenFuture<'a> {
        Box::pin(async { Ok((Box::new(BytesSource(GAB)) as Box<dyn ByteSource>, manifest())) })
    }
}

fn select() -> SelectOptions {
    SelectOptions { backend: Choice::Cpu, cpu_threads: NonZeroUsize::new(1), ..Default::default() }
}

/// What comes to whoever carries messages.
enum Came {
    Sent(Message),
    Answered(u64, Vec<u8>),
}

struct World {
    dispatcher: Dispatcher,
    /// So far.
    joined: u64,
    workers: HashMap<String, Thread>,
    post: Sender<Came>,
    came: Receiver<Came>,
    begun: Instant,
    said: HashMap<u64, Vec<u32>>,
    ended: HashMap<u64, End>,
}

impl World {
    fn new(seam: Seam) -> World {
        let config = Config { snapshot: 6, chunk: 4, patience: 20_000_000, silence: 600_000_000, ..Config::new(MODEL) };
        let digest = Sha256::digest(manifest().to_wire().unwrap()).to_vec();
        let (address, context, sessions) = ("gab".into(), CONTEXT, 4);
        let served = Served { address, digest, seam, context, sessions, chunk: 4 };
        let (post, came) = channel();
        let dispatcher = Dispatcher::new(config, [7; 32], served).unwrap();
        let (workers, said, ended) = (HashMap::new(), HashMap::new(), HashMap::new());
        World { dispatcher, joined: 0, workers, post, came, begun: Instant::now(), said, ended }
    }

    fn now(&self) -> Micros {
        self.begun.elapsed().as_micros() as u64
    }

    fn join(&mut self) {
        self.joined += 1;
        let hello = Hello {
            version: VERSION,
            rung: Rung::Cpu.into(),
            memory: MEMORY,
            block_micros: 500,
            bandwidth: 1 << 30,
            hop_micros: 100,
            sessions: 4,
            ..Hello::default()
        };
        let now = self.now();
        let (welcome, out) = self.dispatcher.joined(now, self.joined, &hello.to_wire().unwrap(), 1000).unwrap();
        let (post, name) = (self.post.clone(), welcome.worker.clone());
        let make = move || Worker::new(name, Box::new(Gab), select(), Rc::new(NativeHost::default()));
        let thread = Thread::spawn(make, move |message| drop(post.send(Came::Sent(message)))).unwrap();
        self.workers.insert(welcome.worker, thread);
        self.carry(out);
    }

    /// The worker of a stage ends without a word.
    fn lose(&mut self, stage: usize) {
        let name = self.dispatcher.picture().chains[0].stages[stage].worker.clone().unwrap();
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

    fn carry(&mut self, out: Vec<Out>) {
        for out in out {
            match out {
                Out::Send { subject, payload } => self.deliver(Message { subject, payload }, None),
                Out::Ask { id, subject, payload } => {
                    let post = self.post.clone();
                    let answer = move |reply| drop(post.send(Came::Answered(id, reply)));
                    self.deliver(Message { subject, payload }, Some(Box::new(answer)));
                }
                Out::Say(session, _, token) => self.said.entry(session).or_default().push(token),
                Out::End(session, why) => drop(self.ended.insert(session, why)),
                Out::Greet(worker) => panic!("{worker} was thought to be gone"),
                Out::Ban { worker, .. } => panic!("{worker} is banned"),
            }
        }
    }

    /// Goes on until something holds.
    fn until(&mut self, holds: impl Fn(&World) -> bool) {
        let last = Instant::now() + Duration::from_secs(60);
        while !holds(self) {
            assert!(Instant::now() < last, "nothing comes of it: {:?}", self.dispatcher.coordinator().counts());
            let out = match self.came.recv_timeout(Duration::from_millis(20)) {
                Ok(Came::Sent(message)) if message.subject.starts_with("pool.w.") => {
                    self.deliver(message, None);
                    Vec::new()
                }
                Ok(Came::Sent(Message { subject, payload })) => self.dispatcher.came(self.now(), &subject, &payload),
                Ok(Came::Answered(id, reply)) => self.dispatcher.answered(self.now(), id, Some(&reply)),
                Err(RecvTimeoutError::Timeout) => self.dispatcher.tick(self.now()),
                Err(RecvTimeoutError::Disconnected) => panic!("nobody is left"),
            };
            self.carry(out);
        }
    }

    fn tokens(&self, session: u64) -> usize {
        self.said.get(&session).map_or(0, Vec::len)
    }
}

/// A prompt and the answer of a machine that has the whole model.
fn alone(prompt: &str, sampling: Sampling) -> (Vec<u32>, Vec<u32>) {
    let options = EngineOptions { select: select(), n_ctx: Some(CONTEXT as usize), ..Default::default() };
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

#[test]
fn texts_of_a_pool_are_those_of_one_machine_whatever_is_lost() {
    let greedy = Sampling { temperature: 0.0, top_k: 0, top_p: 1.0, seed: 0 };
    let drawn = Sampling { temperature: 0.9, top_k: 40, top_p: 0.95, seed: 5 };
    let texts = [("Once upon a time, in a small town", greedy), ("The dog and the cat", drawn)];
    let expected = texts.map(|(prompt, sampling)| alone(prompt, sampling));
    let mut world = World::new(Seam::F32);
    (0..7).for_each(|_| world.join());
    for (session, ((prompt, _), (_, sampling))) in (1..).zip(expected.iter().zip(texts)) {
        let request =
            Request { session, user: session, prompt: prompt.clone(), most: TOKENS, sampling, stop: Vec::new() };
        let out = world.dispatcher.ask(world.now(), request);
        world.carry(out);
    }
    // Each stage is lost once: the spare that takes it over has a snapshot, or has not.
    for (stage, tokens) in [(1, 5), (0, 11), (2, 17)] {
        world.until(|world| world.tokens(1) >= tokens && world.tokens(2) >= tokens);
        world.lose(stage);
        world.join();
    }
    world.until(|world| world.ended.len() == 2);
    for (session, (_, answer)) in (1..).zip(&expected) {
        assert_eq!(world.ended[&session], End::Length);
        assert_eq!(world.said[&session], *answer, "session {session}");
    }
    let counts = world.dispatcher.coordinator().counts();
    assert!(counts.lost == 3 && counts.promoted + counts.recruited >= 3 && counts.banned == 0, "{counts:?}");
}

#[test]
fn a_text_ends_with_the_token_that_ends_it() {
    let greedy = Sampling { temperature: 0.0, top_k: 0, top_p: 1.0, seed: 0 };
    let (prompt, answer) = alone("Once upon a time", greedy);
    let (at, last) = answer.iter().enumerate().skip(5).find(|(at, token)| !answer[..*at].contains(token)).unwrap();
    let mut world = World::new(Seam::F32);
    (0..3).for_each(|_| world.join());
    let request = Request { session: 1, user: 1, prompt, most: TOKENS, sampling: greedy, stop: vec![*last] };
    let out = world.dispatcher.ask(world.now(), request);
    world.carry(out);
    world.until(|world| !world.ended.is_empty());
    assert_eq!((world.ended[&1], &*world.said[&1]), (End::Stop, &answer[..=at]));
}

#[test]
fn checks_that_nobody_makes_are_refused() {
    let served =
        Served { address: "gab".into(), digest: Vec::new(), seam: Seam::F16, context: CONTEXT, sessions: 1, chunk: 4 };
    let config = Config { check: 0.1, ..Config::new(MODEL) };
    assert_eq!(Dispatcher::new(config, [7; 32], served).err(), Some(CannotCheck));
}
