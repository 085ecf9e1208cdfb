//! Counting what passed, failed and was skipped, from the output of the runs themselves.

use std::fmt;

/// How many passed, failed and were skipped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Ran and held.
    pub passed: u64,
    /// Ran and did not hold, or could not even run.
    pub failed: u64,
    /// Did not run, because something is missing here.
    pub skipped: u64,
    /// Tests that skipped themselves in the test program whose total is still to come.
    pending: u64,
}

impl Tally {
    /// A tally of what was counted elsewhere.
    pub fn new(passed: u64, failed: u64, skipped: u64) -> Tally {
        Tally { passed, failed, skipped, pending: 0 }
    }

    /// The tally of one check.
    pub fn one(passed: bool) -> Tally {
        Tally { passed: u64::from(passed), failed: u64::from(!passed), ..Tally::default() }
    }

    /// The tally of something that was left out.
    pub fn skip() -> Tally {
        Tally { skipped: 1, ..Tally::default() }
    }

    /// Adds what one line of output says: the totals of a test program (`test result: ok. 3 passed; 0 failed; 1
    /// ignored; ...`) or of another run (`3 passed, 0 failed, 1 skipped`), or one test that skipped itself.
    ///
    /// A Rust test cannot say that it was skipped, so one that lacks its driver prints a line that begins with
    /// `SKIPPED` and returns: its program counts it as passed, and here it is moved to where it belongs. Other runs
    /// count for themselves.
    pub fn read(&mut self, line: &str) {
        let line = line.trim();
        if line.starts_with("SKIPPED") {
            self.pending += 1;
            return;
        }
        let is_test = line.starts_with("test result: ");
        let is_total = line.starts_with(|c: char| c.is_ascii_digit()) && line.contains(" passed, ");
        let skipped = match (is_test, is_total) {
            (true, _) => std::mem::take(&mut self.pending),
            (_, true) => 0,
            _ => return,
        };
        let words: Vec<&str> = line.split([' ', ',', ';', '.']).filter(|w| !w.is_empty()).collect();
        for pair in words.windows(2) {
            let (Ok(count), word) = (pair[0].parse::<u64>(), pair[1]) else { continue };
            match word {
                "passed" => {
                    let moved = skipped.min(count);
                    self.passed += count - moved;
                    self.skipped += moved;
                }
                "failed" => self.failed += count,
                "ignored" | "skipped" => self.skipped += count,
                _ => {}
            }
        }
    }

    /// Adds another tally.
    pub fn add(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_come_from_the_lines_that_state_them() {
        let mut tally = Tally::default();
        for line in [
            "running 4 tests",
            "test a::b ... ok",
            "test result: FAILED. 3 passed; 1 failed; 2 ignored; 0 measured; 7 filtered out; finished in 0.05s",
            "    all 17 passed, as far as we know",
            "20 passed, 5 failed, 1 skipped",
        ] {
            tally.read(line);
        }
        assert_eq!((tally.passed, tally.failed, tally.skipped), (23, 6, 3));
    }

    #[test]
    fn a_skipped_test_is_not_a_passed_one() {
        let mut tally = Tally::default();
        tally.read("SKIPPED webgpu: no driver");
        tally.read("test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out");
        assert_eq!(tally.to_string(), "2 passed, 0 failed, 1 skipped");
        tally.read("5 passed, 0 failed, 1 skipped");
        assert_eq!(tally.to_string(), "7 passed, 0 failed, 2 skipped");
    }
}
