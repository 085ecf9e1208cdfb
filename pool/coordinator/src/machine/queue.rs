//! The order of waiting sessions.

use std::collections::{BTreeMap, VecDeque};

use super::session::SessionId;

/// Sessions that wait. Users take turns, whatever number of sessions each has; what was on a chain before goes first.
#[derive(Debug, Default)]
pub(super) struct Queue {
    again: VecDeque<SessionId>,
    users: BTreeMap<u64, VecDeque<SessionId>>,
    turns: VecDeque<u64>,
    len: usize,
}

impl Queue {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn push(&mut self, user: u64, session: SessionId) {
        let sessions = self.users.entry(user).or_default();
        if sessions.is_empty() {
            self.turns.push_back(user);
        }
        sessions.push_back(session);
        self.len += 1;
    }

    /// Puts back what has lost its chain.
    pub fn push_again(&mut self, session: SessionId) {
        self.again.push_back(session);
        self.len += 1;
    }

    /// The next session.
    pub fn pop(&mut self) -> Option<SessionId> {
        let next = self.again.pop_front().or_else(|| self.turn());
        self.len -= usize::from(next.is_some());
        next
    }

    fn turn(&mut self) -> Option<SessionId> {
        let user = self.turns.pop_front()?;
        let sessions = self.users.get_mut(&user)?;
        let session = sessions.pop_front();
        if sessions.is_empty() {
            self.users.remove(&user);
        } else {
            self.turns.push_back(user);
        }
        session
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_take_turns() {
        let mut queue = Queue::default();
        for session in 0..4 {
            queue.push(1, session);
        }
        queue.push(2, 10);
        queue.push_again(20);
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(order, [20, 0, 10, 1, 2, 3]);
        assert_eq!(queue.len(), 0);
    }
}
