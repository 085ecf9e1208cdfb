//! Drafts by prompt lookup: where the last tokens of a text stood before, what followed then may follow again.
//!
//! A draft is verified in one step of several rows, which gives the model's own token after each of them; those up to the
//! first that differs are the text's. So the text is the same as without drafts, and a draft that is wrong costs time.
//!
//! *Source*: A. Saxena, "Prompt Lookup Decoding", 2023.

/// Tokens that must have stood together before: of fewer, too many are found by chance.
const GRAM: usize = 3;
/// Rejected tokens that a text may have at first.
const CREDIT: f64 = 6.0;
/// Those that it may have at most, once others were accepted.
const MOST_CREDIT: f64 = 16.0;
/// What each token of the text adds to that. A step of four rows takes less time than three of one row, so with a wrong
/// draft of three in 192 tokens a text takes about a hundredth longer.
const CREDIT_PER_TOKEN: f64 = 1.0 / 64.0;
/// After so many right drafts the next one is as long as it may be.
const SURE: usize = 2;

/// What followed the last tokens of a text where they stood before, the last time; where that is up to now, the same again.
/// Nothing if they are new.
fn lookup(text: &[u32], len: usize) -> Vec<u32> {
    let (Some(gram), Some((_, before))) = (text.last_chunk::<GRAM>(), text.split_last()) else { return Vec::new() };
    // Some microseconds for a text of thousands of tokens, where a step of the model takes milliseconds.
    match before.windows(GRAM).rposition(|window| window == gram) {
        Some(at) => text[at + GRAM..].iter().cycle().take(len).copied().collect(),
        None => Vec::new(),
    }
}

/// Makes drafts for a text, as many and as long as they proved to be worth.
pub(crate) struct Drafts {
    text: Vec<u32>,
    /// Rows of a step that verifies a draft, the text's last token included.
    rows: [usize; 2],
    /// How many drafts before this one were right from end to end.
    right: usize,
    /// Tokens that may be rejected.
    credit: f64,
    /// Tokens of all drafts so far.
    pub drafted: usize,
    /// Those of them that became the text's.
    pub accepted: usize,
}

impl Drafts {
    /// Drafts for a text that begins with these tokens, of so many at most; none if those are too few to gain anything.
    pub fn new(text: Vec<u32>, most: usize) -> Option<Drafts> {
        // Programs are made for powers of two.
        let rows = 1 << (most + 1).ilog2();
        let rows = [(rows / 2).max(2), rows];
        (most > 0).then_some(Drafts { text, rows, right: 0, credit: CREDIT, drafted: 0, accepted: 0 })
    }

    /// The next draft, if there is one that fits into so many rows and is worth a try.
    pub fn next(&self, room: usize) -> Option<Vec<u32>> {
        let rows = self.rows[usize::from(self.right >= SURE && self.rows[1] <= room)];
        if rows > room || self.credit < (rows - 1) as f64 {
            return None;
        }
        Some(lookup(&self.text, rows - 1)).filter(|draft| !draft.is_empty())
    }

    /// Takes note of tokens of the text.
    pub fn push(&mut self, tokens: &[u32]) {
        self.text.extend(tokens);
        self.credit = (self.credit + CREDIT_PER_TOKEN * tokens.len() as f64).min(MOST_CREDIT);
    }

    /// Takes note of what became of a draft.
    pub fn judged(&mut self, drafted: usize, accepted: usize) {
        (self.drafted, self.accepted) = (self.drafted + drafted, self.accepted + accepted);
        self.right = if accepted == drafted { self.right + 1 } else { 0 };
        self.credit = (self.credit + accepted as f64 - (drafted - accepted) as f64).min(MOST_CREDIT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_is_what_followed_before() {
        let mut text = vec![1, 2, 3, 4, 5, 6, 1, 2];
        assert!(lookup(&text, 3).is_empty() && lookup(&[], 3).is_empty());
        text.push(3);
        assert_eq!(lookup(&text, 3), [4, 5, 6]);
        // The text itself goes on after what was found, and repeats that.
        assert_eq!(lookup(&text, 9), [4, 5, 6, 1, 2, 3, 4, 5, 6]);
        assert_eq!(lookup(&[7; 4], 3), [7; 3]);
        // Of several places the last counts.
        text.extend([9, 1, 2, 3]);
        assert_eq!(lookup(&text, 2), [9, 1]);
    }

    #[test]
    fn drafts_grow_while_they_are_right_and_end_when_they_are_wrong() {
        let mut drafts = Drafts::new([1, 2, 3].repeat(3), 7).unwrap();
        assert_eq!(drafts.next(99).unwrap().len(), 3);
        drafts.judged(3, 3);
        assert_eq!(drafts.next(99).unwrap().len(), 3);
        drafts.judged(3, 3);
        assert_eq!((drafts.next(99).unwrap().len(), drafts.next(7).unwrap().len()), (7, 3));
        assert!(drafts.next(3).is_none());
        drafts.judged(7, 2);
        assert_eq!(drafts.next(99).unwrap().len(), 3);
        (0..2).for_each(|_| drafts.judged(3, 0));
        assert_eq!(drafts.next(99).unwrap().len(), 3, "of 12 tokens that may be wrong 9 were");
        drafts.judged(3, 0);
        assert!(drafts.next(99).is_none());
        let again = [1, 2, 3].repeat(64);
        drafts.push(&again);
        assert_eq!(drafts.next(99).unwrap(), [1, 2, 3]);
        assert_eq!((drafts.drafted, drafts.accepted), (22, 8));
    }

    #[test]
    fn drafts_of_nothing_are_none_and_short_ones_stay_short() {
        assert!(Drafts::new(vec![1], 0).is_none());
        for (most, short, long) in [(1, 1, 1), (2, 1, 1), (3, 1, 3), (6, 1, 3), (7, 3, 7)] {
            let mut drafts = Drafts::new(vec![4; 9], most).unwrap();
            assert_eq!(drafts.next(99).unwrap().len(), short, "{most}");
            (0..SURE).for_each(|_| drafts.judged(short, short));
            assert_eq!(drafts.next(99).unwrap().len(), long, "{most}");
        }
    }
}
