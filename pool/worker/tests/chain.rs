//! Workers in one process, each on a thread of its own, with a router in the broker's place.

use std::cell::Cell;
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use anygpu::native::{NativeHost, block_on};
use anygpu::{ByteSource, BytesSource, Choice, Engine, EngineOptions, GenerateOptions, SelectOptions};
use anygpu_pool_proto::{
    Assign, Assigned, Control, Done, Drop, Export, Failure, Hop, Manifest, Open, Range, Reason, Release, Replay, Reply,
    Sampling, Seam, Step, StepDone, Token, Wire, control, reply, subject,
};
use anygpu_pool_worker::{Delivery, Message, Models, OpenFuture, Opened, Refused, Thread, Vitals, Worker};
use sha2::{Digest, Sha256};
use std::rc::Rc;

const GAB: &[u8] = include_bytes!("../../../models/gab-q4_0.gguf");
const PROMPT: &str = "Once upon a time";
const TOKENS: usize = 20;
const CONTEXT: u32 = 128;
const SESSION: u64 = 7;

struct Gab;

/// The file's digests, and the model's.
fn manifest() -> (Manifest, Vec<u8>) {
    let chunk = 64 << 10;
    let digests = GAB.chunks(chunk as usize).flat_map(Sha256::digest).collect();
    let manifest = Manifest { bytes: GAB.len() as u64, chunk, digests };
    let model = Sha256::digest(manifest.to_wire().unwrap()).to_vec();
    (manifest, model)
}

impl Models for Gab {
    fn open<'a>(&'a self, assign: &'a Assign) -> OpenFuture<'a> {
        let source: Result<Box<dyn ByteSource>, Refused> = match assign.address.as_str() {
            "gab" => Ok(Box::new(BytesSource(GAB))),
            "forged" => {
                let mut bytes = GAB.to_vec();
                let half = bytes.len() / 2;
                bytes[half..].iter_mut().step_by(1 << 12).for_each(|byte| *byte ^= 1);
                Ok(Box::new(BytesSource(bytes)))
            }
            other => Err(Refused::new(Reason::Fetch, format!("{other} is not here"))),
        };
        Box::pin(async move { Ok(Opened { source: source?, manifest: manifest().0, kept: None }) })
    }
}

fn select() -> SelectOptions {
    SelectOptions { backend: Choice::Cpu, cpu_threads: NonZeroUsize::new(1), ..Default::default() }
}

/// The workers, and what they sent that nobody of them takes.
struct Pool {
    workers: HashMap<String, Thread>,
    post: Sender<Message>,
    sent: Receiver<Message>,
    /// Whether a message was for a worker that is gone, so that nothing more comes of it.
    lost: Cell<bool>,
}

impl Pool {
    fn new() -> Pool {
        let (post, sent) = channel();
        Pool { workers: HashMap::new(), post, sent, lost: Cell::new(false) }
    }

    fn join(&mut self, name: &str, range: Range, seam: Seam, epoch: u64) -> Assigned {
        self.work(name);
        self.assign(name, assign(range, seam, epoch))
    }

    /// A worker begins.
    fn work(&mut self, name: &str) -> Vitals {
        let (post, own, vitals) = (self.post.clone(), name.to_owned(), Vitals::default());
        let told = vitals.clone();
        let make = move || Worker::new(own, Box::new(Gab), select(), Rc::new(NativeHost::default())).telling(told);
        let thread = Thread::spawn(make, move |message| drop(post.send(message))).unwrap();
        self.workers.insert(name.into(), thread);
        vitals
    }

    fn assign(&self, name: &str, assign: Assign) -> Assigned {
        match self.ask(name, control::What::Assign(assign)) {
            reply::What::Assigned(assigned) => assigned,
            other => panic!("{other:?}"),
        }
    }

    fn ask(&self, worker: &str, what: control::What) -> reply::What {
        let (answer, answered) = channel();
        let payload = Control { what: Some(what) }.to_wire().unwrap();
        let message = Message { subject: subject::control(worker), payload };
        let answer: Box<dyn FnOnce(Vec<u8>) + Send> = Box::new(move |reply| drop(answer.send(reply)));
        assert!(self.workers[worker].deliver(Delivery { message, answer: Some(answer) }));
        Reply::from_wire(&answered.recv_timeout(Duration::from_secs(60)).unwrap()).unwrap().what.unwrap()
    }

    fn done(&self, worker: &str, what: control::What) -> u32 {
        match self.ask(worker, what) {
            reply::What::Done(Done { position, .. }) => position,
            other => panic!("{worker}: {other:?}"),
        }
    }

    fn refused(&self, worker: &str, what: control::What) -> Reason {
        match self.ask(worker, what) {
            reply::What::Failure(Failure { reason, .. }) => reason.try_into().unwrap(),
            other => panic!("{worker}: {other:?}"),
        }
    }

    fn send(&self, message: Message) {
        let worker = message.subject.split('.').nth(2).unwrap().to_owned();
        match self.workers.get(&worker) {
            Some(thread) => assert!(thread.deliver(Delivery { message, answer: None })),
            None => self.lost.set(true),
        }
    }

    /// Brings messages to the workers that they are for, until one comes that is for the coordinator. None once a message
    /// was for a worker that is gone.
    fn next(&self) -> Option<Message> {
        loop {
            if self.lost.take() {
                return None;
            }
            let message = self.sent.recv_timeout(Duration::from_secs(60)).expect("a worker hangs");
            if message.subject.starts_with("pool.w.") {
                self.send(message);
            } else if !is_progress(&message) {
                return Some(message);
            }
        }
    }

    fn token(&self) -> Option<Token> {
        loop {
            let Message { subject, payload } = self.next()?;
            if subject.starts_with("pool.out.") {
                return Some(Token::from_wire(&payload).unwrap());
            }
            assert!(subject.ends_with(".done"), "{subject}: {:?}", Reply::from_wire(&payload));
        }
    }

    /// Waits until a worker has states up to a position.
    fn reaches(&self, worker: &str, end: u32) {
        loop {
            let Message { subject, payload } = self.next().expect("states are not restored");
            assert!(subject.ends_with(".done"), "{subject}: {:?}", Reply::from_wire(&payload));
            let StepDone { position, rows, .. } = StepDone::from_wire(&payload).unwrap();
            if subject == subject::done(worker) && position + rows == end {
                return;
            }
        }
    }

    fn failure(&self) -> Reason {
        loop {
            let Message { subject, payload } = self.next().expect("nothing was refused");
            if let (true, Some(reply::What::Failure(it))) =
                (subject.ends_with(".at"), Reply::from_wire(&payload).unwrap_or_default().what)
            {
                return it.reason.try_into().unwrap();
            }
        }
    }
}

/// Whether it tells how far loading is.
fn is_progress(message: &Message) -> bool {
    let reply = Reply::from_wire(&message.payload).unwrap_or_default();
    message.subject.ends_with(".at") && matches!(reply.what, Some(reply::What::Assigned(_)))
}

fn assign(range: Range, seam: Seam, epoch: u64) -> Assign {
    let (address, model) = ("gab".into(), manifest().1);
    let (range, seam) = (Some(range), seam.into());
    Assign { epoch, address, model, range, seam, context: CONTEXT, sessions: 2, head_blocks: 1.0 }
}

fn ranges() -> [Range; 3] {
    [(0, 2), (2, 4), (4, 6)].map(|(first, end)| Range { first, end, embedding: first == 0, head: end == 6 })
}

/// A text in a chain: what a coordinator knows of it.
struct Text {
    chain: Vec<String>,
    leases: Vec<String>,
    epoch: u64,
    seam: Seam,
    sampling: Sampling,
    tokens: Vec<u32>,
    done: u32,
}

impl Text {
    fn open(pool: &Pool, chain: &[&str], seam: Seam, sampling: Sampling, prompt: &[u32]) -> Text {
        let chain: Vec<String> = chain.iter().map(|name| (*name).into()).collect();
        let leases: Vec<String> = chain.iter().map(|name| format!("first-{name}")).collect();
        let text = Text { chain, leases, epoch: 1, seam, sampling, tokens: prompt.to_vec(), done: 0 };
        (0..text.chain.len()).for_each(|stage| assert_eq!(pool.done(&text.chain[stage], text.opening(stage)), 0));
        text
    }

    fn opening(&self, stage: usize) -> control::What {
        control::What::Open(Open { session: SESSION, epoch: self.epoch, lease: self.leases[stage].clone() })
    }

    fn subject(&self, stage: usize) -> String {
        subject::lease(&self.chain[stage], &self.leases[stage])
    }

    /// Returns the name of one of our own stages.
    fn ours(&self, stage: usize) -> String {
        subject::sent(&self.subject(stage), subject::COORDINATOR)
    }

    /// Begins a lap over all tokens that have no states yet.
    fn lap(&self, pool: &Pool) {
        self.step(pool, self.done as usize..self.tokens.len());
    }

    /// Begins a step of some rows; the one of the last row is to give a token.
    fn step(&self, pool: &Pool, rows: std::ops::Range<usize>) {
        let mut route: Vec<Hop> = (1..self.chain.len())
            .map(|stage| Hop { lease: self.leases[stage].clone(), subject: self.subject(stage) })
            .collect();
        let last = self.chain.last().unwrap();
        route.push(Hop { lease: String::new(), subject: subject::out(last, SESSION) });
        let sampling = (rows.end == self.tokens.len()).then_some(self.sampling);
        let (position, tokens) = (rows.start as u32, self.tokens[rows].to_vec());
        let step = Step {
            session: SESSION,
            epoch: self.epoch,
            lease: self.leases[0].clone(),
            position,
            rows: tokens.len() as u32,
            seam: self.seam.into(),
            tokens,
            sampling,
            route,
            ..Step::default()
        };
        pool.send(Message { subject: self.ours(0), payload: step.to_wire().unwrap() });
    }

    /// Waits for the lap's token; tells whether it came.
    fn lands(&mut self, pool: &Pool) -> bool {
        let Some(token) = pool.token() else { return false };
        assert_eq!((token.session, token.epoch, token.position), (SESSION, self.epoch, self.tokens.len() as u32));
        assert!(token.margin > 0.0 && token.margin.is_finite());
        self.done = self.tokens.len() as u32;
        self.tokens.push(token.id);
        true
    }

    fn write(&mut self, pool: &Pool, tokens: usize) {
        for _ in 0..tokens {
            self.lap(pool);
            assert!(self.lands(pool));
        }
    }
}

/// The text of a machine that has the whole model, and its prompt's tokens.
fn alone(sampling: Sampling) -> (Vec<u32>, usize) {
    let options = EngineOptions { select: select(), n_ctx: Some(CONTEXT as usize), ..Default::default() };
    let host = Rc::new(NativeHost::default());
    let engine = block_on(Engine::load(&BytesSource(GAB), &options, host, &mut |_| {})).unwrap();
    let prompt = engine.encode(PROMPT).unwrap();
    let Sampling { temperature, top_k, top_p, seed } = sampling;
    let asked = GenerateOptions {
        max_tokens: Some(TOKENS),
        stop_tokens: Some(Vec::new()),
        sampling: anygpu::Sampling::Random { temperature, top_k, top_p, seed },
        ..engine.generate_options()
    };
    let mut session = engine.session().unwrap();
    let answer = block_on(engine.generate(&mut session, &prompt, &asked, &mut |_| {})).unwrap();
    ([&prompt[..], &answer.tokens].concat(), prompt.len())
}

const GREEDY: Sampling = Sampling { temperature: 0.0, top_k: 0, top_p: 1.0, seed: 0 };
const DRAWN: Sampling = Sampling { temperature: 0.9, top_k: 40, top_p: 0.95, seed: 11 };

fn joined(seam: Seam) -> Pool {
    let mut pool = Pool::new();
    for (name, range) in ["ada", "bob", "cyn"].into_iter().zip(ranges()) {
        let assigned = pool.join(name, range, seam, 1);
        assert!(assigned.ready && assigned.fetched == assigned.total && assigned.block_micros > 0);
        assert!(assigned.total < GAB.len() as u64 * 2 / 3, "{name} loads {} bytes", assigned.total);
    }
    pool
}

#[test]
fn a_chain_writes_the_text_of_one_machine_though_workers_are_lost() {
    for sampling in [GREEDY, DRAWN] {
        let (expected, prompt) = alone(sampling);
        for lost in 0..3 {
            let mut pool = joined(Seam::F32);
            let mut text = Text::open(&pool, &["ada", "bob", "cyn"], Seam::F32, sampling, &expected[..prompt]);
            text.write(&pool, TOKENS / 2);
            // Gone, with a lap under way.
            pool.workers.remove(&text.chain[lost]);
            text.lap(&pool);
            assert!(!text.lands(&pool), "a lap cannot end without stage {lost}");
            pool.join("dan", ranges()[lost], Seam::F32, 2);
            (text.epoch, text.chain[lost], text.leases[lost]) = (3, "dan".into(), "second-dan".into());
            assert_eq!(pool.done("dan", text.opening(lost)), 0);
            let (lease, subject, to) = (text.leases[lost].clone(), text.subject(lost), text.done);
            match lost.checked_sub(1) {
                Some(before) => {
                    let replay = Replay { session: SESSION, epoch: 3, from: 0, to, lease, subject };
                    assert_eq!(pool.done(&text.chain[before], control::What::Replay(replay)), to);
                }
                None => {
                    let (tokens, seam) = (text.tokens[..to as usize].to_vec(), text.seam.into());
                    let (rows, replay) = (to, true);
                    let step =
                        Step { session: SESSION, epoch: 3, lease, rows, seam, tokens, replay, ..Step::default() };
                    pool.send(Message { subject: text.ours(lost), payload: step.to_wire().unwrap() });
                }
            }
            pool.reaches("dan", to);
            // Stages that had the lap say again what they said.
            text.write(&pool, TOKENS - TOKENS / 2);
            assert_eq!(text.tokens, expected, "stage {lost} lost");
        }
    }
}

#[test]
fn a_worker_says_what_a_block_takes_without_the_head_and_what_it_has() {
    let mut pool = Pool::new();
    let vitals = pool.work("ada");
    let last = |head_blocks, epoch| Assign { head_blocks, ..assign(ranges()[2], Seam::F32, epoch) };
    let whole = pool.assign("ada", last(0.0, 1)).block_micros;
    // Other weights between: what is there is not measured again.
    pool.assign("ada", assign(ranges()[0], Seam::F32, 2));
    let part = pool.assign("ada", last(198.0, 3)).block_micros;
    assert!(part > 0 && whole / part >= 20, "{whole} us a block without the head's share, {part} us with it");
    assert_eq!((vitals.block_micros(), vitals.cached()), (part, (manifest().1, vec![ranges()[2]])));
    pool.done("ada", control::What::Release(Release { epoch: 3 }));
    assert_eq!((vitals.block_micros(), vitals.cached()), (part, (vec![], vec![])), "what it measured it still knows");
}

#[test]
fn steps_of_a_prompt_are_under_way_at_once_and_may_all_be_sent_again() {
    let (expected, _) = alone(GREEDY);
    let pool = joined(Seam::F32);
    let mut text = Text::open(&pool, &["ada", "bob", "cyn"], Seam::F32, GREEDY, &expected[..9]);
    for _ in 0..2 {
        (text.tokens, text.done) = (expected[..9].to_vec(), 0);
        [0..3, 3..6, 6..9].into_iter().for_each(|rows| text.step(&pool, rows));
        assert!(text.lands(&pool));
        assert_eq!(text.tokens, expected[..10]);
    }
    // From the middle on, too; and what was never taken is still refused.
    (text.tokens, text.done) = (expected[..9].to_vec(), 0);
    text.step(&pool, 3..6);
    pool.reaches("cyn", 6);
    text.done = 6;
    text.write(&pool, 1);
    assert_eq!(text.tokens, expected[..10]);
    text.tokens = expected[..16].to_vec();
    text.step(&pool, 12..16);
    assert_eq!(pool.failure(), Reason::OutOfOrder);
}

#[test]
fn a_spare_goes_on_from_a_snapshot() {
    let mut pool = joined(Seam::F16);
    let prompt = alone(GREEDY).0[..4].to_vec();
    let mut text = Text::open(&pool, &["ada", "bob", "cyn"], Seam::F16, DRAWN, &prompt);
    text.write(&pool, TOKENS);
    let undisturbed = text.tokens.clone();

    let mut text = Text::open(&pool, &["ada", "bob", "cyn"], Seam::F16, DRAWN, &prompt);
    text.write(&pool, 8);
    pool.join("dan", ranges()[1], Seam::F16, 2);
    pool.done("dan", control::What::Open(Open { session: SESSION, epoch: 1, lease: "held".into() }));
    let to = subject::lease("dan", "held");
    let saved = pool.done("bob", control::What::Export(Export { session: SESSION, epoch: 1, to }));
    assert_eq!(saved, text.done);
    pool.reaches("dan", saved);
    text.write(&pool, 4);
    pool.workers.remove("bob");
    (text.chain[1], text.leases[1]) = ("dan".into(), "held".into());
    let (lease, subject) = ("held".into(), text.subject(1));
    let replay = Replay { session: SESSION, epoch: 1, from: saved, to: text.done, lease, subject };
    pool.done("ada", control::What::Replay(replay));
    pool.reaches("dan", text.done);
    text.write(&pool, TOKENS - 12);
    assert_eq!(text.tokens, undisturbed);
    // What it did not see it cannot say again.
    let replay =
        Replay { session: SESSION, epoch: 1, from: 0, to: 2, lease: "x".into(), subject: "pool.w.x.s.x".into() };
    assert_eq!(pool.refused("dan", control::What::Replay(replay)), Reason::OutOfOrder);
}

#[test]
fn what_cannot_be_is_refused() {
    let mut pool = Pool::new();
    pool.join("ada", ranges()[0], Seam::F16, 4);
    let step = |epoch, lease: &str, position, seam: Seam, tokens: Vec<u32>| {
        let (lease, rows, seam) = (lease.to_owned(), tokens.len() as u32, seam.into());
        let payload =
            Step { session: SESSION, epoch, lease: lease.clone(), position, rows, seam, tokens, ..Step::default() };
        let subject = subject::sent(&subject::lease("ada", &lease), subject::COORDINATOR);
        Message { subject, payload: payload.to_wire().unwrap() }
    };
    let open = |session, epoch| control::What::Open(Open { session, epoch, lease: "one".into() });
    pool.send(step(5, "one", 0, Seam::F16, vec![1]));
    assert_eq!(pool.failure(), Reason::UnknownSession);
    assert_eq!(pool.done("ada", open(SESSION, 5)), 0);
    assert_eq!(pool.refused("ada", open(SESSION, 4)), Reason::Stale);
    pool.done("ada", open(8, 5));
    assert_eq!(pool.refused("ada", open(9, 5)), Reason::OutOfMemory);
    pool.done("ada", control::What::Drop(Drop { session: 8, epoch: 5 }));
    pool.done("ada", open(9, 5));

    for (message, reason) in [
        (step(4, "one", 0, Seam::F16, vec![1]), Reason::Stale),
        (step(5, "two", 0, Seam::F16, vec![1]), Reason::Stale),
        (step(5, "one", 3, Seam::F16, vec![1]), Reason::OutOfOrder),
        (step(5, "one", 0, Seam::F32, vec![1]), Reason::Malformed),
        (step(5, "one", 0, Seam::F16, vec![1 << 20]), Reason::Malformed),
        (step(5, "one", 0, Seam::F16, vec![1; 200]), Reason::Malformed),
        (Message { payload: vec![7; 9], ..step(5, "one", 0, Seam::F16, vec![1]) }, Reason::Malformed),
        (
            Message {
                subject: subject::sent(&subject::lease("ada", "two"), "bob"),
                ..step(5, "one", 0, Seam::F16, vec![1])
            },
            Reason::Stale,
        ),
        // Without a sender.
        (Message { subject: subject::lease("ada", "one"), ..step(5, "one", 0, Seam::F16, vec![1]) }, Reason::Stale),
    ] {
        pool.send(message);
        assert_eq!(pool.failure(), reason);
    }
    pool.send(step(5, "one", 0, Seam::F16, vec![1]));
    pool.reaches("ada", 1);
    let assigning = |change: &dyn Fn(&mut Assign)| {
        let mut asked = assign(ranges()[2], Seam::F16, 6);
        change(&mut asked);
        control::What::Assign(asked)
    };
    assert_eq!(pool.refused("ada", assigning(&|it| it.address = "elsewhere".into())), Reason::Fetch);
    assert_eq!(pool.refused("ada", assigning(&|it| it.address = "forged".into())), Reason::Digest);
    assert_eq!(pool.refused("ada", assigning(&|it| it.model = vec![1; 32])), Reason::Digest);
    let beyond = Range { end: 9, ..ranges()[1] };
    assert_eq!(pool.refused("ada", assigning(&|it| it.range = Some(beyond))), Reason::Malformed);
    pool.done("ada", control::What::Release(Release { epoch: 6 }));
    assert_eq!(pool.refused("ada", open(SESSION, 7)), Reason::UnknownSession);
}
