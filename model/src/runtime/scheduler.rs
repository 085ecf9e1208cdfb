//! Scheduler of sessions that advance together: they wait for each other before each token, and each prompt is computed in
//! parts beside their steps.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use backend_api::pace::PART_MS;
use backend_api::run::{Beside, Local};
use backend_api::{Error, Kind, Program, StepParams, StorageId, Tensor, TensorId};

use crate::arch::{BEST, Head, OutputRows, PROBABILITIES};
use crate::error::ModelError;
use crate::runtime::load::{Model, Storages, create_rows, no_storage};
use crate::runtime::sequence::Told;

/// Scheduler of the sessions of a batch: their states, the programs of steps with several rows, and who takes part in the next.
pub(crate) struct Scheduler {
    // Programs are dropped before the storages that they are bound to.
    programs: RefCell<HashMap<(usize, Head), Compiled>>,
    steps: RefCell<Steps>,
    /// Rows that requests write, one for each sequence; made for the first request that has any.
    inputs: RefCell<Storages>,
    states: Storages,
    model: Rc<Model>,
    sequences: usize,
    capacity: usize,
}

/// A program of batched steps.
pub(crate) struct Compiled {
    pub program: Box<dyn Program>,
    /// Outputs with the chosen tokens' probabilities.
    told: Option<Told<StorageId>>,
    _outputs: Storages,
}

/// Coordination of batched steps.
#[derive(Default)]
struct Steps {
    /// Number of sessions that take part.
    joined: usize,
    /// Waiting steps with their heads.
    waiting: Vec<(Head, StepParams)>,
    /// Number of the current step; `outcome` is that of the one before.
    round: u64,
    outcome: Option<Error>,
    taken: u64,
    rows: u64,
    /// Outputs with the probabilities of sequences' last tokens, and the row of each.
    told: HashMap<usize, (Told<StorageId>, usize)>,
    /// Sequences whose prompts wait for their next step, in their order, with the tokens that are left of each.
    prompts: Vec<(usize, usize)>,
    /// Whether a step of a prompt is under way.
    is_prompting: bool,
    /// Parts of prompts that may come before the next step of the sequences that take part, and how many there were at first.
    parts: usize,
    of_parts: usize,
    /// Whether the shortest prompt is next, or else the one that has waited longest.
    shortest: bool,
    /// Estimated time of a step without parts of prompts beside it.
    ///
    /// *Units*: milliseconds.
    step_ms: Option<f64>,
}

/// Positions of a seat that no text takes: the steps of a prompt are those that it has alone, and the last one of them may
/// have a fifth more rows than it needs.
pub(crate) const SPARE: usize = 128;

/// Time of a part of a prompt while the time of a step is not known.
///
/// *Units*: milliseconds.
const PROMPT_MS: f64 = 5.0;
/// Time of a part of a prompt, as a share of that of a step. Estimates are not exact.
const SHARE: f64 = 0.75;
/// Longest part of a prompt on a synchronous backend, which nothing but these sessions waits for.
///
/// *Units*: milliseconds.
const LONGEST_MS: f64 = 250.0;
/// Shortest part of a prompt: shorter ones are mostly overhead.
///
/// *Units*: milliseconds.
const LEAST_MS: f64 = 2.0;

impl Steps {
    /// Lets parts of prompts pass, after a step: one, or as many as there are prompts for each sequence that takes part. The
    /// sooner those are done, the more tokens has each step.
    fn let_pass(&mut self) {
        let prompts = self.prompts.len() + usize::from(self.is_prompting);
        self.of_parts = (prompts / self.joined.max(1)).max(1);
        self.parts = self.of_parts;
    }

    /// Returns the sequence whose prompt has the next step, if none is under way. Short prompts soon have theirs, and long ones
    /// every other one.
    fn next_prompt(&self) -> Option<usize> {
        let first = self.prompts.first();
        let shortest = self.prompts.iter().min_by_key(|(_, left)| *left);
        let next = if self.shortest { shortest } else { first };
        next.filter(|_| !self.is_prompting).map(|(sequence, _)| *sequence)
    }
}

impl Scheduler {
    /// Makes the state of so many sequences, whose states have room for so many positions each.
    pub fn new(model: Rc<Model>, states: Storages, capacity: usize, sequences: usize) -> Scheduler {
        let (programs, steps) = (RefCell::default(), RefCell::default());
        let inputs = RefCell::new(Storages::new(model.backend().clone()));
        Scheduler { programs, steps, inputs, states, model, sequences, capacity }
    }

    /// Returns the storage of a state of all sequences.
    pub fn state(&self, name: &str) -> Option<StorageId> {
        self.states.get(name)
    }

    /// Returns the number of batched steps so far, and the sum of their rows.
    pub fn taken(&self) -> (u64, u64) {
        let steps = self.steps.borrow();
        (steps.taken, steps.rows)
    }

    fn compile(&self, rows: usize, head: Head) -> Result<Compiled, ModelError> {
        let (model, backend) = (&self.model, self.model.backend());
        if head.is_adjusted() {
            self.make_adjustable()?;
        }
        let plan = backend.plan(model.recipe().graph_of_sequences(rows, head, self.capacity, self.sequences)?)?;
        let (inputs, mut outputs) = (self.inputs.borrow(), Storages::new(backend.clone()));
        let known = |name: &str| model.weight(name).or_else(|| self.states.get(name)).or_else(|| inputs.get(name));
        let storage = |(_, tensor): (TensorId, &Tensor)| match tensor.kind {
            Kind::Output => outputs.create(tensor),
            _ => known(&tensor.name).ok_or_else(|| no_storage(&tensor.name)),
        };
        let bound = plan.graph().externals().map(storage).collect::<Result<Vec<StorageId>, Error>>()?;
        let program = backend.compile(&plan, &bound)?;
        let told = outputs.get(PROBABILITIES).zip(outputs.get(BEST)).map(|(values, ids)| Told { values, ids });
        Ok(Compiled { program, told, _outputs: outputs })
    }

    /// Creates the rows that adjust logits, unless they exist.
    fn make_adjustable(&self) -> Result<(), ModelError> {
        create_rows(&mut self.inputs.borrow_mut(), self.model.recipe().sizes().n_vocab, self.sequences)
    }

    /// Returns the rows of the program for so many sequences. A device computes as many rows as it has units for, whatever the
    /// number; where each row takes its time, at most an eighth of them is of no sequence.
    fn rows_for(&self, texts: usize) -> usize {
        let whole = texts.next_power_of_two().max(2);
        let info = self.model.backend().info();
        let rows = if info.synchronous { texts.max(2).next_multiple_of((whole / 8).max(1)) } else { whole };
        rows.min(info.batch_rows)
    }

    /// Returns the longest estimated time of a part of a prompt.
    fn part_ms(&self) -> f64 {
        let longest = if self.model.backend().info().synchronous { LONGEST_MS } else { PART_MS };
        let part_ms = self.steps.borrow().step_ms.map_or(PROMPT_MS, |step_ms| SHARE * step_ms);
        part_ms.clamp(LEAST_MS, longest)
    }

    /// Calls `with` with the program for at least so many sequences.
    pub fn with_program<T>(
        &self,
        texts: usize,
        head: Head,
        with: impl FnOnce(&mut Compiled) -> Result<T, ModelError>,
    ) -> Result<T, ModelError> {
        let rows = self.rows_for(texts);
        let mut programs = self.programs.borrow_mut();
        with(match programs.entry((rows, head)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(self.compile(rows, head)?),
        })
    }

    /// Compiles the next program that steps of several sequences may need; returns whether there was one.
    fn compile_ahead(&self) -> Result<bool, ModelError> {
        let most = self.sequences.min(self.model.backend().info().batch_rows);
        let is_new = |rows: &usize| !self.programs.borrow().contains_key(&(*rows, Head::SAMPLE));
        let next = (2..=most).map(|texts| self.rows_for(texts)).find(is_new);
        next.map_or(Ok(false), |rows| self.with_program(rows, Head::SAMPLE, |_| Ok(true)))
    }

    /// Takes the step that all sessions wait for: one for each head, or several where it has more rows than the backend takes.
    fn step(&self) -> Result<(), ModelError> {
        let mut steps = self.steps.borrow_mut();
        let mut waiting = std::mem::take(&mut steps.waiting);
        let most = self.model.backend().info().batch_rows;
        while let Some(&(head, _)) = waiting.first() {
            let now = waiting.extract_if(.., |one| one.0 == head).flat_map(|one| rows_of(one.1));
            for rows in now.collect::<Vec<StepParams>>().chunks(most) {
                let told = self.with_program(rows.len(), head, |compiled| {
                    compiled.program.steps(rows)?;
                    Ok(compiled.told)
                })?;
                let places =
                    rows.iter().enumerate().filter_map(|(row, one)| Some((one.sequence as usize, (told?, row))));
                steps.told.extend(places);
                (steps.taken, steps.rows) = (steps.taken + 1, steps.rows + rows.len() as u64);
            }
        }
        Ok(())
    }
}

/// Returns the rows of a sequence's part of a step, each by itself.
fn rows_of(params: StepParams) -> impl Iterator<Item = StepParams> {
    (0..params.rows).map(move |row| StepParams { position: params.position + row, rows: 1, ..params })
}

/// Slot of a session in a batch.
pub(crate) struct Seat {
    scheduler: Rc<Scheduler>,
    sequence: usize,
    joined: Rc<Cell<bool>>,
}

impl Seat {
    /// Makes the slot of a sequence.
    pub fn new(scheduler: Rc<Scheduler>, sequence: usize) -> Seat {
        Seat { scheduler, sequence, joined: Rc::default() }
    }

    /// Takes part in steps with this head, if sequences can be batched with it.
    pub fn join(&self, head: Head) -> Option<Joined> {
        if head.rows != OutputRows::Last || head.token.is_none() {
            return None;
        }
        self.joined.set(true);
        self.scheduler.steps.borrow_mut().joined += 1;
        Some(Joined { scheduler: self.scheduler.clone(), joined: self.joined.clone() })
    }

    /// Compiles the next program that steps of several sequences may need; returns whether there was one.
    ///
    /// *Errors*: shader or driver errors, memory, the device was lost.
    pub fn compile_ahead(&self) -> Result<bool, ModelError> {
        self.scheduler.compile_ahead()
    }

    /// Writes a row of the sequence that its steps read.
    pub fn write_input(&self, name: &str, row: &[f32]) -> Result<(), ModelError> {
        self.scheduler.make_adjustable()?;
        let id = self.scheduler.inputs.borrow().get(name).ok_or_else(|| no_storage(name))?;
        Ok(self.scheduler.model.backend().write(id, self.sequence, bytemuck::cast_slice(row))?)
    }

    /// Returns the outputs with the probabilities of the last token, and the row in them.
    pub fn told(&self) -> Option<(Told<StorageId>, usize)> {
        self.scheduler.steps.borrow().told.get(&self.sequence).copied()
    }

    /// Returns whether it takes part, and is not alone.
    pub fn is_shared(&self) -> bool {
        self.joined.get() && self.scheduler.steps.borrow().joined > 1
    }

    /// Returns how many rows of the next step are of this sequence if each has as many. A synchronous backend gains nothing from
    /// further ones: there, the rows of the others take its time already.
    pub fn rows(&self) -> usize {
        let info = self.scheduler.model.backend().info();
        if info.synchronous { 1 } else { info.batch_rows / self.scheduler.steps.borrow().joined.max(1) }
    }

    /// Returns whether this session takes part in steps, even if it is alone.
    pub fn has_joined(&self) -> bool {
        self.joined.get()
    }

    /// Returns whether others take part in steps, beside which this session computes a prompt.
    pub fn is_beside(&self) -> bool {
        !self.joined.get() && self.scheduler.steps.borrow().joined > 0
    }

    /// Returns whether the device computes a prompt of another sequence meanwhile, so that times tell nothing of its rate.
    pub fn is_delayed(&self) -> bool {
        self.joined.get() && self.scheduler.steps.borrow().is_prompting
    }

    /// Lets a prompt of another sequence compute a part after a step that this one has taken alone.
    pub fn stepped_alone(&self) {
        if self.joined.get() {
            self.scheduler.steps.borrow_mut().let_pass();
        }
    }

    /// Waits until a step of this sequence's prompt, of which so many tokens are left, may be computed: until the result is
    /// dropped, no other prompt has one. Two at a time would delay each other, and neither could tell how fast the device is.
    pub async fn begin_prompting(&self, left: usize) -> Prompting<'_> {
        let mut place = Prompting { seat: self, is_under_way: false };
        self.scheduler.steps.borrow_mut().prompts.push((self.sequence, left));
        poll_fn(|context| {
            let mut steps = self.scheduler.steps.borrow_mut();
            if steps.next_prompt() != Some(self.sequence) {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            steps.shortest = !steps.shortest;
            steps.is_prompting = true;
            place.is_under_way = true;
            steps.prompts.retain(|(sequence, _)| *sequence != self.sequence);
            Poll::Ready(())
        })
        .await;
        place
    }

    /// Records the time from step to step, which limits the parts of prompts between them.
    pub fn measured(&self, ms: f64) {
        if !self.joined.get() {
            return;
        }
        let part_ms = self.scheduler.part_ms();
        let mut steps = self.scheduler.steps.borrow_mut();
        let parts = if steps.prompts.is_empty() && !steps.is_prompting { 0.0 } else { steps.of_parts as f64 };
        // Parts take no longer than the step, so the last one is counted as long as it: if its estimate were subtracted, parts
        // that take longer would lengthen the estimate of a step, and so the next parts.
        let with_one = ms - (parts - 1.0).max(0.0) * part_ms;
        steps.step_ms = Some((with_one / (1.0 + parts.min(1.0))).max(ms / (1.0 + parts)));
    }

    /// Takes the next step, of one row or several, together with all sessions that take part, once they are waiting.
    pub async fn advance(&self, head: Head, params: &StepParams) -> Result<(), ModelError> {
        let params = StepParams { sequence: self.sequence as u32, ..*params };
        let mut waiting = Waiting { seat: self, round: None };
        poll_fn(|context| {
            let mut steps = self.scheduler.steps.borrow_mut();
            let round = *waiting.round.get_or_insert_with(|| {
                steps.waiting.push((head, params));
                steps.round
            });
            if steps.round == round {
                if steps.waiting.len() < steps.joined {
                    // The other sessions are polled alongside this one, and wake it.
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                drop(steps);
                let ended = self.scheduler.step();
                steps = self.scheduler.steps.borrow_mut();
                steps.round += 1;
                steps.waiting.clear();
                steps.let_pass();
                let (outcome, ended) = match ended {
                    Ok(()) => (None, Ok(())),
                    Err(ModelError::Backend(error)) => (Some(error.clone()), Err(ModelError::Backend(error))),
                    Err(error) => (Some(Error::Invalid(error.to_string())), Err(error)),
                };
                steps.outcome = outcome;
                return Poll::Ready(ended);
            }
            Poll::Ready(steps.outcome.clone().map_or(Ok(()), |error| Err(error.into())))
        })
        .await
    }
}

impl Beside for Seat {
    /// Not quite as long as a step of the others, so that the time between their tokens is at most twice that of before.
    fn part_ms(&self) -> Option<f64> {
        self.is_beside().then(|| self.scheduler.part_ms())
    }

    fn turn(&self) -> Local<'_, ()> {
        Box::pin(poll_fn(move |context| {
            let mut steps = self.scheduler.steps.borrow_mut();
            if steps.joined == 0 {
                return Poll::Ready(());
            }
            if steps.parts > 0 {
                steps.parts -= 1;
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        }))
    }
}

/// A prompt whose step is under way, or that waits for one.
pub(crate) struct Prompting<'a> {
    seat: &'a Seat,
    is_under_way: bool,
}

impl Drop for Prompting<'_> {
    fn drop(&mut self) {
        let mut steps = self.seat.scheduler.steps.borrow_mut();
        if self.is_under_way {
            steps.is_prompting = false;
        } else {
            steps.prompts.retain(|(sequence, _)| *sequence != self.seat.sequence);
        }
    }
}

/// A session that waits for a step.
struct Waiting<'a> {
    seat: &'a Seat,
    round: Option<u64>,
}

impl Drop for Waiting<'_> {
    /// Removes a waiter that is dropped before its step.
    fn drop(&mut self) {
        let mut steps = self.seat.scheduler.steps.borrow_mut();
        if self.round == Some(steps.round) {
            steps.waiting.retain(|(_, params)| params.sequence != self.seat.sequence as u32);
        }
    }
}

/// Participation in batched steps, until it is dropped.
pub(crate) struct Joined {
    scheduler: Rc<Scheduler>,
    joined: Rc<Cell<bool>>,
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.joined.set(false);
        self.scheduler.steps.borrow_mut().joined -= 1;
    }
}
