//! Speculative decoding with a draft model of the same vocabulary. It is used where the text itself predicts nothing.
//!
//! The draft model samples with the same seed and positions as the main model, so that models which agree draw the same
//! tokens. Its drafts are verified like all others ([`crate::runtime::sequence::drafts`]): wrong ones only cost time.
//!
//! The time they may cost is counted in decode steps of the main model, so that every run does the same. A verified
//! draft gains a step for each accepted token. It costs the draft model's steps and the additional rows of the
//! verifying step. Lost credit is regained slowly, so that drafting is tried again.
//!
//! *Source*: Y. Leviathan, M. Kalman, Y. Matias, "Fast Inference from Transformers via Speculative Decoding", 2023.

use backend_api::StepParams;
use backend_api::run::{Host, Local, read_rows};

use crate::arch::Head;
use crate::error::ModelError;
use crate::runtime::sequence::{DraftSource, Drafts, SURE};
use crate::runtime::session::Session;
use crate::text::tokenizer::Tokenizer;

/// Initial credit in steps, which drafts may lose before one is accepted. A draft model that costs too much never
/// drafts.
const START: f64 = 2.5;
/// Highest credit in steps, however much drafts gained.
const MOST: f64 = 16.0;
/// Credit in steps that is regained for each token that was not drafted. It bounds the cost for texts that cannot be
/// drafted.
const REGAINED: f64 = 1.0 / 64.0;
/// Cost of each row of a verifying step, in steps.
const ROW: f64 = 0.25;
/// Cost of a token that the draft model reads without having drafted it, relative to one of its steps: many tokens
/// share a step.
const READ: f64 = 0.125;
/// Tokens that the draft model has not seen after a draft was accepted: the last one of the draft, and the one after
/// it.
const UNSEEN: usize = 2;
/// Largest difference of the vocabularies' sizes: model sizes of a family are padded differently.
const PADDING: usize = 128;

/// Reason why a model cannot draft for another one. Each message is one line and names the cause and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DraftError {
    /// One model has no usable tokenizer, so that the vocabularies cannot be compared.
    #[error(
        "{of} has no tokenizer that can be used, so that its tokens cannot be compared; draft with a model of the same family"
    )]
    NoTokenizer {
        /// The model without one.
        of: &'static str,
    },
    /// The vocabularies have different sizes.
    #[error(
        "the model that drafts has {draft} tokens, the model {model}; draft with a model of the same family, whose \
         vocabulary is the same"
    )]
    Sizes {
        /// Size of the draft model's vocabulary.
        draft: usize,
        /// Size of the main model's vocabulary.
        model: usize,
    },
    /// A token has different texts in the two vocabularies.
    #[error(
        "token {id} is {draft:?} for the model that drafts and {model:?} for the model; draft with a model of the same \
         family, whose vocabulary is the same"
    )]
    Token {
        /// The first such token.
        id: u32,
        /// Its text in the draft model.
        draft: String,
        /// Its text in the main model.
        model: String,
    },
    /// One model has recurrent states, which cannot be rewound.
    #[error(
        "{of} ({architecture}) rewrites states that cannot be wound back, as wrong drafts must be; go without, or use \
         models whose states are caches"
    )]
    States {
        /// The model with recurrent states.
        of: &'static str,
        /// Its architecture.
        architecture: &'static str,
    },
}

impl DraftError {
    /// Checks that a draft model has the same vocabulary as the main model.
    ///
    /// *Errors*: they differ by more than padding.
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

/// A draft model at work for a session.
pub(crate) struct Drafter {
    session: Session,
    account: Account,
    /// Vocabulary size of the main model, which bounds the tokens of a draft.
    n_vocab: usize,
    /// Tokens that the draft model may read at no charge: the main model had to read them as well.
    read: usize,
}

/// Account of the costs and gains of drafts.
#[derive(Debug)]
struct Account {
    /// Cost of a step of the draft model, in steps of the main model.
    cost: f64,
    /// Steps that drafts may still lose.
    credit: f64,
    /// Cost of the draft that is being verified.
    spent: f64,
    /// Number of consecutive drafts that were accepted completely.
    right: usize,
}

impl Account {
    fn new(cost: f64) -> Account {
        Account { cost, credit: START, spent: 0.0, right: 0 }
    }

    /// Returns the cost of a draft that is verified in `rows` rows. The draft model has `unseen` tokens to read, of
    /// which `read` are at no charge.
    fn price(&self, rows: usize, unseen: usize, read: usize) -> f64 {
        let steps = rows - 2 + unseen.min(UNSEEN);
        let more = unseen.saturating_sub(UNSEEN).saturating_sub(read);
        self.cost * (steps as f64 + READ * more as f64) + ROW * rows as f64
    }

    /// Chooses the rows of the next verifying step: the longer one if recent drafts were accepted and it is affordable,
    /// else the shorter one. Returns nothing if neither is affordable or fits `room`.
    fn rows(&self, [short, long]: [usize; 2], room: usize, unseen: usize, read: usize) -> Option<usize> {
        let may = |rows: &usize| *rows <= room && self.price(*rows, unseen, read) <= self.credit;
        [long].into_iter().filter(|_| self.right >= SURE).chain([short]).find(may)
    }

    /// Records how many tokens of a draft were accepted.
    fn judged(&mut self, drafted: usize, accepted: usize) {
        self.right = if accepted == drafted { self.right + 1 } else { 0 };
        self.credit = (self.credit + accepted as f64 - self.spent).min(MOST);
    }

    /// Records tokens that were not drafted.
    fn went_without(&mut self, tokens: usize) {
        let regained = self.credit + REGAINED * tokens as f64;
        self.credit = self.credit.max(regained.min(START));
    }
}

impl Drafter {
    /// Makes a drafter with a session of the draft model. A step of it costs `cost` steps of the main model, which has
    /// `n_vocab` tokens.
    pub fn new(mut session: Session, cost: f64, n_vocab: usize) -> Drafter {
        // The unseen tokens after a draft are decoded: a prefill program for so few rows would be one more to compile.
        session.set_least_prompt(UNSEEN + 1);
        Drafter { session, account: Account::new(cost), n_vocab, read: usize::MAX }
    }

    /// Returns the rows of the next verifying step, if a draft is worthwhile.
    fn rows(&self, drafts: &Drafts, room: usize) -> Option<usize> {
        let text = drafts.text();
        let unseen = &text[self.session.reusable(text)..];
        let sizes = self.session.model().recipe().sizes();
        let room = room.min((sizes.n_ctx + 1).saturating_sub(text.len()));
        let known = unseen.iter().all(|token| (*token as usize) < sizes.n_vocab);
        self.account.rows(drafts.lengths(), room, unseen.len(), self.read).filter(|_| known)
    }

    /// Makes the next draft.
    async fn draft(
        &mut self,
        drafts: &Drafts,
        room: usize,
        (head, sampling): (Head, &StepParams),
        host: &dyn Host,
    ) -> Result<Option<Vec<u32>>, ModelError> {
        let Some(rows) = self.rows(drafts, room) else { return Ok(None) };
        let (text, session) = (drafts.text(), &mut self.session);
        let sample = head.token.is_some_and(|choice| choice.sample);
        let head = if sample { Head::SAMPLE } else { Head::GREEDY };
        let unseen = session.resume(text);
        self.account.spent = self.account.price(rows, unseen.len(), self.read);
        self.read = 0;
        session.prefill(unseen, head, sampling, host).await?;
        let mut draft = vec![0; rows - 1];
        for position in text.len()..text.len() + draft.len() - 1 {
            session.submit(1, head, &StepParams { position: position as u32, rows: 1, ..*sampling }, host).await?;
        }
        session.read_history(text.len(), &mut draft, host).await?;
        // A token that the main model does not have (or garbage after logits that are not finite) is replaced.
        let known = draft.iter().take_while(|token| (**token as usize) < self.n_vocab).count();
        session.know(&draft[..known.min(draft.len() - 1)]);
        draft[known..].fill(0);
        Ok(Some(draft))
    }
}

impl DraftSource for Drafter {
    fn begin(&mut self, read: usize) {
        self.read = self.read.max(read);
    }

    fn is_due(&self, drafts: &Drafts) -> bool {
        self.rows(drafts, usize::MAX).is_some()
    }

    fn next<'a>(
        &'a mut self,
        drafts: &'a Drafts,
        room: usize,
        choice: (Head, &'a StepParams),
        host: &'a dyn Host,
    ) -> Local<'a, Result<Option<Vec<u32>>, ModelError>> {
        Box::pin(self.draft(drafts, room, choice, host))
    }

    fn judged(&mut self, drafted: usize, accepted: usize) {
        self.account.judged(drafted, accepted);
    }

    fn went_without(&mut self, tokens: usize) {
        self.account.went_without(tokens);
    }
}

impl Session {
    /// Attaches a draft model of the same vocabulary, with a session of its own. `cost` is the cost of its decode step
    /// in steps of this model ([`Model::step_cost`](crate::Model::step_cost)). Drafts do not change any token. They are
    /// not made where they do not pay off, or if the backend cannot verify them.
    ///
    /// *Errors*: either model has states that cannot be rewound.
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

    /// Reads tokens from the device's history, from a position on.
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
                // Each verifying step gives at least one token.
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
