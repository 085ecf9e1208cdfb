//! Workers that do what a coordinator says, in simulated time.

use std::{
    cmp::{Ordering, Reverse},
    collections::{BTreeMap, BinaryHeap},
};

use anygpu_pool::{
    Action, Config, Coordinator, End, Event, Micros, Offer, Request, SessionId, Source, Stop, Verdict, WorkerId,
};
use anygpu_pool_plan::Model;
use anygpu_pool_proto::{Range, Sampling};
use rand::{RngExt, SeedableRng, rngs::StdRng};

use crate::{
    report::{Quantiles, Report},
    scenario::Scenario,
};

/// Bytes of a step beside its activations.
const HEADER: u64 = 120;
/// Seconds until the coordinator hears that a connection was closed, as measured of the broker.
const CLOSED: f64 = 0.006;

pub(crate) fn micros(seconds: f64) -> Micros {
    (seconds * 1e6) as Micros
}

struct Node {
    offer: Offer,
    there: bool,
    /// Raised with each absence: what was begun before it comes to nothing.
    life: u64,
    region: u32,
    range: Range,
    busy: Micros,
}

/// What is going to happen.
pub(crate) enum Later {
    /// Somebody asks.
    Ask,
    /// A worker comes.
    Come(WorkerId),
    /// A worker leaves, in the life it has.
    Leave(WorkerId, u64),
    /// A worker in a life tells the coordinator.
    Tell(WorkerId, u64, Event),
    /// A step reaches a stop of its route.
    Hop(Box<Hop>),
}

pub(crate) struct Hop {
    session: SessionId,
    epoch: u64,
    position: u32,
    rows: u32,
    want: u32,
    route: Vec<Stop>,
    stage: usize,
}

struct Entry(Micros, u64, Later);

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

struct Asked {
    at: Micros,
    first: Option<Micros>,
    last: Micros,
    tokens: u64,
}

pub(crate) struct World {
    pub scenario: Scenario,
    pub chance: StdRng,
    pub now: Micros,
    coordinator: Coordinator,
    nodes: Vec<Node>,
    later: BinaryHeap<Reverse<Entry>>,
    sequence: u64,
    asked: BTreeMap<SessionId, Asked>,
    next_session: SessionId,
    there: u64,
    report: Report,
    tokens: Vec<f64>,
    firsts: Vec<f64>,
    sent: u64,
    /// Time up to which shares of the time are summed.
    summed: Micros,
    served: f64,
    chains: f64,
    present: f64,
}

impl World {
    pub fn new(scenario: &Scenario) -> World {
        let model = Model {
            blocks: scenario.blocks,
            block_bytes: scenario.block_bytes,
            embedding_bytes: scenario.end_bytes,
            head_bytes: scenario.end_bytes,
            head_blocks: scenario.end_bytes as f64 / scenario.block_bytes as f64,
        };
        let life = match scenario.failure {
            crate::Failure::Weibull { scale, .. } => scale,
            crate::Failure::Ramp { every, .. } => every,
            crate::Failure::Never => 86_400.0,
        };
        let config = Config {
            lap: scenario.lap,
            snapshot: scenario.snapshot,
            check: scenario.check,
            silence: Micros::MAX / 4,
            replan: if scenario.workers > 100 { 1_000_000 } else { 100_000 },
            improve: micros(300.0),
            life,
            ..Config::new(model)
        };
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&scenario.seed.to_le_bytes());
        let mut world = World {
            chance: StdRng::seed_from_u64(scenario.seed),
            now: 0,
            coordinator: Coordinator::new(config, seed),
            nodes: Vec::new(),
            later: BinaryHeap::new(),
            sequence: 0,
            asked: BTreeMap::new(),
            next_session: 1,
            there: 0,
            report: Report::of(scenario),
            tokens: Vec::new(),
            firsts: Vec::new(),
            sent: 0,
            summed: 0,
            served: 0.0,
            chains: 0.0,
            present: 0.0,
            scenario: scenario.clone(),
        };
        for _ in 0..scenario.workers {
            let node = world.node();
            world.nodes.push(node);
        }
        world
    }

    fn node(&mut self) -> Node {
        let scenario = &self.scenario;
        let chance = &mut self.chance;
        let between =
            |chance: &mut StdRng, (least, most): (f64, f64)| least * (most / least).powf(chance.random_range(0.0..1.0));
        let region = chance.random_range(0..scenario.regions.max(1));
        let memory = (scenario.memory.0 as f64, scenario.memory.1 as f64);
        let hop = scenario.hop.0 + f64::from(region) * scenario.hop.1;
        let offer = Offer {
            memory: between(chance, memory) as u64,
            block: micros(between(chance, scenario.block)).max(1),
            hop: micros(hop),
            bandwidth: between(chance, scenario.bandwidth) as u64,
            cached: scenario.cached.then(|| Range::whole(scenario.blocks)),
            ends: true,
        };
        Node { offer, there: false, life: 0, region, range: Range::default(), busy: 0 }
    }

    pub fn region(&self, worker: WorkerId) -> u32 {
        self.nodes[worker as usize].region
    }

    pub fn life(&self, worker: WorkerId) -> u64 {
        self.nodes[worker as usize].life
    }

    pub fn after(&mut self, seconds: f64, what: Later) {
        self.at(self.now + micros(seconds), what);
    }

    fn at(&mut self, at: Micros, what: Later) {
        self.sequence += 1;
        self.later.push(Reverse(Entry(at, self.sequence, what)));
    }

    /// The next thing that happens, if it does before the end; what workers and the coordinator do is done here.
    pub fn next(&mut self) -> Option<Later> {
        let end = micros(self.scenario.seconds);
        loop {
            let later = self.later.peek().map(|Reverse(entry)| entry.0);
            let due = self.coordinator.due();
            let next = later.into_iter().chain(due).min().filter(|at| *at < end);
            self.sum(next.unwrap_or(end));
            let next = next?;
            self.now = self.now.max(next);
            if due == Some(next) {
                self.tell(Event::Tick);
                continue;
            }
            let Reverse(Entry(_, _, what)) = self.later.pop()?;
            match what {
                Later::Tell(worker, life, event) => {
                    let node = &self.nodes[worker as usize];
                    // That a connection was closed is told by the broker, unless there is a newer one.
                    if node.life == life || (matches!(event, Event::Disconnected(_)) && !node.there) {
                        self.tell(event);
                    }
                }
                Later::Hop(hop) => self.hop(*hop),
                other => return Some(other),
            }
        }
    }

    /// Adds up what has held until `to`.
    fn sum(&mut self, to: Micros) {
        let time = to.saturating_sub(self.summed) as f64 * 1e-6;
        self.summed = self.summed.max(to);
        let up = self.coordinator.up();
        // With several chains, one that mends does not stop the others.
        let serves = if up == 1 { self.coordinator.serves() } else { up > 0 };
        self.served += if serves { time } else { 0.0 };
        self.chains += up as f64 * time;
        self.present += self.there as f64 * time;
    }

    pub fn come(&mut self, worker: WorkerId) {
        let node = &mut self.nodes[worker as usize];
        if node.there {
            return;
        }
        node.there = true;
        node.busy = self.now;
        let offer = node.offer;
        self.there += 1;
        self.tell(Event::Connected(worker));
        self.tell(Event::Hello(worker, offer));
    }

    /// Whether it was there to leave, in that life.
    pub fn leave(&mut self, worker: WorkerId, life: u64) -> bool {
        let node = &mut self.nodes[worker as usize];
        if !node.there || node.life != life {
            return false;
        }
        node.there = false;
        node.life += 1;
        self.there -= 1;
        self.after(CLOSED, Later::Tell(worker, life, Event::Disconnected(worker)));
        true
    }

    pub fn ask(&mut self) {
        let session = self.next_session;
        self.next_session += 1;
        let (prompt, most) = self.scenario.tokens;
        let request = Request {
            session,
            user: session % 97,
            prompt: vec![0; prompt],
            most,
            sampling: Sampling::default(),
            stop: Vec::new(),
        };
        self.report.asked += 1;
        self.asked.insert(session, Asked { at: self.now, first: None, last: self.now, tokens: 0 });
        self.tell(Event::Ask(request));
    }

    /// Sessions that are not over.
    pub fn open(&self) -> usize {
        self.asked.len()
    }

    fn tell(&mut self, event: Event) {
        self.report.events += 1;
        for action in self.coordinator.handle(self.now, event) {
            self.act(action);
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Assign(worker, epoch, range) => {
                let node = &mut self.nodes[worker as usize];
                let cached = node.offer.cached.is_some_and(|cached| cached.covers(&range));
                let bytes = if cached { 0 } else { self.coordinator.model().bytes(&range) };
                node.range = range;
                if !cached {
                    node.offer.cached = Some(range);
                }
                let (life, bandwidth) = (node.life, node.offer.bandwidth as f64);
                self.report.downloaded += bytes as f64;
                let time = bytes as f64 / bandwidth + self.scenario.compile;
                self.after(time, Later::Tell(worker, life, Event::Ready(worker, epoch)));
            }
            Action::Restore { worker, session, epoch, from, to, source, .. } => {
                let bytes = self.bytes(to - from);
                let mut time = self.link(worker, bytes);
                if let Source::Stage(before, _) = source {
                    self.sent += bytes;
                    time += self.link(before, bytes);
                }
                let start = self.now + micros(time);
                let done = self.work(worker, start, (to - from).max(1), 1);
                let life = self.nodes[worker as usize].life;
                self.at(done, Later::Tell(worker, life, Event::Restored(worker, session, epoch, to)));
            }
            Action::Export { worker, session, to } => {
                // States of a row and block in f16: a key and a value, of a quarter of the width.
                let position = self.rows(session);
                let node = &self.nodes[worker as usize];
                let bytes = u64::from(position) * u64::from(node.range.blocks()) * u64::from(self.scenario.width);
                let (time, life) = (self.link(worker, bytes) + self.link(to, bytes), self.nodes[to as usize].life);
                self.sent += bytes;
                let event = Event::Exported { from: worker, to, session, position };
                self.after(time, Later::Tell(to, life, event));
            }
            Action::Step { session, epoch, position, tokens, want, route, .. } => {
                let Some(stop) = route.first() else { return };
                let time = self.link(stop.worker, HEADER);
                let rows = tokens.len() as u32;
                let hop = Hop { session, epoch, position, rows, want, route, stage: 0 };
                self.after(time, Later::Hop(Box::new(hop)));
            }
            Action::Say(session, ..) => {
                if let Some(asked) = self.asked.get_mut(&session) {
                    asked.first.get_or_insert(self.now);
                    asked.last = self.now;
                    asked.tokens += 1;
                }
            }
            Action::End(session, why) => self.ended(session, why),
            Action::Check { check, suspect, copy, .. } => {
                // Everybody is honest here.
                let by = copy.at.worker;
                let event = Event::Checked(check, by, Verdict::With(suspect.worker));
                self.after(1.0, Later::Tell(by, self.nodes[by as usize].life, event));
            }
            Action::Recheck { .. }
            | Action::Uncheck(_)
            | Action::Open { .. }
            | Action::Drop(..)
            | Action::Release(_)
            | Action::Greet(_)
            | Action::Ban(_) => {}
        }
    }

    fn rows(&self, session: SessionId) -> u32 {
        self.asked
            .get(&session)
            .map_or(0, |asked| self.scenario.tokens.0 as u32 + (asked.tokens as u32).saturating_sub(1))
    }

    fn ended(&mut self, session: SessionId, why: End) {
        let Some(asked) = self.asked.remove(&session) else { return };
        if why == End::Refused {
            self.report.refused += 1;
            return;
        }
        self.report.answered += 1;
        let Some(first) = asked.first else { return };
        self.firsts.push((first - asked.at) as f64 * 1e-6);
        if asked.tokens > u64::from(self.scenario.lap) {
            let after = asked.tokens - u64::from(self.scenario.lap);
            self.tokens.push((asked.last - first) as f64 * 1e-6 / after as f64);
        }
    }

    /// Bytes of rows of activations in f16.
    fn bytes(&self, rows: u32) -> u64 {
        HEADER + u64::from(rows) * u64::from(self.scenario.width) * 2
    }

    /// Seconds of a message between the broker and a worker.
    fn link(&self, worker: WorkerId, bytes: u64) -> f64 {
        let offer = &self.nodes[worker as usize].offer;
        offer.hop as f64 * 0.5e-6 + bytes as f64 / offer.bandwidth as f64
    }

    /// Takes a worker's time for rows of a prompt or for tokens, from when it is free, and says when it is done.
    fn work(&mut self, worker: WorkerId, start: Micros, rows: u32, tokens: u32) -> Micros {
        let head = self.coordinator.model().head_blocks;
        let node = &mut self.nodes[worker as usize];
        let blocks = f64::from(node.range.blocks()) + if node.range.head { head } else { 0.0 };
        let one = node.offer.block as f64 * blocks;
        let first = node.busy.max(start) + (one * (f64::from(rows) / 8.0).max(1.0)) as Micros;
        node.busy = first + (one * f64::from(tokens.saturating_sub(1))) as Micros;
        first
    }

    fn hop(&mut self, mut hop: Hop) {
        let worker = hop.route[hop.stage].worker;
        let node = &self.nodes[worker as usize];
        if !node.there {
            return;
        }
        let life = node.life;
        let done = self.work(worker, self.now, hop.rows, hop.want);
        let (session, epoch, position) = (hop.session, hop.epoch, hop.position);
        let told = done + micros(self.link(worker, HEADER));
        self.at(told, Later::Tell(worker, life, Event::StepDone(worker, session, epoch, position)));
        if let Some(next) = hop.route.get(hop.stage + 1) {
            let bytes = self.bytes(hop.rows);
            // The tokens after the first of a lap go the same way.
            self.sent += bytes + self.bytes(1) * u64::from(hop.want.saturating_sub(1));
            let time = self.link(worker, bytes) + self.link(next.worker, bytes);
            hop.stage += 1;
            self.at(done + micros(time), Later::Hop(Box::new(hop)));
        } else if hop.want > 0 {
            let around = self.around(&hop.route) * f64::from(hop.want - 1);
            let ids = vec![0; hop.want as usize];
            let event = Event::Tokens { worker, session, epoch, position: position + hop.rows, ids };
            self.at(told + micros(around), Later::Tell(worker, life, event));
        }
    }

    /// Seconds of a token around a chain.
    fn around(&self, route: &[Stop]) -> f64 {
        let head = self.coordinator.model().head_blocks;
        // Between stages a row goes, from and to the coordinator a token.
        let row = self.bytes(1);
        let stage = |(at, stop): (usize, &Stop)| {
            let node = &self.nodes[stop.worker as usize];
            let blocks = f64::from(node.range.blocks()) + if node.range.head { head } else { 0.0 };
            let comes = self.link(stop.worker, if at == 0 { HEADER } else { row });
            let goes = self.link(stop.worker, if at + 1 == route.len() { HEADER } else { row });
            comes + node.offer.block as f64 * 1e-6 * blocks + goes
        };
        route.iter().enumerate().map(stage).sum()
    }

    /// The result.
    pub fn finish(mut self) -> Report {
        let counts = self.coordinator.counts();
        let seconds = self.scenario.seconds;
        Report {
            availability: self.served / seconds,
            present: self.present / seconds,
            chains: self.chains / seconds,
            tokens_per_second: counts.tokens as f64 / seconds,
            token: Quantiles::of(std::mem::take(&mut self.tokens)),
            first: Quantiles::of(std::mem::take(&mut self.firsts)),
            bytes_per_answer: self.sent as f64 / self.report.answered.max(1) as f64,
            lost: counts.lost,
            promoted: counts.promoted,
            recruited: counts.recruited,
            replayed: counts.replayed,
            given_up: counts.given_up,
            replaced: counts.replaced,
            ..self.report
        }
    }
}
