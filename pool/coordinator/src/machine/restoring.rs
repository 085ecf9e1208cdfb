//! States that were lost with a stage are made again.

use std::collections::VecDeque;

use super::{
    action::{Action, Source},
    coordinator::Coordinator,
    session::{Restore, SessionId, Snapshot},
    worker::{Worker, WorkerId},
};
use crate::Micros;

/// Times that who is quiet is so for long.
const LONG: u64 = 4;
/// Deadlines after which who speaks is suspect though nobody is ready to take over: by doubling about as much time as a
/// range has to be compiled.
const HUNG: u32 = 12;

impl Coordinator {
    /// A session's chain is whole again: what it lost is restored, and its lap begins again.
    pub(super) fn resume(&mut self, id: SessionId) {
        // Steps go other ways from here on.
        self.end_check(id);
        let stages = self.to_restore(id);
        let leases: Vec<_> = stages.iter().map(|_| self.lease()).collect();
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.lost.clear();
        for ((stage, from), lease) in stages.iter().zip(leases) {
            let seat = &mut session.seats[*stage];
            (seat.lease, seat.kept) = (lease, *from);
        }
        session.restore = (!stages.is_empty()).then_some(Restore { stages, is_tried: false });
        self.restore_next(id);
    }

    /// Stages that have to be restored, the first one first, and the row that each begins at.
    ///
    /// A stage begins at the snapshot that its new worker holds, if it does. The stage before has to have kept what it
    /// sent from there on; where it has not, it begins anew as well.
    fn to_restore(&self, id: SessionId) -> VecDeque<(usize, u32)> {
        let mut stages = VecDeque::new();
        let Some(session) = self.sessions.get(&id) else { return stages };
        let Some(chain) = session.chain.and_then(|chain| self.chains.get(&chain)) else { return stages };
        let mut needed = u32::MAX;
        for stage in (0..chain.slots.len()).rev() {
            let seat = &session.seats[stage];
            let from = if session.lost.contains(&stage) {
                let holder = chain.slots[stage].worker.and_then(|worker| self.workers.get(&worker));
                let held = seat.snapshot.filter(|it| {
                    let holds = |worker: &Worker| worker.id == it.holder && worker.epoch == it.epoch;
                    holder.is_some_and(holds) && it.position <= needed.min(session.done)
                });
                held.map_or(0, |it| it.position)
            } else if needed != u32::MAX && seat.kept > needed {
                0
            } else {
                needed = u32::MAX;
                continue;
            };
            needed = from;
            stages.push_front((stage, from));
        }
        stages
    }

    /// Restores the next stage, or goes on with the lap.
    pub(super) fn restore_next(&mut self, id: SessionId) {
        loop {
            let Some(session) = self.sessions.get_mut(&id) else { return };
            let Some(chain) = session.chain.and_then(|chain| self.chains.get(&chain)) else { return };
            let Some(&(stage, from)) = session.restore.as_ref().and_then(|it| it.stages.front()) else {
                session.restore = None;
                self.counts.again += u64::from(!session.laps.is_empty());
                self.lap(id);
                return;
            };
            let Some(worker) = chain.slots[stage].worker else { return };
            let (epoch, lease, to) = (chain.epoch, session.seats[stage].lease, session.done);
            if to == 0 {
                self.out.push(Action::Open { worker, session: id, epoch, lease });
                if let Some(restore) = &mut session.restore {
                    restore.stages.pop_front();
                }
                continue;
            }
            let before = stage.checked_sub(1);
            let source = match before.and_then(|stage| Some((chain.slots[stage].worker?, session.seats[stage].lease))) {
                Some((worker, lease)) => Source::Stage(worker, lease),
                None => Source::Tokens(session.tokens[from as usize..to as usize].to_vec()),
            };
            self.counts.replayed += u64::from(to - from);
            self.out.push(Action::Restore { worker, session: id, epoch, lease, from, to, source });
            // The stage before, which sends, may take its time too.
            let two = self.allowed(chain, stage, to - from, 1) + self.allowed(chain, before.unwrap_or(stage), 1, 1);
            self.allow(id, two);
            return;
        }
    }

    pub(super) fn restored(&mut self, worker: WorkerId, id: SessionId, epoch: u64, position: u32) {
        let awaited = || {
            let session = self.sessions.get(&id)?;
            let chain = self.chains.get(&session.chain?).filter(|chain| chain.epoch == epoch)?;
            let (stage, _) = session.restore.as_ref()?.stages.front()?;
            (chain.slots[*stage].worker == Some(worker) && session.done == position).then_some(())
        };
        if awaited().is_none() {
            self.counts.stale += 1;
            return;
        }
        if let Some(session) = self.sessions.get_mut(&id)
            && let Some(restore) = &mut session.restore
        {
            restore.stages.pop_front();
            session.missed = if restore.is_tried { session.missed } else { 0 };
        }
        self.restore_next(id);
    }

    /// A step takes its time. A missed deadline has all sent again, since a message may have been lost. From the second
    /// one on a worker that is quiet, of those whose turn it is, is suspect, and long before if it is for long. Who speaks
    /// is slow, not lost: after the fourth the one that was awaited gives way to a ready spare nevertheless, and the one
    /// before it, if that did not help. Where there is none, what was said to it may be lost: the text begins again there,
    /// and after many more it is suspect.
    pub(super) fn overdue(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get(&id) else { return };
        if self.is_cut_off {
            self.expect(id, self.now + self.config.quiet);
            return;
        }
        let Some(chain_id) = session.chain else { return };
        let Some(chain) = self.chains.get(&chain_id) else { return };
        let restoring = session.restore.as_ref().and_then(|it| it.stages.front()).map(|(stage, _)| *stage);
        let Some(stage) = restoring.or(session.laps.front().map(|lap| lap.stage.min(chain.slots.len() - 1))) else {
            return;
        };
        let (missed, before, due) = (session.missed + 1, stage.saturating_sub(1), session.due);
        let at = |stage: usize| chain.slots[stage].worker;
        // A page says nothing while it computes: it has its time, or much longer.
        let most = match missed {
            _ if self.now < due => self.config.quiet.saturating_mul(LONG),
            1 => Micros::MAX,
            _ => self.config.quiet,
        };
        let silent = [at(stage), at(before)].into_iter().flatten().find(|worker| self.silence(*worker) > most);
        if let Some(worker) = silent {
            self.suspect(worker);
            return;
        }
        if self.now < due {
            self.expect(id, due);
            return;
        }
        // Who is not back since a break of the coordinator's own connection has missed nothing.
        let is_back = ![at(stage), at(before)].into_iter().flatten().any(|worker| self.is_excused(worker));
        let blamed = if missed % 8 == 4 { stage } else { before };
        let ready = self.choose_spare(chain_id, blamed).is_some_and(|spare| !self.is_quiet(spare));
        let worker = at(blamed);
        if let Some(session) = self.sessions.get_mut(&id).filter(|_| is_back) {
            session.missed = missed;
        }
        if missed % 4 != 0 || !is_back {
            self.counts.again += 1;
            if restoring.is_some() {
                self.restore_next(id);
            } else {
                self.lap(id);
            }
            return;
        }
        match worker {
            Some(worker) if ready || missed >= HUNG => self.suspect(worker),
            _ => self.anew(id, stage),
        }
    }

    /// A stage's states of a session, and those that wait to be restored, are made again where they are.
    fn anew(&mut self, id: SessionId, stage: usize) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let waiting = session.restore.iter().flat_map(|restore| &restore.stages).map(|(stage, _)| *stage);
        session.lost = waiting.chain([stage]).collect();
        self.counts.again += 1;
        self.resume(id);
        if let Some(restore) = self.sessions.get_mut(&id).and_then(|session| session.restore.as_mut()) {
            restore.is_tried = true;
        }
    }

    /// Snapshots of a session go to spares of its stages, from time to time.
    pub(super) fn snapshots(&mut self, id: SessionId) {
        let every = self.config.snapshot;
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if every == 0 || session.done < session.exported + every {
            return;
        }
        session.exported = session.done;
        let Some(chain) = session.chain.and_then(|chain| self.chains.get(&chain)) else { return };
        for slot in &chain.slots {
            let spare = self.spares.get(&slot.range).and_then(|spares| spares.first());
            if let (Some(worker), Some(&to)) = (slot.worker, spare) {
                self.out.push(Action::Export { worker, session: id, to });
            }
        }
    }

    pub(super) fn exported(&mut self, from: WorkerId, to: WorkerId, id: SessionId, position: u32) {
        let Some(holder) = self.workers.get(&to) else { return };
        let Some(session) = self.sessions.get_mut(&id).filter(|session| position <= session.done) else { return };
        let Some(chain) = session.chain.and_then(|chain| self.chains.get(&chain)) else { return };
        if let Some(stage) = chain.slots.iter().position(|slot| slot.worker == Some(from)) {
            let range = chain.slots[stage].range;
            let snapshot = Snapshot { holder: to, epoch: holder.epoch, position };
            let before = session.seats[stage].snapshot.replace(snapshot).map(|it| it.holder);
            // Who stands by no longer holds it for nothing.
            if let Some(before) =
                before.filter(|it| *it != to && self.spares.get(&range).is_some_and(|all| all.contains(it)))
            {
                self.out.push(Action::Drop(before, id));
            }
        }
    }
}
