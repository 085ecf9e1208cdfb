//! Simulated time: what is going to happen, and who is there.

use std::{
    cmp::{Ordering, Reverse},
    collections::{BTreeMap, BinaryHeap},
};

use anygpu_pool_proto::{Range, Sampling};
use rand::{RngExt, SeedableRng, rngs::StdRng};

use super::{
    report::{Quantiles, Report},
    scenario::Scenario,
};
use crate::plan::Model;
use crate::{Config, Coordinator, Event, Micros, Offer, Request, SessionId, Stop, WorkerId};

/// Seconds until the coordinator hears that a connection was closed, as measured of the broker.
const CLOSED: f64 = 0.006;
/// Time without heartbeats after which a worker is thought to be gone.
const SILENCE: Micros = 6_000_000;

pub(super) fn micros(seconds: f64) -> Micros {
    (seconds * 1e6) as Micros
}

pub(super) struct Node {
    pub offer: Offer,
    pub there: bool,
    /// When it goes on, if it stands still. Its connection is there meanwhile.
    still: Option<Micros>,
    /// Raised with each absence: what was begun before it comes to nothing.
    pub life: u64,
    region: u32,
    pub range: Range,
    pub busy: Micros,
}

/// Event of the simulation that is due later.
pub(super) enum Later {
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
    /// Something that only a protocol knows of, by its number.
    Other(usize),
}

pub(super) struct Hop {
    pub session: SessionId,
    pub epoch: u64,
    pub position: u32,
    pub rows: u32,
    pub want: u32,
    pub route: Vec<Stop>,
    pub stage: usize,
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

pub(super) struct Asked {
    pub at: Micros,
    pub first: Option<Micros>,
    pub last: Micros,
    pub tokens: u64,
}

pub(super) struct World {
    pub scenario: Scenario,
    pub chance: StdRng,
    pub now: Micros,
    pub(super) coordinator: Coordinator,
    pub(super) nodes: Vec<Node>,
    later: BinaryHeap<Reverse<Entry>>,
    sequence: u64,
    pub(super) asked: BTreeMap<SessionId, Asked>,
    next_session: SessionId,
    there: u64,
    /// Whether somebody asks again as soon as there is an answer.
    pub always: bool,
    pub(super) report: Report,
    pub(super) tokens: Vec<f64>,
    pub(super) firsts: Vec<f64>,
    pub(super) sent: u64,
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
            block_states: 0,
            embedding_bytes: scenario.embedding_bytes,
            head_bytes: scenario.head_bytes,
            head_blocks: scenario.head_blocks,
        };
        let life = match scenario.failure {
            super::Failure::Weibull { scale, .. } => scale,
            super::Failure::Ramp { every } => every,
            super::Failure::Never => 86_400.0,
        };
        let config = Config {
            lap: scenario.lap,
            snapshot: scenario.snapshot,
            check: scenario.check,
            prompt_rows: scenario.prompt_rows,
            // Without heartbeats the end of a connection is all that tells.
            silence: if scenario.beat > 0.0 { SILENCE } else { Micros::MAX / 4 },
            quiet: if scenario.beat > 0.0 { Config::new(model).quiet } else { Micros::MAX / 4 },
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
            always: false,
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
        Node { offer, there: false, still: None, life: 0, region, range: Range::default(), busy: 0 }
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

    pub(super) fn at(&mut self, at: Micros, what: Later) {
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
            let whose = match &what {
                Later::Tell(worker, ..) => Some(*worker),
                Later::Hop(hop) => Some(hop.route[hop.stage].worker),
                _ => None,
            };
            // Who stands still does later what it would have done.
            if let Some(until) = whose.and_then(|worker| self.nodes[worker as usize].still).filter(|it| *it > self.now)
                && !matches!(what, Later::Tell(_, _, Event::Disconnected(_)))
            {
                self.at(until, what);
                continue;
            }
            match what {
                Later::Tell(worker, life, event) => {
                    let node = &self.nodes[worker as usize];
                    // That a connection was closed is told by the broker, unless there is a newer one.
                    if node.life == life || (matches!(event, Event::Disconnected(_)) && !node.there) {
                        let beats = self.scenario.beat > 0.0 && matches!(event, Event::Heartbeat { .. });
                        if beats {
                            self.after(self.scenario.beat, Later::Tell(worker, life, event.clone()));
                        }
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
        (node.there, node.still) = (true, None);
        node.busy = self.now;
        let (offer, life) = (node.offer, node.life);
        self.there += 1;
        self.tell(Event::Connected(worker));
        self.tell(Event::Hello(worker, offer));
        if self.scenario.beat > 0.0 {
            let event = Event::Heartbeat { worker, block: offer.block, hop: offer.hop, visible: true };
            self.after(self.scenario.beat, Later::Tell(worker, life, event));
        }
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

    /// A worker stands still for a time in seconds: it hears and says nothing, and its connection is there. Whether it was
    /// there to.
    pub fn freeze(&mut self, worker: WorkerId, seconds: f64) -> bool {
        let until = self.now + micros(seconds);
        let node = &mut self.nodes[worker as usize];
        if !node.there || node.still.is_some_and(|still| still > self.now) {
            return false;
        }
        node.still = Some(until);
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

    pub(super) fn tell(&mut self, event: Event) {
        self.report.events += 1;
        for action in self.coordinator.handle(self.now, event) {
            self.act(action);
        }
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
            exchanged: counts.exchanged,
            recruited: counts.recruited,
            replayed: counts.replayed,
            given_up: counts.given_up,
            replaced: counts.replaced,
            ..self.report
        }
    }
}
