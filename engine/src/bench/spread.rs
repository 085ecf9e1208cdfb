//! Summary of several measurements.

use backend_api::{ordered, sort_by_key};
use serde::Serialize;

/// Median and range of several measurements.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The median; for an even number, the mean of the middle two.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// The number of measurements.
    pub n: usize,
}

impl Spread {
    /// Summarises measurements; all zeros if there are none.
    pub fn of(mut values: Vec<f64>) -> Spread {
        sort_by_key(&mut values, |value| ordered(*value));
        let (n, at) = (values.len(), |i: usize| values.get(i).copied().unwrap_or_default());
        Spread { median: (at(n.saturating_sub(1) / 2) + at(n / 2)) / 2.0, min: at(0), max: at(n.saturating_sub(1)), n }
    }
}

#[cfg(test)]
mod tests {
    use super::Spread;

    #[test]
    fn medians_of_odd_and_even_counts() {
        assert_eq!(Spread::of(vec![3.0, 1.0, 2.0]).median, 2.0);
        let even = Spread::of(vec![4.0, 1.0, 2.0, 3.0]);
        assert_eq!((even.median, even.min, even.max, even.n), (2.5, 1.0, 4.0, 4));
        assert_eq!(Spread::of(Vec::new()), Spread { median: 0.0, min: 0.0, max: 0.0, n: 0 });
    }
}
