//! Workers that do what a coordinator says, in simulated time.

use super::{
    report::STALL,
    world::{Hop, Later, World, micros},
};
use crate::{Action, End, Event, Micros, SessionId, Source, Stop, Verdict, WorkerId};

/// Bytes of a step beside its activations.
const HEADER: u64 = 120;

impl World {
    pub(super) fn act(&mut self, action: Action) {
        match action {
            Action::Assign(worker, epoch, range) => {
                let node = &mut self.nodes[worker as usize];
                let cached = node.offer.cached.is_some_and(|cached| cached.covers(&range));
                let bytes = if cached { 0 } else { self.coordinator.model().weights(&range) };
                node.range = range;
                if !cached {
                    node.offer.cached = Some(range);
                }
                let (life, bandwidth) = (node.life, node.offer.bandwidth as f64);
                self.report.downloaded += bytes as f64;
                let time = bytes as f64 / bandwidth + self.scenario.compile;
                self.after(time, Later::Tell(worker, life, Event::Ready(worker, epoch)));
            }
            Action::Restore { worker, session, epoch, from, to, source, .. } => {
                let bytes = self.bytes(to - from);
                let mut time = self.link(worker, bytes);
                if let Source::Stage(before, _) = source {
                    self.sent += bytes;
                    time += self.link(before, bytes);
                }
                let start = self.now + micros(time);
                let done = self.work(worker, start, (to - from).max(1), 1);
                let life = self.nodes[worker as usize].life;
                self.at(done, Later::Tell(worker, life, Event::Restored(worker, session, epoch, to)));
            }
            Action::Export { worker, session, to } => {
                // States of a row and block in f16: a key and a value, of a quarter of the width.
                let position = self.rows(session);
                let node = &self.nodes[worker as usize];
                let bytes = u64::from(position) * u64::from(node.range.blocks()) * u64::from(self.scenario.width);
                let (time, life) = (self.link(worker, bytes) + self.link(to, bytes), self.nodes[to as usize].life);
                self.sent += bytes;
                let event = Event::Exported { from: worker, to, session, position };
                self.after(time, Later::Tell(to, life, event));
            }
            Action::Step { session, epoch, position, tokens, want, route, .. } => {
                let Some(stop) = route.first() else { return };
                let time = self.link(stop.worker, HEADER);
                let rows = tokens.len() as u32;
                let hop = Hop { session, epoch, position, rows, want, route, stage: 0 };
                self.after(time, Later::Hop(Box::new(hop)));
            }
            Action::Say(session, ..) => {
                if let Some(asked) = self.asked.get_mut(&session) {
                    let waited = (self.now - asked.last) as f64 * 1e-6;
                    self.report.stalled += if waited > STALL { waited } else { 0.0 };
                    asked.first.get_or_insert(self.now);
                    asked.last = self.now;
                    asked.tokens += 1;
                }
            }
            Action::End(session, why) => self.ended(session, why),
            Action::Check { check, suspect, copy, .. } => {
                // Everybody is honest here.
                let by = copy.at.worker;
                let event = Event::Checked(check, by, Verdict::With(suspect.worker));
                self.after(1.0, Later::Tell(by, self.nodes[by as usize].life, event));
            }
            Action::Recheck { .. } | Action::Uncheck(_) => {}
            Action::Greet(worker) => {
                let node = &self.nodes[worker as usize];
                let (life, offer) = (node.life, node.offer);
                if node.there {
                    self.after(0.0, Later::Tell(worker, life, Event::Connected(worker)));
                    self.after(0.0, Later::Tell(worker, life, Event::Hello(worker, offer)));
                }
            }
            Action::Open { worker, .. } => {
                let come = self.now + micros(self.link(worker, HEADER));
                let node = &mut self.nodes[worker as usize];
                node.busy = node.busy.max(come) + micros(self.scenario.open);
            }
            Action::Drop(..) | Action::Release(_) | Action::Ban(_) => {}
        }
    }

    fn rows(&self, session: SessionId) -> u32 {
        self.asked
            .get(&session)
            .map_or(0, |asked| self.scenario.tokens.0 as u32 + (asked.tokens as u32).saturating_sub(1))
    }

    fn ended(&mut self, session: SessionId, why: End) {
        let Some(asked) = self.asked.remove(&session) else { return };
        if self.always {
            self.after(0.0, Later::Ask);
        }
        if why == End::Refused {
            self.report.refused += 1;
            return;
        }
        self.report.answered += 1;
        let Some(first) = asked.first else { return };
        self.firsts.push((first - asked.at) as f64 * 1e-6 + self.scenario.ask);
        if asked.tokens > u64::from(self.scenario.lap) {
            let after = asked.tokens - u64::from(self.scenario.lap);
            self.tokens.push((asked.last - first) as f64 * 1e-6 / after as f64);
        }
    }

    /// Bytes of rows of activations in f16.
    fn bytes(&self, rows: u32) -> u64 {
        HEADER + u64::from(rows) * u64::from(self.scenario.width) * 2
    }

    /// Seconds of a message between the broker and a worker.
    fn link(&self, worker: WorkerId, bytes: u64) -> f64 {
        let offer = &self.nodes[worker as usize].offer;
        offer.hop as f64 * 0.5e-6 + bytes as f64 / offer.bandwidth as f64
    }

    /// Takes a worker's time for rows of a prompt or for tokens, from when it is free, and says when it is done.
    fn work(&mut self, worker: WorkerId, start: Micros, rows: u32, tokens: u32) -> Micros {
        let node = &mut self.nodes[worker as usize];
        let one = node.offer.block as f64 * self.coordinator.model().work(&node.range);
        let first = node.busy.max(start) + (one * (f64::from(rows) / self.scenario.prompt_rows).max(1.0)) as Micros;
        node.busy = first + (one * f64::from(tokens.saturating_sub(1))) as Micros;
        first
    }

    pub(super) fn hop(&mut self, mut hop: Hop) {
        let worker = hop.route[hop.stage].worker;
        let node = &self.nodes[worker as usize];
        if !node.there {
            return;
        }
        let life = node.life;
        let done = self.work(worker, self.now, hop.rows, hop.want);
        let (session, epoch, position) = (hop.session, hop.epoch, hop.position);
        let told = done + micros(self.link(worker, HEADER));
        self.at(told, Later::Tell(worker, life, Event::StepDone(worker, session, epoch, position)));
        if let Some(next) = hop.route.get(hop.stage + 1) {
            let bytes = self.bytes(hop.rows);
            // The tokens after the first of a lap go the same way.
            self.sent += bytes + self.bytes(1) * u64::from(hop.want.saturating_sub(1));
            let time = self.link(worker, bytes) + self.link(next.worker, bytes);
            hop.stage += 1;
            self.at(done + micros(time), Later::Hop(Box::new(hop)));
        } else if hop.want > 0 {
            let around = self.around(&hop.route) * f64::from(hop.want - 1);
            let ids = vec![0; hop.want as usize];
            let event = Event::Tokens { worker, session, epoch, position: position + hop.rows, ids };
            self.at(told + micros(around), Later::Tell(worker, life, event));
        }
    }

    /// Seconds of a token around a chain.
    fn around(&self, route: &[Stop]) -> f64 {
        // Between stages a row goes, from and to the coordinator a token.
        let row = self.bytes(1);
        let stage = |(at, stop): (usize, &Stop)| {
            let node = &self.nodes[stop.worker as usize];
            let blocks = self.coordinator.model().work(&node.range);
            let comes = self.link(stop.worker, if at == 0 { HEADER } else { row });
            let goes = self.link(stop.worker, if at + 1 == route.len() { HEADER } else { row });
            comes + node.offer.block as f64 * 1e-6 * blocks + goes
        };
        route.iter().enumerate().map(stage).sum()
    }
}
