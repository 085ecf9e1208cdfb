//! Which workers become chains, and which stand by.

use anygpu_pool_proto::Range;

use super::{
    chain::{Chain, ChainId, ChainState, Slot},
    coordinator::Coordinator,
    timers::Timer,
    worker::{Role, WorkerId},
};
use crate::plan::{self, Aim, Chain as Planned, fastest};

impl Coordinator {
    /// Stages that want somebody come first, then chains that are asked for; who is left stands by.
    pub(super) fn plan(&mut self) {
        let wanting: Vec<_> = self.wanting.iter().take(self.config.candidates).copied().collect();
        for (chain, stage) in wanting {
            self.find(chain, stage);
            self.give_way(chain, stage);
        }
        let running = self.chains.len() - self.retiring.len();
        let asked = self.queue.len() > 0 && self.open.is_empty() && self.unready.is_empty();
        if (running < self.config.chains || asked)
            && let Some(chain) = self.look(None)
        {
            self.begin(&chain, None);
            self.timers.set_once(Timer::Plan, self.now + self.config.replan);
        }
        self.stand_by();
    }

    /// A stage that nobody who is there can take makes its chain give way to another, if there can be one.
    fn give_way(&mut self, id: ChainId, stage: usize) {
        let Some(chain) = self.chains.get(&id).filter(|chain| chain.slots[stage].worker.is_none()) else { return };
        let own: Vec<_> = chain.slots.iter().filter_map(|slot| slot.worker).collect();
        let range = chain.slots[stage].range;
        let awaited = self.cover.of(&range).1 > 0 || self.remembered.values().any(|seat| *seat == (id, stage));
        if !awaited && self.fastest(&own, 0).is_some() {
            self.counts.given_up += 1;
            self.dissolve(id);
        }
    }

    /// The fastest chain of who is free and of spares that are more than one for their range. Where no chain is up, and
    /// where the chain is to replace another whose workers then stand by, of all spares.
    fn look(&self, instead: Option<ChainId>) -> Option<Planned> {
        match instead {
            None => self.fastest(&[], usize::from(self.up() > 0)),
            // Nobody gives way to who is hidden.
            Some(_) => self.fastest_of(&[], 0, |worker| self.is_sure(worker)),
        }
    }

    /// The fastest chain of some workers, of who is free, and of spares that are more than so many for their range. Whose
    /// page is hidden is part of it only if there is none without.
    pub(super) fn fastest(&self, some: &[WorkerId], kept: usize) -> Option<Planned> {
        let sure = self.fastest_of(some, kept, |worker| self.is_sure(worker));
        let hidden = || self.fastest_of(some, kept, |worker| !self.is_quiet(worker));
        if self.hidden.is_empty() { sure } else { sure.or_else(hidden) }
    }

    fn fastest_of(&self, some: &[WorkerId], kept: usize, may: impl Fn(WorkerId) -> bool) -> Option<Planned> {
        let many = self.config.candidates;
        let spared = self.cover.most().take(many).filter_map(|range| self.spares.get(&range));
        let spared = spared.flat_map(|spares| spares.iter().skip(kept));
        let free = self.free.iter().map(|(_, worker)| worker);
        let chosen = some.iter().chain(free).chain(spared).filter(|worker| may(**worker)).take(many);
        let planned = |worker: &WorkerId| Some(self.workers.get(worker)?.planned(self.now, self.config.life));
        fastest(&self.config.model, &chosen.filter_map(planned).collect::<Vec<_>>(), &self.aim())
    }

    fn aim(&self) -> Aim {
        Aim { recovery: 0.5, token: 0.1, tokens: 10.0 * self.config.life }
    }

    /// A chain's workers begin to prepare.
    fn begin(&mut self, planned: &Planned, replaces: Option<ChainId>) {
        let id = self.next_chain;
        self.next_chain += 1;
        let slot = |stage: &plan::Stage| Slot { range: stage.range, worker: None, ready: false };
        let slots: Vec<_> = planned.stages.iter().map(slot).collect();
        self.insert(id, slots, replaces);
        for (stage, part) in planned.stages.iter().enumerate() {
            self.recruit(id, stage, part.worker);
        }
    }

    /// A chain whose stages want workers.
    pub(super) fn insert(&mut self, id: ChainId, slots: Vec<Slot>, replaces: Option<ChainId>) {
        for (stage, slot) in slots.iter().enumerate() {
            self.cover.stages(slot.range, true);
            self.wanting.insert((id, stage));
        }
        let epoch = self.next_epoch();
        let sessions = Default::default();
        let state = ChainState::Planned;
        self.unready.insert(id);
        self.chains.insert(id, Chain { epoch, state, slots, sessions, replaces });
    }

    /// Free workers stand by for what is covered least, of what they can hold.
    fn stand_by(&mut self) {
        let free: Vec<WorkerId> = self.free.iter().take(self.config.candidates).map(|(_, worker)| *worker).collect();
        for worker in free {
            let spares = |range: &Range| {
                let (stages, spares) = self.cover.of(range);
                spares * 1000 / stages.max(1)
            };
            let few = |range: &Range| spares(range) < self.config.spares * 1000;
            let ranges = self.cover.least().take_while(few).take(self.config.candidates);
            let range = ranges.filter(|range| self.fits(worker, range)).min_by_key(|range| {
                let cached = self.workers[&worker].offer.cached.is_some_and(|cached| cached.covers(range));
                (spares(range), !cached)
            });
            if let Some(range) = range {
                self.assign(worker, range, Role::Spare(range));
                self.timers.set_once(Timer::Plan, self.now + self.config.replan);
            }
        }
    }

    /// One chain after the other is looked at: would a ready spare make it better by far, or is there a better one?
    pub(super) fn improve(&mut self) {
        self.timers.set(Timer::Improve, self.now + self.config.improve);
        let after = self.chains.range(self.improved + 1..).next().or(self.chains.iter().next());
        let Some((id, chain)) = after else { return };
        let id = *id;
        self.improved = id;
        let replaced = self.chains.values().any(|chain| chain.replaces == Some(id));
        if chain.state != ChainState::Up || self.retiring.contains(&id) || replaced {
            return;
        }
        let now: f64 = chain.slots.iter().map(|slot| self.time(slot)).sum();
        if let Some((stage, spare)) = self.faster(&chain.slots, self.config.gain * now) {
            self.exchange(id, stage, spare);
        } else if let Some(better) = self.look(Some(id))
            && better.cost < (1.0 - self.config.gain) * now
        {
            self.begin(&better, Some(id));
        }
    }

    /// The stage that a ready spare gains most seconds of a token in, if that is more than so many.
    fn faster(&self, slots: &[Slot], least: f64) -> Option<(usize, WorkerId)> {
        let gains = slots.iter().enumerate().flat_map(|(stage, slot)| {
            let spares = self.spares.get(&slot.range).into_iter().flatten().take(self.config.candidates);
            let sure = spares.filter(|spare| self.is_sure(**spare));
            sure.map(move |spare| {
                let time = self.time(&Slot { worker: Some(*spare), ..*slot });
                (self.time(slot) - time, stage, *spare)
            })
        });
        let most = gains.max_by(|one, other| one.0.total_cmp(&other.0)).filter(|(gain, ..)| *gain > least);
        most.map(|(_, stage, spare)| (stage, spare))
    }

    /// Seconds that a token takes in a stage.
    fn time(&self, slot: &Slot) -> f64 {
        let offer = slot.worker.and_then(|worker| self.workers.get(&worker)).map(|worker| worker.offer);
        let blocks = self.config.model.work(&slot.range);
        offer.map_or(0.0, |offer| (offer.hop as f64 + offer.block as f64 * blocks) * 1e-6)
    }

    /// A chain came up: who it replaces takes nobody new, and sessions that it has go on.
    pub(super) fn is_up(&mut self, id: ChainId) {
        self.timers.clear(Timer::GiveUp(id));
        let Some(chain) = self.chains.get_mut(&id) else { return };
        if let Some(old) = chain.replaces.take() {
            self.retire(old);
        }
        let sessions: Vec<_> = self.chains[&id].sessions.iter().copied().collect();
        for session in sessions {
            self.resume(session);
        }
    }

    fn retire(&mut self, id: ChainId) {
        self.close(id);
        let Some(chain) = self.chains.get(&id) else { return };
        self.retiring.insert(id);
        self.counts.replaced += 1;
        if chain.sessions.is_empty() {
            self.dissolve(id);
        }
    }

    /// Takes a chain out of those that take sessions.
    pub(super) fn close(&mut self, id: ChainId) {
        if let Some(chain) = self.chains.get(&id) {
            self.open.remove(&(chain.sessions.len(), id));
        }
    }

    /// Puts a chain among those that take sessions, if it does.
    pub(super) fn reopen(&mut self, id: ChainId) {
        let Some(chain) = self.chains.get(&id) else { return };
        let entry = (chain.sessions.len(), id);
        let room = (self.config.sessions_per_stage * chain.slots.len()).min(self.config.sessions);
        let room = chain.sessions.len() < room;
        if chain.state == ChainState::Up && !self.retiring.contains(&id) && room {
            self.open.insert(entry);
        } else {
            self.open.remove(&entry);
        }
    }
}
