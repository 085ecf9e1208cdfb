//! Where the time goes.

use std::collections::HashMap;

use anygpu_pool::{Action, Event, Micros, SessionId, WorkerId};
use serde::Serialize;

/// Times since the start, summed. *Units*: microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Times {
    /// All of it.
    pub passed: Micros,
    /// A chain was up, and no text waited for states that were lost.
    pub served: Micros,
    /// Laps of one token, from when they were last begun.
    pub laps: Micros,
    /// How many there were.
    pub lap_count: u64,
    /// What stages say that they took for steps of one row.
    pub steps: Micros,
    /// Ranges were fetched and compiled.
    pub prepares: Micros,
    /// How many there were.
    pub prepare_count: u64,
}

/// Looks at what goes by.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    times: Times,
    now: Micros,
    serves: bool,
    laps: HashMap<SessionId, Micros>,
    prepares: HashMap<WorkerId, Micros>,
}

impl Watch {
    /// The times until now.
    pub fn times(&self) -> Times {
        self.times
    }

    /// Something happened.
    pub fn event(&mut self, now: Micros, event: &Event) {
        let passed = now.saturating_sub(self.now);
        self.now = self.now.max(now);
        self.times.passed += passed;
        self.times.served += if self.serves { passed } else { 0 };
        match event {
            Event::Tokens { session, .. } => {
                if let Some(begun) = self.laps.remove(session) {
                    self.times.laps += now.saturating_sub(begun);
                    self.times.lap_count += 1;
                }
            }
            Event::Ready(worker, _) => {
                if let Some(begun) = self.prepares.remove(worker) {
                    self.times.prepares += now.saturating_sub(begun);
                    self.times.prepare_count += 1;
                }
            }
            Event::Disconnected(worker) => drop(self.prepares.remove(worker)),
            _ => {}
        }
    }

    /// Something is done about it.
    pub fn action(&mut self, action: &Action) {
        match action {
            Action::Step { session, tokens, .. } if tokens.len() == 1 => drop(self.laps.insert(*session, self.now)),
            Action::Step { session, .. } | Action::End(session, _) => drop(self.laps.remove(session)),
            Action::Assign(worker, ..) => drop(self.prepares.insert(*worker, self.now)),
            _ => {}
        }
    }

    /// A step of one row took so long.
    pub fn step(&mut self, micros: u32) {
        self.times.steps += Micros::from(micros);
    }

    /// Whether texts go on from now on.
    pub fn serves(&mut self, serves: bool) {
        self.serves = serves;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_counts_while_texts_go_on() {
        let mut watch = Watch::default();
        watch.event(100, &Event::Tick);
        watch.serves(true);
        let lap = |tokens: &[u32]| Action::Step {
            session: 1,
            epoch: 1,
            position: 0,
            tokens: tokens.to_vec(),
            want: 1,
            sampling: Default::default(),
            route: Vec::new(),
        };
        let tokens = Event::Tokens { worker: 2, session: 1, epoch: 1, position: 1, ids: vec![3] };
        // A prompt is no lap of one token.
        watch.action(&lap(&[1, 2]));
        watch.event(150, &tokens);
        watch.action(&lap(&[3]));
        watch.event(180, &tokens);
        watch.step(20);
        watch.serves(false);
        watch.action(&Action::Assign(2, 5, Default::default()));
        watch.event(1180, &Event::Ready(2, 5));
        let right =
            Times { passed: 1180, served: 80, laps: 30, lap_count: 1, steps: 20, prepares: 1000, prepare_count: 1 };
        assert_eq!(watch.times(), right);
    }
}
