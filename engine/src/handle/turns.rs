//! Round-robin scheduling: several jobs are begun and take turns, one slice each. The others wait in the order of their
//! arrival.

use std::collections::VecDeque;

/// Jobs that take turns, and jobs that wait.
#[derive(Debug)]
pub(crate) struct Turns<T> {
    begun: VecDeque<T>,
    waiting: VecDeque<T>,
    most: usize,
}

impl<T> Turns<T> {
    /// Makes an empty schedule in which at most `most` jobs take turns. The next one begins when one of them has ended.
    pub fn new(most: usize) -> Turns<T> {
        Turns { begun: VecDeque::new(), waiting: VecDeque::new(), most: most.max(1) }
    }

    /// Returns whether there are no jobs.
    pub fn is_empty(&self) -> bool {
        self.begun.is_empty() && self.waiting.is_empty()
    }

    /// Adds a new job to the end of the queue.
    pub fn push(&mut self, new: T) {
        self.waiting.push_back(new);
    }

    /// Takes the jobs whose turn is next, at most `most`. Jobs that have not ended are returned by [`Self::again`].
    pub fn next(&mut self, most: usize) -> Vec<T> {
        self.begin();
        let count = most.clamp(1, self.begun.len().max(1)).min(self.begun.len());
        self.begun.drain(..count).collect()
    }

    /// Takes back the jobs whose turn is over. All other jobs that are begun come before their next turn, and so does a
    /// job that can begin now.
    pub fn again(&mut self, those: Vec<T>) {
        self.begin_beside(those.len());
        self.begun.extend(those);
    }

    /// Begins the jobs that have waited longest, until as many are begun as may be.
    pub fn begin(&mut self) {
        self.begin_beside(0);
    }

    /// Does so while so many others have their turn.
    fn begin_beside(&mut self, others: usize) {
        let room = self.most.saturating_sub(others + self.begun.len()).min(self.waiting.len());
        self.begun.extend(self.waiting.drain(..room));
    }

    /// Removes the jobs that `wanted` rejects.
    pub fn retain(&mut self, mut wanted: impl FnMut(&mut T) -> bool) {
        self.begun.retain_mut(&mut wanted);
        self.waiting.retain_mut(&mut wanted);
    }

    /// Iterates over the jobs that are begun.
    pub fn begun(&self) -> impl ExactSizeIterator<Item = &T> {
        self.begun.iter()
    }

    /// Returns how many jobs wait to begin.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the order of turns of jobs with so many slices; `first` come before the first turn, and one of `later`
    /// after each turn.
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
        // A job that is begun goes on, however many short ones arrive.
        assert_eq!(order(2, &[('a', 4)], &[('b', 1), ('c', 1), ('d', 1), ('e', 1)]), "abacadae");
        // As many jobs as are begun take turns; the next one begins when one has ended.
        assert_eq!(order(2, &[('a', 2), ('b', 3), ('c', 1)], &[]), "ababcb");
        // With one at a time, whole answers follow in the order of their arrival.
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
        // A waiting job begins when one of the others has ended.
        assert_eq!((turns.next(8), turns.waiting()), (vec!['c', 'a', 'b'], 1));
        turns.again(vec!['b']);
        assert_eq!(turns.next(8), ['d', 'b']);
        assert!(turns.next(8).is_empty() && turns.is_empty());
    }
}
