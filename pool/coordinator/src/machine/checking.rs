//! Workers are checked by others, and those that lie are kept out.
//!
//! For some sessions a spare computes one stage as well, from the first step on. Messages to and from that stage are
//! seen on their way, so that nobody can show a checker something else; and a checker does not know that it checks.
//! Where two differ, further spares compute the stage until two agree: whoever differs from them is banned.

use std::collections::{BTreeMap, BTreeSet};

use anygpu_pool_proto::Range;
use rand::{Rng, RngExt};

use super::{
    action::{Action, Copy, End, Stop},
    coordinator::Coordinator,
    event::Verdict,
    session::SessionId,
    timers::Timer,
    worker::{Role, WorkerId},
};

/// A check's name.
pub type CheckId = u64;

/// Disputes that may wait for further workers.
const DISPUTES: usize = 64;

#[derive(Debug, Clone)]
struct Check {
    session: SessionId,
    range: Range,
    /// Workers that computed it, each with another result. The suspect is the first.
    opinions: Vec<WorkerId>,
    /// Workers that were asked and gave no result.
    mute: Vec<WorkerId>,
    /// Worker that computes it now.
    by: Option<WorkerId>,
}

impl Check {
    fn is_disputed(&self) -> bool {
        self.opinions.len() > 1
    }
}

/// Checks under way.
#[derive(Debug, Default)]
pub(super) struct Checks {
    all: BTreeMap<CheckId, Check>,
    /// Checks of sessions that are on a chain, or ended a moment ago.
    of: BTreeMap<SessionId, CheckId>,
    /// Checks by the worker that computes for them.
    by: BTreeMap<WorkerId, CheckId>,
    /// Those that want a further worker.
    undecided: BTreeMap<Range, BTreeSet<CheckId>>,
    next: CheckId,
}

impl Checks {
    /// A session is not looked at any more.
    fn let_go(&mut self, id: CheckId, session: SessionId) {
        if self.of.get(&session) == Some(&id) {
            self.of.remove(&session);
        }
    }
}

impl Coordinator {
    /// Draws whether a session is checked, and which stage: the first, from a random one on, that has a spare.
    pub(super) fn draw_check(&mut self, id: SessionId) {
        if self.config.check <= 0.0 || !self.chance.random_bool(self.config.check.min(1.0)) {
            return;
        }
        self.end_check(id);
        let Some(session) = self.sessions.get(&id) else { return };
        let Some(chain) = session.chain.and_then(|chain| self.chains.get(&chain)) else { return };
        let (epoch, stages) = (chain.epoch, chain.slots.len());
        let stops: Vec<_> = (0..stages)
            .map(|stage| Some((chain.slots[stage].range, chain.slots[stage].worker?, session.seats[stage].lease)))
            .collect();
        let first = self.chance.random_range(0..stages);
        for stage in (first..stages).chain(0..first) {
            let Some((range, worker, lease)) = stops[stage] else { continue };
            let Some(by) = self.checker(range, &[]) else { continue };
            let stop = |(_, worker, lease)| Stop { worker, lease };
            let (suspect, next) = (Stop { worker, lease }, stops.get(stage + 1).copied().flatten().map(stop));
            let before = stage.checked_sub(1).and_then(|before| stops[before]).map(|(_, worker, _)| worker);
            let check = self.checks.next;
            self.checks.next += 1;
            let opinions = vec![worker];
            let under_way = Check { session: id, range, opinions, mute: Vec::new(), by: Some(by) };
            self.checks.all.insert(check, under_way);
            self.checks.of.insert(id, check);
            self.checks.by.insert(by, check);
            let copy = self.copy(by);
            self.out.push(Action::Check { check, session: id, epoch, before, suspect, next, copy });
            return;
        }
    }

    /// A spare of a range that computes for no other check, and is none of some: any of them, so that nobody knows whom.
    fn checker(&mut self, range: Range, others: &[WorkerId]) -> Option<WorkerId> {
        let idle = |it: &&WorkerId| !self.checks.by.contains_key(it) && !others.contains(it);
        let spares = self.spares.get(&range)?;
        let idle: Vec<_> = spares.iter().filter(idle).take(self.config.candidates).copied().collect();
        (!idle.is_empty()).then(|| idle[self.chance.random_range(0..idle.len())])
    }

    fn copy(&mut self, by: WorkerId) -> Copy {
        let mut any = || self.chance.next_u64();
        Copy { at: Stop { worker: by, lease: any() }, session: any(), to: Stop { worker: any(), lease: any() } }
    }

    pub(super) fn checked(&mut self, id: CheckId, by: WorkerId, verdict: Verdict) {
        let Some(check) = self.checks.all.get_mut(&id).filter(|check| check.by == Some(by)) else {
            self.counts.stale += 1;
            return;
        };
        let range = check.range;
        check.by = None;
        self.checks.by.remove(&by);
        match verdict {
            Verdict::With(worker) => {
                self.counts.checked += 1;
                let liars: Vec<_> = check.opinions.iter().filter(|it| **it != worker).copied().collect();
                self.uncheck(id);
                liars.into_iter().for_each(|liar| self.ban(liar));
            }
            Verdict::Differs => {
                self.counts.disputed += u64::from(!check.is_disputed());
                check.opinions.push(by);
                // The text is not looked at any further.
                let session = check.session;
                self.checks.let_go(id, session);
                self.seek(id);
            }
            Verdict::Unknown if check.is_disputed() => {
                check.mute.push(by);
                self.seek(id);
            }
            Verdict::Unknown => self.uncheck(id),
        }
        // Who checked has time for what waits.
        self.settle_disputes(range);
    }

    /// A further worker is to settle a dispute, at once or when there is one.
    fn seek(&mut self, id: CheckId) {
        let Some(check) = self.checks.all.get(&id) else { return };
        let (range, asked) = (check.range, [&check.opinions[..], &check.mute].concat());
        let Some(by) = self.checker(range, &asked) else {
            self.timers.clear(Timer::Check(id));
            self.checks.undecided.entry(range).or_default().insert(id);
            let waiting = self.checks.undecided.values().flatten().copied();
            let (count, oldest) = (waiting.clone().count(), waiting.min());
            oldest.filter(|_| count > DISPUTES).into_iter().for_each(|oldest| self.uncheck(oldest));
            return;
        };
        if let Some(check) = self.checks.all.get_mut(&id) {
            check.by = Some(by);
        }
        self.checks.by.insert(by, id);
        self.timers.set(Timer::Check(id), self.now + self.config.settle);
        let copy = self.copy(by);
        self.out.push(Action::Recheck { check: id, copy });
    }

    /// There is another spare of a range.
    pub(super) fn settle_disputes(&mut self, range: Range) {
        for id in self.checks.undecided.remove(&range).unwrap_or_default() {
            self.seek(id);
        }
    }

    /// A check is over.
    fn uncheck(&mut self, id: CheckId) {
        let Some(check) = self.checks.all.remove(&id) else { return };
        self.timers.clear(Timer::Check(id));
        self.checks.let_go(id, check.session);
        if let Some(by) = check.by {
            self.checks.by.remove(&by);
        }
        if let Some(waiting) = self.checks.undecided.get_mut(&check.range) {
            waiting.remove(&id);
        }
        self.out.push(Action::Uncheck(id));
    }

    /// Ends the check of a session without a result, since the messages to its stages start over.
    pub(super) fn end_check(&mut self, session: SessionId) {
        if let Some(check) = self.checks.of.get(&session).copied() {
            self.uncheck(check);
        }
    }

    /// A session is over. What is not compared yet has some time.
    pub(super) fn await_check(&mut self, session: SessionId) {
        if let Some(check) = self.checks.of.remove(&session) {
            self.timers.set(Timer::Check(check), self.now + self.config.settle);
        }
    }

    /// Nothing came of a check in time.
    pub(super) fn unsettled(&mut self, id: CheckId) {
        match self.checks.all.get(&id).and_then(|check| check.by) {
            Some(by) => self.checked(id, by, Verdict::Unknown),
            None => self.uncheck(id),
        }
    }

    /// A worker stands by no longer: others settle what it was asked.
    pub(super) fn checks_no_more(&mut self, id: WorkerId) {
        if let Some(check) = self.checks.by.get(&id).copied() {
            self.checked(check, id, Verdict::Unknown);
        }
    }

    /// A worker lied. What it had part in cannot be relied on.
    fn ban(&mut self, id: WorkerId) {
        if !self.banned.insert(id) {
            return;
        }
        self.counts.banned += 1;
        self.out.push(Action::Ban(id));
        if let Some(Role::Stage(chain, _)) = self.workers.get(&id).map(|worker| worker.role)
            && let Some(chain) = self.chains.get(&chain)
        {
            for session in chain.sessions.clone() {
                self.end_check(session);
                self.end(session, End::Untrusted);
            }
        }
        self.gone(id);
    }
}
