//! A conversation with a model: KV cache, token history, and the programs that advance them.

use std::collections::HashMap;
use std::rc::Rc;

use backend_api::{Kind, Pace, Plan, Program, StepParams, StorageId, Tensor, TensorId};

use crate::arch::{BEST, CHOSEN, HIDDEN_IN, HIDDEN_OUT, HISTORY, Head, LOGITS, PROBABILITIES};
use crate::batch::{Joined, Seat};
use crate::drafter::Drafter;
use crate::drafts::Drafts;
use crate::error::ModelError;
use crate::growing::{self, FIRST};
use crate::load::{Model, Storages};
use crate::log_probs::Told;
use crate::rewind::Rewritten;
use crate::steps::Steps;
use backend_api::run::{self, Host, finish_profile, read_rows};

/// Rows that programs are compiled for.
const BUCKETS: [usize; 10] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

struct Compiled {
    program: Box<dyn Program>,
    /// Input from the stage before, if there is one. It and the output are freed with the session.
    input: Option<StorageId>,
    output: Option<StorageId>,
    /// Further outputs about the token.
    told: Option<Told<StorageId>>,
}

/// The state of one text. Several sessions can share a model.
pub struct Session {
    // Programs go before the storages that they are bound to.
    programs: HashMap<(usize, Head), Compiled>,
    outputs: Vec<Storages>,
    /// Storages that requests write and all programs share.
    pub(crate) inputs: Storages,
    pub(crate) states: Storages,
    /// Positions that the caches have room for.
    pub(crate) capacity: usize,
    pub(crate) rewritten: Rewritten,
    model: Rc<Model>,
    /// Stages that neither see nor choose tokens have none.
    history: Option<StorageId>,
    pub(crate) tokens: Vec<u32>,
    pub(crate) steps: Steps,
    short_prompt: usize,
    prompt_rows: usize,
    pub(crate) pace: Option<Pace>,
    /// Its place in a batch, which has the memory of its states.
    seat: Option<Seat>,
    /// A small model that drafts.
    pub(crate) drafter: Option<Box<Drafter>>,
}

impl Session {
    /// An empty text. Its KV cache has room for a short one at first, and grows with it up to the context.
    ///
    /// *Errors*: memory for the KV cache, or the device was lost; a stage of a model, which gives no text by itself.
    pub fn new(model: Rc<Model>) -> Result<Session, ModelError> {
        Session::with_capacity(model, FIRST)
    }

    /// Makes a session with room for so many tokens at first: a cache does not have to grow for those.
    ///
    /// *Errors*: as [`Self::new`].
    pub fn with_capacity(model: Rc<Model>, tokens: usize) -> Result<Session, ModelError> {
        if !model.recipe().is_whole() {
            let why = "a stage of a model gives no text by itself; load the whole model for a session";
            return Err(ModelError::Options(why.into()));
        }
        Session::of_stage(model, tokens)
    }

    /// Makes a session of any stage, for [`StageSession`](crate::StageSession).
    pub(crate) fn of_stage(model: Rc<Model>, tokens: usize) -> Result<Session, ModelError> {
        if model.recipe().pooling().is_some() {
            return Err(ModelError::NoText { architecture: model.recipe().architecture() });
        }
        let mut states = Storages::new(model.backend().clone());
        let capacity = tokens.clamp(1, model.recipe().sizes().n_ctx);
        for spec in model.recipe().states_for(capacity)? {
            states.create(&growing::tensor(&spec)?)?;
        }
        Session::with_states(model, states, capacity, None)
    }

    /// Makes a session with states that are there already.
    pub(crate) fn with_states(
        model: Rc<Model>,
        states: Storages,
        capacity: usize,
        seat: Option<Seat>,
    ) -> Result<Session, ModelError> {
        let mut rewritten = Rewritten::default();
        for spec in model.recipe().states_for(capacity)? {
            let id = states.get(&spec.name).ok_or_else(|| no_storage(&spec.name))?;
            rewritten.add(id, &growing::tensor(&spec)?, spec.update)?;
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
            pace,
            seat,
            drafter: None,
        })
    }

    /// The model.
    pub fn model(&self) -> &Rc<Model> {
        &self.model
    }

    /// The tokens that need not be computed any more.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Tokens that the context holds.
    pub fn n_ctx(&self) -> usize {
        self.model.recipe().sizes().n_ctx
    }

    /// Forgets all tokens from `position` on. That costs nothing by itself; but where a model has states that steps
    /// rewrite, whatever is added next has tokens that are left computed again first, if any were forgotten: those after
    /// the last checkpoint, which is before the last token of a prompt that was generated from.
    pub fn rewind(&mut self, position: usize) {
        self.tokens.truncate(position);
        self.rewritten.cut(self.position());
    }

    /// Rewinds to what the text has in common with a prompt, or as far before that as steps can go on from, and gives the
    /// part of the prompt that is left to prefill: never nothing, so that there are logits to go on from.
    pub fn resume<'p>(&mut self, prompt: &'p [u32]) -> &'p [u32] {
        let kept = self.reusable(prompt);
        self.rewind(kept);
        &prompt[kept..]
    }

    /// Tokens of a prompt that need not be computed, since the text begins with them.
    pub(crate) fn reusable(&self, prompt: &[u32]) -> usize {
        let common = common_prefix(&self.tokens, prompt);
        self.rewritten.checkpoint(common.min(prompt.len().saturating_sub(1)))
    }

    /// The KV cache's position after what is cached.
    pub(crate) fn position(&self) -> usize {
        self.tokens.len()
    }

    pub(crate) fn history(&self) -> Result<StorageId, backend_api::Error> {
        self.history.ok_or_else(|| no_storage(HISTORY))
    }

    /// The storage of a state.
    pub(crate) fn state(&self, name: &str) -> Option<StorageId> {
        self.states.get(name)
    }

    /// Compiles the program for steps of up to `rows` tokens, unless that was done before. If the KV cache has to grow for
    /// it, the step itself does.
    ///
    /// *Errors*: shader or driver errors, memory, the device was lost.
    pub fn prepare(&mut self, rows: usize, head: Head) -> Result<(), ModelError> {
        if self.programs.contains_key(&(rows, head)) || rows > self.capacity {
            return Ok(());
        }
        if matches!(head, Head::Adjusted { .. } | Head::AllAdjusted { .. }) {
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

    /// Forgets all programs, with what they make.
    pub(crate) fn drop_programs(&mut self) {
        self.programs.clear();
        self.outputs.clear();
    }

    /// The storages of a plan's externals: weights, states, and new outputs.
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

    /// Compiles all programs that a prompt of so many tokens, added to the text, and the decode steps after it will take.
    ///
    /// *Errors*: as [`Self::prepare`].
    pub fn prepare_prompt(&mut self, tokens: usize, head: Head) -> Result<(), ModelError> {
        self.reserve_empty(tokens + 1)?;
        if !self.has_room(self.position() + tokens + 1) {
            // They will be compiled when the caches have grown.
            return Ok(());
        }
        let apart = self.last_apart(tokens, head);
        let mut left = tokens - apart;
        let (mut room, most) = (self.n_ctx() - self.position(), self.most_rows(tokens));
        while left > 0 {
            let (bucket, rows) = next_bucket(left, most, room);
            (left, room) = (left - rows, room.saturating_sub(rows));
            self.prepare(bucket, if left == 0 && apart == 0 { head } else { Head::None })?;
        }
        self.prepare(1, head)
    }

    /// Submits one step at the device's pace, of a program that is compiled unless it was, in caches that grow for it.
    pub(crate) async fn submit(
        &mut self,
        rows: usize,
        head: Head,
        params: &StepParams,
        host: &dyn Host,
    ) -> Result<(), ModelError> {
        let position = params.position as usize;
        if let Some(seat) = self.seat.as_ref().filter(|seat| rows == 1 && seat.is_shared()) {
            self.rewritten.moved_to(position + 1);
            self.steps.push(position, 1, 1);
            return seat.advance(head, params).await;
        }
        self.reserve(position + rows, position, host).await?;
        self.prepare(rows, head)?;
        self.rewritten.moved_to(position + params.rows as usize);
        self.steps.push(position, rows, params.rows as usize);
        let Some(compiled) = self.programs.get_mut(&(rows, head)) else {
            return Err(no_storage("a program that was not prepared").into());
        };
        let backend = &**self.model.backend();
        Ok(run::step(&mut *compiled.program, rows, params, self.pace.as_mut(), (backend, host)).await?)
    }

    /// Has steps with this head advance together with those of other texts of the batch, if this is one of them, until
    /// what is returned goes.
    pub(crate) fn join(&self, head: Head) -> Option<Joined> {
        self.seat.as_ref()?.join(head)
    }

    /// Takes note of tokens whose keys and values decode steps have cached.
    pub(crate) fn know(&mut self, tokens: &[u32]) {
        self.tokens.extend(tokens);
    }

    /// Takes note of new tokens, of which so many were known before, but not of the last, whose keys and values may be
    /// missing. Gives how many are known now.
    pub(crate) fn know_all_but_one(&mut self, fresh: &[u32], known: usize) -> usize {
        let all = fresh.len().saturating_sub(1).max(known);
        self.know(&fresh[known..all]);
        all
    }

    /// Where a program looks for what the stage before hands over.
    pub(crate) fn input(&self, program: (usize, Head)) -> Option<StorageId> {
        self.programs.get(&program)?.input
    }

    /// Returns the output of a program with logits, with a token after each row, or of a stage without a head.
    pub(crate) fn output(&self, program: (usize, Head)) -> Option<StorageId> {
        self.programs.get(&program)?.output
    }

    /// Returns the further outputs of a program about the token that it chose.
    pub(crate) fn told(&self, program: (usize, Head)) -> Option<Told<StorageId>> {
        self.programs.get(&program)?.told
    }

    /// Waits until all programs are ready, and the device has done everything so far.
    ///
    /// *Errors*: it was lost meanwhile.
    pub async fn settle(&self, host: &dyn Host) -> Result<(), ModelError> {
        let backend = &**self.model.backend();
        run::ready(backend, host).await?;
        // A read tells for certain: browsers let writes and steps of a lost device pass.
        Ok(read_rows(backend, self.history()?, 0, 1, &mut [0; 4], host).await?)
    }

    /// The kernels of a decode step, for traces.
    ///
    /// *Errors*: as [`Self::prepare`].
    pub fn decode_kernels(&mut self) -> Result<Vec<backend_api::KernelInfo>, ModelError> {
        self.prepare(1, Head::Greedy)?;
        Ok(self.programs.get(&(1, Head::Greedy)).map(|c| c.program.kernels()).unwrap_or_default())
    }

    /// The device's own times of the kernels of a decode step at the end of the text; none if it has no clock for them.
    ///
    /// *Units*: milliseconds, in the order of [`Self::decode_kernels`].
    ///
    /// *Errors*: the context is full; as [`Self::prepare`]; the device was lost.
    pub async fn profile(&mut self, host: &dyn Host) -> Result<Option<Vec<f64>>, ModelError> {
        self.reserve(self.position() + 1, self.position(), host).await?;
        self.prepare(1, Head::Greedy)?;
        let params = StepParams::at(self.position() as u32, 1);
        self.rewritten.moved_to(self.position() + 1);
        let Some(compiled) = self.programs.get_mut(&(1, Head::Greedy)) else { return Ok(None) };
        match compiled.program.profile(&[params])? {
            Some(profile) => Ok(Some(finish_profile(profile, host).await?)),
            None => Ok(None),
        }
    }

    /// Refuses tokens that the model does not know, or that do not fit.
    fn admit(&self, tokens: &[u32]) -> Result<(), ModelError> {
        let sizes = self.model.recipe().sizes();
        if tokens.is_empty() {
            return Err(ModelError::EmptyPrompt);
        }
        if tokens.len() > sizes.n_ctx - self.position() {
            let (used, n_ctx) = (self.position(), sizes.n_ctx);
            return Err(ModelError::ContextFull { tokens: tokens.len(), used, n_ctx });
        }
        match tokens.iter().find(|id| **id as usize >= sizes.n_vocab) {
            Some(&id) => Err(ModelError::Token { id, vocab: sizes.n_vocab }),
            None => Ok(()),
        }
    }

    /// How many of the last tokens of a prompt go through the model by themselves: one where a token is to be chosen and
    /// there are states that steps rewrite. The states before it are a checkpoint, from which another answer to the prompt
    /// begins as well as a text that goes on otherwise.
    fn last_apart(&self, tokens: usize, head: Head) -> usize {
        let chooses = matches!(head, Head::Greedy | Head::Sample | Head::Adjusted { .. });
        usize::from(chooses && tokens > 0 && !self.rewritten.is_empty())
    }

    /// Adds tokens to the text. The last of the steps has the given head and parameters; it is submitted, not awaited.
    /// Gives the rows of its program.
    ///
    /// *Errors*: no tokens, unknown ones, or more than fit; see also [`Self::prepare`].
    pub(crate) async fn prefill(
        &mut self,
        tokens: &[u32],
        head: Head,
        sampling: &StepParams,
        host: &dyn Host,
    ) -> Result<usize, ModelError> {
        Ok(self.prefill_while(tokens, (head, sampling), host, &mut || true).await?.unwrap_or_default())
    }

    /// Adds tokens as [`Self::prefill`] does, as long as `goes_on`, which is asked between the steps, says so; nothing if
    /// it did not. The text then has the tokens whose steps were submitted.
    pub(crate) async fn prefill_while(
        &mut self,
        tokens: &[u32],
        (head, sampling): (Head, &StepParams),
        host: &dyn Host,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<usize>, ModelError> {
        self.begin(tokens, host).await?;
        let (front, last) = tokens.split_at(tokens.len() - self.last_apart(tokens.len(), head));
        if last.is_empty() {
            return self.advance_while(tokens, (head, sampling), host, goes_on).await;
        }
        if self.advance_while(front, (Head::None, sampling), host, goes_on).await?.is_none() {
            return Ok(None);
        }
        let backend = self.model.backend().clone();
        self.rewritten.copy(&*backend, host).await?;
        self.advance(last, head, sampling, host).await.map(Some)
    }

    /// Adds a prompt and tokens that were decoded after it: those one by one, as they were, as long as `goes_on` says so.
    /// Gives the rows of the last step's program; nothing if it did not go on.
    pub(crate) async fn prefill_again(
        &mut self,
        prompt: &[u32],
        decoded: &[u32],
        (head, sampling): (Head, &StepParams),
        host: &dyn Host,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<usize>, ModelError> {
        let (front, apart) = prompt.split_at(prompt.len() - self.last_apart(prompt.len(), head));
        let (last, before) = decoded.split_last().ok_or(ModelError::EmptyPrompt)?;
        let parts = [front, apart].into_iter().filter(|part| !part.is_empty()).chain(before.chunks(1));
        for part in parts {
            if self.prefill_while(part, (Head::None, &StepParams::at(0, 1)), host, goes_on).await?.is_none() {
                return Ok(None);
            }
        }
        self.begin(&[*last], host).await?;
        self.advance(&[*last], head, sampling, host).await.map(Some)
    }

    /// Waits for the copy of states that a prompt began to make.
    pub(crate) async fn settle_states(&mut self, host: &dyn Host) -> Result<(), ModelError> {
        let backend = self.model.backend().clone();
        Ok(self.rewritten.settle(&*backend, host).await?)
    }

    /// The steps of tokens that the history holds already. Gives the rows of the last one's program.
    pub(crate) async fn advance(
        &mut self,
        tokens: &[u32],
        head: Head,
        sampling: &StepParams,
        host: &dyn Host,
    ) -> Result<usize, ModelError> {
        Ok(self.advance_while(tokens, (head, sampling), host, &mut || true).await?.unwrap_or_default())
    }

    /// Runs the steps of [`Self::advance`] as long as `goes_on`, which is asked between them, says so; nothing if it did not.
    async fn advance_while(
        &mut self,
        tokens: &[u32],
        (head, sampling): (Head, &StepParams),
        host: &dyn Host,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<usize>, ModelError> {
        let (mut left, mut last, most) = (tokens, 0, self.most_rows(tokens.len()));
        while !left.is_empty() {
            if last > 0 && !goes_on() {
                return Ok(None);
            }
            let (bucket, rows) = self.bucket(left.len(), most);
            let (now, later) = left.split_at(rows);
            let head = if later.is_empty() { head } else { Head::None };
            let params = StepParams { position: self.position() as u32, rows: rows as u32, ..*sampling };
            self.submit(bucket, head, &params, host).await?;
            self.tokens.extend(now);
            (left, last) = (later, bucket);
            run::turn(self.pace.as_mut(), host).await;
        }
        Ok(Some(last))
    }

    /// Makes ready for more tokens: states that steps rewrite are brought to the end of the text, and the tokens put
    /// where steps will look for them.
    pub(crate) async fn begin(&mut self, tokens: &[u32], host: &dyn Host) -> Result<(), ModelError> {
        self.admit(tokens)?;
        self.settle_states(host).await?;
        if !self.rewritten.are_at(self.position()) {
            let checkpoint = self.rewritten.restore(&**self.model.backend(), self.position())?;
            let text = self.tokens.split_off(checkpoint);
            self.advance(&text, Head::None, &StepParams::at(0, 1), host).await?;
        }
        self.write_history(tokens)
    }

    /// Puts tokens where steps will look for them.
    pub(crate) fn write_history(&self, tokens: &[u32]) -> Result<(), ModelError> {
        self.write_history_at(self.position(), tokens)
    }

    /// Writes the history of tokens that follow those that decode steps made.
    pub(crate) fn write_history_at(&self, position: usize, tokens: &[u32]) -> Result<(), ModelError> {
        Ok(self.model.backend().write(self.history()?, position, bytemuck::cast_slice(tokens))?)
    }

    /// Drafts for the text with a token behind it, of so many at most, or as suits the device; none where steps of several
    /// rows gain nothing, or where states cannot be wound back.
    pub(crate) fn drafts(&self, last: u32, most: Option<usize>) -> Option<Drafts> {
        let info = self.model.backend().info();
        let suits = info.verify_rows.saturating_sub(1);
        let most = most.map_or(suits, |most| most.min(suits));
        let text = [&self.tokens[..], &[last]].concat();
        let mut drafts = self.rewritten.is_empty().then(|| Drafts::new(text, most, info.verify_after))??;
        let verifies = |head: &Head| matches!(head, Head::AllGreedy | Head::AllSample | Head::AllAdjusted { .. });
        if self.programs.keys().any(|(_, head)| verifies(head)) {
            drafts.programs_are_made();
        }
        Some(drafts)
    }

    /// Has prompts of fewer tokens go through the model one by one, as decoded ones do, where compiling the program of a few
    /// rows takes longer than it saves.
    pub fn set_short_prompt(&mut self, tokens: usize) {
        self.short_prompt = tokens;
    }

    /// Sets the least number of tokens of a prompt's step.
    pub(crate) fn set_least_prompt(&mut self, tokens: usize) {
        self.short_prompt = self.short_prompt.max(tokens);
    }

    /// Has steps of prompts be of so many rows at most; 128 if nothing else is said.
    ///
    /// *Units*: tokens.
    pub fn set_prompt_rows(&mut self, rows: usize) {
        self.prompt_rows = rows.max(1);
    }

    /// Has steps run at a device's pace: those that would hold it for long run in parts. Without one each runs whole.
    /// The text is the same, to the last bit.
    pub fn set_pace(&mut self, pace: Pace) {
        self.pace = Some(pace);
    }

    /// The most rows of a step for so many tokens.
    pub(crate) fn most_rows(&self, tokens: usize) -> usize {
        if tokens < self.short_prompt { 1 } else { self.prompt_rows }
    }

    /// Takes note of rows that came from elsewhere, up to a position, as if they had been computed.
    pub(crate) fn note_steps(&mut self, from: usize, to: usize) {
        let mut at = from;
        while at < to {
            let (bucket, rows) = next_bucket(to - at, self.prompt_rows, self.n_ctx() - at);
            self.steps.push(at, bucket, rows);
            at += rows;
        }
    }

    /// The next step for `left` tokens: rows of the program, and how many of them are real.
    pub(crate) fn bucket(&self, left: usize, most: usize) -> (usize, usize) {
        next_bucket(left, most, self.n_ctx() - self.position())
    }
}

/// The smallest bucket that holds all of `left` with at most a quarter more rows than that, else the largest that is
/// filled. No bucket reaches past the end of the context.
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

/// How many tokens two texts begin with alike.
pub(crate) fn common_prefix(one: &[u32], other: &[u32]) -> usize {
    one.iter().zip(other).take_while(|(a, b)| a == b).count()
}

pub(crate) fn no_storage(name: &str) -> backend_api::Error {
    backend_api::Error::Invalid(format!("{name} has no storage; report this as a bug"))
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
