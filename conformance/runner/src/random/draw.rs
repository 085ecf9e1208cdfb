//! Choices out of a list of numbers, so that a smaller list of numbers is a simpler case.

/// Source of the choices of a random case. Where the numbers end, all choices are the simplest.
pub struct Draw<'a>(std::slice::Iter<'a, u16>);

impl<'a> Draw<'a> {
    /// Draws from these numbers.
    pub fn new(numbers: &'a [u16]) -> Draw<'a> {
        Draw(numbers.iter())
    }

    fn fraction(&mut self) -> f64 {
        f64::from(self.0.next().copied().unwrap_or(0)) / 65_536.0
    }

    /// A number in `lo..=hi`, all equally likely.
    pub fn number(&mut self, lo: usize, hi: usize) -> usize {
        lo + ((hi - lo + 1) as f64 * self.fraction()) as usize
    }

    /// A size in `1..=hi`, of which small ones are likelier.
    pub fn size(&mut self, hi: usize) -> usize {
        1 + (hi as f64 * self.fraction().powi(2)) as usize
    }

    /// One of several, the first of which is the simplest.
    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.number(0, from.len() - 1)].clone()
    }

    /// Whether; no is simpler.
    pub fn chance(&mut self) -> bool {
        self.number(0, 1) == 1
    }

    /// Dimensions of a tensor: of some of the ranks, with at most so many columns.
    pub fn dims(&mut self, ranks: std::ops::RangeInclusive<usize>, cols: usize) -> Vec<usize> {
        let rank = self.number(*ranks.start(), *ranks.end());
        let mut dims: Vec<usize> = (1..rank).map(|_| self.size(7)).collect();
        dims.push(self.size(cols));
        dims
    }

    /// The order of so many axes.
    pub fn order(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        for i in 0..n {
            order.swap(i, self.number(i, n - 1));
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_numbers_are_the_simplest_choices_and_the_largest_stay_in_bounds() {
        let mut none = Draw::new(&[]);
        assert_eq!((none.number(3, 9), none.size(5), none.chance(), none.pick(&["a", "b"])), (3, 1, false, "a"));
        assert_eq!((none.dims(1..=4, 9), none.order(3)), (vec![1], vec![0, 1, 2]));
        let mut most = Draw::new(&[u16::MAX; 16]);
        assert_eq!((most.number(3, 9), most.size(5), most.chance(), most.pick(&["a", "b"])), (9, 5, true, "b"));
        assert_eq!((most.dims(1..=4, 9), most.order(3)), (vec![7, 7, 7, 9], vec![2, 0, 1]));
    }
}
