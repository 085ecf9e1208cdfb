//! Drafts by prompt lookup: where the last tokens of a text stood before, what followed then may follow again. Where they are
//! new, a small model may draft ([`crate::drafter`]).
//!
//! A draft is verified in one step of several rows, which gives the model's own token after each of them; those up to the
//! first that differs are the text's. So the text is the same as without drafts, and a draft that is wrong costs time.
//!
//! *Source*: A. Saxena, "Prompt Lookup Decoding", 2023.

/// Tokens that must have stood together before: of fewer, too many are found by chance.
const GRAM: usize = 3;
/// So many tokens must have been guessed right, one by one, before the first draft is made. Guesses cost nothing: a text that
/// does not repeat itself has no drafts, and no program of several rows is compiled for it.
const PROVEN: usize = 8;
/// Rejected tokens that a text may have at most, however many were right before.
const MOST_CREDIT: usize = 16;
/// After so many right drafts the next one is as long as it may be.
pub(crate) const SURE: usize = 2;

/// Returns the tokens that followed the last tokens of a text where they stood before, the last time; they repeat if
/// they reach the end. Nothing if the last tokens are new.
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
    /// Lengths of drafts by a small model.
    lengths: [usize; 2],
    /// How many drafts before this one were right from end to end.
    right: usize,
    /// Guesses that were right beyond those that were wrong: tokens that may be rejected.
    credit: usize,
    /// Guesses that must still be right before the first draft.
    unproven: usize,
    /// Whether the text's last token was guessed right.
    repeats: bool,
    /// Tokens of all drafts so far.
    pub drafted: usize,
    /// Those of them that became the text's.
    pub accepted: usize,
}

impl Drafts {
    /// Drafts for a text that begins with these tokens, of so many at most, once `after` were foreseen; none if those are too few
    /// to gain anything.
    pub fn new(text: Vec<u32>, most: usize, after: usize) -> Option<Drafts> {
        // Programs are made for powers of two: for two of them, if that takes no time.
        let rows = 1 << (most + 1).ilog2();
        let lengths = [(rows / 2).max(2), rows];
        let rows = if after == 0 { lengths } else { [rows; 2] };
        let unproven = after.max(PROVEN);
        (most > 0).then_some(Drafts {
            text,
            rows,
            lengths,
            right: 0,
            credit: 0,
            unproven,
            repeats: false,
            drafted: 0,
            accepted: 0,
        })
    }

    /// Takes note that programs which verify drafts were made before.
    pub fn programs_are_made(&mut self) {
        self.unproven = self.unproven.min(PROVEN);
    }

    /// The text so far.
    pub fn text(&self) -> &[u32] {
        &self.text
    }

    /// Rows of steps that verify drafts by a small model: short ones, and those that may be long.
    pub fn lengths(&self) -> [usize; 2] {
        self.lengths
    }

    /// Whether there may be a draft once all tokens are known: the text is repeating itself.
    pub fn are_due(&self) -> bool {
        self.unproven == 0 && self.repeats
    }

    /// The next draft, if there is one that fits into so many rows and is worth a try.
    pub fn next(&self, room: usize) -> Option<Vec<u32>> {
        let rows = self.rows[usize::from(self.right >= SURE && self.rows[1] <= room)];
        if rows > room || !self.are_due() || self.credit < rows - 1 {
            return None;
        }
        Some(lookup(&self.text, rows - 1)).filter(|draft| !draft.is_empty())
    }

    /// Takes note of tokens of the text, and of whether they would have been guessed.
    pub fn push(&mut self, tokens: &[u32]) {
        for token in tokens {
            let guess = lookup(&self.text, 1).first().copied();
            self.repeats = guess == Some(*token);
            self.credit = match guess {
                Some(_) if self.repeats => (self.credit + 1).min(MOST_CREDIT),
                Some(_) => self.credit.saturating_sub(1),
                None => self.credit,
            };
            self.unproven = self.unproven.saturating_sub(usize::from(self.repeats));
            self.text.push(*token);
        }
    }

    /// Counts a draft, whoever made it.
    pub fn count(&mut self, drafted: usize, accepted: usize) {
        (self.drafted, self.accepted) = (self.drafted + drafted, self.accepted + accepted);
    }

    /// Takes note of what became of a draft by lookup.
    pub fn judged(&mut self, drafted: usize, accepted: usize) {
        self.count(drafted, accepted);
        self.right = if accepted == drafted { self.right + 1 } else { 0 };
        self.credit = self.credit.saturating_sub(drafted - accepted);
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

    /// Drafts for a text that was found to repeat itself.
    fn proven(most: usize) -> Drafts {
        let mut drafts = Drafts::new([1, 2, 3].repeat(2), most, 0).unwrap();
        drafts.push(&[1, 2, 3].repeat(6));
        drafts
    }

    #[test]
    fn drafts_are_made_once_guesses_were_right() {
        let mut drafts = Drafts::new(vec![1, 2, 3, 1, 2], 7, 0).unwrap();
        for (token, due) in
            [(3, false), (1, false), (2, false), (3, false), (1, false), (2, false), (3, false), (1, true)]
        {
            drafts.push(&[token]);
            // The first of them is new after what stands before it.
            assert_eq!(drafts.are_due(), due && drafts.unproven == 0, "{token}: {}", drafts.unproven);
        }
        drafts.push(&[2]);
        assert!(drafts.are_due());
        assert_eq!(drafts.next(99).unwrap(), [3, 1, 2]);
        // A token that is not the same again, and then those that follow it.
        for (token, due) in [(7, false), (1, false), (2, false), (3, false), (1, true)] {
            drafts.push(&[token]);
            assert_eq!(drafts.are_due(), due, "{token}");
        }
        assert!(drafts.next(3).is_none());
        assert_eq!(drafts.next(4).unwrap(), [2, 7, 1]);
    }

    #[test]
    fn drafts_grow_while_they_are_right_and_end_when_they_are_wrong() {
        let mut drafts = proven(7);
        assert_eq!(drafts.next(99).unwrap().len(), 3);
        (0..2).for_each(|_| drafts.judged(3, 3));
        assert_eq!((drafts.next(99).unwrap().len(), drafts.next(7).unwrap().len()), (7, 3));
        drafts.judged(7, 2);
        assert_eq!(drafts.next(99).unwrap().len(), 3);
        (0..3).for_each(|_| drafts.judged(3, 0));
        assert!(drafts.next(99).is_none(), "of 16 tokens that may be wrong 14 were");
        drafts.push(&[1]);
        assert_eq!(drafts.next(99).unwrap(), [2, 3, 1]);
        assert_eq!((drafts.drafted, drafts.accepted), (22, 8));
    }

    #[test]
    fn drafts_of_nothing_are_none_and_short_ones_stay_short() {
        assert!(Drafts::new(vec![1], 0, 0).is_none());
        for (most, short, long) in [(1, 1, 1), (2, 1, 1), (3, 1, 3), (6, 1, 3), (7, 3, 7)] {
            let mut drafts = proven(most);
            assert_eq!(drafts.next(99).unwrap().len(), short, "{most}");
            (0..SURE).for_each(|_| drafts.judged(short, short));
            assert_eq!(drafts.next(99).unwrap().len(), long, "{most}");
        }
    }

    #[test]
    fn where_programs_take_long_drafts_are_long_and_late() {
        let text = || Drafts::new([1, 2, 3].repeat(2), 7, 64).unwrap();
        let (mut new, mut again) = (text(), text());
        again.programs_are_made();
        for drafts in [&mut new, &mut again] {
            drafts.push(&[1, 2, 3].repeat(6));
        }
        assert_eq!((new.next(99), again.next(99).unwrap().len()), (None, 7));
        new.push(&[1, 2, 3].repeat(16));
        assert_eq!(new.next(99).unwrap().len(), 7);
    }
}
