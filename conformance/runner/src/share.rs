//! Shares of a list of cases.

use std::str::FromStr;

/// A share of the cases, for one of several processes that share them, or for a run that has no time for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    first: usize,
    of: usize,
}

impl Share {
    /// Returns the cases of this share: every `of`-th.
    pub fn pick<T>(self, cases: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
        cases.into_iter().skip(self.first - 1).step_by(self.of)
    }
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Share, String> {
        let parsed = text.split_once('/').and_then(|(first, of)| Some((first.parse().ok()?, of.parse().ok()?)));
        match parsed {
            Some((first, of)) if (1..=of).contains(&first) => Ok(Share { first, of }),
            _ => Err(format!("a share is such as 2/8, the second of eight, not {text}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_whole_numbers_of_all() {
        assert_eq!("2/8".parse(), Ok(Share { first: 2, of: 8 }));
        for wrong in ["", "2", "0/8", "9/8", "1/0", "a/b", "-1/2"] {
            assert!(wrong.parse::<Share>().unwrap_err().contains("2/8"), "{wrong}");
        }
    }
}
