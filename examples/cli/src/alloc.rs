//! Heap allocations of the process, for `heap_allocations_per_token`.

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Allocations so far, growing ones included.
pub fn count() -> usize {
    let stats = ALLOCATOR.stats();
    stats.allocations + stats.reallocations
}

/// Counts allocations from one token to the next, once decoding is steady.
#[derive(Debug, Default)]
pub struct PerToken {
    tokens: usize,
    first: Option<(usize, usize)>,
    last: (usize, usize),
}

impl PerToken {
    /// A token has come; the first `warm_up` ones are not counted.
    pub fn token(&mut self, warm_up: usize) {
        self.tokens += 1;
        if self.tokens > warm_up {
            self.last = (self.tokens, count());
            self.first.get_or_insert(self.last);
        }
    }

    /// Allocations a token; none if there were too few tokens to tell.
    pub fn rate(&self) -> Option<f64> {
        let (tokens, allocations) = self.first?;
        let n = self.last.0 - tokens;
        (n > 0).then(|| (self.last.1 - allocations) as f64 / n as f64)
    }
}
