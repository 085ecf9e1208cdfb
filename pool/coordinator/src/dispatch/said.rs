//! Messages become events.

use anygpu_pool_proto::{
    Assigned, Failure, Heartbeat, Hello, ProtoError, Reason, Reply, StepDone, Token, Welcome, Wire, reply, subject,
};
use subtle::ConstantTimeEq;

use super::dispatcher::{Dispatcher, Out};
use crate::{Event, Micros, Offer, State, WorkerId};

/// Why somebody who says hello is not taken.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NotTaken {
    /// It is no hello, or one of another version.
    #[error(transparent)]
    Hello(#[from] ProtoError),
    /// It was found to have computed something else.
    #[error("{0} is banned, since others agreed on something else than it computed; repair it, and join anew")]
    Banned(String),
    /// It says a key by which it would see tokens, and there is none, or another.
    #[error(
        "{0} says another key for the ends of chains than the coordinator was started with; give both the same --ends-key, or \
         the worker none"
    )]
    Ends(String),
}

impl NotTaken {
    /// Returns the answer to it, if it has one.
    pub fn answer(&self) -> Option<Vec<u8>> {
        let reason = match self {
            NotTaken::Hello(_) | NotTaken::Ends(_) => Reason::Malformed,
            NotTaken::Banned(_) => Reason::Banned,
        };
        let failure = Failure { reason: reason.into(), detail: self.to_string(), ..Failure::default() };
        Reply { what: Some(reply::What::Failure(failure)) }.to_wire().ok()
    }
}

impl Dispatcher {
    /// A worker came to [`subject::HELLO`]. Gives what it is answered: its name. `id` is one that nobody foresees, for
    /// those who have none yet: whoever knows a name is taken for who has it.
    ///
    /// *Errors*: it is no hello, or one of another version; it comes from somebody who is banned, or who says another key than
    /// that for [ends](super::Served::ends).
    pub fn joined(
        &mut self,
        now: Micros,
        id: WorkerId,
        payload: &[u8],
        heartbeat_millis: u32,
    ) -> Result<(Welcome, Vec<Out>), NotTaken> {
        let hello = Hello::from_wire(payload)?;
        let id = number(&hello.worker).unwrap_or(id);
        let worker = name(id);
        if self.coordinator.is_banned(id) {
            return Err(NotTaken::Banned(worker));
        }
        let is_key = |key: &String| bool::from(key.as_bytes().ct_eq(hello.ends.as_bytes()));
        let knows = self.served.ends.as_ref().is_some_and(is_key);
        if !hello.ends.is_empty() && !knows {
            return Err(NotTaken::Ends(worker));
        }
        // Each of several heartbeats that came at once may have had it greeted.
        let there = self.coordinator.worker(id) != State::Gone;
        if there && self.connections.get(&hello.connection) == Some(&id) {
            return Ok((Welcome { worker, heartbeat_millis }, Vec::new()));
        }
        // What it had, and what it was asked, is of the past.
        self.lost(id);
        self.forget_requests(id);
        self.names.insert(id, worker.clone());
        self.workers.insert(worker.clone(), id);
        self.connected(id, hello.connection);
        let offer = Offer {
            memory: hello.memory,
            block: hello.block_micros.into(),
            hop: hello.hop_micros.into(),
            bandwidth: hello.bandwidth,
            cached: hello.cached.first().copied().filter(|_| hello.model == self.served.digest),
            ends: knows || self.served.ends.is_none(),
        };
        let mut out = self.happened(now, Event::Connected(id));
        out.extend(self.happened(now, Event::Hello(id, offer)));
        Ok((Welcome { worker, heartbeat_millis }, out))
    }

    /// Whether a worker of a name is kept out.
    pub fn is_banned(&self, name: &str) -> bool {
        number(name).is_some_and(|id| self.coordinator.is_banned(id))
    }

    /// Takes note of a worker's connection, in place of an earlier one.
    fn connected(&mut self, id: WorkerId, connection: String) {
        if !connection.is_empty() && self.connections.get(&connection) != Some(&id) {
            self.connections.retain(|_, of| *of != id);
            self.connections.insert(connection, id);
        }
    }

    /// A connection is closed, by its broker's name.
    pub fn closed(&mut self, now: Micros, connection: &str) -> Vec<Out> {
        let of = self.connections.remove(connection).and_then(|id| self.names.get(&id).cloned());
        of.map_or_else(Vec::new, |worker| self.left(now, &worker))
    }

    /// A worker is gone.
    pub fn left(&mut self, now: Micros, worker: &str) -> Vec<Out> {
        let Some(id) = self.workers.remove(worker) else { return Vec::new() };
        self.lost(id);
        self.connections.retain(|_, of| *of != id);
        let out = self.happened(now, Event::Disconnected(id));
        self.names.remove(&id);
        self.forget_requests(id);
        out
    }

    /// Forgets the requests to a worker that is gone.
    fn forget_requests(&mut self, id: WorkerId) {
        self.asked.retain(|_, of| *of != id);
        let asked = &self.asked;
        self.watch.given_up(|request| asked.contains_key(request));
    }

    /// A worker published something at a subject of its own, or at one that is [listened](Out::Listen) to. What cannot be
    /// read is left out: deadlines see to the rest.
    pub fn came(&mut self, now: Micros, to: &str, payload: &[u8]) -> Vec<Out> {
        if self.heard(to, payload) {
            return self.settled(now);
        }
        let Some((name, what)) = subject::sender(to) else { return Vec::new() };
        let Some(worker) = self.workers.get(name).copied() else {
            // Who is gone, or was there before a restart. Once for each heartbeat is often enough.
            let speaks = what == "hb" && number(name).is_some();
            return speaks.then(|| Out::Greet(name.into())).into_iter().collect();
        };
        let event = match what {
            "hb" => Heartbeat::from_wire(payload).ok().map(|it| {
                let (block, hop, visible) = (it.block_micros.into(), it.hop_micros.into(), it.visible);
                self.connected(worker, it.connection);
                Event::Heartbeat { worker, block, hop, visible }
            }),
            "done" => StepDone::from_wire(payload).ok().and_then(|done| self.done(now, worker, &done)),
            "at" => Reply::from_wire(payload).ok().and_then(|reply| self.said(worker, &reply)),
            _ => Token::from_wire(payload).ok().filter(|token| token.session.to_string() == what).and_then(|token| {
                let Token { session, epoch, position, id, .. } = token;
                let of_copy = self.heard_token(worker, session, position, id);
                (!of_copy).then(|| Event::Tokens { worker, session, epoch, position, ids: vec![id] })
            }),
        };
        match event {
            // Its names go with it.
            Some(Event::Disconnected(_)) => self.left(now, name),
            Some(event) => self.happened(now, event),
            None => self.settled(now),
        }
    }

    /// A step is through: it was one of a lap, of rows that were sent again, or the taking over of states.
    fn done(&mut self, now: Micros, worker: WorkerId, done: &StepDone) -> Option<Event> {
        let StepDone { session, epoch, position, rows, micros } = *done;
        if self.copy_done(worker, done) {
            return None;
        }
        let end = position + rows;
        if rows == 0
            && let Some(from) = self.exporting.remove(&(worker, session))
        {
            return Some(Event::Exported { from, to: worker, session, position });
        }
        if self.restoring.get(&(worker, session)) == Some(&end) {
            self.restoring.remove(&(worker, session));
            return Some(Event::Restored(worker, session, epoch, end));
        }
        // Of a text that is being restored rows come again.
        if !self.restoring.contains_key(&(worker, session)) {
            self.watch.step(rows, micros);
            self.traces.step(now, worker, (session, position), micros);
        }
        Some(Event::StepDone(worker, session, epoch, position))
    }

    /// A request was answered, or nobody is there to answer it.
    pub fn answered(&mut self, now: Micros, id: u64, payload: Option<&[u8]>) -> Vec<Out> {
        let Some(worker) = self.asked.remove(&id) else { return Vec::new() };
        self.watch.answered(now, id);
        let Some(payload) = payload else {
            // Who is not back since a break is not gone.
            if self.coordinator.is_excused(worker) {
                return Vec::new();
            }
            return self.names.get(&worker).cloned().map_or_else(Vec::new, |name| self.left(now, &name));
        };
        match Reply::from_wire(payload).ok().and_then(|reply| self.said(worker, &reply)) {
            Some(event) => self.happened(now, event),
            None => self.settled(now),
        }
    }

    /// Translates a reply into an event for the coordinator.
    fn said(&mut self, worker: WorkerId, reply: &Reply) -> Option<Event> {
        match &reply.what {
            Some(reply::What::Failure(failure)) if self.copy_failed(worker, failure.session) => None,
            _ => said(worker, reply),
        }
    }
}

/// Translates a reply that is not of a copy into an event for the coordinator.
fn said(worker: WorkerId, reply: &Reply) -> Option<Event> {
    match &reply.what {
        Some(reply::What::Assigned(Assigned { epoch, ready: true, .. })) => Some(Event::Ready(worker, *epoch)),
        Some(reply::What::Failure(failure)) if failure.reason == i32::from(Reason::Leaving) => {
            Some(Event::Disconnected(worker))
        }
        Some(reply::What::Failure(Failure { session, epoch, reason, .. })) => {
            // What a session alone is refused is not its worker's end: its deadline begins it again.
            let ends = [Reason::OutOfMemory, Reason::DeviceLost].map(i32::from).contains(reason);
            (*session == 0 || ends).then_some(Event::Failed(worker, *epoch))
        }
        _ => None,
    }
}

/// The name of a worker.
pub(super) fn name(id: WorkerId) -> String {
    format!("w{id:016x}")
}

/// Returns the number of the worker with a name.
fn number(name: &str) -> Option<WorkerId> {
    let digits = name.strip_prefix('w').filter(|digits| digits.len() == 16)?;
    u64::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use anygpu_pool_proto::{Rung, Seam, VERSION};

    use super::*;
    use crate::Config;
    use crate::dispatch::Served;
    use crate::plan::Model;

    fn dispatcher() -> Dispatcher {
        pinned(None)
    }

    /// Makes a dispatcher that asks for a key of the workers of first and last stages.
    fn pinned(ends: Option<String>) -> Dispatcher {
        let model =
            Model { blocks: 2, block_bytes: 1, block_states: 0, embedding_bytes: 1, head_bytes: 1, head_blocks: 1.0 };
        let (seam, digest) = (Seam::F32, vec![0; 32]);
        let served = Served { address: "model".into(), digest, seam, context: 64, sessions: 2, chunk: 16, ends };
        Dispatcher::new(Config::new(model), [1; 32], served)
    }

    fn hello(connection: &str) -> Vec<u8> {
        let hello = Hello {
            version: VERSION,
            worker: name(7),
            rung: Rung::Cpu.into(),
            memory: 9,
            block_micros: 1,
            bandwidth: 1,
            hop_micros: 1,
            sessions: 2,
            connection: connection.into(),
            ..Hello::default()
        };
        hello.to_wire().unwrap()
    }

    #[test]
    fn who_says_hello_twice_by_one_connection_is_taken_once() {
        let mut dispatcher = dispatcher();
        for now in 0..5 {
            let (welcome, _) = dispatcher.joined(now, 1, &hello("A/1"), 200).unwrap();
            assert_eq!(welcome.worker, name(7));
        }
        assert_eq!(dispatcher.coordinator().counts().lost, 0);
        dispatcher.joined(9, 1, &hello("A/2"), 200).unwrap();
        assert_eq!(dispatcher.coordinator().counts().lost, 1, "by another it begins anew");
        dispatcher.tick(100_000_000);
        assert_eq!(dispatcher.coordinator().worker(7), State::Gone, "it was silent for long");
        dispatcher.joined(100_000_001, 1, &hello("A/2"), 200).unwrap();
        assert_ne!(dispatcher.coordinator().worker(7), State::Gone, "and is back");
    }

    #[test]
    fn only_who_knows_the_key_has_the_first_stage_and_the_last() {
        // Two blocks and two ends: room for one of each, so that it takes two workers, or three.
        let says = |id: u64, key: &str| {
            let hello = Hello::from_wire(&hello("")).unwrap();
            Hello { worker: name(id), ends: key.into(), memory: 2, block_micros: id as u32, ..hello }.to_wire().unwrap()
        };
        let stages = |dispatcher: &Dispatcher| -> Vec<_> {
            let chains = dispatcher.picture().chains;
            chains.iter().flat_map(|chain| &chain.stages).filter_map(|stage| stage.worker.clone()).collect()
        };
        let mut all = dispatcher();
        (1..=4).for_each(|id| drop(all.joined(0, id, &says(id, ""), 200).unwrap()));
        all.tick(200_000);
        let mut fastest = stages(&all);
        fastest.sort();
        assert_eq!(fastest, [name(1), name(2)], "the fastest, where everybody may");
        let mut dispatcher = pinned(Some("key".into()));
        for (id, key) in [(1, ""), (2, ""), (3, "key"), (4, "key")] {
            dispatcher.joined(0, id, &says(id, key), 200).unwrap();
        }
        dispatcher.tick(200_000);
        let stages = stages(&dispatcher);
        let ends = [stages.first().unwrap(), stages.last().unwrap()];
        assert!(ends.iter().all(|end| [name(3), name(4)].contains(end)), "{stages:?}");
        for mut other in [dispatcher, all] {
            let refused = other.joined(0, 5, &says(5, "another"), 200).unwrap_err();
            assert!(refused.to_string().contains("--ends-key"), "{refused}");
        }
    }

    #[test]
    fn nobody_to_answer_is_no_loss_after_a_break() {
        let mut dispatcher = dispatcher();
        dispatcher.joined(0, 1, &hello("A/1"), 200).unwrap();
        let asks =
            |out: Vec<Out>| out.into_iter().find_map(|out| if let Out::Ask { id, .. } = out { Some(id) } else { None });
        let asked = asks(dispatcher.tick(200_000)).expect("it is assigned a range");
        dispatcher.cut(300_000);
        dispatcher.returned(400_000);
        assert_eq!(dispatcher.answered(400_000, asked, None), []);
        assert_eq!(dispatcher.coordinator().worker(7), State::Fetching);
        let beat = Heartbeat { block_micros: 1, hop_micros: 1, connection: "B/1".into(), ..Heartbeat::default() };
        let out = dispatcher.came(500_000, &subject::heartbeat(&name(7)), &beat.to_wire().unwrap());
        let again = asks(out).expect("and again when it is back");
        dispatcher.answered(500_000, again, None);
        assert_eq!(dispatcher.coordinator().worker(7), State::Gone);
    }
}
