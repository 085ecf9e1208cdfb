//! Workers that do what a coordinator says, exactly: a token is a hash of everything before it, so that a row that was
//! skipped, repeated or computed from the wrong states changes the text.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap},
};

use anygpu_pool::plan::Model;
use anygpu_pool::{
    Action, Config, Coordinator, End, Event, Lease, Micros, Offer, Request, Source, State, Stop, Verdict, WorkerId,
};
use anygpu_pool_proto::{Range, Sampling};
use rand::{RngExt, SeedableRng, rngs::StdRng};

pub const BLOCKS: u32 = 6;
/// Time between two heartbeats.
const BEAT: Micros = 200_000;

pub fn model() -> Model {
    Model { blocks: BLOCKS, block_bytes: 100, block_states: 0, embedding_bytes: 50, head_bytes: 50, head_blocks: 1.0 }
}

fn hash(a: u64, b: u64) -> u64 {
    let mut x = a.rotate_left(17) ^ b.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^ (x >> 27)
}

/// The states of a range: for each block a hash of all its inputs.
#[derive(Clone)]
struct States(Vec<u64>);

impl States {
    fn row(&mut self, first: u32, x: u64) -> u64 {
        self.0.iter_mut().zip(first..).fold(x, |x, (state, block)| {
            *state = hash(*state, x);
            hash(*state, u64::from(block))
        })
    }
}

fn token(x: u64) -> u32 {
    (x % 1000) as u32
}

/// Returns the continuation of a prompt on one machine.
pub fn alone(prompt: &[u32], most: usize) -> Vec<u32> {
    let mut states = States(vec![0; BLOCKS as usize]);
    let mut tokens = prompt.to_vec();
    let mut last = 0;
    for token in prompt {
        last = states.row(0, u64::from(*token));
    }
    for _ in 0..most {
        tokens.push(token(last));
        last = states.row(0, u64::from(token(last)));
    }
    tokens.split_off(prompt.len())
}

#[derive(Clone)]
struct Held {
    lease: Lease,
    states: States,
    rows: u32,
    /// Outputs of rows from `kept` on.
    kept: u32,
    out: Vec<u64>,
}

#[derive(Clone)]
pub struct Node {
    pub offer: Offer,
    pub alive: bool,
    pub frozen: bool,
    pub visible: bool,
    pub liar: bool,
    /// Time until which it computes; it sends heartbeats meanwhile.
    pub busy: Micros,
    /// Time to compile a range.
    pub compile: Micros,
    range: Range,
    epoch: u64,
    life: u64,
    held: BTreeMap<u64, Held>,
    /// The last two of each session, by the rows they have seen.
    snapshots: BTreeMap<(u64, u32), States>,
}

/// Event of the cluster that is due later.
enum Later {
    Tell(Event, Option<(WorkerId, u64)>),
    Hop { session: u64, epoch: u64, position: u32, rows: Vec<u64>, want: u32, route: Vec<Stop>, stage: usize },
    Connect(WorkerId),
    Thaw(WorkerId, u64),
    Beat(WorkerId),
}

pub struct Cluster {
    pub coordinator: Coordinator,
    pub now: Micros,
    pub chance: StdRng,
    pub nodes: BTreeMap<WorkerId, Node>,
    /// The probability that a message is lost.
    pub loss: f64,
    pub said: BTreeMap<u64, Vec<u32>>,
    pub ended: BTreeMap<u64, End>,
    asked: BTreeMap<u64, Request>,
    /// Workers that have computed, by checks.
    checks: BTreeMap<u64, Vec<WorkerId>>,
    /// Workers that were gone before the last event, and after it.
    gone: BTreeSet<WorkerId>,
    later: BinaryHeap<Reverse<(Micros, u64)>>,
    what: BTreeMap<u64, Later>,
    sequence: u64,
}

pub fn offer(blocks: u64) -> Offer {
    Offer { memory: blocks * 100 + 50, block: 1_000, hop: 500, bandwidth: 1_000_000, cached: None, ends: true }
}

pub fn request(session: u64, prompt: usize, most: usize) -> Request {
    let prompt = (0..prompt).map(|at| (session as u32 * 31 + at as u32 * 7) % 1000).collect();
    Request { session, user: session % 3, prompt, most, sampling: Sampling::default(), stop: Vec::new() }
}

#[allow(dead_code, reason = "each test file uses its part")]
impl Cluster {
    pub fn new(config: Config, seed: u64) -> Cluster {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        Cluster {
            coordinator: Coordinator::new(config, bytes),
            now: 0,
            chance: StdRng::seed_from_u64(seed),
            nodes: BTreeMap::new(),
            loss: 0.0,
            said: BTreeMap::new(),
            ended: BTreeMap::new(),
            asked: BTreeMap::new(),
            checks: BTreeMap::new(),
            gone: BTreeSet::new(),
            later: BinaryHeap::new(),
            what: BTreeMap::new(),
            sequence: 0,
        }
    }

    pub fn add(&mut self, id: WorkerId, offer: Offer) {
        let range = Range::default();
        let node = Node {
            offer,
            alive: false,
            frozen: false,
            visible: true,
            liar: false,
            busy: 0,
            compile: 50_000,
            range,
            epoch: 0,
            life: 0,
            held: BTreeMap::new(),
            snapshots: BTreeMap::new(),
        };
        self.nodes.insert(id, node);
        self.connect(id);
        self.after(BEAT, Later::Beat(id));
    }

    pub fn ask(&mut self, request: Request) {
        self.asked.insert(request.session, request.clone());
        self.tell(Event::Ask(request));
    }

    pub fn connect(&mut self, id: WorkerId) {
        let node = self.nodes.get_mut(&id).expect("a node");
        (node.alive, node.frozen) = (true, false);
        node.life += 1;
        let offer = node.offer;
        self.tell(Event::Connected(id));
        self.tell(Event::Hello(id, offer));
    }

    /// A closed tab, a killed process; it is back after a while, if a time is given.
    pub fn kill(&mut self, id: WorkerId, back: Option<Micros>) {
        let node = self.nodes.get_mut(&id).expect("a node");
        if !node.alive {
            return;
        }
        node.alive = false;
        node.held.clear();
        node.snapshots.clear();
        node.range = Range::default();
        self.tell(Event::Disconnected(id));
        if let Some(back) = back {
            self.after(back, Later::Connect(id));
        }
    }

    /// A frozen tab: what it gets meanwhile is lost.
    pub fn freeze(&mut self, id: WorkerId, time: Micros) {
        let node = self.nodes.get_mut(&id).expect("a node");
        node.frozen = true;
        let life = node.life;
        self.after(time, Later::Thaw(id, life));
    }

    /// A page is hidden, or seen again, and says so.
    pub fn see(&mut self, id: WorkerId, visible: bool) {
        self.nodes.get_mut(&id).expect("a node").visible = visible;
        self.beat(id);
    }

    fn beat(&mut self, id: WorkerId) {
        let Node { offer, visible, alive, frozen, .. } = self.nodes[&id];
        if alive && !frozen {
            self.tell(Event::Heartbeat { worker: id, block: offer.block, hop: offer.hop, visible });
        }
    }

    /// The coordinator starts again, from what it wrote down; its workers say hello again.
    pub fn restart(&mut self, config: Config) {
        let facts = serde_json::to_string(&self.coordinator.facts()).expect("facts are JSON");
        let facts = serde_json::from_str(&facts).expect("and read back");
        self.coordinator = Coordinator::restart(config, [9; 32], facts, self.now);
        let alive: Vec<_> = self.nodes.iter().filter(|(_, node)| node.alive).map(|(id, _)| *id).collect();
        alive.into_iter().for_each(|id| self.connect(id));
    }

    fn after(&mut self, time: Micros, what: Later) {
        self.sequence += 1;
        self.later.push(Reverse((self.now + time, self.sequence)));
        self.what.insert(self.sequence, what);
    }

    /// Until a time.
    pub fn run(&mut self, until: Micros) {
        loop {
            let later = self.later.peek().map(|Reverse((at, _))| *at);
            let due = self.coordinator.due();
            let Some(next) = later.into_iter().chain(due).min().filter(|at| *at <= until) else { break };
            self.now = self.now.max(next);
            if due == Some(next) {
                self.tell(Event::Tick);
                continue;
            }
            let Some(Reverse((_, key))) = self.later.pop() else { break };
            if let Some(what) = self.what.remove(&key) {
                self.happen(what);
            }
        }
        self.now = self.now.max(until);
    }

    fn happen(&mut self, what: Later) {
        match what {
            Later::Tell(event, from) => {
                let works = |(id, life): (WorkerId, u64)| {
                    let node = &self.nodes[&id];
                    node.alive && !node.frozen && node.life == life
                };
                if from.is_none_or(works) && !self.chance.random_bool(self.loss) {
                    self.tell(event);
                }
            }
            Later::Hop { session, epoch, position, rows, want, route, stage } => {
                self.hop(session, epoch, position, rows, want, route, stage);
            }
            Later::Connect(id) => self.connect(id),
            Later::Beat(id) => {
                self.beat(id);
                self.after(BEAT, Later::Beat(id));
            }
            Later::Thaw(id, life) => {
                let node = self.nodes.get_mut(&id).expect("a node");
                if node.alive && node.life == life {
                    node.frozen = false;
                    self.beat(id);
                }
            }
        }
    }

    /// Tells the coordinator, does what it says, and holds it to its promises.
    pub fn tell(&mut self, event: Event) {
        let gone = |coordinator: &Coordinator, id: &WorkerId| coordinator.worker(*id) == State::Gone;
        self.gone = self.nodes.keys().filter(|id| gone(&self.coordinator, id)).copied().collect();
        let actions = self.coordinator.handle(self.now, event);
        self.gone.retain(|id| gone(&self.coordinator, id));
        for action in actions {
            self.act(action);
        }
    }

    fn working(&mut self, id: WorkerId) -> Option<&mut Node> {
        assert!(!self.gone.contains(&id), "something is asked of {id}, which is gone");
        self.nodes.get_mut(&id).filter(|node| node.alive && !node.frozen)
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Assign(id, epoch, range) => {
                let Some(node) = self.working(id) else { return };
                (node.range, node.epoch) = (range, epoch);
                node.held.clear();
                node.snapshots.clear();
                let (life, compile) = (node.life, node.compile);
                self.after(compile, Later::Tell(Event::Ready(id, epoch), Some((id, life))));
            }
            Action::Release(id) => {
                if let Some(node) = self.working(id) {
                    node.held.clear();
                    node.snapshots.clear();
                    node.range = Range::default();
                }
            }
            Action::Open { worker, session, lease, .. } => {
                if let Some(node) = self.working(worker) {
                    let states = States(vec![0; node.range.blocks() as usize]);
                    node.held.insert(session, Held { lease, states, rows: 0, kept: 0, out: Vec::new() });
                }
            }
            Action::Restore { worker, session, epoch, lease, from, to, source } => {
                self.restore(worker, session, epoch, lease, from, to, &source);
            }
            Action::Export { worker, session, to } => {
                let Some(node) = self.working(worker) else { return };
                let Some(held) = node.held.get(&session) else { return };
                let (states, rows) = (held.states.clone(), held.rows);
                let Some(taker) = self.working(to) else { return };
                taker.snapshots.insert((session, rows), states);
                let of: Vec<_> =
                    taker.snapshots.range((session, 0)..=(session, u32::MAX)).map(|(key, _)| *key).collect();
                of.iter().rev().skip(2).for_each(|key| drop(taker.snapshots.remove(key)));
                let life = taker.life;
                let event = Event::Exported { from: worker, to, session, position: rows };
                self.after(2_000, Later::Tell(event, Some((to, life))));
            }
            Action::Drop(id, session) => {
                if let Some(node) = self.working(id) {
                    node.held.remove(&session);
                    node.snapshots.retain(|(of, _), _| *of != session);
                }
            }
            Action::Step { session, epoch, position, tokens, want, route, .. } => {
                assert!(route.iter().all(|stop| !self.gone.contains(&stop.worker)), "a step goes to who is gone");
                let rows = tokens.into_iter().map(u64::from).collect();
                self.after(500, Later::Hop { session, epoch, position, rows, want, route, stage: 0 });
            }
            Action::Say(session, position, id) => {
                assert!(!self.ended.contains_key(&session), "{session} goes on after its end");
                let said = self.said.entry(session).or_default();
                assert_eq!(position as usize, self.asked[&session].prompt.len() + said.len(), "of {session}");
                said.push(id);
            }
            Action::End(session, why) => {
                assert_eq!(self.ended.insert(session, why), None, "{session} ended twice");
            }
            Action::Check { check, suspect, copy, .. } => {
                self.checks.insert(check, vec![suspect.worker]);
                self.compare(check, copy.at.worker);
            }
            Action::Recheck { check, copy } => self.compare(check, copy.at.worker),
            Action::Uncheck(check) => drop(self.checks.remove(&check)),
            Action::Greet(id) => {
                if self.nodes[&id].alive && !self.nodes[&id].frozen {
                    self.connect(id);
                }
            }
            Action::Ban(id) => {
                self.nodes.get_mut(&id).expect("a node").alive = false;
            }
        }
    }

    /// Liars differ from everybody, honest workers from nobody who is.
    fn compare(&mut self, check: u64, by: WorkerId) {
        let liar = self.nodes[&by].liar;
        let Some(before) = self.checks.get_mut(&check) else { return };
        let verdict = match before.iter().find(|it| !liar && !self.nodes[it].liar) {
            Some(with) => Verdict::With(*with),
            None => Verdict::Differs,
        };
        before.push(by);
        self.after(5_000, Later::Tell(Event::Checked(check, by, verdict), None));
    }

    #[allow(clippy::too_many_arguments, reason = "the fields of the action")]
    fn restore(&mut self, id: u64, session: u64, epoch: u64, lease: u64, from: u32, to: u32, source: &Source) {
        let inputs: Vec<u64> = match source {
            Source::Tokens(tokens) => tokens.iter().map(|token| u64::from(*token)).collect(),
            Source::Stage(before, lease) => {
                let Some(node) = self.working(*before) else { return };
                let Some(held) = node.held.get(&session).filter(|held| held.lease == *lease) else { return };
                assert!(
                    held.kept <= from && to <= held.rows,
                    "{before} does not have rows {from} to {to} of {session}"
                );
                held.out[(from - held.kept) as usize..(to - held.kept) as usize].to_vec()
            }
        };
        assert_eq!(inputs.len(), (to - from) as usize);
        let Some(node) = self.working(id) else { return };
        let states = match from {
            0 => States(vec![0; node.range.blocks() as usize]),
            _ => node.snapshots.get(&(session, from)).cloned().expect("the snapshot it is said to hold"),
        };
        let mut held = Held { lease, states, rows: to, kept: from, out: Vec::new() };
        held.out = inputs.into_iter().map(|x| held.states.row(node.range.first, x)).collect();
        node.held.insert(session, held);
        let (life, busy) = (node.life, node.busy);
        self.after(
            (1_000 + 100 * u64::from(to - from)).max(busy.saturating_sub(self.now)),
            Later::Tell(Event::Restored(id, session, epoch, to), Some((id, life))),
        );
    }

    #[allow(clippy::too_many_arguments, reason = "the fields of a step")]
    fn hop(
        &mut self,
        session: u64,
        epoch: u64,
        position: u32,
        rows: Vec<u64>,
        want: u32,
        route: Vec<Stop>,
        stage: usize,
    ) {
        let stop = route[stage];
        let Some(node) = self.nodes.get_mut(&stop.worker).filter(|node| node.alive && !node.frozen) else { return };
        let (first, head, life, time) = (node.range.first, node.range.head, node.life, node.offer.block);
        let busy = node.busy;
        let Some(held) = node.held.get_mut(&session).filter(|held| held.lease == stop.lease) else { return };
        let end = position + rows.len() as u32;
        if position == held.rows {
            held.out.extend(rows.into_iter().map(|x| held.states.row(first, x)).collect::<Vec<_>>());
            held.rows = end;
        } else if position < held.kept || end > held.rows {
            return;
        }
        let out = held.out[(position - held.kept) as usize..(end - held.kept) as usize].to_vec();
        let took = (time + self.chance.random_range(0..time)).max(busy.saturating_sub(self.now));
        let from = Some((stop.worker, life));
        self.after(took, Later::Tell(Event::StepDone(stop.worker, session, epoch, position), from));
        if stage + 1 < route.len() {
            if !self.chance.random_bool(self.loss) {
                self.after(took, Later::Hop { session, epoch, position, rows: out, want, route, stage: stage + 1 });
            }
        } else if want > 0 && head {
            let id = token(*out.last().expect("a row"));
            let event = Event::Tokens { worker: stop.worker, session, epoch, position: end, ids: vec![id] };
            self.after(took, Later::Tell(event, from));
        }
    }

    /// Workers keep nothing of sessions that ended.
    pub fn is_forgotten(&self) {
        for (id, node) in self.nodes.iter().filter(|(_, node)| node.alive && !node.frozen) {
            let held = node.held.keys().chain(node.snapshots.keys().map(|(session, _)| session));
            let kept: Vec<_> = held.filter(|session| self.ended.contains_key(session)).collect();
            assert!(kept.is_empty(), "{id} keeps {kept:?}");
        }
    }

    /// Every session that was not cancelled said what one machine says.
    pub fn is_exact(&self) {
        for (session, request) in &self.asked {
            let said = self.said.get(session).cloned().unwrap_or_default();
            let right = alone(&request.prompt, request.most);
            assert_eq!(said[..], right[..said.len()], "of {session}");
            match self.ended.get(session) {
                Some(End::Length) => assert_eq!(said.len(), right.len(), "of {session}"),
                Some(End::Cancelled) => {}
                other => panic!("{session} ended {other:?} after {} of {} tokens", said.len(), right.len()),
            }
        }
    }
}
