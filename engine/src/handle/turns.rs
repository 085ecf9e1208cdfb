//! Whose turn it is: several texts are begun and take turns, a slice of their answers each; the others wait in the order
//! in which they came.

use std::collections::VecDeque;

/// Who takes turns, and who waits.
///
/// One is given at a time. A device that advances several texts in one step could take as many as are begun.
#[derive(Debug)]
pub(crate) struct Turns<T> {
    begun: VecDeque<T>,
    waiting: VecDeque<T>,
    most: usize,
}

impl<T> Turns<T> {
    /// So many take turns; the next one begins when one of them has ended.
    pub fn new(most: usize) -> Turns<T> {
        Turns { begun: VecDeque::new(), waiting: VecDeque::new(), most: most.max(1) }
    }

    /// Whether nobody is there.
    pub fn is_empty(&self) -> bool {
        self.begun.is_empty() && self.waiting.is_empty()
    }

    /// Takes a new one.
    pub fn push(&mut self, new: T) {
        self.waiting.push_back(new);
    }

    /// The one whose turn it is. Unless it has ended it comes back by [`Self::again`].
    pub fn next(&mut self) -> Option<T> {
        self.begin(self.most);
        self.begun.pop_front()
    }

    /// Takes one back whose turn is over: all others that are begun come before its next one, and so does who can begin
    /// now.
    pub fn again(&mut self, one: T) {
        self.begin(self.most - 1);
        self.begun.push_back(one);
    }

    /// Has those begin that have waited for longest, until so many are begun.
    fn begin(&mut self, most: usize) {
        let room = most.saturating_sub(self.begun.len()).min(self.waiting.len());
        self.begun.extend(self.waiting.drain(..room));
    }

    /// Forgets those that are not wanted any more.
    pub fn retain(&mut self, mut wanted: impl FnMut(&T) -> bool) {
        self.begun.retain(&mut wanted);
        self.waiting.retain(&mut wanted);
    }

    /// Those that are begun.
    pub fn begun(&self) -> impl ExactSizeIterator<Item = &T> {
        self.begun.iter()
    }

    /// How many wait to begin.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The order in which jobs of so many slices have their turns; some come with the first, one after each turn.
    fn order(most: usize, first: &[(char, u32)], later: &[(char, u32)]) -> String {
        let (mut turns, mut order, mut later) = (Turns::new(most), String::new(), later.iter());
        first.iter().for_each(|job| turns.push(*job));
        while let Some((name, slices)) = turns.next() {
            order.push(name);
            later.next().into_iter().for_each(|job| turns.push(*job));
            if slices > 1 {
                turns.again((name, slices - 1));
            }
        }
        assert!(turns.is_empty());
        order
    }

    #[test]
    fn nobody_waits_for_a_long_answer_and_nobody_is_passed_by() {
        assert_eq!(order(4, &[('a', 5), ('b', 1), ('c', 2)], &[]), "abcacaaa");
        // Who is begun goes on, however many short ones come.
        assert_eq!(order(2, &[('a', 4)], &[('b', 1), ('c', 1), ('d', 1), ('e', 1)]), "abacadae");
        // As many as are begun take turns; the next one comes when one has ended.
        assert_eq!(order(2, &[('a', 2), ('b', 3), ('c', 1)], &[]), "ababcb");
        // One at a time: whole answers in the order of their arrival.
        assert_eq!(order(1, &[('a', 2), ('b', 2)], &[('c', 1)]), "aabbc");
        assert_eq!(order(0, &[('a', 1)], &[]), "a");
    }

    #[test]
    fn who_is_gone_is_forgotten() {
        let mut turns = Turns::new(1);
        "abc".chars().for_each(|name| turns.push(name));
        assert_eq!((turns.next(), turns.waiting(), turns.begun().len()), (Some('a'), 2, 0));
        turns.again('a');
        turns.retain(|name| *name == 'c');
        assert_eq!((turns.next(), turns.next()), (Some('c'), None));
    }
}
