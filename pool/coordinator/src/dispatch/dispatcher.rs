//! Actions become messages.

use std::collections::{BTreeMap, HashMap};

use anygpu_pool_proto::{
    Assign, Control, Drop, Export, Hop, Open, Release, Replay, Seam, Step, Wire, control, subject,
};

use super::checks::Checks;
use super::times::Watch;
use super::traces::Traces;
use crate::{
    Action, Config, Coordinator, End, Event, Facts, Lease, Micros, Request, SessionId, Source, Stop, WorkerId,
};

/// The model that a pool serves.
#[derive(Debug, Clone)]
pub struct Served {
    /// Where its file is.
    pub address: String,
    /// Its digest: that of its encoded [`Manifest`](anygpu_pool_proto::Manifest).
    pub digest: Vec<u8>,
    /// Activation dtype at the borders of stages.
    pub seam: Seam,
    /// Positions of a session.
    pub context: u32,
    /// Sessions that a worker holds states for.
    pub sessions: u32,
    /// Rows of a step that states are made again by.
    pub chunk: u32,
    /// Key that a worker needs to have the first stage or the last one; without it every worker may.
    pub ends: Option<String>,
}

/// Message or call for the transport.
#[derive(Debug, Clone, PartialEq)]
pub enum Out {
    /// Bytes go to a subject.
    Send {
        /// The subject.
        subject: String,
        /// The bytes.
        payload: Vec<u8>,
    },
    /// Send a request: [`Dispatcher::answered`] gets the answer by this name, or that there is none.
    Ask {
        /// The name.
        id: u64,
        /// The subject.
        subject: String,
        /// The bytes.
        payload: Vec<u8>,
    },
    /// Subscribe to these subjects: [`Dispatcher::came`] gets their messages.
    Listen(String),
    /// And no longer.
    Unlisten(String),
    /// A token of an answer, at its position.
    Say(SessionId, u32, u32),
    /// A session ended.
    End(SessionId, End),
    /// Somebody speaks who was thought to be gone, or is not known at all: it is to say hello again.
    Greet(String),
    /// A worker's connection is to be closed, and its identity kept out.
    Ban {
        /// Its name.
        worker: String,
        /// The broker's name of the connection, if it said one.
        connection: Option<String>,
    },
}

/// A coordinator with what it takes to talk to its workers.
pub struct Dispatcher {
    pub(super) coordinator: Coordinator,
    pub(super) served: Served,
    pub(super) names: BTreeMap<WorkerId, String>,
    pub(super) workers: HashMap<String, WorkerId>,
    /// By the broker's name of a connection: whose it is.
    pub(super) connections: HashMap<String, WorkerId>,
    next: u64,
    /// By worker and session: the lease in force.
    leases: HashMap<(WorkerId, SessionId), String>,
    /// The latest epoch of each session.
    epochs: HashMap<SessionId, u64>,
    /// The epoch and the position of each session's last step.
    routed: HashMap<SessionId, (u64, u32)>,
    /// States that are being made again, and up to where.
    pub(super) restoring: HashMap<(WorkerId, SessionId), u32>,
    /// By who takes a snapshot: who sends it.
    pub(super) exporting: HashMap<(WorkerId, SessionId), WorkerId>,
    /// Requests under way, and of whom.
    pub(super) asked: HashMap<u64, WorkerId>,
    pub(super) checks: Checks,
    pub(super) watch: Watch,
    pub(super) traces: Traces,
    pub(super) out: Vec<Out>,
}

impl Dispatcher {
    /// With nobody there. `seed` is what the coordinator's leases are drawn from.
    pub fn new(config: Config, seed: [u8; 32], served: Served) -> Dispatcher {
        Dispatcher::restart(config, seed, served, Facts::default(), 0)
    }

    /// Goes on from what an earlier one knew. Its workers say hello again.
    pub fn restart(config: Config, seed: [u8; 32], served: Served, facts: Facts, now: Micros) -> Dispatcher {
        Dispatcher {
            coordinator: Coordinator::restart(config, seed, facts, now),
            served,
            names: BTreeMap::new(),
            workers: HashMap::new(),
            connections: HashMap::new(),
            next: 0,
            leases: HashMap::new(),
            epochs: HashMap::new(),
            routed: HashMap::new(),
            restoring: HashMap::new(),
            exporting: HashMap::new(),
            asked: HashMap::new(),
            checks: Checks::default(),
            watch: Watch::default(),
            traces: Traces::default(),
            out: Vec::new(),
        }
    }

    /// The coordinator.
    pub fn coordinator(&self) -> &Coordinator {
        &self.coordinator
    }

    /// When [`Self::tick`] is due, if it is.
    pub fn due(&self) -> Option<Micros> {
        self.coordinator.due()
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Micros) -> Vec<Out> {
        self.happened(now, Event::Tick)
    }

    /// Somebody asks.
    pub fn ask(&mut self, now: Micros, request: Request) -> Vec<Out> {
        self.happened(now, Event::Ask(request))
    }

    /// Nobody wants an answer any more.
    pub fn cancel(&mut self, now: Micros, session: SessionId) -> Vec<Out> {
        self.happened(now, Event::Cancel(session))
    }

    /// The broker cannot be reached.
    pub fn cut(&mut self, now: Micros) -> Vec<Out> {
        self.happened(now, Event::Cut)
    }

    /// It can be again. Workers follow.
    pub fn returned(&mut self, now: Micros) -> Vec<Out> {
        self.happened(now, Event::Returned)
    }

    pub(super) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    pub(super) fn happened(&mut self, now: Micros, event: Event) -> Vec<Out> {
        self.checks.verdicts.push(event);
        self.settled(now)
    }

    /// Tells the coordinator what came of checks, and what follows from it.
    pub(super) fn settled(&mut self, now: Micros) -> Vec<Out> {
        while let Some(event) = self.checks.verdicts.pop() {
            self.watch.event(now, &event);
            self.traces.event(now, &event);
            for action in self.coordinator.handle(now, event) {
                self.watch.action(&action);
                self.traces.action(now, &action);
                self.act(action);
            }
        }
        self.watch.serves(self.coordinator.serves());
        std::mem::take(&mut self.out)
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Assign(worker, epoch, range) => {
                let Served { address, digest, seam, context, sessions, .. } = self.served.clone();
                let (seam, range, head_blocks) = (seam.into(), Some(range), self.coordinator.model().head_blocks);
                let assign = Assign { epoch, address, model: digest, range, seam, context, sessions, head_blocks };
                self.lost(worker);
                self.request(worker, control::What::Assign(assign));
            }
            Action::Release(worker) => {
                self.lost(worker);
                self.request(worker, control::What::Release(Release { epoch: u64::MAX }));
            }
            Action::Open { worker, session, epoch, lease } => self.open(worker, session, epoch, &named(lease)),
            Action::Restore { worker, session, epoch, lease, from, to, source } => {
                // Who holds a snapshot has a lease for it, and keeps that.
                if from == 0 || !self.leases.contains_key(&(worker, session)) {
                    self.open(worker, session, epoch, &named(lease));
                }
                self.epochs.insert(session, epoch);
                self.restoring.insert((worker, session), to);
                self.again(worker, session, epoch, from..to, source);
            }
            Action::Export { worker, session, to } => {
                let epoch = self.epochs.get(&session).copied().unwrap_or(0);
                // A snapshot takes the place of an earlier one.
                let lease = match self.leases.get(&(to, session)) {
                    Some(lease) => lease.clone(),
                    None => {
                        let lease = format!("held{}", self.number());
                        self.open(to, session, epoch, &lease);
                        lease
                    }
                };
                self.exporting.insert((to, session), worker);
                let to = self.subject(to, &lease);
                self.request(worker, control::What::Export(Export { session, epoch, to }));
            }
            Action::Drop(worker, session) => self.forget(worker, session),
            Action::Step { session, epoch, position, tokens, want, sampling, route } => {
                self.epochs.insert(session, epoch);
                let Some(((first, lease), hops)) = self.route(session, &route) else { return };
                // A later position means that all stages had the step before, and its route with it.
                let before = self.routed.insert(session, (epoch, position));
                let known = before.is_some_and(|(of, at)| of == epoch && at < position);
                let hops = if known { Vec::new() } else { hops };
                let rows = tokens.len() as u32;
                let (seam, sampling) = (self.served.seam.into(), (want > 0).then_some(sampling));
                let to = subject::sent(&self.subject(first, &lease), subject::COORDINATOR);
                let step = Step {
                    session,
                    epoch,
                    lease,
                    position,
                    rows,
                    seam,
                    tokens,
                    sampling,
                    route: hops,
                    ..Step::default()
                };
                self.send(to, &step);
            }
            Action::Say(session, position, token) => self.out.push(Out::Say(session, position, token)),
            Action::End(session, why) => {
                self.out.push(Out::End(session, why));
                self.check_ends(session);
                // Spares that hold snapshots, too.
                let holders: Vec<WorkerId> =
                    self.leases.keys().filter(|(_, of)| *of == session).map(|(at, _)| *at).collect();
                holders.into_iter().for_each(|worker| self.forget(worker, session));
                self.epochs.remove(&session);
                self.routed.remove(&session);
            }
            Action::Check { check, session, epoch, before, suspect, next, copy } => {
                self.check(check, (session, epoch), before, suspect, next, copy);
            }
            Action::Recheck { check, copy } => self.compute(check, copy),
            Action::Uncheck(check) => self.uncheck(check),
            Action::Greet(worker) => self.out.extend(self.names.get(&worker).cloned().map(Out::Greet)),
            Action::Ban(id) => {
                let connection = self.connections.iter().find(|(_, of)| **of == id).map(|(name, _)| name.clone());
                let ban = |worker| Out::Ban { worker, connection };
                self.out.extend(self.names.get(&id).cloned().map(ban));
            }
        }
    }

    fn open(&mut self, worker: WorkerId, session: SessionId, epoch: u64, lease: &str) {
        self.epochs.insert(session, epoch);
        self.leases.insert((worker, session), lease.to_owned());
        if let Some(id) = self.request(worker, control::What::Open(Open { session, epoch, lease: lease.to_owned() })) {
            self.watch.open(id);
        }
    }

    fn forget(&mut self, worker: WorkerId, session: SessionId) {
        self.restoring.remove(&(worker, session));
        self.exporting.remove(&(worker, session));
        if self.leases.remove(&(worker, session)).is_some() {
            let epoch = self.epochs.get(&session).copied().unwrap_or(0);
            self.request(worker, control::What::Drop(Drop { session, epoch }));
        }
    }

    /// A worker has nothing any more.
    pub(super) fn lost(&mut self, worker: WorkerId) {
        self.leases.retain(|(of, _), _| *of != worker);
        self.restoring.retain(|(of, _), _| *of != worker);
        self.exporting.retain(|(of, _), _| *of != worker);
    }

    /// Has rows sent again to a worker.
    fn again(&mut self, worker: WorkerId, session: SessionId, epoch: u64, rows: std::ops::Range<u32>, source: Source) {
        let Some(lease) = self.leases.get(&(worker, session)).cloned() else { return };
        let (subject, seam) = (self.subject(worker, &lease), self.served.seam.into());
        match source {
            Source::Tokens(tokens) => {
                let chunk = self.served.chunk.max(1) as usize;
                for (at, tokens) in tokens.chunks(chunk).enumerate() {
                    let position = rows.start + (at * chunk) as u32;
                    let (lease, tokens, rows) = (lease.clone(), tokens.to_vec(), tokens.len() as u32);
                    let step =
                        Step { session, epoch, lease, position, rows, seam, tokens, replay: true, ..Step::default() };
                    self.send(subject::sent(&subject, subject::COORDINATOR), &step);
                }
            }
            Source::Stage(before, _) => {
                let (from, to) = (rows.start, rows.end);
                let replay = Replay { session, epoch, from, to, lease, subject };
                self.request(before, control::What::Replay(replay));
            }
        }
    }

    /// Where a step begins, and where it goes from there.
    fn route(&self, session: SessionId, stops: &[Stop]) -> Option<((WorkerId, String), Vec<Hop>)> {
        let leases = stops.iter().map(|stop| Some((stop.worker, self.leases.get(&(stop.worker, session))?.clone())));
        let mut leases = leases.collect::<Option<Vec<_>>>()?.into_iter();
        let first = leases.next()?;
        let mut hops: Vec<Hop> =
            leases.map(|(worker, lease)| Hop { subject: self.subject(worker, &lease), lease }).collect();
        let last = self.names.get(&stops.last()?.worker)?;
        hops.push(Hop { lease: String::new(), subject: subject::out(last, session) });
        Some((first, hops))
    }

    fn subject(&self, worker: WorkerId, lease: &str) -> String {
        subject::lease(self.names.get(&worker).map_or("gone", String::as_str), lease)
    }

    pub(super) fn send(&mut self, subject: String, message: &impl Wire) {
        // What we make is within bounds, or it is of a session that asked for too much: it ends by its deadline.
        self.out.extend(message.to_wire().ok().map(|payload| Out::Send { subject, payload }));
    }

    /// Asks a worker for something. Gives the request's name, if the worker has one.
    pub(super) fn request(&mut self, worker: WorkerId, what: control::What) -> Option<u64> {
        let subject = subject::control(self.names.get(&worker)?);
        let id = self.number();
        let payload = Control { what: Some(what) }.to_wire().ok()?;
        self.asked.insert(id, worker);
        self.out.push(Out::Ask { id, subject, payload });
        Some(id)
    }
}

/// A lease as subjects have it.
pub(super) fn named(lease: Lease) -> String {
    format!("{lease:016x}")
}
