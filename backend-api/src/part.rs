//! Parts of a step: where a step is cut so that no part holds the device, or the thread that computes, for long.
//!
//! It is a pure function of what kernels cost and of how much a part may. Cuts change when kernels run, never what they
//! compute: rows, kernels and the order of their sums stay what they were compiled to be.

use std::ops::Range;

use crate::cost::Cost;
use crate::form::Cover;
use crate::graph::Graph;
use crate::step::StepParams;

/// A kernel of a program as far as cutting goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Cost of all its units.
    pub cost: Cost,
    /// Equal units that it can be cut into: rows of workgroups, lines of texels, rows of a result. At least 1.
    pub units: u32,
}

impl Piece {
    /// Returns the cost of so many units in a step.
    fn work(&self, units: u32, step: &StepParams) -> u64 {
        Cost::fixed(self.cost.of(step)).share(u64::from(units), u64::from(self.units)).fixed
    }

    /// Returns the cost of a step of all pieces.
    pub fn total(pieces: &[Piece], step: &StepParams) -> u64 {
        pieces.iter().fold(0, |sum, piece| sum.saturating_add(piece.cost.of(step)))
    }

    /// The pieces of a cover whose kernels touch so many bytes and have so many units each: bytes tell how its cost is
    /// shared.
    pub fn of_cover<'a>(
        graph: &Graph,
        cover: &Cover,
        kernels: impl Iterator<Item = (u64, u32)> + Clone + 'a,
    ) -> impl Iterator<Item = Piece> + 'a {
        let (cost, all) = (cover.cost(graph), kernels.clone().map(|(bytes, _)| bytes.max(1)).sum());
        kernels.map(move |(bytes, units)| Piece { cost: cost.share(bytes.max(1), all), units: units.max(1) })
    }
}

/// Work that is submitted at once: whole kernels, or units of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// These kernels, in order.
    Kernels(Range<usize>),
    /// A range of units of one kernel.
    Units(usize, Range<u32>),
}

/// Walks through the parts of a step.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cuts {
    kernel: usize,
    unit: u32,
}

impl Cuts {
    /// The next part, which costs no more than `most` unless a single unit does; with what it costs. None after the
    /// last.
    ///
    /// *Units*: of [`Cost`].
    pub fn next(&mut self, pieces: &[Piece], step: &StepParams, most: u64) -> Option<(Part, u64)> {
        let first = pieces.get(self.kernel)?;
        let whole = first.work(first.units, step);
        if self.unit > 0 || (whole > most && first.units > 1) {
            let fit = u128::from(most) * u128::from(first.units) / u128::from(whole.max(1));
            let left = first.units - self.unit;
            let count = u32::try_from(fit).unwrap_or(u32::MAX).clamp(1, left);
            let units = self.unit..self.unit + count;
            let part = (Part::Units(self.kernel, units.clone()), first.work(count, step));
            *self = match units.end == first.units {
                true => Cuts { kernel: self.kernel + 1, unit: 0 },
                false => Cuts { unit: units.end, ..*self },
            };
            return Some(part);
        }
        let (from, mut work) = (self.kernel, whole);
        self.kernel += 1;
        while let Some(piece) = pieces.get(self.kernel)
            && let Some(more) = work.checked_add(piece.work(piece.units, step)).filter(|more| *more <= most)
        {
            (work, self.kernel) = (more, self.kernel + 1);
        }
        Some((Part::Kernels(from..self.kernel), work))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(fixed: u64, per_token: u64, units: u32) -> Piece {
        Piece { cost: Cost { fixed, per_token }, units }
    }

    fn parts(pieces: &[Piece], step: &StepParams, most: u64) -> Vec<(Part, u64)> {
        let mut cuts = Cuts::default();
        std::iter::from_fn(|| cuts.next(pieces, step, most)).collect()
    }

    #[test]
    fn kernels_go_together_as_far_as_they_fit_and_large_ones_are_cut() {
        use Part::{Kernels, Units};
        let pieces = [piece(10, 0, 1), piece(20, 0, 4), piece(100, 0, 4), piece(40, 0, 1), piece(5, 0, 1)];
        let step = StepParams::at(0, 1);
        assert_eq!(parts(&pieces, &step, 1000), [(Kernels(0..5), 175)], "a fast device");
        let cut = [
            (Kernels(0..2), 30),
            (Units(2, 0..1), 25),
            (Units(2, 1..2), 25),
            (Units(2, 2..3), 25),
            (Units(2, 3..4), 25),
            (Kernels(3..4), 40),
            (Kernels(4..5), 5),
        ];
        assert_eq!(parts(&pieces, &step, 39), cut, "what has one unit stays whole");
    }

    #[test]
    fn what_grows_with_the_position_is_cut_later() {
        let pieces = [piece(10, 1, 8)];
        assert_eq!(parts(&pieces, &StepParams::at(0, 10), 100).len(), 1);
        assert_eq!(parts(&pieces, &StepParams::at(390, 10), 110).len(), 4);
    }

    #[test]
    fn parts_are_the_step_once_and_none_costs_more_than_it_may() {
        let mut seed = 1u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for _ in 0..500 {
            let pieces: Vec<Piece> =
                (0..1 + random(30)).map(|_| piece(random(10_000), random(20), 1 + random(40) as u32)).collect();
            let step = StepParams::at(random(500) as u32, 1 + random(128) as u32);
            let most = 1 + random(20_000);
            let mut done = vec![0; pieces.len()];
            for (part, cost) in parts(&pieces, &step, most) {
                match &part {
                    Part::Kernels(kernels) => {
                        kernels.clone().for_each(|at| {
                            assert_eq!(done[at], 0);
                            done[at] = pieces[at].units;
                        });
                        assert!(cost <= most || (kernels.len() == 1 && pieces[kernels.start].units == 1), "{part:?}");
                    }
                    Part::Units(at, units) => {
                        assert_eq!(done[*at], units.start);
                        done[*at] = units.end;
                        assert!(cost <= most || units.len() == 1, "{part:?} costs {cost} of {most}");
                    }
                }
            }
            assert!(done.iter().zip(&pieces).all(|(done, piece)| *done == piece.units));
        }
    }
}
