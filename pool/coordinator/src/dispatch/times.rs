//! Where the time goes.

use std::collections::HashMap;

use serde::Serialize;

use crate::{Action, Event, Micros, SessionId, WorkerId};

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
    /// Time that stages report for steps of one row.
    pub steps: Micros,
    /// Time that stages report for steps of several rows, of prompts.
    pub prompts: Micros,
    /// How many such steps there were.
    pub prompt_count: u64,
    /// Rows that they had.
    pub prompt_rows: u64,
    /// Stages made states for texts, from when they were asked to until they had answered.
    pub opens: Micros,
    /// How often.
    pub open_count: u64,
    /// Ranges were fetched and compiled.
    pub prepares: Micros,
    /// How many there were.
    pub prepare_count: u64,
}

/// Looks at what goes by.
#[derive(Debug, Default)]
pub(super) struct Watch {
    times: Times,
    now: Micros,
    serves: bool,
    laps: HashMap<SessionId, Micros>,
    prepares: HashMap<WorkerId, Micros>,
    /// By requests.
    opens: HashMap<u64, Micros>,
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

    /// A step of a lap took so long.
    pub fn step(&mut self, rows: u32, micros: u32) {
        if rows == 1 {
            self.times.steps += Micros::from(micros);
        } else {
            self.times.prompts += Micros::from(micros);
            self.times.prompt_count += 1;
            self.times.prompt_rows += u64::from(rows);
        }
    }

    /// A stage is asked to make states.
    pub fn open(&mut self, request: u64) {
        self.opens.insert(request, self.now);
    }

    /// A request was answered.
    pub fn answered(&mut self, now: Micros, request: u64) {
        if let Some(begun) = self.opens.remove(&request) {
            self.times.opens += now.saturating_sub(begun);
            self.times.open_count += 1;
        }
    }

    /// Requests that are not under way any more are not answered either.
    pub fn given_up(&mut self, is_under_way: impl Fn(&u64) -> bool) {
        self.opens.retain(|request, _| is_under_way(request));
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
        watch.step(1, 20);
        watch.step(7, 50);
        watch.open(4);
        watch.answered(190, 4);
        watch.answered(191, 5);
        watch.serves(false);
        watch.action(&Action::Assign(2, 5, Default::default()));
        watch.event(1180, &Event::Ready(2, 5));
        let right = Times {
            passed: 1180,
            served: 80,
            laps: 30,
            lap_count: 1,
            steps: 20,
            prompts: 50,
            prompt_count: 1,
            prompt_rows: 7,
            opens: 10,
            open_count: 1,
            prepares: 1000,
            prepare_count: 1,
        };
        assert_eq!(watch.times(), right);
    }
}
