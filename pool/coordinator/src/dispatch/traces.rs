//! The way of steps around a chain: which worker had each, and for how long.

use std::collections::{HashMap, VecDeque};

use serde::Serialize;

use super::said::name;
use crate::{Action, Event, Micros, SessionId, WorkerId};

/// Steps that are kept.
const KEPT: usize = 256;

/// A step of a text, from when it was last sent until its token came, or until its rows were through the last stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Trace {
    #[serde(skip)]
    session: SessionId,
    /// The text, by the order in which they began.
    pub text: u64,
    /// The position of its first row.
    pub position: u32,
    /// Its rows: one, but for those of prompts.
    pub rows: usize,
    /// When it was sent.
    ///
    /// *Units*: microseconds, by the coordinator's clock, as all times here.
    pub sent: Micros,
    /// When its end was heard of.
    pub ended: Micros,
    /// Whether that was a token; within a prompt it is the last stage.
    #[serde(skip)]
    gave: bool,
    /// Its stages, in the order in which they were heard of.
    pub stages: Vec<Stage>,
}

/// Part of a step at one stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stage {
    /// Worker of the stage.
    pub worker: String,
    /// When the coordinator heard that it was through.
    pub heard: Micros,
    /// Time that the worker reports.
    pub took: u32,
}

/// Steps that are under way, and the last of those that ended.
#[derive(Debug, Default)]
pub(super) struct Traces {
    texts: HashMap<SessionId, u64>,
    begun: u64,
    under_way: HashMap<SessionId, Trace>,
    kept: VecDeque<Trace>,
}

impl Traces {
    /// Something is done about what happened: a step is sent, in place of an earlier one, or a text ends.
    pub fn action(&mut self, now: Micros, action: &Action) {
        match action {
            Action::Step { session, position, tokens, .. } => {
                self.end(now, *session, false);
                let text = *self.texts.entry(*session).or_insert_with(|| {
                    self.begun += 1;
                    self.begun
                });
                let (position, rows, stages) = (*position, tokens.len(), Vec::new());
                let session = *session;
                self.under_way.insert(
                    session,
                    Trace { session, text, position, rows, sent: now, ended: now, gave: false, stages },
                );
            }
            Action::End(session, _) => {
                self.end(now, *session, false);
                self.texts.remove(session);
            }
            _ => {}
        }
    }

    /// Something happened: a token ends the step that gave it.
    pub fn event(&mut self, now: Micros, event: &Event) {
        if let Event::Tokens { session, .. } = event {
            self.end(now, *session, true);
        }
    }

    /// A stage is through with the step of a text that begins at a position. Its token, and with it the text's end, may have come before that.
    pub fn step(&mut self, now: Micros, worker: WorkerId, (session, position): (SessionId, u32), took: u32) {
        let steps = self.under_way.get_mut(&session).into_iter().chain(self.kept.iter_mut().rev());
        let found = steps.filter(|trace| trace.session == session).find(|trace| trace.position == position);
        let worker = name(worker);
        if let Some(trace) = found.filter(|trace| trace.stages.iter().all(|stage| stage.worker != worker)) {
            trace.stages.push(Stage { worker, heard: now, took });
            trace.ended = if trace.gave { trace.ended } else { now };
        }
    }

    /// A step that gives no token, and that no stage was through with, is sent again, and leaves nothing behind.
    fn end(&mut self, now: Micros, session: SessionId, gave: bool) {
        if let Some(trace) = self.under_way.remove(&session).filter(|trace| gave || !trace.stages.is_empty()) {
            if self.kept.len() == KEPT {
                self.kept.pop_front();
            }
            let ended = if gave { now } else { trace.ended };
            self.kept.push_back(Trace { ended, gave, ..trace });
        }
    }

    /// The last steps, oldest first.
    pub fn kept(&self) -> Vec<Trace> {
        self.kept.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(position: u32, rows: usize) -> Action {
        Action::Step {
            session: 9,
            epoch: 1,
            position,
            tokens: vec![1; rows],
            want: 1,
            sampling: Default::default(),
            route: Vec::new(),
        }
    }

    #[test]
    fn a_token_is_followed_from_worker_to_worker() {
        let token = Event::Tokens { worker: 2, session: 9, epoch: 1, position: 4, ids: vec![3] };
        let mut traces = Traces::default();
        traces.action(100, &step(0, 4));
        traces.step(150, 1, (9, 0), 40);
        traces.event(185, &token);
        // The last stage says so after its token.
        traces.step(190, 2, (9, 0), 30);
        let stage = |worker, heard, took| Stage { worker: name(worker), heard, took };
        let stages = vec![stage(1, 150, 40), stage(2, 190, 30)];
        assert_eq!(
            traces.kept(),
            [Trace { session: 9, text: 1, position: 0, rows: 4, sent: 100, ended: 185, gave: true, stages }]
        );
        // What was sent again before anybody was through counts from then, and what is said twice once.
        traces.action(200, &step(4, 1));
        traces.action(300, &step(4, 1));
        traces.step(310, 2, (9, 0), 30);
        traces.step(320, 1, (9, 4), 10);
        traces.event(330, &token);
        let stages = vec![stage(1, 320, 10)];
        assert_eq!(traces.kept()[0].stages.len(), 2);
        assert_eq!(
            traces.kept()[1..],
            [Trace { session: 9, text: 1, position: 4, rows: 1, sent: 300, ended: 330, gave: true, stages }]
        );
        traces.action(330, &Action::End(9, crate::End::Cancelled));
        traces.step(340, 2, (9, 4), 5);
        assert_eq!(traces.kept()[1].stages.len(), 2);
    }

    #[test]
    fn only_the_last_are_kept() {
        let mut traces = Traces::default();
        for position in 0..KEPT as u32 + 5 {
            traces.action(0, &step(position, 1));
            traces.step(0, 1, (9, position), 1);
        }
        traces.action(0, &Action::End(9, crate::End::Cancelled));
        let kept = traces.kept();
        assert_eq!((kept.len(), kept[0].position), (KEPT, 5));
    }
}
