//! Fetch interval: number of decode steps between two reads of their tokens.

/// Largest fetch interval: steps past the end of a text are wasted.
pub(crate) const MAX_FETCH_INTERVAL: usize = 64;
/// Largest interval that measurement chooses: longer ones gained nothing on any device.
const MAX_AUTO_INTERVAL: usize = 16;
/// Least time between two reads if measurement chooses the interval. A read costs part of a millisecond, and nobody
/// sees single tokens within a frame.
///
/// *Units*: milliseconds.
const READ_EVERY_MS: f64 = 8.0;

/// Number of steps between two reads.
#[derive(Debug)]
pub(crate) struct Interval {
    pub steps: usize,
    fixed: bool,
    /// Time at which the last tokens arrived.
    last_ms: f64,
}

impl Interval {
    /// Makes a fixed interval, or one that is found by measurement.
    pub fn new(fixed: Option<usize>, now_ms: f64) -> Interval {
        Interval { steps: fixed.unwrap_or(1), fixed: fixed.is_some(), last_ms: now_ms }
    }

    /// Records that `count` tokens arrived since the last ones; returns the time of each. The interval grows slowly, so
    /// that a stutter does not make it long.
    pub fn measure(&mut self, count: usize, now_ms: f64) -> f64 {
        let token_ms = (now_ms - self.last_ms) / count as f64;
        self.last_ms = now_ms;
        if !self.fixed {
            let fitting = (READ_EVERY_MS / token_ms.max(1e-3)) as usize;
            self.steps = fitting.clamp(1, MAX_AUTO_INTERVAL.min(2 * self.steps));
        }
        token_ms
    }

    /// Ignores the time since the last tokens, in which other work was done.
    pub fn skip_to(&mut self, now_ms: f64) {
        self.last_ms = now_ms;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the interval after each of several reads, if a token takes `token_ms`.
    fn chosen(token_ms: f64) -> Vec<usize> {
        let (mut interval, mut now) = (Interval::new(None, 0.0), 0.0);
        let mut next = || {
            now += token_ms * interval.steps as f64;
            interval.measure(interval.steps, now);
            interval.steps
        };
        (0..5).map(|_| next()).collect()
    }

    #[test]
    fn slow_devices_are_read_token_by_token_and_fast_ones_seldom() {
        assert_eq!(chosen(700.0), [1; 5]);
        assert_eq!(chosen(2.5), [2, 3, 3, 3, 3]);
        assert_eq!(chosen(0.0), [2, 4, 8, 16, 16]);
        let mut fixed = Interval::new(Some(5), 0.0);
        fixed.measure(5, 1.0);
        assert_eq!(fixed.steps, 5);
    }
}
