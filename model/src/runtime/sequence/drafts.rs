//! Speculative decoding by prompt lookup: if the last tokens of a text occurred before, the tokens that followed then
//! are drafted. If they did not, a draft model may draft ([`crate::runtime::run::drafter`]).
//!
//! A draft is verified in one step of several rows, which gives the model's own token after each row. Tokens are
//! accepted up to the first difference. So the text is the same as without drafts, and a wrong draft only costs time.
//!
//! *Source*: A. Saxena, "Prompt Lookup Decoding", 2023.

use backend_api::StepParams;
use backend_api::run::{Host, Local};

use crate::arch::Head;
use crate::error::ModelError;

/// Maker of drafts for texts that do not predict themselves, such as a draft model.
pub(crate) trait DraftSource {
    /// Records that the main model has read so many tokens.
    fn begin(&mut self, read: usize);

    /// Returns whether there will be a draft once all tokens are known.
    fn is_due(&self, drafts: &Drafts) -> bool;

    /// Makes the next draft, if one fits into `room` rows and is worthwhile. Tokens are sampled as in the main model,
    /// but without penalties and biases.
    ///
    /// *Errors*: those of the draft model's steps.
    fn next<'a>(
        &'a mut self,
        drafts: &'a Drafts,
        room: usize,
        choice: (Head, &'a StepParams),
        host: &'a dyn Host,
    ) -> Local<'a, Result<Option<Vec<u32>>, ModelError>>;

    /// Records how many tokens of a draft were accepted.
    fn judged(&mut self, drafted: usize, accepted: usize);

    /// Records tokens that were not drafted.
    fn went_without(&mut self, tokens: usize);
}

/// Length of the n-gram to look up. Shorter ones match by chance too often.
const GRAM: usize = 3;
/// Least number of correct guesses before the first draft. Guesses are free, so a text without repetition gets no
/// drafts, and no program of several rows is compiled for it.
const PROVEN: usize = 8;
/// Most tokens that may be rejected, however many guesses were correct.
const MOST_CREDIT: usize = 16;
/// Number of consecutive accepted drafts after which the longer length is used.
pub(crate) const SURE: usize = 2;

/// Returns the tokens that followed the last occurrence of the text's last n-gram, cyclically repeated if they reach
/// the end. Empty if the n-gram is new.
fn lookup(text: &[u32], len: usize) -> Vec<u32> {
    let (Some(gram), Some((_, before))) = (text.last_chunk::<GRAM>(), text.split_last()) else { return Vec::new() };
    // This takes microseconds for thousands of tokens, while a step of the model takes milliseconds.
    match before.windows(GRAM).rposition(|window| window == gram) {
        Some(at) => text[at + GRAM..].iter().cycle().take(len).copied().collect(),
        None => Vec::new(),
    }
}

/// Drafts of a text. Their number and length depend on how well earlier guesses did.
pub(crate) struct Drafts {
    text: Vec<u32>,
    /// Rows of a verifying step, short and long, including the text's last token.
    rows: [usize; 2],
    /// Rows of a step that verifies a draft of the draft model, short and long.
    lengths: [usize; 2],
    /// Number of consecutive drafts that were accepted completely.
    right: usize,
    /// Correct guesses minus wrong ones: tokens that may be rejected.
    credit: usize,
    /// Correct guesses that are still needed before the first draft.
    unproven: usize,
    /// Whether the last token was guessed correctly.
    repeats: bool,
    /// Number of drafted tokens.
    pub drafted: usize,
    /// Number of accepted tokens.
    pub accepted: usize,
}

impl Drafts {
    /// Makes the drafts of a text that begins with these tokens, with at most `most` tokens each. They begin once
    /// `after` tokens were guessed correctly. Returns nothing if `most` is 0.
    pub fn new(text: Vec<u32>, most: usize, after: usize) -> Option<Drafts> {
        // Programs have powers of two as rows. Two of them are used if compiling takes no time.
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

    /// Records that programs which verify drafts are compiled already.
    pub fn programs_are_made(&mut self) {
        self.unproven = self.unproven.min(PROVEN);
    }

    /// Returns the text so far.
    pub fn text(&self) -> &[u32] {
        &self.text
    }

    /// Returns the rows of steps that verify drafts of the draft model: short and long.
    pub fn lengths(&self) -> [usize; 2] {
        self.lengths
    }

    /// Returns whether there may be a draft once all tokens are known: the text is repeating itself.
    pub fn are_due(&self) -> bool {
        self.unproven == 0 && self.repeats
    }

    /// Returns the next draft, if one fits into `room` rows and is worthwhile. Beside other sequences it has any number of rows,
    /// elsewhere those of a program.
    pub fn next(&self, room: usize, is_beside: bool) -> Option<Vec<u32>> {
        let rows = if is_beside { self.lengths.map(|rows| rows.min(room)) } else { self.rows };
        let rows = rows[usize::from(self.right >= SURE && rows[1] <= room)];
        if rows < 2 || rows > room || !self.are_due() || self.credit < rows - 1 {
            return None;
        }
        Some(lookup(&self.text, rows - 1)).filter(|draft| !draft.is_empty())
    }

    /// Adds tokens to the text, and records whether they would have been guessed.
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

    /// Counts a draft of either kind.
    pub fn count(&mut self, drafted: usize, accepted: usize) {
        (self.drafted, self.accepted) = (self.drafted + drafted, self.accepted + accepted);
    }

    /// Records how many tokens of a lookup draft were accepted.
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
        // The draft continues into the text's end, and repeats cyclically.
        assert_eq!(lookup(&text, 9), [4, 5, 6, 1, 2, 3, 4, 5, 6]);
        assert_eq!(lookup(&[7; 4], 3), [7; 3]);
        // If there are several matches, the last one counts.
        text.extend([9, 1, 2, 3]);
        assert_eq!(lookup(&text, 2), [9, 1]);
    }

    /// Makes the drafts of a text that was found to repeat itself.
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
            // The first token is new after the ones before it.
            assert_eq!(drafts.are_due(), due && drafts.unproven == 0, "{token}: {}", drafts.unproven);
        }
        drafts.push(&[2]);
        assert!(drafts.are_due());
        assert_eq!(drafts.next(99, false).unwrap(), [3, 1, 2]);
        // A token breaks the repetition, and then the repetition resumes.
        for (token, due) in [(7, false), (1, false), (2, false), (3, false), (1, true)] {
            drafts.push(&[token]);
            assert_eq!(drafts.are_due(), due, "{token}");
        }
        assert!(drafts.next(3, false).is_none());
        assert_eq!(drafts.next(4, false).unwrap(), [2, 7, 1]);
    }

    #[test]
    fn drafts_grow_while_they_are_right_and_end_when_they_are_wrong() {
        let mut drafts = proven(7);
        assert_eq!(drafts.next(99, false).unwrap().len(), 3);
        (0..2).for_each(|_| drafts.judged(3, 3));
        assert_eq!((drafts.next(99, false).unwrap().len(), drafts.next(7, false).unwrap().len()), (7, 3));
        drafts.judged(7, 2);
        assert_eq!(drafts.next(99, false).unwrap().len(), 3);
        (0..3).for_each(|_| drafts.judged(3, 0));
        assert!(drafts.next(99, false).is_none(), "of 16 tokens that may be wrong 14 were");
        drafts.push(&[1]);
        assert_eq!(drafts.next(99, false).unwrap(), [2, 3, 1]);
        assert_eq!([1, 2, 3, 9].map(|room| drafts.next(room, true).map_or(0, |draft| draft.len())), [0, 1, 2, 3]);
        assert_eq!((drafts.drafted, drafts.accepted), (22, 8));
    }

    #[test]
    fn drafts_of_nothing_are_none_and_short_ones_stay_short() {
        assert!(Drafts::new(vec![1], 0, 0).is_none());
        for (most, short, long) in [(1, 1, 1), (2, 1, 1), (3, 1, 3), (6, 1, 3), (7, 3, 7)] {
            let mut drafts = proven(most);
            assert_eq!(drafts.next(99, false).unwrap().len(), short, "{most}");
            (0..SURE).for_each(|_| drafts.judged(short, short));
            assert_eq!(drafts.next(99, false).unwrap().len(), long, "{most}");
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
        assert_eq!((new.next(99, false), again.next(99, false).unwrap().len()), (None, 7));
        new.push(&[1, 2, 3].repeat(16));
        assert_eq!(new.next(99, false).unwrap().len(), 7);
    }
}
