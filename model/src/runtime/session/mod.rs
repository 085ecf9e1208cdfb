//! Session of a model: its KV cache, token history, and the programs that advance them.

mod diagnose;
mod growing;
mod inputs;
mod logits;
mod mask;
mod resume;
mod rewind;
mod steps;
mod trace;

pub use diagnose::Fault;
pub(crate) use logits::rows_for;
pub(crate) use mask::Mask;
pub(crate) use rewind::Rewritten;
pub(crate) use trace::Trace;
pub use trace::{StepTimes, TracedKernel};

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use backend_api::{Kind, Pace, Plan, Program, StepParams, StorageId, Tensor, TensorId};

use crate::arch::{BEST, CHOSEN, HIDDEN_IN, HIDDEN_OUT, HISTORY, Head, LOGITS, OutputRows, PROBABILITIES};
use crate::error::ModelError;
use crate::runtime::load::{self, FIRST, Model, Storages, no_storage};
use crate::runtime::scheduler::{Joined, SPARE, Seat};
use crate::runtime::sequence::{DraftSource, Drafts, Told};
use backend_api::run::{self, Beside, Host, read_rows};
use steps::Steps;

/// Numbers of rows for which programs are compiled.
const BUCKETS: [usize; 10] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

struct Compiled {
    program: Box<dyn Program>,
    /// Input from the stage before, if there is one. The session frees it with the output.
    input: Option<StorageId>,
    output: Option<StorageId>,
    /// Outputs with the chosen token's probabilities.
    told: Option<Told<StorageId>>,
}

/// A prompt that is being computed.
pub(crate) struct Prefill {
    tokens: Vec<u32>,
    /// Tokens of the submitted steps.
    done: usize,
    /// Steps that are left: the rows of the program, and how many of them are used.
    steps: VecDeque<(usize, usize)>,
    /// Whether recurrent states are copied before the last step.
    copies: bool,
    /// Output of the last step.
    head: Head,
}

impl Prefill {
    /// Returns whether there are steps left.
    pub fn is_left(&self) -> bool {
        !self.steps.is_empty()
    }

    /// Returns the number of tokens of the prompt.
    pub fn tokens(&self) -> usize {
        self.tokens.len()
    }

    /// Returns the number of tokens that are left.
    pub fn left(&self) -> usize {
        self.tokens.len() - self.done
    }

    /// Returns the output of the last step, if each step that is left computes one token, as decoding does.
    pub fn head_of_rows(&self) -> Option<Head> {
        self.steps.iter().all(|step| *step == (1, 1)).then_some(self.head)
    }
}

/// State of one sequence. Several sessions can share a model.
pub struct Session {
    // Programs are dropped before the storages that they are bound to.
    programs: HashMap<(usize, Head), Compiled>,
    outputs: Vec<Storages>,
    /// Inputs that all programs share and that requests write.
    pub(crate) inputs: Storages,
    pub(crate) states: Storages,
    /// Positions that the caches have room for.
    pub(crate) capacity: usize,
    pub(crate) rewritten: Rewritten,
    model: Rc<Model>,
    /// Token history; absent in stages that neither read nor choose tokens.
    history: Option<StorageId>,
    pub(crate) tokens: Vec<u32>,
    pub(crate) steps: Steps,
    short_prompt: usize,
    prompt_rows: usize,
    /// Tokens that are left of the prompt that is being computed.
    prompt_left: usize,
    pub(crate) pace: Option<Pace>,
    /// Its slot in a batch, which owns the memory of its states.
    pub(crate) seat: Option<Seat>,
    /// Outputs with the chosen token's probabilities, and the row, if the last step was taken together with others.
    told_together: Option<(Told<StorageId>, usize)>,
    /// The draft model.
    pub(crate) drafter: Option<Box<dyn DraftSource>>,
}

impl Session {
    /// Makes an empty session. Its KV cache is small at first, and grows with the text up to the context size.
    ///
    /// *Errors*: memory for the KV cache, or the device was lost; a stage of a model, which cannot generate text alone.
    pub fn new(model: Rc<Model>) -> Result<Session, ModelError> {
        Session::with_capacity(model, FIRST)
    }

    /// Makes an empty session whose KV cache has room for so many tokens before it has to grow.
    ///
    /// *Errors*: as [`Self::new`].
    pub fn with_capacity(model: Rc<Model>, tokens: usize) -> Result<Session, ModelError> {
        if !model.recipe().is_whole() {
            let why = "a stage of a model gives no text by itself; load the whole model for a session";
            return Err(ModelError::Options(why.into()));
        }
        Session::of_stage(model, tokens)
    }

    /// Makes an empty session of any stage, for [`StageSession`](crate::StageSession).
    pub(crate) fn of_stage(model: Rc<Model>, tokens: usize) -> Result<Session, ModelError> {
        if model.recipe().pooling().is_some() {
            return Err(model.recipe().no_text());
        }
        let mut states = Storages::new(model.backend().clone());
        let capacity = tokens.clamp(1, model.recipe().sizes().n_ctx);
        for spec in model.recipe().states_for(capacity)? {
            states.create(&load::tensor(&spec)?)?;
        }
        Session::with_states(model, states, capacity, None)
    }

    /// Makes a session with existing states.
    pub(crate) fn with_states(
        model: Rc<Model>,
        states: Storages,
        capacity: usize,
        seat: Option<Seat>,
    ) -> Result<Session, ModelError> {
        let mut rewritten = Rewritten::default();
        for spec in model.recipe().states_for(capacity)? {
            let id = states.get(&spec.name).ok_or_else(|| no_storage(&spec.name))?;
            rewritten.add(id, &load::tensor(&spec)?, spec.update)?;
        }
        let history = states.get(HISTORY);
        let tokens = Vec::with_capacity(model.recipe().sizes().n_ctx);
        let (programs, outputs, inputs) = (HashMap::new(), Vec::new(), Storages::new(model.backend().clone()));
        let steps = Steps::default();
        let (short_prompt, prompt_rows, pace) = (0, 128, None);
        Ok(Session {
            programs,
            outputs,
            inputs,
            states,
            capacity,
            rewritten,
            model,
            history,
            tokens,
            steps,
            short_prompt,
            prompt_rows,
            prompt_left: 0,
            pace,
            seat,
            told_together: None,
            drafter: None,
        })
    }

    /// Returns the model.
    pub fn model(&self) -> &Rc<Model> {
        &self.model
    }

    /// Returns the tokens that are computed.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Returns the size of the context in tokens.
    pub fn n_ctx(&self) -> usize {
        self.model.recipe().sizes().n_ctx
    }

    /// Returns the most tokens of a text: the size of the context, or less in a [batch](crate::Batch).
    pub fn room(&self) -> usize {
        match &self.seat {
            Some(_) if self.capacity < self.n_ctx() => self.capacity - SPARE,
            _ => self.n_ctx(),
        }
    }

    /// Drops all tokens from `position` on, at no cost. If the model has recurrent states, the next addition first
    /// recomputes the remaining tokens after the last checkpoint. A checkpoint is made before the last token of each
    /// prompt.
    pub fn rewind(&mut self, position: usize) {
        self.tokens.truncate(position);
        self.rewritten.cut(self.position());
    }

    /// Rewinds to the common beginning with a prompt, or to an earlier checkpoint if recurrent states require it.
    /// Returns the rest of the prompt, which is still to be computed. The rest has at least one token, so that there
    /// are logits.
    pub fn resume<'p>(&mut self, prompt: &'p [u32]) -> &'p [u32] {
        let kept = self.reusable(prompt);
        self.rewind(kept);
        &prompt[kept..]
    }

    /// Returns the number of first tokens of a prompt that need not be computed again.
    pub(crate) fn reusable(&self, prompt: &[u32]) -> usize {
        if !self.model.recipe().is_causal() {
            return 0;
        }
        let common = common_prefix(&self.tokens, prompt);
        self.rewritten.checkpoint(common.min(prompt.len().saturating_sub(1)))
    }

    /// Returns the position after the last computed token.
    pub(crate) fn position(&self) -> usize {
        self.tokens.len()
    }

    pub(crate) fn history(&self) -> Result<StorageId, backend_api::Error> {
        self.history.ok_or_else(|| no_storage(HISTORY))
    }

    /// Returns the storage of a state.
    pub(crate) fn state(&self, name: &str) -> Option<StorageId> {
        self.states.get(name)
    }

    /// Compiles the program for steps of up to `rows` tokens, unless it is compiled already. Does nothing if the KV
    /// cache must grow for it; the step itself compiles it then.
    ///
    /// *Errors*: shader or driver errors, memory, the device was lost.
    pub fn prepare(&mut self, rows: usize, head: Head) -> Result<(), ModelError> {
        if self.programs.contains_key(&(rows, head)) || rows > self.capacity {
            return Ok(());
        }
        if head.is_adjusted() {
            self.make_adjustable()?;
        }
        let backend = self.model.backend();
        let plan = backend.plan(self.model.recipe().graph_for(rows, head, self.capacity)?)?;
        let mut outputs = Storages::new(backend.clone());
        let bound = self.bind(&plan, &mut outputs)?;
        let program = backend.compile(&plan, &bound)?;
        let input = outputs.get(HIDDEN_IN);
        let output = [LOGITS, CHOSEN, HIDDEN_OUT].into_iter().find_map(|name| outputs.get(name));
        let told = outputs.get(PROBABILITIES).zip(outputs.get(BEST)).map(|(values, ids)| Told { values, ids });
        self.outputs.push(outputs);
        self.programs.insert((rows, head), Compiled { program, input, output, told });
        Ok(())
    }

    /// Drops all programs and their outputs.
    pub(crate) fn drop_programs(&mut self) {
        self.programs.clear();
        self.outputs.clear();
    }

    /// Returns the storages of a plan's external tensors: weights, states, and new outputs.
    pub(crate) fn bind(&self, plan: &Plan, outputs: &mut Storages) -> Result<Vec<StorageId>, backend_api::Error> {
        let missing = |tensor: &Tensor| no_storage(&tensor.name);
        let storage = |(_, tensor): (TensorId, &Tensor)| match tensor.kind {
            Kind::Weight => self.model.weight(&tensor.name).ok_or_else(|| missing(tensor)),
            Kind::State(_) => self.state(&tensor.name).ok_or_else(|| missing(tensor)),
            Kind::Input => self.inputs.get(&tensor.name).map_or_else(|| outputs.create(tensor), Ok),
            Kind::Output | Kind::Temporary => outputs.create(tensor),
        };
        plan.graph().externals().map(storage).collect()
    }

    /// Compiles the programs that a prompt of so many tokens at the end of the text takes, and those of decoding after
    /// it.
    ///
    /// *Errors*: as [`Self::prepare`].
    pub fn prepare_prompt(&mut self, tokens: usize, head: Head) -> Result<(), ModelError> {
        self.reserve_empty(tokens + 1)?;
        if !self.has_room(self.position() + tokens + 1) {
            // They are compiled when the caches have grown.
            return Ok(());
        }
        let apart = self.last_apart(tokens, head);
        let mut left = tokens - apart;
        let (mut room, most) = (self.n_ctx() - self.position(), self.most_rows(tokens));
        while left > 0 {
            let (bucket, rows) = next_bucket(left, most, room);
            (left, room) = (left - rows, room.saturating_sub(rows));
            self.prepare(bucket, if left == 0 && apart == 0 { head } else { Head::NONE })?;
        }
        self.prepare(1, head)
    }

    /// Submits one step within the device's step-time budget. Grows the caches and compiles the program if needed.
    pub(crate) async fn submit(
        &mut self,
        rows: usize,
        head: Head,
        params: &StepParams,
        host: &dyn Host,
    ) -> Result<(), ModelError> {
        let position = params.position as usize;
        if position > 0 && !self.model.recipe().is_causal() {
            let why = "tokens of this model see each other, so a text cannot be continued; rewind to its beginning, and give all of it";
            return Err(ModelError::Options(why.into()));
        }
        if let Some(seat) = self.seat.as_ref().filter(|seat| seat.is_shared()) {
            self.rewritten.moved_to(position + rows);
            (position..position + rows).for_each(|position| self.steps.push(position, 1, 1));
            seat.advance(head, params).await?;
            self.told_together = seat.told().filter(|_| head.log_probs);
            return Ok(());
        }
        self.told_together = None;
        self.reserve(position + rows, position, host).await?;
        self.prepare(rows, head)?;
        self.rewritten.moved_to(position + params.rows as usize);
        self.steps.push(position, rows, params.rows as usize);
        let Some(compiled) = self.programs.get_mut(&(rows, head)) else {
            return Err(no_storage("a program that was not prepared").into());
        };
        let backend = &**self.model.backend();
        // Others may begin and end while this step is computed.
        let seat = self.seat.as_ref().filter(|seat| !seat.has_joined());
        let _prompting = match seat {
            Some(seat) => Some(seat.begin_prompting(self.prompt_left).await),
            None => None,
        };
        let beside = seat.map(|seat| seat as &dyn Beside);
        let program = &mut *compiled.program;
        run::step_beside(program, rows, params, self.pace.as_mut(), (backend, host), beside).await?;
        if self.seat.as_ref().is_some_and(Seat::is_delayed) {
            self.pace.iter_mut().for_each(Pace::pass);
        }
        self.seat.iter().for_each(Seat::stepped_alone);
        Ok(())
    }

    /// Returns whether others take part in steps, beside which this session computes a prompt.
    pub(crate) fn is_beside(&self) -> bool {
        self.seat.as_ref().is_some_and(Seat::is_beside)
    }

    /// Returns how many rows of each step this sequence may have beside others, in which each row chooses a token. Nothing if
    /// it takes steps of its own.
    pub(crate) fn rows_beside(&self) -> Option<usize> {
        self.seat.as_ref().filter(|seat| seat.is_shared()).map(Seat::rows)
    }

    /// Records the time of a decode step.
    ///
    /// *Units*: milliseconds.
    pub(crate) fn measured(&self, ms: f64) {
        self.seat.iter().for_each(|seat| seat.measured(ms));
    }

    /// Joins the batch of which this session is part: until the result is dropped, steps with this head advance
    /// together with those of the other sequences.
    pub(crate) fn join(&self, head: Head) -> Option<Joined> {
        self.seat.as_ref()?.join(head)
    }

    /// Compiles the next program for its steps together with others; returns whether there was one.
    pub(crate) fn compile_ahead(&self) -> Result<bool, ModelError> {
        self.seat.as_ref().map_or(Ok(false), Seat::compile_ahead)
    }

    /// Records tokens whose keys and values are in the cache.
    pub(crate) fn know(&mut self, tokens: &[u32]) {
        self.tokens.extend(tokens);
    }

    /// Records new tokens, of which `known` are recorded already. The last one is left out, since its keys and values
    /// may be missing. Returns how many are recorded now.
    pub(crate) fn know_all_but_one(&mut self, fresh: &[u32], known: usize) -> usize {
        let all = fresh.len().saturating_sub(1).max(known);
        self.know(&fresh[known..all]);
        all
    }

    /// Returns the storage of a program's input from the stage before.
    pub(crate) fn input(&self, program: (usize, Head)) -> Option<StorageId> {
        self.programs.get(&program)?.input
    }

    /// Returns the storage of a program's output: logits, the token after each row, or activations for the next stage.
    pub(crate) fn output(&self, program: (usize, Head)) -> Option<StorageId> {
        self.programs.get(&program)?.output
    }

    /// Returns the storages of the chosen token's probabilities after a step, and the row in them.
    pub(crate) fn told(&self, program: (usize, Head)) -> Option<(Told<StorageId>, usize)> {
        self.told_together.or_else(|| Some((self.programs.get(&program)?.told?, 0)))
    }

    /// Waits until all programs are compiled and the device has finished all work.
    ///
    /// *Errors*: the device was lost.
    pub async fn settle(&self, host: &dyn Host) -> Result<(), ModelError> {
        let backend = &**self.model.backend();
        run::ready(backend, host).await?;
        // Only a read is reliable: browsers accept writes and steps on a lost device.
        Ok(read_rows(backend, self.history()?, 0, 1, &mut [0; 4], host).await?)
    }

    /// Refuses tokens that are unknown or do not fit.
    fn admit(&self, tokens: &[u32]) -> Result<(), ModelError> {
        let (sizes, room) = (self.model.recipe().sizes(), self.room());
        if tokens.is_empty() {
            return Err(ModelError::EmptyPrompt);
        }
        if tokens.len() > room.saturating_sub(self.position()) {
            return Err(ModelError::ContextFull { tokens: tokens.len(), used: self.position(), n_ctx: room });
        }
        match tokens.iter().find(|id| **id as usize >= sizes.n_vocab) {
            Some(&id) => Err(ModelError::Token { id, vocab: sizes.n_vocab }),
            None => Ok(()),
        }
    }

    /// Returns how many of a prompt's last tokens are computed in a step of their own: 1 if a token is to be chosen and
    /// there are recurrent states, otherwise 0. The states before that token are a checkpoint, from which another
    /// answer to the prompt can begin.
    fn last_apart(&self, tokens: usize, head: Head) -> usize {
        usize::from(head.token.is_some() && tokens > 0 && !self.rewritten.is_empty())
    }

    /// Adds tokens to the text. The last step has the given head and sampling parameters; it is submitted, not awaited.
    /// Returns the rows of its program.
    ///
    /// *Errors*: no tokens, unknown ones, or more than fit; see also [`Self::prepare`].
    pub(crate) async fn prefill(
        &mut self,
        tokens: &[u32],
        head: Head,
        sampling: &StepParams,
        host: &dyn Host,
    ) -> Result<usize, ModelError> {
        let mut prefill = self.prefill_steps(tokens, 0, head, host).await?;
        let mut rows = 0;
        while prefill.is_left() {
            rows = self.prefill_step(&mut prefill, sampling, host).await?;
        }
        Ok(rows)
    }

    /// Prepares for more tokens as [`Self::begin`] does, and plans the steps that compute them. The last `again` tokens
    /// were decoded before, and are computed one by one in the same way. The last step has the given head.
    pub(crate) async fn prefill_steps(
        &mut self,
        tokens: &[u32],
        again: usize,
        head: Head,
        host: &dyn Host,
    ) -> Result<Prefill, ModelError> {
        self.begin(tokens, host).await?;
        let prompt = tokens.len() - again;
        let apart = self.last_apart(prompt, head);
        let parts = [prompt - apart, apart].into_iter().chain(std::iter::repeat_n(1, again));
        let (mut steps, mut room) = (VecDeque::new(), self.n_ctx() - self.position());
        for mut left in parts {
            let most = self.most_rows(left);
            while left > 0 {
                let (program, rows) = next_bucket(left, most, room);
                steps.push_back((program, rows));
                (left, room) = (left - rows, room - rows);
            }
        }
        // The states before the last token are a checkpoint, unless tokens were decoded after it.
        let copies = apart > 0 && again == 0;
        Ok(Prefill { tokens: tokens.to_vec(), done: 0, steps, copies, head })
    }

    /// Submits the next step of a prompt; returns the rows of its program.
    pub(crate) async fn prefill_step(
        &mut self,
        prefill: &mut Prefill,
        sampling: &StepParams,
        host: &dyn Host,
    ) -> Result<usize, ModelError> {
        let Some((program, rows)) = prefill.steps.pop_front() else { return Ok(0) };
        let is_last = prefill.steps.is_empty();
        self.prompt_left = prefill.left();
        if is_last && prefill.copies {
            let backend = self.model.backend().clone();
            self.rewritten.copy(&*backend, host).await?;
        }
        let is_shared = self.rows_beside().is_some();
        // Rows of a common step are all alike: each has the head of its text.
        let head = if is_last || is_shared { prefill.head } else { Head::NONE };
        let now = prefill.done..prefill.done + rows;
        prefill.done = now.end;
        self.step(program, head, &prefill.tokens[now], sampling, host).await?;
        if is_shared && !is_last {
            // The step has put the token of its choice in the place of the prompt's next one.
            self.write_history(&prefill.tokens[prefill.done..=prefill.done])?;
        }
        Ok(program)
    }

    /// Waits for the copy of recurrent states (checkpoint) that a prompt began to make.
    pub(crate) async fn settle_states(&mut self, host: &dyn Host) -> Result<(), ModelError> {
        let backend = self.model.backend().clone();
        Ok(self.rewritten.settle(&*backend, host).await?)
    }

    /// Submits a step of tokens that are in the history already.
    async fn step(
        &mut self,
        program: usize,
        head: Head,
        tokens: &[u32],
        sampling: &StepParams,
        host: &dyn Host,
    ) -> Result<(), ModelError> {
        let params = StepParams { position: self.position() as u32, rows: tokens.len() as u32, ..*sampling };
        self.submit(program, head, &params, host).await?;
        self.tokens.extend(tokens);
        run::turn(self.pace.as_mut(), host).await;
        Ok(())
    }

    /// Computes tokens that are in the history already, without an output.
    pub(crate) async fn advance(&mut self, tokens: &[u32], host: &dyn Host) -> Result<(), ModelError> {
        let (mut left, most) = (tokens, self.most_rows(tokens.len()));
        while !left.is_empty() {
            let (program, rows) = self.bucket(left.len(), most);
            let (now, later) = left.split_at(rows);
            self.step(program, Head::NONE, now, &StepParams::at(0, 1), host).await?;
            left = later;
        }
        Ok(())
    }

    /// Prepares for more tokens: restores recurrent states to the end of the text, and writes the tokens to the
    /// history.
    pub(crate) async fn begin(&mut self, tokens: &[u32], host: &dyn Host) -> Result<(), ModelError> {
        self.admit(tokens)?;
        self.settle_states(host).await?;
        if !self.rewritten.are_at(self.position()) {
            let checkpoint = self.rewritten.restore(&**self.model.backend(), self.position())?;
            let text = self.tokens.split_off(checkpoint);
            self.advance(&text, host).await?;
        }
        self.write_history(tokens)
    }

    /// Writes tokens to the history at the end of the text.
    pub(crate) fn write_history(&self, tokens: &[u32]) -> Result<(), ModelError> {
        self.write_history_at(self.position(), tokens)
    }

    /// Writes tokens to the history at a position.
    pub(crate) fn write_history_at(&self, position: usize, tokens: &[u32]) -> Result<(), ModelError> {
        Ok(self.model.backend().write(self.history()?, position, bytemuck::cast_slice(tokens))?)
    }

    /// Makes the drafts of a text that `last` is appended to, with at most `most` tokens or as many as suit the device.
    /// Returns nothing if verifying several rows gains nothing on the device, or if states cannot be rewound.
    pub(crate) fn drafts(&self, last: u32, most: Option<usize>) -> Option<Drafts> {
        let info = self.model.backend().info();
        let suits = info.verify_rows.saturating_sub(1);
        let most = most.map_or(suits, |most| most.min(suits));
        let text = [&self.tokens[..], &[last]].concat();
        let mut drafts = self.rewritten.is_empty().then(|| Drafts::new(text, most, info.verify_after))??;
        if self.programs.keys().any(|(_, head)| head.rows == OutputRows::All && head.token.is_some()) {
            drafts.programs_are_made();
        }
        Some(drafts)
    }

    /// Sets the length below which prompts are computed token by token, like decoding. For such short ones, compiling a
    /// program of several rows takes longer than it saves.
    pub fn set_short_prompt(&mut self, tokens: usize) {
        self.short_prompt = tokens;
    }

    /// Raises the length below which prompts are computed token by token.
    pub(crate) fn set_least_prompt(&mut self, tokens: usize) {
        self.short_prompt = self.short_prompt.max(tokens);
    }

    /// Sets the most rows of a prompt's step; 128 by default.
    ///
    /// *Units*: tokens.
    pub fn set_prompt_rows(&mut self, rows: usize) {
        self.prompt_rows = rows.max(1);
    }

    /// Sets the step-time budget of the device: longer steps are split into parts. Without a budget, each step runs as
    /// a whole. It does not change the results, to the last bit.
    pub fn set_pace(&mut self, pace: Pace) {
        self.pace = Some(pace);
    }

    /// Returns whether so many tokens of a prompt are computed in the longest steps.
    pub(crate) fn is_long(&self, tokens: usize) -> bool {
        tokens >= self.prompt_rows.max(self.short_prompt)
    }

    /// Returns the most rows of a step in a prompt of so many tokens.
    pub(crate) fn most_rows(&self, tokens: usize) -> usize {
        if tokens < self.short_prompt { 1 } else { self.prompt_rows }
    }

    /// Records steps for rows that were imported, as if they had been computed here.
    pub(crate) fn note_steps(&mut self, from: usize, to: usize) {
        let mut at = from;
        while at < to {
            let (bucket, rows) = next_bucket(to - at, self.prompt_rows, self.n_ctx() - at);
            self.steps.push(at, bucket, rows);
            at += rows;
        }
    }

    /// Returns the next step for `left` tokens: the rows of the program, and how many of them are used.
    pub(crate) fn bucket(&self, left: usize, most: usize) -> (usize, usize) {
        next_bucket(left, most, self.n_ctx() - self.position())
    }
}

/// Returns the smallest bucket that holds all of `left` with at most a quarter more rows than needed, else the largest
/// one that is filled completely. No bucket exceeds `room`, which ends at the context's end.
fn next_bucket(left: usize, most: usize, room: usize) -> (usize, usize) {
    let usable = |b: &&usize| **b <= most && **b <= room;
    match BUCKETS.iter().filter(usable).find(|b| **b >= left && 4 * **b <= 5 * left) {
        Some(&bucket) => (bucket, left),
        None => {
            let full = BUCKETS.iter().filter(usable).rev().find(|b| **b <= left).copied().unwrap_or(1);
            (full, full)
        }
    }
}

/// Returns the length of the common beginning.
pub(crate) fn common_prefix(one: &[u32], other: &[u32]) -> usize {
    one.iter().zip(other).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_waste_little_and_stay_in_the_context() {
        for most in [64, 128, 512] {
            for tokens in 1..700 {
                for spare in [0, 3, 1000] {
                    let (mut left, mut room, mut computed) = (tokens, tokens + spare, 0);
                    while left > 0 {
                        let (bucket, rows) = next_bucket(left, most, room);
                        assert!(rows >= 1 && rows <= bucket && rows <= left && bucket <= room && bucket <= most);
                        (left, room, computed) = (left - rows, room - rows, computed + bucket);
                    }
                    assert!(4 * computed <= 5 * tokens, "{computed} rows for {tokens} tokens");
                }
            }
        }
    }
}
