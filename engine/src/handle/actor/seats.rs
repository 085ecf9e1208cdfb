//! Slots for the texts that advance together: many for short texts, fewer with more room for long ones.

use std::iter::successors;

use model::{Batch, Sessions};

use super::block_on;
use crate::engine::Engine;
use crate::error::EngineError;

/// Tokens ahead for which a text has room when it comes to its slot, unless it ends before.
pub(super) const AHEAD: usize = 256;
/// Fewest tokens of a slot, unless the context has fewer: with less, texts would outgrow their slots all the time.
const LEAST: usize = 512;

/// A number of slots, and how many tokens a text in each may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    seats: usize,
    room: usize,
}

/// The shapes that memory suffices for, and the present one.
pub(super) struct Seats {
    /// Those with the most slots first. The last one has room for the whole context.
    shapes: Vec<Shape>,
    now: usize,
}

impl Seats {
    /// Makes the sequences of a model, with as many slots as `memory` has room for, at most `most`. Host memory of the
    /// sequences is limited by `budget`.
    ///
    /// *Units*: bytes.
    ///
    /// *Errors*: memory, or the device was lost.
    pub fn open(engine: &Engine, most: usize, memory: usize, budget: usize) -> Result<(Seats, Sessions), EngineError> {
        let (recipe, backend) = (engine.model().recipe(), engine.backend());
        let n_ctx = recipe.sizes().n_ctx;
        let bytes =
            |tokens: usize| -> Result<u64, EngineError> { Ok(Batch::bytes_of_session(recipe, backend, tokens)?) };
        let shapes = shapes(n_ctx, most.min(backend.info().batch_rows), memory as u64, bytes)?;
        let mut seats = Seats { shapes, now: 0 };
        let mut sessions = engine.sessions(budget)?;
        seats.take(0, engine, &mut sessions);
        Ok((seats, sessions))
    }

    /// Changes the slots if the longest text does not fit into one, or if more texts could be in slots than are now: `texts`
    /// counts them, and `longest` is what the longest of them needs.
    ///
    /// *Units*: tokens.
    ///
    /// *Errors*: memory for a session, or the device was lost; then the slots are as they were.
    pub fn fit(
        &mut self,
        longest: usize,
        texts: usize,
        engine: &Engine,
        sessions: &mut Sessions,
    ) -> Result<(), EngineError> {
        // After the loss of a device there is one slot, with room for whatever comes.
        if sessions.seats() == self.shapes[self.now].seats
            && let Some(next) = change(&self.shapes, self.now, longest, texts)
        {
            // The memory of the slots is free before others are made.
            block_on(sessions.reduce_to(Some(engine.session()?), engine.host()));
            self.take(next, engine, sessions);
        }
        Ok(())
    }

    /// Replaces the single, empty slot by those of a shape, or of the next one that can be made: devices may have less memory
    /// than was assumed, and some models cannot be batched. Those before it are not tried again.
    fn take(&mut self, at: usize, engine: &Engine, sessions: &mut Sessions) {
        self.now = at;
        while let Some(Shape { seats: 2.., room }) = self.shapes.get(self.now).copied() {
            match engine.batch(self.shapes[self.now].seats, room) {
                Ok(batch) => return sessions.extend_to(batch),
                Err(_) => drop(self.shapes.remove(self.now)),
            }
        }
    }
}

/// Returns the shapes that fit into memory, of which `bytes` tells what a slot of a number of tokens takes.
fn shapes(
    n_ctx: usize,
    most: usize,
    memory: u64,
    bytes: impl Fn(usize) -> Result<u64, EngineError>,
) -> Result<Vec<Shape>, EngineError> {
    let mut shapes = Vec::new();
    let least = LEAST.min(n_ctx);
    for seats in successors(Some(most), |seats| Some(seats / 2)).take_while(|seats| *seats > 1) {
        let each = memory / seats as u64;
        if bytes(least)? > each {
            continue;
        }
        // The most tokens that fit.
        let (mut fits, mut over) = (least, n_ctx + 1);
        while over - fits > 1 {
            let middle = fits.midpoint(over);
            *if bytes(middle)? <= each { &mut fits } else { &mut over } = middle;
        }
        shapes.push(Shape { seats, room: fits });
    }
    shapes.push(Shape { seats: 1, room: n_ctx });
    Ok(shapes)
}

/// Returns the shape to change to, if there is a reason to: a text has to have room for what it needs. More slots wait until
/// the texts need at most half of theirs, since each change copies all states.
fn change(shapes: &[Shape], now: usize, longest: usize, texts: usize) -> Option<usize> {
    let first = |tokens: usize| shapes.iter().position(|shape| shape.room >= tokens).unwrap_or(shapes.len() - 1);
    let Shape { seats, room } = shapes[now];
    let to = if longest > room { first(longest) } else { first(2 * longest) };
    (to != now && (longest > room || (to < now && texts > seats))).then_some(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(n_ctx: usize, most: usize, memory: u64) -> Vec<(usize, usize)> {
        let all = shapes(n_ctx, most, memory, |tokens| Ok(1_000 + 10 * tokens as u64)).unwrap();
        all.iter().map(|shape| (shape.seats, shape.room)).collect()
    }

    #[test]
    fn memory_is_divided_by_need() {
        // All of the context, wherever it fits.
        assert_eq!(of(2_000, 4, 1 << 20), [(4, 2_000), (2, 2_000), (1, 2_000)]);
        assert_eq!(of(100_000, 16, 128_000), [(16, 700), (8, 1_500), (4, 3_100), (2, 6_300), (1, 100_000)]);
        assert_eq!(of(2_500, 16, 128_000), [(16, 700), (8, 1_500), (4, 2_500), (2, 2_500), (1, 2_500)]);
        // Slots are not too short to be of use.
        assert_eq!(of(100_000, 16, 64_000), [(8, 700), (4, 1_500), (2, 3_100), (1, 100_000)]);
        assert_eq!(of(100_000, 16, 0), [(1, 100_000)]);
        assert_eq!(of(64, 3, 5_000), [(3, 64), (1, 64)]);
        assert_eq!(of(64, 1, 5_000), [(1, 64)]);
    }

    #[test]
    fn slots_change_when_they_must_or_when_it_pays() {
        let shapes = [(16, 700), (8, 1_500), (4, 3_100), (1, 100_000)].map(|(seats, room)| Shape { seats, room });
        assert_eq!(change(&shapes, 0, 700, 40), None);
        assert_eq!(change(&shapes, 0, 701, 1), Some(1));
        assert_eq!(change(&shapes, 0, 9_000, 1), Some(3));
        assert_eq!(change(&shapes, 3, 100_000, 9), None);
        // Back only for more texts than there are slots, all of which are far from growing out of theirs.
        assert_eq!(change(&shapes, 2, 300, 4), None);
        assert_eq!(change(&shapes, 2, 300, 5), Some(0));
        assert_eq!(change(&shapes, 2, 600, 5), Some(1));
        assert_eq!(change(&shapes, 2, 800, 5), None);
        assert_eq!(change(&shapes, 3, 1_500, 2), Some(2));
    }
}
