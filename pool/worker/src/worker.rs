//! Handling of the messages to a worker.

use std::collections::HashMap;
use std::rc::Rc;

use anygpu::{Host, SelectOptions, StageOutput};
use anygpu_pool_proto::{
    Assign, Assigned, Control, Done, Export, Import, Open, Reason, Replay, Reply, Step, StepDone, Token, Wire, control,
    reply, subject,
};

use crate::Refused;
use crate::held::Held;
use crate::loaded::{Loaded, Models};
use crate::vitals::Vitals;

/// Rows of a message that is sent again, at most: few messages, each of which takes a device no long time.
const REPLAY_ROWS: u32 = 128;

/// Bytes and where they go, or came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The subject.
    pub subject: String,
    /// A message of [`anygpu_pool_proto`].
    pub payload: Vec<u8>,
}

/// A member of a pool that computes.
pub struct Worker {
    name: String,
    models: Box<dyn Models>,
    select: SelectOptions,
    host: Rc<dyn Host>,
    vitals: Vitals,
    // Texts go before the stage that they are in.
    sessions: HashMap<u64, Held>,
    loaded: Option<Loaded>,
}

impl Worker {
    /// With the name that the coordinator gave it.
    pub fn new(name: String, models: Box<dyn Models>, select: SelectOptions, host: Rc<dyn Host>) -> Worker {
        Worker { name, models, select, host, vitals: Vitals::default(), sessions: HashMap::new(), loaded: None }
    }

    /// How it does. What is given stays true while it works.
    pub fn vitals(&self) -> Vitals {
        self.vitals.clone()
    }

    /// Writes its vitals to numbers that somebody reads already.
    #[must_use]
    pub fn telling(mut self, vitals: Vitals) -> Worker {
        self.vitals = vitals;
        self
    }

    /// Takes a message that came to [`subject::control`] or [`subject::lease`]. Gives the answer to the former; all else
    /// goes to `send`. What is refused is said in a [`Failure`](anygpu_pool_proto::Failure), as an answer or to
    /// [`subject::progress`], and changes nothing; but an assignment gives back what was there before.
    pub async fn deliver(&mut self, message: &Message, send: &mut dyn FnMut(Message)) -> Option<Vec<u8>> {
        let Message { subject, payload } = message;
        if *subject == subject::control(&self.name) {
            let reply = self.control(payload, send).await;
            self.vitals.holds(self.sessions.len());
            return reply.to_wire().ok();
        }
        // Field 5 is a number of the one and bytes of the other, so that none is taken for the other.
        let (session, epoch, ended) = match Step::from_wire(payload) {
            Ok(step) => (step.session, step.epoch, self.step(step, subject, send).await),
            Err(error) => match Import::from_wire(payload) {
                Ok(import) => (import.session, import.epoch, self.import(import, subject, send).await),
                Err(_) => (0, 0, Err(error.into())),
            },
        };
        if let Err(refused) = ended {
            let reply = Reply { what: Some(reply::What::Failure(refused.message(session, epoch))) };
            let _ = post(subject::progress(&self.name), &reply, send);
        }
        None
    }

    async fn control(&mut self, payload: &[u8], send: &mut dyn FnMut(Message)) -> Reply {
        let asked = match Control::from_wire(payload) {
            Ok(Control { what: Some(what) }) => what,
            Ok(_) => return failed(Refused::new(Reason::Malformed, "nothing was asked"), 0, 0),
            Err(error) => return failed(error.into(), 0, 0),
        };
        let (session, epoch, done) = match asked {
            control::What::Assign(assign) => {
                return match self.assign(&assign, send).await {
                    Ok(assigned) => Reply { what: Some(reply::What::Assigned(assigned)) },
                    Err(refused) => failed(refused, 0, assign.epoch),
                };
            }
            control::What::Open(it) => (it.session, it.epoch, self.open(it)),
            control::What::Drop(it) => {
                self.sessions.remove(&it.session);
                (it.session, it.epoch, Ok(0))
            }
            control::What::Export(it) => (it.session, it.epoch, self.export(&it, send).await),
            control::What::Replay(it) => (it.session, it.epoch, self.replay(&it, send)),
            control::What::Release(it) => {
                if self.loaded.as_ref().is_some_and(|loaded| loaded.epoch <= it.epoch) {
                    self.clear();
                }
                (0, it.epoch, Ok(0))
            }
        };
        match done {
            Ok(position) => Reply { what: Some(reply::What::Done(Done { session, epoch, position })) },
            Err(refused) => failed(refused, session, epoch),
        }
    }

    /// Gives back all memory.
    fn clear(&mut self) {
        self.sessions.clear();
        self.loaded = None;
        self.vitals.has(None, 0);
    }

    async fn assign(&mut self, assign: &Assign, send: &mut dyn FnMut(Message)) -> Result<Assigned, Refused> {
        self.sessions.clear();
        if let Some(loaded) = self.loaded.as_mut().filter(|loaded| loaded.is(assign)) {
            (loaded.epoch, loaded.sessions) = (assign.epoch, assign.sessions as usize);
            let (fetched, block_micros) = (loaded.bytes, loaded.block_micros);
            return Ok(Assigned { epoch: assign.epoch, fetched, total: fetched, ready: true, block_micros });
        }
        // There may not be memory for both.
        self.clear();
        let (epoch, to) = (assign.epoch, subject::progress(&self.name));
        let mut told = 0;
        let mut progress = |fetched: u64, total: u64| {
            // Ten times is enough for a picture of it.
            if fetched - told >= total / 10 {
                told = fetched;
                let assigned = Assigned { epoch, fetched, total, ready: false, block_micros: 0 };
                let _ = post(to.clone(), &Reply { what: Some(reply::What::Assigned(assigned)) }, send);
            }
        };
        let loaded = Loaded::new(assign, &*self.models, &self.select, &self.host, &mut progress).await?;
        let (total, block_micros) = (loaded.bytes, loaded.block_micros);
        self.vitals.has(Some((assign.model.clone(), loaded.range)), total);
        self.vitals.measured(block_micros);
        self.loaded = Some(loaded);
        Ok(Assigned { epoch, fetched: total, total, ready: true, block_micros })
    }

    fn loaded(&self) -> Result<&Loaded, Refused> {
        self.loaded.as_ref().ok_or_else(|| Refused::new(Reason::UnknownSession, "no stage is loaded here; assign one"))
    }

    /// Whether something came to a lease, from whomever.
    fn is_for(&self, came: &str, lease: &str) -> bool {
        subject::parted(came).is_some_and(|(to, _)| to == subject::lease(&self.name, lease))
    }

    fn held(&mut self, session: u64) -> Result<&mut Held, Refused> {
        let unknown = || Refused::new(Reason::UnknownSession, format!("session {session} is not held here; open it"));
        self.sessions.get_mut(&session).ok_or_else(unknown)
    }

    /// An empty text in the place of one that goes by the same name, unless that is newer.
    fn open(&mut self, Open { session, epoch, lease }: Open) -> Result<u32, Refused> {
        let loaded = self.loaded()?;
        let before = self.sessions.get(&session);
        if before.is_some_and(|held| held.epoch > epoch) {
            return Err(Refused::new(Reason::Stale, "the session was opened in a later epoch"));
        }
        if before.is_none() && self.sessions.len() >= loaded.sessions {
            let why = format!("{} sessions are held here, and no more were agreed on; drop one", loaded.sessions);
            return Err(Refused::new(Reason::OutOfMemory, why));
        }
        let held = Held::new(epoch, lease, loaded.session()?);
        self.sessions.insert(session, held);
        Ok(0)
    }

    async fn step(&mut self, step: Step, came: &str, send: &mut dyn FnMut(Message)) -> Result<(), Refused> {
        let (host, begun) = (self.host.clone(), self.host.now_ms());
        let (seam, width) = (self.loaded()?.seam, self.loaded()?.width() as u32);
        if crate::loaded::seam(step.seam)? != seam {
            return Err(Refused::new(Reason::Malformed, format!("this chain's seams are {seam}; send those")));
        }
        if !self.is_for(came, &step.lease) {
            return Err(Refused::new(Reason::Stale, "the step names another lease than the one it came by"));
        }
        let held = self.held(step.session)?;
        held.admit(step.epoch, &step.lease)?;
        let output = held.step(&step, &*host).await?;
        // What is said of it is another's time.
        let micros = (1e3 * (host.now_ms() - begun)) as u32;
        let Step { session, epoch, position, rows, .. } = step;
        match output {
            StageOutput::Hidden(activations) => {
                let hop = if step.replay { None } else { held.next(epoch, &step.route) };
                if let Some(hop) = hop {
                    let route = step.route.get(1..).unwrap_or_default().to_vec();
                    let (lease, tokens) = (hop.lease, Vec::new());
                    let to = subject::sent(&hop.subject, &self.name);
                    post(to, &Step { lease, route, tokens, activations, width, ..step }, send)?;
                }
            }
            StageOutput::Token { id, log_prob } => {
                let best = log_prob.map(|told| told.top).unwrap_or_default();
                let margin = best.first().zip(best.get(1)).map_or(0.0, |(first, second)| (first.1 - second.1).max(0.0));
                let token = Token { session, epoch, position: position + rows, id, margin };
                // A worker may say tokens there alone, whatever the route names.
                post(subject::out(&self.name, session), &token, send)?;
            }
            StageOutput::Nothing => {}
        }
        post(subject::done(&self.name), &StepDone { session, epoch, position, rows, micros }, send)
    }

    /// Takes over states: a step of no rows, as far as whoever watches is concerned.
    async fn import(&mut self, import: Import, came: &str, send: &mut dyn FnMut(Message)) -> Result<(), Refused> {
        let (host, begun) = (self.host.clone(), self.host.now_ms());
        if !self.is_for(came, &import.lease) {
            return Err(Refused::new(Reason::Stale, "the states name another lease than the one they came by"));
        }
        let held = self.held(import.session)?;
        held.admit(import.epoch, &import.lease)?;
        held.import(&import.snapshot, import.position, &*host).await?;
        let Import { session, epoch, position, .. } = import;
        let micros = (1e3 * (host.now_ms() - begun)) as u32;
        post(subject::done(&self.name), &StepDone { session, epoch, position, rows: 0, micros }, send)
    }

    async fn export(&mut self, asked: &Export, send: &mut dyn FnMut(Message)) -> Result<u32, Refused> {
        let Export { session, epoch, to } = asked.clone();
        let (host, lease) = (self.host.clone(), to.rsplit('.').next().unwrap_or_default().to_owned());
        let to = subject::sent(&to, &self.name);
        let held = self.held(session)?;
        let snapshot = held.session.export(0, &*host).await?;
        let position = snapshot.header().position as u32;
        post(to, &Import { session, epoch, lease, position, snapshot: snapshot.to_bytes() }, send)?;
        Ok(position)
    }

    fn replay(&mut self, asked: &Replay, send: &mut dyn FnMut(Message)) -> Result<u32, Refused> {
        let Replay { session, epoch, from, to, lease, subject } = asked;
        let (seam, width) = (self.loaded()?.seam, self.loaded()?.width() as u32);
        let subject = subject::sent(subject, &self.name);
        let held = self.held(*session)?;
        held.handed(*from, *to)?;
        for position in (*from..*to).step_by(REPLAY_ROWS as usize) {
            let rows = REPLAY_ROWS.min(to - position);
            let step = Step {
                session: *session,
                epoch: *epoch,
                lease: lease.clone(),
                position,
                rows,
                width,
                seam: wire(seam).into(),
                activations: held.handed(position, position + rows)?.to_vec(),
                replay: true,
                ..Step::default()
            };
            post(subject.clone(), &step, send)?;
        }
        Ok(*to)
    }
}

fn wire(seam: anygpu::Seam) -> anygpu_pool_proto::Seam {
    match seam {
        anygpu::Seam::F16 => anygpu_pool_proto::Seam::F16,
        anygpu::Seam::F32 => anygpu_pool_proto::Seam::F32,
    }
}

fn failed(refused: Refused, session: u64, epoch: u64) -> Reply {
    Reply { what: Some(reply::What::Failure(refused.message(session, epoch))) }
}

fn post(subject: String, message: &impl Wire, send: &mut dyn FnMut(Message)) -> Result<(), Refused> {
    send(Message { subject, payload: message.to_wire()? });
    Ok(())
}
