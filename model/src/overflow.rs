//! A text that outgrows the context: what is done about it, and which part of it is in the context then.

use std::borrow::Cow;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::error::ModelError;

/// Policy for a text that outgrows the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overflow {
    /// A prompt is refused if it does not fit together with as many tokens as were asked for.
    #[default]
    Error,
    /// The text ends with the context.
    Stop,
    /// Half of the tokens after the first `keep` go, and what is left is computed again: the text goes on exactly as a
    /// new one would that begins with those tokens.
    Shift {
        /// Tokens at the beginning of the text that never go.
        keep: usize,
    },
}

impl Overflow {
    /// The names of all.
    pub const NAMES: [&'static str; 3] = ["error", "stop", "shift"];

    /// Its name on command lines and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Overflow::Error => "error",
            Overflow::Stop => "stop",
            Overflow::Shift { .. } => "shift",
        }
    }

    /// Sets the number of first tokens that always stay: as many as asked for, or else as is usual for the text.
    ///
    /// *Errors*: some are asked for where nothing goes.
    pub fn keeping(self, asked: Option<usize>, usual: usize) -> Result<Overflow, ModelError> {
        match self {
            Overflow::Shift { .. } => Ok(Overflow::Shift { keep: asked.unwrap_or(usual) }),
            other if asked.is_none() => Ok(other),
            other => Err(ModelError::Options(format!(
                "tokens to keep only make sense where others go; use the overflow policy shift, not {}, or keep none",
                other.name()
            ))),
        }
    }
}

impl FromStr for Overflow {
    type Err = String;

    /// From a name; `shift` keeps nothing.
    fn from_str(text: &str) -> Result<Overflow, String> {
        match text {
            "error" => Ok(Overflow::Error),
            "stop" => Ok(Overflow::Stop),
            "shift" => Ok(Overflow::Shift { keep: 0 }),
            other => {
                let known = Overflow::NAMES.join(", ");
                Err(format!("the overflow policy {other:?} is not known; choose one of {known}"))
            }
        }
    }
}

impl Serialize for Overflow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A text that outgrew the context, and what was done about it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Overflowed {
    /// Policy that was applied: [`Overflow::Stop`] if the text ended there, for want of another word, or
    /// [`Overflow::Shift`].
    pub policy: Overflow,
    /// Tokens that went, those of a prompt that was too long among them.
    pub dropped_tokens: usize,
    /// How often some went.
    pub times: usize,
    /// Time of computing the remaining tokens again.
    ///
    /// *Units*: milliseconds.
    pub ms: f64,
}

impl Overflowed {
    /// The text ended because the context was full.
    pub(crate) const END: Overflowed = Overflowed { policy: Overflow::Stop, dropped_tokens: 0, times: 0, ms: 0.0 };

    /// Returns the tokens of a text that are in the context.
    pub fn context<'t>(&self, text: &'t [u32]) -> Cow<'t, [u32]> {
        match self.policy {
            Overflow::Shift { keep } => without(text, keep, self.dropped_tokens),
            Overflow::Error | Overflow::Stop => text.into(),
        }
    }
}

/// A text without the tokens behind the first few.
fn without(text: &[u32], keep: usize, dropped: usize) -> Cow<'_, [u32]> {
    if dropped == 0 {
        return text.into();
    }
    let (front, rest) = text.split_at(keep.min(text.len()));
    [front, &rest[dropped.min(rest.len())..]].concat().into()
}

/// The room that was made in the context for a text: which part of it is there while its next token is chosen. That
/// follows from how long the text is, so that whoever goes on with a text that was broken off has the same part of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    policy: Overflow,
    n_ctx: usize,
    /// How often tokens went.
    times: usize,
}

impl Room {
    /// That of a text of so many tokens, as long as it fits.
    ///
    /// *Errors*: so many tokens are to be kept that none can go.
    pub fn new(policy: Overflow, tokens: usize, n_ctx: usize) -> Result<Room, ModelError> {
        let mut room = Room { policy, n_ctx, times: 0 };
        if let Overflow::Shift { keep } = policy {
            if n_ctx.saturating_sub(keep) < 2 {
                return Err(ModelError::Options(format!(
                    "{keep} tokens that are kept leave no room for others in a context of {n_ctx}; keep fewer, or load \
                     the model with a larger context"
                )));
            }
            // The next token needs a place, too.
            room.times = (tokens + 1).saturating_sub(n_ctx).div_ceil(room.step());
        }
        Ok(room)
    }

    /// Tokens that go at a time.
    fn step(&self) -> usize {
        match self.policy {
            Overflow::Shift { keep } => (self.n_ctx - keep) / 2,
            Overflow::Error | Overflow::Stop => 0,
        }
    }

    /// Makes room in a full context, whose tokens these are: gives those that are left, unless the text is to end.
    pub fn make(&mut self, context: &[u32]) -> Option<Vec<u32>> {
        let Overflow::Shift { keep } = self.policy else { return None };
        self.times += 1;
        Some(without(context, keep, self.step()).into_owned())
    }

    /// Returns the tokens of a text that are in the context.
    pub fn context<'t>(&self, text: &'t [u32]) -> Cow<'t, [u32]> {
        self.so_far(0.0).map_or(text.into(), |overflowed| overflowed.context(text))
    }

    /// How many of a text's tokens came after some went, if any did.
    pub fn since(&self, tokens: usize) -> Option<usize> {
        let earlier = self.times.checked_sub(1)?;
        Some(tokens.saturating_sub(self.n_ctx + earlier * self.step()))
    }

    /// Where a position of the text is in the context: where what is left begins, if it is not there any more.
    pub fn place(&self, position: usize) -> usize {
        match self.policy {
            Overflow::Shift { keep } if position > keep => position.saturating_sub(self.times * self.step()).max(keep),
            _ => position,
        }
    }

    /// Returns the overflow so far, if there was any; in so many milliseconds.
    pub fn so_far(&self, ms: f64) -> Option<Overflowed> {
        let Room { policy, times, .. } = *self;
        (times > 0).then(|| Overflowed { policy, dropped_tokens: times * self.step(), times, ms })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text that grows token by token, of which some go whenever the context is full.
    #[test]
    fn room_follows_from_the_length_of_the_text() {
        for (n_ctx, keep) in [(16, 0), (16, 1), (15, 4), (9, 7), (2, 0), (64, 3)] {
            let policy = Overflow::Shift { keep };
            let mut grown = Room::new(policy, 0, n_ctx).unwrap();
            let (mut context, mut since) = (Vec::new(), None);
            for token in 0..5 * n_ctx as u32 {
                if context.len() == n_ctx {
                    context = grown.make(&context).unwrap();
                    since = Some(0);
                }
                let text: Vec<u32> = (0..token).collect();
                let found = Room::new(policy, text.len(), n_ctx).unwrap();
                assert_eq!(found.context(&text), context, "{token} tokens, {n_ctx} and {keep}");
                assert_eq!(found.since(text.len()), since, "{token} tokens, {n_ctx} and {keep}");
                assert_eq!(found.so_far(1.0), grown.so_far(1.0));
                for position in 0..=text.len() {
                    let left = context.iter().filter(|token| (**token as usize) < position).count();
                    assert_eq!(found.place(position), left, "position {position} of {token}");
                }
                assert!(context.len() < n_ctx && context.starts_with(&text[..keep.min(text.len())]));
                context.push(token);
                since = since.map(|tokens| tokens + 1);
            }
            assert!(grown.times > 1);
        }
    }

    #[test]
    fn nothing_goes_unless_it_is_asked_for() {
        for policy in [Overflow::Error, Overflow::Stop] {
            let mut room = Room::new(policy, 100, 10).unwrap();
            assert_eq!((room.context(&[1; 100]).len(), room.since(100), room.so_far(0.0)), (100, None, None));
            assert_eq!(room.make(&[1; 10]), None);
        }
        for keep in [9, 10, usize::MAX] {
            let refused = Room::new(Overflow::Shift { keep }, 1, 10).unwrap_err().to_string();
            assert!(refused.contains("keep fewer") && refused.len() < 300, "{refused}");
        }
    }

    #[test]
    fn names_are_those_that_are_listed() {
        for name in Overflow::NAMES {
            assert_eq!(name.parse::<Overflow>().unwrap().name(), name);
        }
        assert!("drop".parse::<Overflow>().unwrap_err().contains("error, stop, shift"));
        let shift = Overflow::Shift { keep: 0 };
        assert_eq!(shift.keeping(None, 3), Ok(Overflow::Shift { keep: 3 }));
        assert_eq!(shift.keeping(Some(5), 3), Ok(Overflow::Shift { keep: 5 }));
        assert_eq!(Overflow::Stop.keeping(None, 3), Ok(Overflow::Stop));
        assert!(Overflow::Error.keeping(Some(0), 3).is_err());
    }
}
