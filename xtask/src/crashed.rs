//! Test programs that a signal ended, from what Cargo says about them.
//!
//! SIGSEGV was seen to end a test program of many small models on Mesa's software GL once, where some hundred more runs did
//! not end so. Such a program is run once more, and that is said; any other end is a failure.

/// Finds them in Cargo's standard error.
#[derive(Debug, Default)]
pub struct Crashed {
    /// The program that the last lines are about.
    current: Option<String>,
    /// Programs that failed in any way.
    failed: usize,
    /// How Cargo is told to run each of those that a signal ended.
    pub programs: Vec<String>,
}

impl Crashed {
    /// Takes one line.
    pub fn read(&mut self, line: &str) {
        if let Some((_, rest)) = line.split_once("test failed, to rerun pass `") {
            self.current = rest.split('`').next().map(str::to_owned);
            self.failed += 1;
        } else if line.contains("process didn't exit successfully") && line.contains("(signal: ") {
            self.programs.extend(self.current.take());
        }
    }

    /// Whether signals, and nothing else, are why programs failed.
    pub fn are_all(&self) -> bool {
        self.failed > 0 && self.failed == self.programs.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_told_from_a_failure() {
        let mut crashed = Crashed::default();
        let lines = [
            "error: test failed, to rerun pass `-p one --lib`",
            "  process didn't exit successfully: `target/release/deps/one-1` (exit status: 101)",
            "error: test failed, to rerun pass `-p two --test models`",
            "Caused by:",
            "  process didn't exit successfully: `target/release/deps/models-2` (signal: 11, SIGSEGV: invalid memory reference)",
            "error: 2 targets failed:",
            "    `-p two --test models`",
        ];
        lines.iter().for_each(|line| crashed.read(line));
        assert_eq!(crashed.programs, ["-p two --test models"]);
        assert!(!crashed.are_all());
        let mut crashed = Crashed::default();
        assert!(!crashed.are_all());
        lines[2..].iter().for_each(|line| crashed.read(line));
        assert!(crashed.are_all());
    }
}
