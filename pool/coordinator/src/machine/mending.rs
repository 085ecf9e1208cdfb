//! A chain loses a stage, and finds another worker for it.

use std::collections::BTreeSet;

use anygpu_pool_proto::Range;

use super::{
    action::Action,
    chain::{ChainId, ChainState, Slot},
    coordinator::Coordinator,
    timers::Timer,
    worker::{Role, State, WorkerId},
};

impl Coordinator {
    /// A stage's worker is no more.
    pub(super) fn lose(&mut self, id: ChainId, stage: usize) {
        self.vacate(id, stage);
        self.find(id, stage);
    }

    /// A stage has nobody, and what its texts' states were there is lost.
    fn vacate(&mut self, id: ChainId, stage: usize) {
        let epoch = self.next_epoch();
        let Some(chain) = self.chains.get_mut(&id) else { return };
        chain.epoch = epoch;
        chain.slots[stage].worker = None;
        chain.slots[stage].ready = false;
        self.wanting.insert((id, stage));
        self.timers.set_once(Timer::GiveUp(id), self.now + self.config.give_up);
        for session in chain.sessions.clone() {
            self.timers.clear(Timer::Session(session));
            if let Some(session) = self.sessions.get_mut(&session) {
                session.lost.insert(stage);
                session.restore = None;
            }
        }
        self.settle(id);
    }

    /// A ready spare takes a stage, and who had it stands by in the spare's place.
    pub(super) fn exchange(&mut self, id: ChainId, stage: usize, spare: WorkerId) {
        let Some(Slot { range, worker: Some(worker), .. }) = self.chains.get(&id).map(|chain| chain.slots[stage])
        else {
            return;
        };
        if let Some(worker) = self.workers.get_mut(&worker) {
            worker.role = Role::None;
        }
        self.unseat(worker, State::Measured);
        self.vacate(id, stage);
        self.counts.exchanged += 1;
        self.install(id, stage, spare);
        self.assign(worker, range, Role::Spare(range));
    }

    /// A worker for a stage: a ready spare, somebody free, a spare of what is covered best; else it waits.
    pub(super) fn find(&mut self, id: ChainId, stage: usize) {
        let Some(chain) = self.chains.get(&id) else { return };
        let range = chain.slots[stage].range;
        let spare = self.choose_spare(id, stage);
        if let Some(spare) = spare.filter(|spare| !self.is_quiet(*spare)) {
            self.promote(id, stage, spare);
            return;
        }
        let many = self.config.candidates;
        // Who is about to be ready for the range is not asked for another: it is promoted when it is.
        if self.cover.of(&range).1 as usize > self.spares.get(&range).map_or(0, BTreeSet::len) {
            return;
        }
        let can = |worker: &WorkerId| self.fits(*worker, &range) && !self.is_quiet(*worker);
        let sure = |worker: &WorkerId| can(worker) && self.is_sure(*worker);
        let free = || self.free.iter().take(many).map(|(_, worker)| *worker);
        let other = || {
            let ranges = self.cover.most().take(many).filter(|other| *other != range);
            ranges.filter_map(|other| self.spares.get(&other)).flatten().take(many).copied()
        };
        let seen = free().find(sure).or_else(|| other().find(sure));
        match (seen.or_else(|| free().chain(other()).find(can)), spare) {
            (Some(worker), _) => self.recruit(id, stage, worker),
            (None, Some(quiet)) => self.promote(id, stage, quiet),
            (None, None) => {}
        }
    }

    /// A ready spare of a stage's range: one that holds a snapshot of the chain's sessions there, if it does, but rather
    /// any other than one that is hidden, and rather that than one that is quiet.
    pub(super) fn choose_spare(&self, id: ChainId, stage: usize) -> Option<WorkerId> {
        let chain = &self.chains[&id];
        let spares = self.spares.get(&chain.slots[stage].range)?;
        let held = chain.sessions.iter().find_map(|session| self.sessions[session].seats.get(stage)?.snapshot);
        let holder = held.map(|snapshot| snapshot.holder).filter(|holder| spares.contains(holder));
        let mut all = holder.into_iter().chain(spares.iter().take(self.config.candidates).copied());
        let sure = all.clone().find(|spare| self.is_sure(*spare));
        sure.or_else(|| all.find(|spare| !self.is_quiet(*spare))).or(spares.first().copied())
    }

    /// Stages of a range whose pages are hidden go to ready spares that can be counted on, while there are any.
    pub(super) fn relieve(&mut self, range: Range) {
        let serves = |id: &WorkerId| match self.workers.get(id)?.role {
            Role::Stage(chain, stage) if self.worker(*id) == State::Serving => Some((chain, stage)),
            _ => None,
        };
        let hidden = self.hidden.iter().filter_map(serves);
        let hidden: Vec<_> = hidden.filter(|(chain, stage)| self.chains[chain].slots[*stage].range == range).collect();
        for (chain, stage) in hidden {
            match self.choose_spare(chain, stage).filter(|spare| self.is_sure(*spare)) {
                Some(spare) => self.exchange(chain, stage, spare),
                None => return,
            }
        }
    }

    /// A ready spare takes over a stage that was lost.
    pub(super) fn promote(&mut self, id: ChainId, stage: usize, spare: WorkerId) {
        self.counts.promoted += 1;
        self.install(id, stage, spare);
    }

    /// A ready spare has a stage from now on.
    fn install(&mut self, id: ChainId, stage: usize, spare: WorkerId) {
        let epoch = self.next_epoch();
        let Some(chain) = self.chains.get_mut(&id) else { return };
        let range = chain.slots[stage].range;
        chain.epoch = epoch;
        chain.slots[stage].worker = Some(spare);
        chain.slots[stage].ready = true;
        self.wanting.remove(&(id, stage));
        self.unspare(spare, range);
        if let Some(worker) = self.workers.get_mut(&spare) {
            worker.role = Role::Stage(id, stage);
            worker.turn(State::Ready);
        }
        self.timers.set_once(Timer::Plan, self.now + self.config.replan);
        self.settle(id);
    }

    /// A worker is prepared for a stage.
    pub(super) fn recruit(&mut self, id: ChainId, stage: usize, worker: WorkerId) {
        let epoch = self.next_epoch();
        let Some(chain) = self.chains.get_mut(&id) else { return };
        chain.epoch = epoch;
        chain.slots[stage].worker = Some(worker);
        chain.slots[stage].ready = false;
        let range = chain.slots[stage].range;
        self.wanting.remove(&(id, stage));
        self.counts.recruited += 1;
        self.assign(worker, range, Role::Stage(id, stage));
        self.settle(id);
    }

    /// A chain waited too long for a stage: its workers are dealt anew, its sessions wait for another. But where somebody
    /// prepares for each stage that is missing, and speaks, dealing anew would only have others prepare, unless there can
    /// be a chain without them.
    pub(super) fn give_up(&mut self, id: ChainId) {
        let Some(chain) = self.chains.get(&id).filter(|chain| chain.state != ChainState::Up) else { return };
        let comes = |slot: &Slot| slot.worker.is_some_and(|worker| !self.is_quiet(worker));
        let own: Vec<_> = chain.slots.iter().filter(|slot| slot.ready).filter_map(|slot| slot.worker).collect();
        if chain.slots.iter().all(comes) && self.fastest(&own, 0).is_none() {
            self.timers.set(Timer::GiveUp(id), self.now + self.config.give_up);
            return;
        }
        self.counts.given_up += 1;
        self.dissolve(id);
    }

    /// A chain is no more. Its sessions keep their texts, and begin again on another.
    pub(super) fn dissolve(&mut self, id: ChainId) {
        self.close(id);
        let Some(chain) = self.chains.remove(&id) else { return };
        self.timers.clear(Timer::GiveUp(id));
        self.unready.remove(&id);
        self.retiring.remove(&id);
        self.remembered.retain(|_, (chain, _)| *chain != id);
        for session in chain.sessions {
            self.timers.clear(Timer::Session(session));
            self.end_check(session);
            if let Some(it) = self.sessions.get_mut(&session) {
                let holders = it.seats.iter().filter_map(|seat| seat.snapshot).map(|snapshot| snapshot.holder);
                let there = holders.filter(|holder| self.workers.contains_key(holder));
                self.out.extend(there.map(|holder| Action::Drop(holder, session)));
                it.leave();
                self.queue.push_again(session);
            }
        }
        for (stage, slot) in chain.slots.iter().enumerate() {
            self.wanting.remove(&(id, stage));
            self.cover.stages(slot.range, false);
            if let Some(worker) = slot.worker {
                self.timers.clear(Timer::Prepare(worker));
                self.out.push(Action::Release(worker));
                self.set_free(worker);
            }
        }
        // Spares of ranges that nobody serves any more.
        for range in chain.slots.iter().map(|slot| slot.range) {
            if self.cover.of(&range).0 > 0 {
                continue;
            }
            for spare in self.spares_of(&range) {
                self.timers.clear(Timer::Prepare(spare));
                self.unspare(spare, range);
                self.out.push(Action::Release(spare));
                self.set_free(spare);
            }
        }
    }

    /// Ready spares of a range. Those that fetch it are free when they are ready.
    fn spares_of(&self, range: &Range) -> Vec<WorkerId> {
        self.spares.get(range).into_iter().flatten().copied().collect()
    }
}
