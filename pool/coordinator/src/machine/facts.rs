//! Facts that outlive a coordinator: texts, plans, bans.

use anygpu_pool_proto::{Range, Sampling};
use serde::{Deserialize, Serialize};

use super::{
    chain::Slot,
    config::Config,
    coordinator::Coordinator,
    event::Request,
    session::{Session, SessionId},
    timers::Timer,
    worker::WorkerId,
};
use crate::Micros;

/// A stage: first block, block after the last, embedding, head, and who served it.
type SavedSlot = (u32, u32, bool, bool, Option<WorkerId>);

/// The stages of a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedChain(pub Vec<SavedSlot>);

/// A session's text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SavedSession {
    /// Its name.
    pub session: SessionId,
    /// User of the request.
    pub user: u64,
    /// The prompt's tokens and those that were said.
    pub tokens: Vec<u32>,
    /// How many are the prompt's.
    pub prompt: usize,
    /// Tokens that the answer may have.
    pub most: usize,
    /// Temperature, top-k, top-p, seed.
    pub sampling: (f32, u32, f32, u64),
    /// Tokens that end it.
    pub stop: Vec<u32>,
}

/// All that a coordinator needs to go on after a restart. States of workers are not part of it: they say hello again.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Facts {
    /// Later epochs are newer than all that were given.
    pub epoch: u64,
    /// Plans.
    pub chains: Vec<SavedChain>,
    /// Texts.
    pub sessions: Vec<SavedSession>,
    /// Workers that are banned.
    pub banned: Vec<WorkerId>,
}

impl Coordinator {
    /// Returns the facts that a restart needs.
    pub fn facts(&self) -> Facts {
        let slot = |slot: &Slot| {
            let Range { first, end, embedding, head } = slot.range;
            (first, end, embedding, head, slot.worker)
        };
        let session = |(id, it): (&SessionId, &Session)| {
            let Sampling { temperature, top_k, top_p, seed } = it.sampling;
            SavedSession {
                session: *id,
                user: it.user,
                tokens: it.tokens.clone(),
                prompt: it.prompt,
                most: it.most,
                sampling: (temperature, top_k, top_p, seed),
                stop: it.stop.clone(),
            }
        };
        let kept = self.chains.iter().filter(|(id, _)| !self.retiring.contains(id));
        Facts {
            epoch: self.epoch,
            chains: kept.map(|(_, chain)| SavedChain(chain.slots.iter().map(slot).collect())).collect(),
            sessions: self.sessions.iter().map(session).collect(),
            banned: self.banned.iter().copied().collect(),
        }
    }

    /// A coordinator that goes on from facts. Chains are kept for the workers that served them until these would be
    /// given up; texts wait for the first chain that is up, and go on after their last token.
    pub fn restart(config: Config, seed: [u8; 32], facts: Facts, now: Micros) -> Coordinator {
        let mut it = Coordinator::new(config, seed);
        it.now = now;
        it.epoch = facts.epoch;
        it.banned = facts.banned.into_iter().collect();
        for SavedChain(saved) in facts.chains {
            let id = it.next_chain;
            it.next_chain += 1;
            let slot = |&(first, end, embedding, head, _): &SavedSlot| {
                let range = Range { first, end, embedding, head };
                Slot { range, worker: None, ready: false }
            };
            it.insert(id, saved.iter().map(slot).collect(), None);
            it.timers.set(Timer::GiveUp(id), now + it.config.give_up);
            let workers = saved.iter().enumerate().filter_map(|(stage, slot)| Some((slot.4?, (id, stage))));
            it.remembered.extend(workers);
        }
        for saved in facts.sessions {
            let (temperature, top_k, top_p, seed) = saved.sampling;
            let request = Request {
                session: saved.session,
                user: saved.user,
                prompt: saved.tokens,
                most: saved.most,
                sampling: Sampling { temperature, top_k, top_p, seed },
                stop: saved.stop,
            };
            let mut session = Session::new(request);
            session.prompt = saved.prompt;
            it.sessions.insert(saved.session, session);
            it.queue.push_again(saved.session);
        }
        it
    }
}
