//! Workers come and go.

use anygpu_pool_proto::Range;

use super::{
    action::Action,
    chain::ChainState,
    coordinator::Coordinator,
    timers::Timer,
    worker::{Offer, Role, State, Worker, WorkerId},
};
use crate::Micros;

/// Times that a worker is given more time to prepare.
const LATE: u32 = 3;

impl Coordinator {
    pub(super) fn connected(&mut self, id: WorkerId) {
        if self.banned.contains(&id) {
            self.out.push(Action::Ban(id));
            return;
        }
        // Whoever connects again has lost what it had.
        self.gone(id);
        self.workers.insert(id, Worker::new(id, self.now));
        self.heard(id);
    }

    pub(super) fn hello(&mut self, id: WorkerId, offer: Offer) {
        let Some(worker) = self.workers.get_mut(&id) else { return };
        if !matches!(worker.state, State::Joining | State::Suspect) {
            return;
        }
        worker.offer = offer;
        self.heard(id);
        self.set_free(id);
        if let Some((chain, stage)) = self.remembered.remove(&id)
            && self.wanting.contains(&(chain, stage))
            && self.fits(id, &self.chains[&chain].slots[stage].range)
        {
            self.recruit(chain, stage, id);
        }
    }

    pub(super) fn heartbeat(&mut self, id: WorkerId, block: u64, hop: u64) {
        let Some(worker) = self.workers.get_mut(&id) else {
            self.out.push(if self.banned.contains(&id) { Action::Ban(id) } else { Action::Greet(id) });
            return;
        };
        let (free, state) = (self.free.remove(&(worker.offer.block, id)), worker.state);
        (worker.offer.block, worker.offer.hop) = (block, hop);
        if free {
            self.free.insert((block, id));
        }
        self.heard(id);
        if state == State::Suspect {
            self.out.push(Action::Release(id));
            self.set_free(id);
        }
    }

    /// Whether a worker's page is seen. Stages go from who is hidden to who is seen, if somebody stands by.
    pub(super) fn seen(&mut self, id: WorkerId, visible: bool) {
        let Some(role) = self.workers.get(&id).map(|worker| worker.role) else { return };
        let changed = if visible { self.hidden.remove(&id) } else { self.hidden.insert(id) };
        match role {
            Role::Stage(chain, stage) if changed && !visible => self.relieve(self.chains[&chain].slots[stage].range),
            Role::Spare(range) if changed && visible => self.relieve(range),
            _ => {}
        }
    }

    fn heard(&mut self, id: WorkerId) {
        self.timers.set(Timer::Silence(id), self.now + self.config.silence);
    }

    /// The coordinator's own connection is there again: silence begins to count after a grace, or when somebody speaks.
    pub(super) fn returned(&mut self) {
        self.is_cut_off = false;
        let from = self.now + self.config.grace;
        for (id, worker) in &mut self.workers {
            worker.heard = from;
            self.timers.set(Timer::Silence(*id), from + self.config.silence);
        }
    }

    /// Whether a worker cannot have been heard: the coordinator's own connection is closed, or the worker has not followed
    /// since, and still may.
    pub fn is_excused(&self, id: WorkerId) -> bool {
        self.is_cut_off || self.workers.get(&id).is_some_and(|worker| worker.heard > self.now)
    }

    /// A worker has said nothing for as long as anybody may.
    pub(super) fn fell_silent(&mut self, id: WorkerId) {
        if self.is_cut_off {
            self.heard(id);
        } else {
            self.gone(id);
        }
    }

    /// A worker takes long to prepare. Who speaks is slow, and has more time, to an end; what it was told may be lost, and
    /// is said again.
    pub(super) fn unprepared(&mut self, id: WorkerId) {
        let speaks = !self.is_quiet(id);
        match self.workers.get_mut(&id).filter(|worker| speaks && worker.late < LATE) {
            Some(worker) => {
                worker.late += 1;
                self.timers.set(Timer::Prepare(id), self.now + self.config.prepare);
                self.assign_again(id);
            }
            None => self.suspect(id),
        }
    }

    /// Says again what a worker is to prepare. Who has done so says it at once.
    fn assign_again(&mut self, id: WorkerId) {
        let Some(worker) = self.workers.get(&id).filter(|worker| worker.state == State::Fetching) else { return };
        if let Some(range) = worker.offer.cached {
            self.out.push(Action::Assign(id, worker.epoch, range));
        }
    }

    /// A worker is not there any more.
    pub(super) fn gone(&mut self, id: WorkerId) {
        if self.workers.contains_key(&id) {
            self.timers.clear(Timer::Silence(id));
            self.counts.lost += 1;
            self.unseat(id, State::Gone);
        }
    }

    /// A worker missed a deadline: it has nothing until it says something.
    pub(super) fn suspect(&mut self, id: WorkerId) {
        if self.workers.get(&id).is_some_and(|worker| worker.state.may(State::Suspect)) {
            self.counts.lost += 1;
            self.unseat(id, State::Suspect);
        }
    }

    /// Takes from a worker what it is for. Chains that it served are mended.
    pub(super) fn unseat(&mut self, id: WorkerId, next: State) {
        let Some(worker) = self.workers.get_mut(&id) else { return };
        let (role, block) = (worker.role, worker.offer.block);
        worker.role = Role::None;
        worker.turn(next);
        self.free.remove(&(block, id));
        self.timers.clear(Timer::Prepare(id));
        if next == State::Gone {
            self.workers.remove(&id);
            self.hidden.remove(&id);
        }
        match role {
            Role::None => {}
            Role::Spare(range) => self.unspare(id, range),
            Role::Stage(chain, stage) => self.lose(chain, stage),
        }
    }

    pub(super) fn unspare(&mut self, id: WorkerId, range: Range) {
        self.cover.spares(range, false);
        if let Some(ready) = self.spares.get_mut(&range) {
            ready.remove(&id);
            if ready.is_empty() {
                self.spares.remove(&range);
            }
        }
        self.checks_no_more(id);
    }

    /// A worker has nothing to do.
    pub(super) fn set_free(&mut self, id: WorkerId) {
        let Some(worker) = self.workers.get_mut(&id) else { return };
        worker.turn(State::Measured);
        worker.role = Role::None;
        self.free.insert((worker.offer.block, id));
        self.plan_soon();
    }

    /// Workers that come together are planned with together; a stage that is missing waits for nobody.
    pub(super) fn plan_soon(&mut self) {
        if self.wanting.is_empty() {
            self.timers.set_once(Timer::Plan, self.now + self.config.replan);
        } else {
            self.timers.set(Timer::Plan, self.now);
        }
    }

    pub(super) fn fits(&self, id: WorkerId, range: &Range) -> bool {
        self.workers.get(&id).is_some_and(|worker| worker.fits(&self.config.model, range))
    }

    /// A worker said something. Who can be counted on again may be what is wanted.
    pub(super) fn hears(&mut self, id: WorkerId) {
        let (was_quiet, was_excused) = (self.is_quiet(id), self.is_excused(id));
        let Some(worker) = self.workers.get_mut(&id) else { return };
        worker.heard = self.now;
        // What it was told meanwhile, or has answered, may be lost.
        if was_excused {
            self.assign_again(id);
        }
        if was_quiet {
            self.plan_soon();
        }
    }

    /// Time since a worker was last heard.
    pub(super) fn silence(&self, id: WorkerId) -> Micros {
        if self.is_cut_off {
            return 0;
        }
        self.workers.get(&id).map_or(Micros::MAX, |worker| self.now.saturating_sub(worker.heard))
    }

    /// Whether a worker has said nothing for so long that it is not counted on.
    pub(super) fn is_quiet(&self, id: WorkerId) -> bool {
        self.silence(id) > self.config.quiet
    }

    /// Whether a worker can be counted on to be there: it speaks, and its page is seen. Others are chosen last.
    pub(super) fn is_sure(&self, id: WorkerId) -> bool {
        !self.is_quiet(id) && !self.hidden.contains(&id)
    }

    /// A free worker, or a spare of something else, is to fetch and compile a range.
    pub(super) fn assign(&mut self, id: WorkerId, range: Range, role: Role) {
        let epoch = self.next_epoch();
        let Some(worker) = self.workers.get_mut(&id) else { return };
        self.free.remove(&(worker.offer.block, id));
        let before = std::mem::replace(&mut worker.role, role);
        worker.turn(State::Fetching);
        (worker.epoch, worker.late) = (epoch, 0);
        let cached = worker.offer.cached.is_some_and(|cached| cached.covers(&range));
        let bytes = if cached { 0 } else { self.config.model.weights(&range) };
        let fetch = bytes.saturating_mul(1_000_000) / worker.offer.bandwidth.max(1);
        worker.offer.cached = Some(range);
        self.timers.set(Timer::Prepare(id), self.now + self.config.prepare + 2 * fetch);
        if let Role::Spare(old) = before {
            self.unspare(id, old);
        }
        if let Role::Spare(range) = role {
            self.cover.spares(range, true);
        }
        self.out.push(Action::Assign(id, epoch, range));
    }

    pub(super) fn ready(&mut self, id: WorkerId, epoch: u64) {
        let Some(worker) = self.workers.get_mut(&id) else { return };
        if worker.epoch != epoch || worker.state != State::Fetching {
            self.counts.stale += 1;
            return;
        }
        self.timers.clear(Timer::Prepare(id));
        match worker.role {
            Role::Spare(range) => {
                worker.turn(State::Spare);
                if self.cover.of(&range).0 == 0 {
                    // Nobody serves that range any more.
                    self.unspare(id, range);
                    self.out.push(Action::Release(id));
                    self.set_free(id);
                    return;
                }
                self.spares.entry(range).or_default().insert(id);
                self.stands_by(id, range);
            }
            Role::Stage(chain, stage) => {
                worker.turn(State::Ready);
                if let Some(chain) = self.chains.get_mut(&chain) {
                    chain.slots[stage].ready = true;
                }
                self.settle(chain);
            }
            Role::None => {}
        }
    }

    /// A new spare: a stage that wants its range has it at once, and disputes are settled by it.
    fn stands_by(&mut self, id: WorkerId, range: Range) {
        let wants = |(chain, stage): &&(u64, usize)| self.chains[chain].slots[*stage].range == range;
        match self.wanting.iter().take(self.config.candidates).find(wants).copied() {
            Some((chain, stage)) => self.promote(chain, stage, id),
            None => {
                self.settle_disputes(range);
                self.relieve(range);
                self.plan_soon();
            }
        }
    }

    pub(super) fn failed(&mut self, id: WorkerId, epoch: u64) {
        let Some(worker) = self.workers.get(&id) else { return };
        let chain = match worker.role {
            Role::Stage(chain, _) => self.chains.get(&chain).map(|chain| chain.epoch),
            _ => None,
        };
        if worker.epoch == epoch || chain == Some(epoch) {
            self.suspect(id);
        } else {
            self.counts.stale += 1;
        }
    }

    /// A chain's state follows from its stages; its workers' with it.
    pub(super) fn settle(&mut self, id: u64) {
        let Some(chain) = self.chains.get_mut(&id) else { return };
        let before = chain.state;
        chain.state = chain.settled();
        if chain.state == ChainState::Up {
            self.unready.remove(&id);
        } else {
            self.unready.insert(id);
        }
        let (up, slots) = (chain.state == ChainState::Up, chain.slots.clone());
        for worker in slots.iter().filter_map(|slot| slot.worker) {
            let Some(worker) = self.workers.get_mut(&worker) else { continue };
            match (worker.state, up) {
                (State::Ready, true) => worker.turn(State::Serving),
                (State::Serving, false) => worker.turn(State::Ready),
                _ => {}
            }
        }
        self.reopen(id);
        if up && before != ChainState::Up {
            self.is_up(id);
        }
    }
}
