//! How often the tokens of a generation are read.

/// The largest fetch interval: steps past the end of a text are wasted.
pub(crate) const MAX_FETCH_INTERVAL: usize = 64;
/// The largest that is chosen by measurement: beyond it, nothing was gained on any device.
const MAX_AUTO_INTERVAL: usize = 16;
/// How often tokens are read, at most, where the fetch interval is chosen by measurement: a read costs part of a
/// millisecond, and nobody sees the tokens of less than a frame one by one.
///
/// *Units*: milliseconds.
const READ_EVERY_MS: f64 = 8.0;

/// How many steps go between two reads.
#[derive(Debug)]
pub(crate) struct Interval {
    pub steps: usize,
    fixed: bool,
    /// When the last tokens arrived.
    last_ms: f64,
}

impl Interval {
    /// A fixed one, or one that measurement is to find.
    pub fn new(fixed: Option<usize>, now_ms: f64) -> Interval {
        Interval { steps: fixed.unwrap_or(1), fixed: fixed.is_some(), last_ms: now_ms }
    }

    /// Learns that `count` tokens arrived since the last ones. It grows slowly, so that no stutter makes it long.
    pub fn measure(&mut self, count: usize, now_ms: f64) {
        let token_ms = (now_ms - self.last_ms) / count as f64;
        self.last_ms = now_ms;
        if !self.fixed {
            let fitting = (READ_EVERY_MS / token_ms.max(1e-3)) as usize;
            self.steps = fitting.clamp(1, MAX_AUTO_INTERVAL.min(2 * self.steps));
        }
    }

    /// Takes no account of the time since the last tokens, in which something else was done.
    pub fn skip_to(&mut self, now_ms: f64) {
        self.last_ms = now_ms;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The interval after each of some reads that take `token_ms` a token.
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
