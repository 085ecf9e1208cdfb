//! Whose turn it is: several texts are begun and take turns, a slice of their answers each; the others wait in the order
//! in which they came.

use std::collections::VecDeque;

/// Who takes turns, and who waits.
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

    /// Those whose turn it is, so many at most. Unless they have ended they come back by [`Self::again`].
    pub fn next(&mut self, most: usize) -> Vec<T> {
        self.begin(self.most);
        let count = most.clamp(1, self.begun.len().max(1)).min(self.begun.len());
        self.begun.drain(..count).collect()
    }

    /// Takes those back whose turn is over: all others that are begun come before their next one, and so does who can
    /// begin now.
    pub fn again(&mut self, those: Vec<T>) {
        self.begin(self.most.saturating_sub(those.len()));
        self.begun.extend(those);
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
        while let Some((name, slices)) = turns.next(1).pop() {
            order.push(name);
            later.next().into_iter().for_each(|job| turns.push(*job));
            if slices > 1 {
                turns.again(vec![(name, slices - 1)]);
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
        assert_eq!((turns.next(1), turns.waiting(), turns.begun().len()), (vec!['a'], 2, 0));
        turns.again(vec!['a']);
        turns.retain(|name| *name == 'c');
        assert_eq!((turns.next(1), turns.next(1)), (vec!['c'], vec![]));
    }

    #[test]
    fn several_have_their_turn_at_a_time() {
        let mut turns = Turns::new(3);
        "abcd".chars().for_each(|name| turns.push(name));
        assert_eq!(turns.next(2), ['a', 'b']);
        turns.again(vec!['a', 'b']);
        // Who waited begins when one of them has ended.
        assert_eq!((turns.next(8), turns.waiting()), (vec!['c', 'a', 'b'], 1));
        turns.again(vec!['b']);
        assert_eq!(turns.next(8), ['d', 'b']);
        assert!(turns.next(8).is_empty() && turns.is_empty());
    }
}
