//! Counts the process's heap allocations, for `heap_allocations_per_token`.

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Returns the number of allocations so far, including reallocations.
fn count() -> usize {
    let stats = ALLOCATOR.stats();
    stats.allocations + stats.reallocations
}

/// Number of tokens and allocations at one point in time.
#[derive(Debug, Clone, Copy)]
struct Sample {
    tokens: usize,
    allocations: usize,
}

/// Counts allocations per token over intervals of tokens, once decoding is steady.
#[derive(Debug)]
pub struct PerToken {
    interval: usize,
    tokens: usize,
    first: Option<Sample>,
    /// The sample before the latest one. It ends the measurement, because no further steps are submitted while the last
    /// interval is read.
    steady: Option<Sample>,
    latest: Option<Sample>,
}

impl PerToken {
    /// Creates a counter for tokens that arrive in intervals of `interval`, after a first token that arrives alone.
    pub fn new(interval: usize) -> PerToken {
        PerToken { interval: interval.max(1), tokens: 0, first: None, steady: None, latest: None }
    }

    /// Records that a token has arrived. The first interval is skipped, because it still fills pipelines and caches.
    pub fn token(&mut self) {
        self.tokens += 1;
        if self.tokens > self.interval && (self.tokens - 1).is_multiple_of(self.interval) {
            let now = Sample { tokens: self.tokens, allocations: count() };
            self.first.get_or_insert(now);
            self.steady = self.latest.replace(now);
        }
    }

    /// Returns the allocations per token, or `None` if there were too few tokens to measure.
    pub fn rate(&self) -> Option<f64> {
        let (first, steady) = (self.first?, self.steady?);
        let tokens = steady.tokens - first.tokens;
        (tokens > 0).then(|| (steady.allocations - first.allocations) as f64 / tokens as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::PerToken;
    use std::hint::black_box;

    #[test]
    fn whole_intervals_are_counted_but_not_the_last() {
        let mut counter = PerToken::new(2);
        assert_eq!(counter.rate(), None);
        let mut keep: Vec<Box<u64>> = Vec::with_capacity(100);
        // Tokens 3, 5, 7 and 9 end intervals. Allocations after token 7 belong to the last interval.
        for token in 1u64..=9 {
            for _ in 0..if token > 7 { 10 } else { 3 } {
                keep.push(black_box(Box::new(token)));
            }
            counter.token();
        }
        // Other tests may allocate at the same time, so the count may be above 3, but never below.
        assert!(counter.rate().is_some_and(|rate| rate >= 3.0), "{:?}", counter.rate());
    }
}
