//! Drafts by a small model of the same vocabulary, where what the text has already tells nothing.
//!
//! The small model chooses as the text's own does, with the same seed at the same position, so that draws of models that
//! agree are the same. What becomes of its drafts is what becomes of any ([`crate::drafts`]): wrong ones cost time.
//!
//! How much time they may cost is counted in decode steps of the text's own model, so that it is the same on every run. A
//! draft that was verified gains as many steps as it has right tokens, and loses what the small model's steps and the
//! further rows of the verifying step cost. What was lost comes back slowly, so that drafts are tried again.
//!
//! *Source*: Y. Leviathan, M. Kalman, Y. Matias, "Fast Inference from Transformers via Speculative Decoding", 2023.

use backend_api::StepParams;
use backend_api::run::{Host, read_rows};

use crate::arch::Head;
use crate::drafts::{Drafts, SURE};
use crate::error::ModelError;
use crate::session::Session;
use crate::tokenizer::Tokenizer;

/// Steps that drafts may lose before one of them was right: a try. A small model that costs more than a try can gain has none.
const START: f64 = 2.5;
/// Steps that they may lose, however much they gained before.
const MOST: f64 = 16.0;
/// Steps that they may lose again after each token that was not drafted: of a text that cannot be drafted, so much.
const REGAINED: f64 = 1.0 / 64.0;
/// Cost of a further row in a step that verifies drafts, in steps.
const ROW: f64 = 0.25;
/// Cost of a token that the small model reads because it did not draft it: many go through one step.
const READ: f64 = 0.125;
/// Tokens of the text that the small model has not seen after its own draft: the last of that if it was right, and the one
/// after it.
const UNSEEN: usize = 2;
/// Tokens that one of the vocabularies may have beyond the other: families pad them to several sizes.
const PADDING: usize = 128;

/// Why a model cannot draft for another. Each message is one line and names the cause and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DraftError {
    /// A file whose tokens cannot be known.
    #[error(
        "{of} has no tokenizer that can be used, so that its tokens cannot be compared; draft with a model of the same family"
    )]
    NoTokenizer {
        /// Which of the two.
        of: &'static str,
    },
    /// Vocabularies of different lengths.
    #[error(
        "the model that drafts has {draft} tokens, the model {model}; draft with a model of the same family, whose \
         vocabulary is the same"
    )]
    Sizes {
        /// Token in the vocabulary of the small model.
        draft: usize,
        /// Token in the vocabulary of the model that verifies.
        model: usize,
    },
    /// A token that means something else.
    #[error(
        "token {id} is {draft:?} for the model that drafts and {model:?} for the model; draft with a model of the same \
         family, whose vocabulary is the same"
    )]
    Token {
        /// The first such.
        id: u32,
        /// Text of the token in the small model.
        draft: String,
        /// Text of the token in the model that verifies.
        model: String,
    },
    /// States that steps rewrite.
    #[error(
        "{of} ({architecture}) rewrites states that cannot be wound back, as wrong drafts must be; go without, or use \
         models whose states are caches"
    )]
    States {
        /// Which of the two.
        of: &'static str,
        /// Its architecture.
        architecture: &'static str,
    },
}

impl DraftError {
    /// Compares the vocabularies of a model that drafts and of the one that verifies.
    ///
    /// *Errors*: they differ in more than what pads the longer one.
    pub fn check(draft: &Tokenizer, model: &Tokenizer) -> Result<(), DraftError> {
        let sizes = [draft.vocab_len(), model.vocab_len()];
        if sizes[0].abs_diff(sizes[1]) > PADDING {
            return Err(DraftError::Sizes { draft: sizes[0], model: sizes[1] });
        }
        let both = sizes[0].min(sizes[1]) as u32;
        match (0..both).find(|id| draft.token_text(*id) != model.token_text(*id)) {
            Some(id) => {
                let [draft, model] = [draft, model].map(|tokenizer| tokenizer.token_text(id).to_owned());
                Err(DraftError::Token { id, draft, model })
            }
            None => Ok(()),
        }
    }
}

/// A small model that drafts for a text.
pub(crate) struct Drafter {
    session: Session,
    account: Account,
    /// Tokens of the text's model, which a draft may have.
    n_vocab: usize,
    /// Tokens that the small model may read for nothing: those that the text's own had to read, too.
    read: usize,
}

/// Costs and gains of drafts.
#[derive(Debug)]
struct Account {
    /// Cost of a step of the small model, in steps of the large one.
    cost: f64,
    /// Steps that drafts may lose.
    credit: f64,
    /// Cost of the draft that is being verified.
    spent: f64,
    /// How many drafts before this one were right from end to end.
    right: usize,
}

impl Account {
    fn new(cost: f64) -> Account {
        Account { cost, credit: START, spent: 0.0, right: 0 }
    }

    /// Returns the cost of a draft that is verified in so many rows, if the small model has `unseen` tokens of the
    /// text to read, all but `read` of them at the drafts' expense.
    fn price(&self, rows: usize, unseen: usize, read: usize) -> f64 {
        let steps = rows - 2 + unseen.min(UNSEEN);
        let more = unseen.saturating_sub(UNSEEN).saturating_sub(read);
        self.cost * (steps as f64 + READ * more as f64) + ROW * rows as f64
    }

    /// Rows of a step that verifies the next draft, of these the longest that is worth a try.
    fn rows(&self, [short, long]: [usize; 2], room: usize, unseen: usize, read: usize) -> Option<usize> {
        let may = |rows: &usize| *rows <= room && self.price(*rows, unseen, read) <= self.credit;
        [long].into_iter().filter(|_| self.right >= SURE).chain([short]).find(may)
    }

    /// Takes note of what became of a draft.
    fn judged(&mut self, drafted: usize, accepted: usize) {
        self.right = if accepted == drafted { self.right + 1 } else { 0 };
        self.credit = (self.credit + accepted as f64 - self.spent).min(MOST);
    }

    /// Takes note of tokens that were not drafted.
    fn went_without(&mut self, tokens: usize) {
        let regained = self.credit + REGAINED * tokens as f64;
        self.credit = self.credit.max(regained.min(START));
    }
}

impl Drafter {
    /// Makes a drafter of a session whose steps cost so much, in steps of a model with so many tokens.
    pub fn new(mut session: Session, cost: f64, n_vocab: usize) -> Drafter {
        // What it has not seen after a draft is decoded: a program of so few rows would be one more to compile.
        session.set_least_prompt(UNSEEN + 1);
        Drafter { session, account: Account::new(cost), n_vocab, read: usize::MAX }
    }

    /// Takes note that the text's own model has read so many tokens.
    pub fn begin(&mut self, read: usize) {
        self.read = self.read.max(read);
    }

    /// Rows of a step that verifies the next draft, if it is worth a try.
    fn rows(&self, drafts: &Drafts, room: usize) -> Option<usize> {
        let text = drafts.text();
        let unseen = &text[self.session.reusable(text)..];
        let sizes = self.session.model().recipe().sizes();
        let room = room.min((sizes.n_ctx + 1).saturating_sub(text.len()));
        let known = unseen.iter().all(|token| (*token as usize) < sizes.n_vocab);
        self.account.rows(drafts.lengths(), room, unseen.len(), self.read).filter(|_| known)
    }

    /// Whether there will be a draft once all tokens are known.
    pub fn is_due(&self, drafts: &Drafts) -> bool {
        self.rows(drafts, usize::MAX).is_some()
    }

    /// The next draft, if there is one that fits into so many rows and is worth a try. It is chosen as the text's tokens are,
    /// but for what changes their chances.
    ///
    /// *Errors*: as [`Session::generate`].
    pub async fn next(
        &mut self,
        drafts: &Drafts,
        room: usize,
        (head, sampling): (Head, &StepParams),
        host: &dyn Host,
    ) -> Result<Option<Vec<u32>>, ModelError> {
        let Some(rows) = self.rows(drafts, room) else { return Ok(None) };
        let (text, session) = (drafts.text(), &mut self.session);
        let head = match head {
            Head::Sample | Head::Adjusted { sample: true, .. } => Head::Sample,
            _ => Head::Greedy,
        };
        let unseen = session.resume(text);
        self.account.spent = self.account.price(rows, unseen.len(), self.read);
        self.read = 0;
        session.prefill(unseen, head, sampling, host).await?;
        let mut draft = vec![0; rows - 1];
        for position in text.len()..text.len() + draft.len() - 1 {
            session.submit(1, head, &StepParams { position: position as u32, rows: 1, ..*sampling }, host).await?;
        }
        session.read_history(text.len(), &mut draft, host).await?;
        // Of a token that the text cannot have, or of none, as logits may be that are no numbers, another takes the place.
        let known = draft.iter().take_while(|token| (**token as usize) < self.n_vocab).count();
        session.know(&draft[..known.min(draft.len() - 1)]);
        draft[known..].fill(0);
        Ok(Some(draft))
    }

    /// Takes note of what became of a draft.
    pub fn judged(&mut self, drafted: usize, accepted: usize) {
        self.account.judged(drafted, accepted);
    }

    /// Takes note of tokens that were not drafted.
    pub fn went_without(&mut self, tokens: usize) {
        self.account.went_without(tokens);
    }
}

impl Session {
    /// Has a small model of the same vocabulary draft what comes next, in a session of its own; `cost` is what a decode step
    /// of it costs, in steps of this model ([`Model::step_cost`](crate::Model::step_cost)). No token changes by that. Where
    /// drafts do not pay, or the backend verifies none, there are none.
    ///
    /// *Errors*: states of either model cannot be wound back.
    pub fn set_draft(&mut self, draft: Session, cost: f64) -> Result<(), DraftError> {
        for (session, of) in [(&*self, "the model"), (&draft, "the model that drafts")] {
            if !session.rewritten.is_empty() {
                return Err(DraftError::States { of, architecture: session.model().recipe().architecture() });
            }
        }
        let n_vocab = self.model().recipe().sizes().n_vocab;
        self.drafter = Some(Box::new(Drafter::new(draft, cost, n_vocab)));
        Ok(())
    }

    /// Waits for tokens of the history from a position on.
    async fn read_history(&mut self, first: usize, tokens: &mut [u32], host: &dyn Host) -> Result<(), ModelError> {
        let (backend, history) = (self.model().backend().clone(), self.history()?);
        let mark = self.pace.as_ref().map(backend_api::Pace::mark);
        let count = tokens.len();
        read_rows(&*backend, history, first, count, bytemuck::cast_slice_mut(tokens), host).await?;
        if let Some((pace, mark)) = self.pace.as_mut().filter(|pace| !pace.is_synchronous()).zip(mark) {
            pace.done(mark, host.now_ms());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use approx::assert_abs_diff_eq;

    #[test]
    fn drafts_that_are_wrong_lose_little() {
        for cost in [0.02, 0.1, 0.3, 0.6, 1.0, 3.0] {
            let mut account = Account::new(cost);
            let mut lost = 0.0;
            let mut tokens = 0;
            while tokens < 2000 {
                // Each verifying step gives one token at least.
                match account.rows([4, 8], usize::MAX, UNSEEN, 0) {
                    Some(rows) => {
                        account.spent = account.price(rows, UNSEEN, 0);
                        lost += account.spent;
                        account.judged(rows - 1, 0);
                    }
                    None => account.went_without(1),
                }
                tokens += 1;
            }
            assert!(lost <= START + 2000.0 * REGAINED, "{cost}: {lost} steps");
        }
    }

    #[test]
    fn drafts_that_are_right_grow() {
        let mut account = Account::new(0.1);
        let mut lengths = Vec::new();
        for _ in 0..4 {
            let rows = account.rows([4, 8], usize::MAX, UNSEEN, 0).unwrap();
            account.spent = account.price(rows, UNSEEN, 0);
            account.judged(rows - 1, rows - 1);
            lengths.push(rows);
        }
        assert_eq!(lengths, [4, 4, 8, 8]);
        assert_eq!(account.rows([4, 8], 7, UNSEEN, 0), Some(4), "eight do not fit");
        assert_eq!(account.rows([4, 8], 3, UNSEEN, 0), None);
        account.judged(7, 6);
        assert_eq!(account.rows([4, 8], usize::MAX, UNSEEN, 0), Some(4));
        account.credit = 0.0;
        assert_eq!(account.rows([4, 8], usize::MAX, UNSEEN, 0), None, "there is nothing to lose");
    }

    #[test]
    fn a_text_of_somebody_else_is_read_at_the_drafts_expense() {
        let account = Account::new(0.1);
        assert_abs_diff_eq!(account.price(4, 1, 0), 1.3, epsilon = 1e-9);
        assert_abs_diff_eq!(account.price(4, 1002, 1000), 1.4, epsilon = 1e-9);
        assert_abs_diff_eq!(account.price(4, 1002, 0), 13.9, epsilon = 1e-9);
        assert_eq!(account.rows([4, 8], usize::MAX, 1002, 0), None);
        assert_eq!(account.rows([4, 8], usize::MAX, 1002, 1000), Some(4));
    }
}
