//! Context overflow: the policy for texts that outgrow the context, and the part of such a text that is in the context.

use std::borrow::Cow;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::error::ModelError;

/// Policy for a text that outgrows the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overflow {
    /// Refuses a prompt that does not fit together with the requested number of tokens.
    #[default]
    Error,
    /// Ends the text when the context is full.
    Stop,
    /// Drops half of the tokens after the first `keep`, and recomputes the rest. The text continues exactly as a new
    /// one that begins with the remaining tokens.
    Shift {
        /// Number of first tokens that are never dropped.
        keep: usize,
    },
}

impl Overflow {
    /// Names of all policies.
    pub const NAMES: [&'static str; 3] = ["error", "stop", "shift"];

    /// Returns the name on command lines and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Overflow::Error => "error",
            Overflow::Stop => "stop",
            Overflow::Shift { .. } => "shift",
        }
    }

    /// Sets the number of first tokens that always stay: `asked`, or else the default `usual`.
    ///
    /// *Errors*: a number is given, but the policy drops no tokens.
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

    /// Parses a name; `shift` keeps no first tokens.
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

/// Report of a text that outgrew the context.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Overflowed {
    /// Policy that was applied: [`Overflow::Shift`], or [`Overflow::Stop`] if the text ended (also for
    /// [`Overflow::Error`]).
    pub policy: Overflow,
    /// Number of dropped tokens, including those of a prompt that was too long.
    pub dropped_tokens: usize,
    /// Number of times that tokens were dropped.
    pub times: usize,
    /// Time of recomputing the remaining tokens.
    ///
    /// *Units*: milliseconds.
    pub ms: f64,
}

impl Overflowed {
    /// Report of a text that ended because the context was full.
    pub(crate) const END: Overflowed = Overflowed { policy: Overflow::Stop, dropped_tokens: 0, times: 0, ms: 0.0 };

    /// Returns the tokens of a text that are in the context.
    pub fn context<'t>(&self, text: &'t [u32]) -> Cow<'t, [u32]> {
        match self.policy {
            Overflow::Shift { keep } => without(text, keep, self.dropped_tokens),
            Overflow::Error | Overflow::Stop => text.into(),
        }
    }
}

/// Removes `dropped` tokens after the first `keep`.
fn without(text: &[u32], keep: usize, dropped: usize) -> Cow<'_, [u32]> {
    if dropped == 0 {
        return text.into();
    }
    let (front, rest) = text.split_at(keep.min(text.len()));
    [front, &rest[dropped.min(rest.len())..]].concat().into()
}

/// State of the shifts of a text: which part of it is in the context. It depends only on the length of the text, so a
/// resumed text has the same part in the context.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    policy: Overflow,
    n_ctx: usize,
    /// Number of shifts.
    times: usize,
}

impl Room {
    /// Makes the state of a text of so many tokens.
    ///
    /// *Errors*: so many tokens stay that none can be dropped.
    pub fn new(policy: Overflow, tokens: usize, n_ctx: usize) -> Result<Room, ModelError> {
        let mut room = Room { policy, n_ctx, times: 0 };
        if let Overflow::Shift { keep } = policy {
            if n_ctx.saturating_sub(keep) < 2 {
                return Err(ModelError::Options(format!(
                    "{keep} tokens that are kept leave no room for others in a context of {n_ctx}; keep fewer, or load \
                     the model with a larger context"
                )));
            }
            // The next token needs room, too.
            room.times = (tokens + 1).saturating_sub(n_ctx).div_ceil(room.step());
        }
        Ok(room)
    }

    /// Returns the number of tokens that a shift drops.
    fn step(&self) -> usize {
        match self.policy {
            Overflow::Shift { keep } => (self.n_ctx - keep) / 2,
            Overflow::Error | Overflow::Stop => 0,
        }
    }

    /// Shifts a full context; returns its remaining tokens, or nothing if the text ends instead.
    pub fn make(&mut self, context: &[u32]) -> Option<Vec<u32>> {
        let Overflow::Shift { keep } = self.policy else { return None };
        self.times += 1;
        Some(without(context, keep, self.step()).into_owned())
    }

    /// Returns the tokens of a text that are in the context.
    pub fn context<'t>(&self, text: &'t [u32]) -> Cow<'t, [u32]> {
        self.so_far(0.0).map_or(text.into(), |overflowed| overflowed.context(text))
    }

    /// Returns the number of a text's tokens after the last shift, if there was one.
    pub fn since(&self, tokens: usize) -> Option<usize> {
        let earlier = self.times.checked_sub(1)?;
        Some(tokens.saturating_sub(self.n_ctx + earlier * self.step()))
    }

    /// Converts a position in the text to one in the context. A dropped position becomes the first one after the gap.
    pub fn place(&self, position: usize) -> usize {
        match self.policy {
            Overflow::Shift { keep } if position > keep => position.saturating_sub(self.times * self.step()).max(keep),
            _ => position,
        }
    }

    /// Returns the number of shifts.
    pub fn times(&self) -> usize {
        self.times
    }

    /// Returns the report of the shifts so far, if there were any; they took `ms` milliseconds.
    pub fn so_far(&self, ms: f64) -> Option<Overflowed> {
        let Room { policy, times, .. } = *self;
        (times > 0).then(|| Overflowed { policy, dropped_tokens: times * self.step(), times, ms })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A growing text is shifted whenever the context is full. The state computed from its length alone agrees.
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
