//! Answers that are told as a pool computes them.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anygpu::handle::elsewhere::{Asked, Go};
use anygpu::{EngineError, Finish, ModelError, Sampling};
use anygpu_pool::{End, Facts, Request, SessionId};

use crate::{PoolError, random};

/// Time for which an answer that has ended is known to those who ask for it by its key again.
const KNOWN: Duration = Duration::from_secs(300);
/// Answers that have ended and are known, at most.
const MOST_KNOWN: usize = 1000;
/// Bit in the names of sessions whose request has a key.
const KEYED: u64 = 1 << 63;

/// An answer, and who listens to it.
struct Text {
    prompt: Vec<u32>,
    tokens: Vec<u32>,
    listeners: Vec<Asked>,
    ended: Option<(Finish, Instant)>,
}

/// Handling of a request.
pub(crate) enum Taken {
    /// The pool is asked.
    Ask(Request),
    /// Its answer is under way, or has ended.
    Known,
}

/// All answers.
#[derive(Default)]
pub(crate) struct Texts(HashMap<SessionId, Text>);

impl Texts {
    /// Those that an earlier coordinator was about to give. Who has no key cannot ask for them again: their names are given
    /// to be cancelled.
    pub fn of(facts: &Facts) -> (Texts, Vec<SessionId>) {
        let (keyed, others): (Vec<_>, Vec<_>) = facts.sessions.iter().partition(|saved| saved.session & KEYED != 0);
        let text = |saved: &anygpu_pool::SavedSession| {
            let (prompt, tokens) = saved.tokens.split_at(saved.prompt.min(saved.tokens.len()));
            Text { prompt: prompt.to_vec(), tokens: tokens.to_vec(), listeners: Vec::new(), ended: None }
        };
        let texts = keyed.iter().map(|saved| (saved.session, text(saved))).collect();
        (Texts(texts), others.iter().map(|saved| saved.session).collect())
    }

    /// Takes a request on.
    pub fn take(&mut self, mut asked: Asked) -> Result<Taken, PoolError> {
        let session = match asked.key {
            Some(key) => key | KEYED,
            None => random()? & !KEYED,
        };
        if let Some(text) = self.0.get_mut(&session) {
            if text.prompt != asked.prompt {
                let why = "the key was used for another prompt; use a new one";
                asked.fail(ModelError::Options(why.into()).into());
                return Ok(Taken::Known);
            }
            let gone = text.tokens.iter().map(|token| asked.say(*token)).find(|go| *go != Go::On);
            match (text.ended, gone) {
                (_, Some(Go::Unheard)) => {}
                (Some((finish, _)), None) => asked.end(finish),
                (_, Some(_)) => asked.end(Finish::Stop),
                (None, None) => text.listeners.push(asked),
            }
            return Ok(Taken::Known);
        }
        let sampling = match asked.sampling {
            Sampling::Greedy => anygpu_pool_proto::Sampling { temperature: 0.0, top_k: 0, top_p: 1.0, seed: 0 },
            Sampling::Random { temperature, top_k, top_p, seed } => {
                anygpu_pool_proto::Sampling { temperature, top_k, top_p, seed }
            }
        };
        let (prompt, most, stop, user) = (asked.prompt.clone(), asked.most, asked.stop_tokens.clone(), asked.user);
        let text = Text { prompt: prompt.clone(), tokens: Vec::new(), listeners: vec![asked], ended: None };
        self.0.insert(session, text);
        Ok(Taken::Ask(Request { session, user, prompt, most, sampling, stop }))
    }

    /// Tells a token. Whether the text goes on.
    pub fn say(&mut self, session: SessionId, token: u32) -> bool {
        let Some(text) = self.0.get_mut(&session) else { return false };
        text.tokens.push(token);
        let (mut on, mut ended) = (Vec::new(), false);
        for mut asked in text.listeners.drain(..) {
            match asked.say(token) {
                Go::On => on.push(asked),
                Go::Ended => {
                    ended = true;
                    asked.end(Finish::Stop);
                }
                Go::Unheard => {}
            }
        }
        text.listeners = on;
        if ended {
            text.ended = Some((Finish::Stop, Instant::now()));
        }
        // Who has a key may come again.
        let wanted = !text.listeners.is_empty() || session & KEYED != 0;
        !ended && wanted
    }

    /// Tells of an end.
    pub fn end(&mut self, session: SessionId, why: End) {
        let Some(text) = self.0.get_mut(&session) else { return };
        let finish = match why {
            End::Stop => Finish::Stop,
            End::Length => Finish::Length,
            End::Cancelled => Finish::Cancelled,
            End::Untrusted | End::Refused => {
                let why = match why {
                    End::Untrusted => "a machine of the pool computed something else; ask again",
                    _ => "the pool takes no more requests; try again later",
                };
                for asked in text.listeners.drain(..) {
                    asked.fail(EngineError::Unanswered(why));
                }
                self.0.remove(&session);
                return;
            }
        };
        text.ended.get_or_insert((finish, Instant::now()));
        text.listeners.drain(..).for_each(|asked| asked.end(finish));
        if session & KEYED == 0 {
            self.0.remove(&session);
        }
    }

    /// Forgets what has ended long ago. Gives sessions that nobody listens to any more.
    pub fn sweep(&mut self) -> Vec<SessionId> {
        let mut ended: Vec<_> = self.0.iter().filter_map(|(id, text)| Some((text.ended?.1, *id))).collect();
        ended.sort_unstable();
        let surplus = ended.len().saturating_sub(MOST_KNOWN);
        let past = |(at, (since, _)): &(usize, (Instant, u64))| *at < surplus || since.elapsed() > KNOWN;
        let past: Vec<_> = ended.into_iter().enumerate().filter(past).map(|(_, (_, id))| id).collect();
        past.iter().for_each(|id| drop(self.0.remove(id)));
        let unheard = |(id, text): (&SessionId, &Text)| {
            let heard = text.listeners.iter().any(Asked::is_heard);
            (*id & KEYED == 0 && text.ended.is_none() && !heard).then_some(*id)
        };
        self.0.iter().filter_map(unheard).collect()
    }
}

#[cfg(test)]
mod tests {
    use anygpu::handle::elsewhere::Elsewhere;
    use anygpu::handle::{Generate, HandleError, Limits, Prompt, Status};
    use anygpu::native::block_on;
    use anygpu::{BytesSource, EngineError};

    use super::*;

    const GAB: &[u8] = include_bytes!("../../../models/gab-q4_0.gguf");

    #[test]
    fn users_are_told_apart_and_what_the_pool_does_not_answer_may_be_asked_again() {
        let elsewhere = block_on(Elsewhere::read(&BytesSource(GAB), Some(64))).unwrap();
        let (handle, mut requests) = elsewhere.open(Limits::default(), Status::default());
        let mut texts = Texts::default();
        for (user, why) in [(7, End::Refused), (8, End::Untrusted)] {
            let answer = handle.generate(Generate::new(Prompt::Text("Once".into())).by(user)).unwrap();
            let Ok(Taken::Ask(request)) = texts.take(requests.next().unwrap()) else { panic!("it is new") };
            assert_eq!(request.user, user);
            texts.end(request.session, why);
            let ended = block_on(answer.whole());
            assert!(matches!(ended, Err(HandleError::Engine(EngineError::Unanswered(_)))), "{ended:?}");
        }
    }
}
