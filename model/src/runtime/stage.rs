//! A stage of a pipeline at work on a sequence: it takes the activations of the stage before and returns those for the
//! next stage; the last stage returns a token. Machines that each have a stage of a model compute the model together.
//!
//! A sequence has a session in every stage, with the states of that stage's blocks. All stages take the same steps.
//! With f32 seams, the tokens are those of the whole model, to the last bit if the steps and the devices are the same.

use std::rc::Rc;

use backend_api::StepParams;
use backend_api::run::{self, Host, read_rows};

use crate::arch::Head;
use crate::arch::MAX_TOP;
use crate::error::ModelError;
use crate::runtime::load::{FIRST, Model, no_storage};
use crate::runtime::sequence::{GenerateOptions, LogProb, Snapshot};
use crate::runtime::session::Session;

mod error;
mod seam;

pub use error::StageError;
pub use seam::Seam;

/// Most rows of a step, which bounds the size of the activations. The device processes fewer rows at a time.
const MAX_ROWS: usize = 4096;

/// Step of a stage.
#[derive(Debug, Clone, Copy)]
pub struct StageStep<'a> {
    /// Position of the first row: the end of the sequence, or the position of the last step if that is repeated.
    pub position: usize,
    /// A token for each row. May be empty for stages that [do not need tokens](StageSession::needs_tokens).
    pub tokens: &'a [u32],
    /// Activations from the stage before, in the seam's dtype; empty for the first stage.
    pub hidden: &'a [u8],
    /// Whether the last stage chooses the token that follows the rows. Set only for the last part of a prompt.
    pub choose: bool,
}

/// Output of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum StageOutput {
    /// Activations for the next stage: as many rows, in the seam's dtype.
    Hidden(Vec<u8>),
    /// The next token.
    Token {
        /// The token.
        id: u32,
        /// Probabilities of the token and of the likeliest others, if [`GenerateOptions::log_probs`] asks for them.
        log_prob: Option<LogProb>,
    },
    /// Nothing: the last stage was not asked for a token.
    Nothing,
}

/// How the last stage samples tokens.
#[derive(Debug, Clone, Copy)]
struct Choosing {
    head: Head,
    sampling: StepParams,
    /// Number of likeliest tokens to report.
    top: usize,
    /// Whether sampling depends on earlier tokens (penalties).
    looks_back: bool,
}

/// Key of a step, by which a repeated one is recognised: position, rows, and whether a token is chosen.
type Asked = (usize, usize, bool);

/// Session of a sequence in one stage.
pub struct StageSession {
    session: Session,
    seam: Seam,
    choosing: Choosing,
    reads_tokens: bool,
    keeps_states: bool,
    /// The last step and its output, in case it is requested again.
    last: Option<(Asked, StageOutput)>,
}

impl StageSession {
    /// Makes an empty session. It is greedy unless [`Self::choose`] sets other options.
    ///
    /// *Errors*: memory for states, or the device was lost; an embedding model.
    pub fn new(model: Rc<Model>, seam: Seam) -> Result<StageSession, ModelError> {
        let (reads_tokens, keeps_states) = (model.recipe().reads_tokens()?, model.recipe().keeps_states()?);
        let choosing = Choosing { head: Head::GREEDY, sampling: StepParams::at(0, 1), top: 0, looks_back: false };
        Ok(StageSession {
            session: Session::of_stage(model, FIRST)?,
            seam,
            choosing,
            reads_tokens,
            keeps_states,
            last: None,
        })
    }

    /// Sets how the last stage samples tokens: as a generation with these options does after a prompt of so many
    /// tokens. It has no effect in other stages.
    ///
    /// *Errors*: options out of range; a constraint, which stages do not support.
    pub fn choose(&mut self, options: &GenerateOptions, prompt: usize) -> Result<(), ModelError> {
        if options.constraint.is_some() {
            let why = "a stage cannot hold an answer to a format; ask a machine that has the whole model";
            return Err(ModelError::Options(why.into()));
        }
        let n_vocab = self.session.model().recipe().sizes().n_vocab;
        let (head, sampling) = options.step(n_vocab)?;
        let looks_back = !options.adjust.is_neutral();
        if self.model().recipe().stage().head && head.is_adjusted() {
            self.session.write_biases(&options.adjust.biases(n_vocab))?;
            self.session.write_penalties(&options.adjust, prompt)?;
        }
        self.choosing = Choosing { head, sampling, top: options.log_probs.unwrap_or(0), looks_back };
        Ok(())
    }

    /// Returns the model, of which one stage is loaded.
    pub fn model(&self) -> &Rc<Model> {
        self.session.model()
    }

    /// Returns the dtype of the activations between stages.
    pub fn seam(&self) -> Seam {
        self.seam
    }

    /// Returns the end of the sequence: the position of the next step.
    pub fn position(&self) -> usize {
        self.session.position()
    }

    /// Returns whether steps need the tokens of their rows: for the first stage, for blocks with per-layer embeddings,
    /// and for the last stage with penalties.
    pub fn needs_tokens(&self) -> bool {
        self.reads_tokens || (self.choosing.looks_back && self.model().recipe().stage().head)
    }

    /// Returns the session with the stage's states, to tune it for a device: see [`Session::set_prompt_rows`] and
    /// others.
    pub fn session_mut(&mut self) -> &mut Session {
        &mut self.session
    }

    /// Compiles the programs for a part of a prompt with so many rows at the end of the sequence, unless they are
    /// compiled already.
    ///
    /// *Errors*: shader or driver errors, memory, the device was lost.
    pub fn prepare(&mut self, rows: usize) -> Result<(), ModelError> {
        for rows in [rows.min(MAX_ROWS), 1] {
            let (bucket, _) = self.session.bucket(rows, self.session.most_rows(rows));
            for chooses in [false, true] {
                let head = self.head(chooses);
                if self.runs(head) {
                    self.session.prepare(bucket, head)?;
                }
            }
        }
        Ok(())
    }

    /// Takes a step. If the last step is requested again, returns its output again.
    ///
    /// *Errors*: those of [`StageError`]; more rows than the context has room for, unknown tokens; numbers that are not
    /// finite; memory, or the device was lost.
    pub async fn step(&mut self, step: &StageStep<'_>, host: &dyn Host) -> Result<StageOutput, ModelError> {
        let rows = self.rows(step)?;
        let asked = (step.position, rows, step.choose);
        match &self.last {
            Some((last, output)) if *last == asked => return Ok(output.clone()),
            _ => self.admit(step, rows)?,
        }
        let hidden = self.seam.decode(step.hidden)?;
        self.last = None;
        match self.take(step, rows, &hidden, host).await {
            Ok(output) => {
                self.last = Some((asked, output.clone()));
                Ok(output)
            }
            Err(error) => {
                self.session.rewind(step.position);
                Err(error)
            }
        }
    }

    async fn take(
        &mut self,
        step: &StageStep<'_>,
        rows: usize,
        hidden: &[f32],
        host: &dyn Host,
    ) -> Result<StageOutput, ModelError> {
        let (has_head, cols) = (self.model().recipe().stage().head, self.model().recipe().hidden());
        let most = self.session.most_rows(rows);
        let (mut done, mut program, mut output) = (0, (1, Head::NONE), Vec::new());
        while done < rows {
            let (bucket, now) = self.session.bucket(rows - done, most);
            program = (bucket, self.head(step.choose && done + now == rows));
            let tokens = step.tokens.get(done..done + now);
            let hidden = hidden.get(done * cols..(done + now) * cols).unwrap_or_default();
            self.advance(program, now, tokens, hidden, host).await?;
            if !has_head {
                self.read(program, now * cols, now, &mut output, host).await?;
            }
            done += now;
            run::turn(self.session.pace.as_mut(), host).await;
        }
        Ok(match (has_head, step.choose) {
            (false, _) => StageOutput::Hidden(self.seam.encode(&output)?),
            (true, false) => StageOutput::Nothing,
            (true, true) => self.chosen(program, host).await?,
        })
    }

    /// Returns the number of rows of a step, and checks the size of its inputs.
    fn rows(&self, step: &StageStep<'_>) -> Result<usize, StageError> {
        let recipe = self.model().recipe();
        let row = if recipe.stage().embed { 0 } else { recipe.hidden() * self.seam.bytes() };
        let (bytes, tokens) = (step.hidden.len(), step.tokens.len());
        let rows = bytes.checked_div(row).unwrap_or(tokens);
        let told = tokens == rows || (tokens == 0 && !self.needs_tokens());
        if bytes != rows * row || !told {
            let with = if self.needs_tokens() { "with" } else { "without or with" };
            let expects = format!("a row is {row} bytes of {} {with} a token", self.seam);
            return Err(StageError::Input { bytes, tokens, expects });
        }
        if (1..=MAX_ROWS).contains(&rows) { Ok(rows) } else { Err(StageError::Rows { rows }) }
    }

    /// Refuses a step that does not follow the sequence.
    fn admit(&self, step: &StageStep<'_>, rows: usize) -> Result<(), ModelError> {
        let (stage, sizes) = (self.model().recipe().stage(), self.model().recipe().sizes());
        let (used, n_ctx) = (self.position(), sizes.n_ctx);
        // After a failed step, recurrent states may be at another position than the sequence's end.
        if step.position != used || !self.session.rewritten.are_at(used) {
            return Err(StageError::Position { asked: step.position, end: used }.into());
        }
        if step.choose && !stage.head {
            return Err(StageError::NoHead { start: stage.blocks.start, end: stage.blocks.end }.into());
        }
        // A chosen token takes a row of the history.
        let tokens = rows + usize::from(step.choose);
        if tokens > n_ctx - used {
            return Err(ModelError::ContextFull { tokens, used, n_ctx });
        }
        match step.tokens.iter().find(|id| **id as usize >= sizes.n_vocab) {
            Some(&id) => Err(ModelError::Token { id, vocab: sizes.n_vocab }),
            None => Ok(()),
        }
    }

    /// Returns the head of a program. A stage without a head always returns activations.
    fn head(&self, chooses: bool) -> Head {
        match self.model().recipe().stage().head {
            true if chooses => self.choosing.head,
            true => Head::NONE,
            false => Head::GREEDY,
        }
    }

    /// Returns whether there is work for a head: without an output, a stage only updates states.
    fn runs(&self, head: Head) -> bool {
        let stage = self.model().recipe().stage();
        !stage.head || self.keeps_states || head != Head::NONE
    }

    /// Adds rows to the sequence.
    async fn advance(
        &mut self,
        (bucket, head): (usize, Head),
        rows: usize,
        tokens: Option<&[u32]>,
        hidden: &[f32],
        host: &dyn Host,
    ) -> Result<(), ModelError> {
        let position = self.position();
        if let Some(tokens) = tokens.filter(|_| self.needs_tokens()) {
            self.session.write_history(tokens)?;
        }
        if self.runs(head) {
            self.session.reserve(position + bucket, position, host).await?;
            self.session.prepare(bucket, head)?;
            if let Some(input) = self.session.input((bucket, head)) {
                self.model().backend().write(input, 0, bytemuck::cast_slice(hidden))?;
            }
            let params = StepParams { position: position as u32, rows: rows as u32, ..self.choosing.sampling };
            self.session.submit(bucket, head, &params, host).await?;
        }
        // Unknown tokens are recorded as 0; nothing reads them.
        self.session.know(tokens.unwrap_or(&[0; MAX_ROWS][..rows]));
        Ok(())
    }

    /// Reads the activations that a program returns.
    async fn read(
        &self,
        program: (usize, Head),
        len: usize,
        rows: usize,
        out: &mut Vec<f32>,
        host: &dyn Host,
    ) -> Result<(), ModelError> {
        let id = self.session.output(program).ok_or_else(|| no_storage("what a stage hands over"))?;
        let begin = out.len();
        out.resize(begin + len, 0.0);
        let bytes = bytemuck::cast_slice_mut(&mut out[begin..]);
        Ok(read_rows(&**self.model().backend(), id, 0, rows, bytes, host).await?)
    }

    /// Returns the token that was chosen after the end of the sequence.
    async fn chosen(&self, program: (usize, Head), host: &dyn Host) -> Result<StageOutput, ModelError> {
        let (backend, position) = (&**self.model().backend(), self.position());
        let n_vocab = self.model().recipe().sizes().n_vocab;
        let mut id = [0u32];
        let bytes = bytemuck::cast_slice_mut(&mut id);
        read_rows(backend, self.session.history()?, position, 1, bytes, host).await?;
        let [id] = id;
        if id as usize >= n_vocab {
            // Logits that are not finite do not have a best token.
            return Err(ModelError::NotANumber { position: position - 1, fault: None });
        }
        let log_prob = match self.session.told(program) {
            Some((told, row)) => {
                let sizes = (MAX_TOP.min(n_vocab), self.choosing.top);
                Some(told.begin(row, backend)?.finish(sizes, id, backend, host).await?)
            }
            None => None,
        };
        Ok(StageOutput::Token { id, log_prob })
    }

    /// Rewinds to a position, or to an earlier one if recurrent states require it, and returns that. The steps from
    /// there on must be repeated.
    ///
    /// *Errors*: the device was lost.
    pub fn rewind(&mut self, position: usize) -> Result<usize, ModelError> {
        let at = self.session.rewritten.checkpoint(position.min(self.position()));
        self.last = None;
        self.session.rewind(at);
        if !self.session.rewritten.are_at(at) {
            let backend = self.model().backend().clone();
            self.session.rewritten.restore(&*backend, at)?;
        }
        Ok(at)
    }

    /// Saves the states of the stage's blocks, except for rows before position `from`, which an earlier snapshot has.
    /// The sequence does not change.
    ///
    /// *Errors*: the device was lost.
    pub async fn export(&mut self, from: usize, host: &dyn Host) -> Result<Snapshot, ModelError> {
        let tokens = self.session.tokens().to_vec();
        self.session.export(&tokens, from, host).await
    }

    /// Replaces the sequence by a saved one, which may be from another backend. The next step is at its end.
    ///
    /// *Errors*: a snapshot of another stage, model or KV cache dtype, or longer than the context; an incomplete one;
    /// the device was lost. The sequence does not change unless the device was lost.
    pub async fn import(&mut self, snapshot: &Snapshot, host: &dyn Host) -> Result<(), ModelError> {
        self.session.import(snapshot, host).await?;
        self.last = None;
        Ok(())
    }
}
