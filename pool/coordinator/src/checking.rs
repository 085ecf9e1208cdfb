//! Workers are checked by others, and those that lie are kept out.

use std::collections::BTreeMap;

use anygpu_pool_proto::Range;
use rand::RngExt;

use crate::{
    action::{Action, End},
    coordinator::Coordinator,
    session::SessionId,
    worker::{Role, WorkerId},
};

#[derive(Debug, Clone, Copy)]
struct Check {
    stage: usize,
    range: Range,
    suspect: WorkerId,
    by: WorkerId,
    /// Who disagreed with the suspect, where a third worker decides.
    first: Option<WorkerId>,
}

/// Checks under way, by session and position.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    under_way: BTreeMap<(SessionId, u32), Check>,
    /// Those that want a third worker.
    undecided: BTreeMap<Range, Vec<(SessionId, u32)>>,
}

impl Checks {
    /// A session is over: its steps cannot be computed again.
    pub fn forget(&mut self, session: SessionId) {
        let keys: Vec<_> = self.under_way.range((session, 0)..=(session, u32::MAX)).map(|(key, _)| *key).collect();
        for key in keys {
            self.under_way.remove(&key);
        }
    }
}

impl Coordinator {
    /// Now and then a stage of the step at a position is checked by a spare.
    pub(crate) fn draw_check(&mut self, id: SessionId, position: u32) {
        if self.config.check <= 0.0 || !self.chance.random_bool(self.config.check.min(1.0)) {
            return;
        }
        let Some(chain) = self.sessions.get(&id).and_then(|it| self.chains.get(&it.chain?)) else { return };
        let stage = self.chance.random_range(0..chain.slots.len());
        let range = chain.slots[stage].range;
        let spare = self.spares.get(&range).and_then(|spares| spares.first());
        if let (Some(suspect), Some(&by)) = (chain.slots[stage].worker, spare) {
            self.checks.under_way.insert((id, position), Check { stage, range, suspect, by, first: None });
            self.out.push(Action::Check { session: id, position, stage, suspect, by });
        }
    }

    pub(crate) fn checked(&mut self, id: SessionId, position: u32, by: WorkerId, nmse: f64) {
        let key = (id, position);
        let Some(check) = self.checks.under_way.get(&key).copied().filter(|check| check.by == by) else {
            self.counts.stale += 1;
            return;
        };
        match (nmse <= self.config.nmse, check.first) {
            (true, None) => {
                self.checks.under_way.remove(&key);
            }
            (false, None) => {
                self.checks.under_way.insert(key, Check { first: Some(by), ..check });
                self.seek_third(key);
            }
            (agrees, Some(first)) => {
                self.checks.under_way.remove(&key);
                self.ban(if agrees { first } else { check.suspect });
            }
        }
    }

    /// Two disagree: a third decides, at once or when there is one.
    fn seek_third(&mut self, key: (SessionId, u32)) {
        let Some(check) = self.checks.under_way.get_mut(&key) else { return };
        let spares = self.spares.get(&check.range).into_iter().flatten();
        match spares.copied().find(|spare| Some(*spare) != check.first) {
            Some(third) => {
                check.by = third;
                let &mut Check { stage, suspect, by, .. } = check;
                self.out.push(Action::Check { session: key.0, position: key.1, stage, suspect, by });
            }
            None => self.checks.undecided.entry(check.range).or_default().push(key),
        }
    }

    /// There is another spare of a range.
    pub(crate) fn settle_disputes(&mut self, range: Range) {
        for key in self.checks.undecided.remove(&range).unwrap_or_default() {
            self.seek_third(key);
        }
    }

    /// A worker lied. What it had part in cannot be relied on.
    fn ban(&mut self, id: WorkerId) {
        self.banned.insert(id);
        self.counts.banned += 1;
        self.out.push(Action::Ban(id));
        if let Some(Role::Stage(chain, _)) = self.workers.get(&id).map(|worker| worker.role)
            && let Some(chain) = self.chains.get(&chain)
        {
            for session in chain.sessions.clone() {
                self.end(session, End::Untrusted);
            }
        }
        self.gone(id);
    }
}
