//! Heap allocations of the process, for `heap_allocations_per_token`.

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Allocations so far, growing ones included.
fn count() -> usize {
    let stats = ALLOCATOR.stats();
    stats.allocations + stats.reallocations
}

/// Tokens and allocations so far.
#[derive(Debug, Clone, Copy)]
struct Sample {
    tokens: usize,
    allocations: usize,
}

/// Counts allocations from one interval of tokens to the next, once decoding is steady.
#[derive(Debug)]
pub struct PerToken {
    interval: usize,
    tokens: usize,
    first: Option<Sample>,
    /// The sample before the latest one: while the last interval is read, no further steps are submitted.
    steady: Option<Sample>,
    latest: Option<Sample>,
}

impl PerToken {
    /// For tokens that come in intervals of so many, after a first one that comes by itself.
    pub fn new(interval: usize) -> PerToken {
        PerToken { interval: interval.max(1), tokens: 0, first: None, steady: None, latest: None }
    }

    /// A token has come. The first interval still fills pipelines and caches.
    pub fn token(&mut self) {
        self.tokens += 1;
        if self.tokens > self.interval && (self.tokens - 1).is_multiple_of(self.interval) {
            let now = Sample { tokens: self.tokens, allocations: count() };
            self.first.get_or_insert(now);
            self.steady = self.latest.replace(now);
        }
    }

    /// Allocations a token; none if there were too few tokens to tell.
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
        // Tokens 3, 5, 7 and 9 end intervals; the allocations after the seventh are those of the last interval.
        for token in 1u64..=9 {
            for _ in 0..if token > 7 { 10 } else { 3 } {
                keep.push(black_box(Box::new(token)));
            }
            counter.token();
        }
        // Other tests may allocate meanwhile, so that more than 3 may be counted, but never fewer.
        assert!(counter.rate().is_some_and(|rate| rate >= 3.0), "{:?}", counter.rate());
    }
}
