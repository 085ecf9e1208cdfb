//! Programs: kernels that run one after the other, whole or a part of them.

use super::{Data, Kernel, Memory, Seen, Storage};
use crate::args::{Args, Bytes, MAX_INPUTS, MAX_OUTPUTS, Operand, WHOLE};
use crate::fast::lanes::Instructions;
use crate::threads::Threads;
use backend_api::{
    Bound, Cover, DType, Error, Form, Held, KernelInfo, Kind, Made, Op, Part, Pass, Piece, Place, Plan, Program,
    ReadId, Shape, StepLimits, StepParams, StorageId, Tensor, TensorId,
};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

/// A compiled graph.
pub(super) struct CpuProgram {
    pub(super) plan: Plan,
    pub(super) limits: StepLimits,
    /// The storages of the externals, for each sequence.
    pub(super) sequences: Vec<Vec<StorageId>>,
    pub(super) kernels: Vec<Kernel>,
    /// How rows of several sequences are kept apart, where each row of a step is of another one.
    pub(super) apart: Option<Apart>,
    /// Cost of each kernel; none where steps are run whole.
    pub(super) pieces: Vec<Piece>,
    pub(super) slots: Vec<Vec<u32>>,
    pub(super) scratch: Vec<f32>,
    pub(super) held: u64,
    pub(super) instructions: Instructions,
    /// Those of the backend, or one where others would only have to be woken.
    pub(super) threads: Rc<Threads>,
    pub(super) memory: Rc<RefCell<Memory>>,
    pub(super) seen: Seen,
}

impl Drop for CpuProgram {
    fn drop(&mut self) {
        self.memory.borrow_mut().stats.memory -= self.held;
    }
}

/// Rows of a graph that are of several sequences each.
#[derive(Debug)]
pub(super) struct Apart {
    /// Kernels that read the position or the states of a sequence, and so are run for each row by itself.
    by_row: Vec<bool>,
    /// Each tensor of one sequence, by its index: a row, or its part of a state.
    of_one: HashMap<usize, Tensor>,
}

impl Apart {
    /// Returns nothing for a graph whose rows are of one sequence.
    ///
    /// *Errors*: an operand whose rows are none of the step.
    pub(super) fn new(plan: &Plan) -> Result<Option<Apart>, Error> {
        let graph = plan.graph();
        let sequences = graph.sequences();
        if sequences == 1 {
            return Ok(None);
        }
        let is_state = |id: &TensorId| matches!(graph.tensor(*id).kind, Kind::State(_));
        let rows = StepLimits::of(graph, 1).rows;
        let mut of_one = HashMap::new();
        for (id, tensor) in graph.tensors().filter(|(id, tensor)| is_state(id) || is_of_rows(tensor)) {
            let parts = if is_state(&id) { sequences } else { rows };
            let mut dims: Vec<usize> = tensor.shape.dims().collect();
            dims.iter_mut().take(1).for_each(|rows| *rows = (*rows / parts).max(1));
            let shape = Shape::new(&dims).map_err(|why| Error::Invalid(format!("{}: {why}", tensor.name)))?;
            of_one.insert(id.index(), Tensor { shape, ..tensor.clone() });
        }
        let by_position = |form: &Form| match form {
            Form::Embed(_) | Form::QkvAppend(_) => true,
            Form::Op(op) => matches!(op, Op::GetRows(_) | Op::Rope(_) | Op::Sample(_) | Op::Penalize(_)),
            _ => false,
        };
        let ids = |cover: &Cover| cover.inputs.iter().chain(&cover.outputs).copied().collect::<Vec<_>>();
        let by_row: Vec<bool> =
            plan.covers().iter().map(|cover| by_position(&cover.form) || ids(cover).iter().any(is_state)).collect();
        for (cover, _) in plan.covers().iter().zip(&by_row).filter(|(_, by_row)| **by_row) {
            let temporaries = ids(cover).into_iter().map(|id| graph.tensor(id)).filter(|tensor| is_of_rows(tensor));
            if let Some(other) = temporaries.into_iter().find(|tensor| tensor.shape.dims().next() != Some(rows)) {
                let name = cover.form.name();
                let why = format!("{name} has {other}, whose rows are not the {rows} of the step");
                return Err(Error::Invalid(format!("{why}; run sequences one after another")));
            }
        }
        Ok(Some(Apart { by_row, of_one }))
    }
}

/// Whether the rows of a tensor are those of a step.
fn is_of_rows(tensor: &Tensor) -> bool {
    matches!(tensor.kind, Kind::Temporary | Kind::Output)
}

/// Part of a tensor's words that a kernel is given: all, or the row or the state of a sequence.
#[derive(Clone, Copy)]
struct Window<'a> {
    /// Row of the step, and its sequence, where they are kept apart.
    apart: Option<(&'a Apart, usize, usize)>,
}

impl<'a> Window<'a> {
    /// Returns the tensor that a kernel sees, and where its words begin in those of the whole.
    fn of(&self, id: TensorId, tensor: &'a Tensor) -> (&'a Tensor, Range<usize>) {
        let found = self.apart.and_then(|(apart, row, sequence)| {
            let one = apart.of_one.get(&id.index())?;
            Some((one, if is_of_rows(tensor) { row } else { sequence }))
        });
        let Some((one, at)) = found else { return (tensor, 0..tensor.shape.len()) };
        (one, at * one.shape.len()..(at + 1) * one.shape.len())
    }
}

/// Returns the words of a place, moved out while a kernel writes them, so that operands can be borrowed beside them; and where
/// those of the storage begin.
fn take(place: Place, storages: &[StorageId], memory: &mut Memory, slots: &mut [Vec<u32>]) -> (Vec<u32>, usize) {
    match place {
        Place::Slot(slot) => (std::mem::take(&mut slots[slot]), 0),
        Place::External(at) => match memory.place(storages[at]) {
            Ok((whole, range)) => match &mut memory.storages[whole.0 as usize] {
                Some(Storage { data: Data::Words(words), .. }) => (std::mem::take(words), range.start),
                _ => Default::default(),
            },
            Err(_) => Default::default(),
        },
    }
}

fn put(place: Place, words: Vec<u32>, storages: &[StorageId], memory: &mut Memory, slots: &mut [Vec<u32>]) {
    match place {
        Place::Slot(slot) => slots[slot] = words,
        Place::External(at) => {
            if let Ok((whole, _)) = memory.place(storages[at])
                && let Some(Storage { data: Data::Words(data), .. }) = &mut memory.storages[whole.0 as usize]
            {
                *data = words;
            }
        }
    }
}

impl CpuProgram {
    /// Runs some kernels, of each these units; whoever watches is called after each. There are several runs where each row is
    /// of another sequence.
    fn run(&mut self, runs: &[StepParams], range: Range<usize>, units: Range<usize>) -> Result<(), Error> {
        let watcher = self.seen.0.borrow().clone();
        let (Some(watcher), Some(params)) = (watcher, runs.first()) else {
            return self.run_kernels(runs, range, units);
        };
        for kernel in range {
            self.run_kernels(runs, kernel..kernel + 1, units.clone())?;
            if units == WHOLE || self.pieces.get(kernel).is_some_and(|piece| units.end == piece.units as usize) {
                let (info, made) = self.info(kernel);
                let mut read = |at: usize| {
                    let missing = || Error::Invalid(format!("{} makes no matrix {at}", info.name));
                    self.read_made(*made.get(at).ok_or_else(missing)?, params)
                };
                watcher(Pass { kernel, kernels: self.kernels.len(), info: &info, params, read: &mut read });
            }
        }
        Ok(())
    }

    fn run_kernels(&mut self, runs: &[StepParams], range: Range<usize>, units: Range<usize>) -> Result<(), Error> {
        let memory = &mut *self.memory.borrow_mut();
        match self.apart {
            Some(_) => self.limits.check_apart(runs)?,
            None => runs.iter().try_for_each(|params| self.limits.check(params))?,
        }
        let fits =
            |at: usize| units == WHOLE || self.pieces.get(at).is_some_and(|piece| units.end <= piece.units as usize);
        if range.end > self.kernels.len() || !range.clone().all(fits) {
            return Err(Error::Invalid(format!(
                "the program has no kernels {range:?} with units {units:?}; cut its own pieces"
            )));
        }
        let Some(first) = runs.first().map(|first| StepParams { rows: first.rows * runs.len() as u32, ..*first })
        else {
            return Ok(());
        };
        let storages = &self.sequences[if self.apart.is_some() { 0 } else { first.sequence as usize }];
        if let Some(gone) = storages.iter().find(|id| memory.storage(**id).is_err()) {
            return Err(Error::Invalid(format!("storage {} was destroyed; compile the program again", gone.0)));
        }
        let CpuProgram { plan, kernels, apart, slots, scratch, instructions, threads, .. } = self;
        let mut on =
            On { plan, storages, memory, slots, scratch, instructions: *instructions, threads: threads.count() };
        let mut calls = 0;
        threads.enter(|| {
            for at in range {
                let (kernel, cover) = (kernels[at], &plan.covers()[at]);
                match apart.as_ref().filter(|apart| apart.by_row[at]) {
                    None => on.call(kernel, cover, &first, Window { apart: None }, units.clone()),
                    Some(apart) => runs.iter().enumerate().for_each(|(row, params)| {
                        let window = Window { apart: Some((apart, row, params.sequence as usize)) };
                        on.call(kernel, cover, params, window, units.clone());
                    }),
                }
                calls += 1;
            }
        });
        memory.stats.dispatches += calls;
        memory.stats.submits += 1;
        memory.stats.uploaded += size_of_val(runs) as u64;
        Ok(())
    }
}

/// Returns a part of some words, counted from `begin`; none of a state that is being written. Slots and guarded storages are
/// longer than their tensor.
fn words<'a>(all: &'a [u32], begin: usize, part: &Range<usize>) -> &'a [u32] {
    all.get(begin + part.start..begin + part.end).unwrap_or(&[])
}

/// Memory that kernels run on, and how they run.
struct On<'a> {
    plan: &'a Plan,
    storages: &'a [StorageId],
    memory: &'a mut Memory,
    slots: &'a mut [Vec<u32>],
    scratch: &'a mut [f32],
    instructions: Instructions,
    threads: usize,
}

impl On<'_> {
    /// Runs one kernel.
    fn call(&mut self, kernel: Kernel, cover: &Cover, step: &StepParams, window: Window<'_>, units: Range<usize>) {
        let On { plan, storages, memory, slots, .. } = self;
        let graph = plan.graph();
        let mut outputs: [Vec<u32>; MAX_OUTPUTS] = Default::default();
        let mut ranges: [Range<usize>; MAX_OUTPUTS] = Default::default();
        for ((words, range), id) in outputs.iter_mut().zip(&mut ranges).zip(&cover.outputs) {
            let Some(place) = plan.place(*id) else { continue };
            let (whole, begin) = take(place, storages, memory, slots);
            let (_, part) = window.of(*id, graph.tensor(*id));
            (*words, *range) = (whole, begin + part.start..begin + part.end);
        }
        let shape = cover.outputs.first().map_or(Shape::SCALAR, |id| window.of(*id, graph.tensor(*id)).0.shape);
        let mut inputs = [None; MAX_INPUTS];
        for (input, id) in inputs.iter_mut().zip(&cover.inputs) {
            let (tensor, part) = window.of(*id, graph.tensor(*id));
            let storage = |at: usize| {
                let (whole, range) = memory.place(storages[at]).ok()?;
                Some((&memory.storages[whole.0 as usize].as_ref()?.data, range.start))
            };
            let bytes = match plan.place(*id) {
                None => Bytes::Words(&[]),
                Some(Place::Slot(slot)) => Bytes::Words(words(&slots[slot], 0, &part)),
                Some(Place::External(at)) => match storage(at) {
                    Some((Data::Packed(bytes), _)) => Bytes::Packed(bytes),
                    Some((Data::Words(all), begin)) => Bytes::Words(words(all, begin, &part)),
                    Some((Data::View { .. }, _)) | None => Bytes::Words(&[]),
                },
            };
            *input = Some(Operand { tensor, bytes });
        }
        let [a, b, c] = &mut outputs;
        let [of_a, of_b, of_c] = ranges;
        let results = [&mut a[of_a], &mut b[of_b], &mut c[of_c]];
        let (scratch, instructions, threads) = (&mut *self.scratch, self.instructions, self.threads);
        let mut args = Args { step: *step, inputs, outputs: results, shape, scratch, instructions, threads, units };
        kernel.run(&cover.form, &mut args);
        for (words, id) in outputs.into_iter().zip(&cover.outputs) {
            if let Some(place) = plan.place(*id) {
                put(place, words, storages, memory, slots);
            }
        }
    }
}

impl CpuProgram {
    /// Reads a tensor that a kernel just made.
    fn read_made(&self, id: TensorId, params: &StepParams) -> Result<ReadId, Error> {
        let missing = || Error::Invalid("the tensor has no place; report this as a bug".into());
        let memory = &mut *self.memory.borrow_mut();
        let words = match self.plan.place(id).ok_or_else(missing)? {
            Place::Slot(slot) => &self.slots[slot][..],
            Place::External(at) => {
                let sequence = if self.apart.is_some() { 0 } else { params.sequence as usize };
                memory.words(self.sequences[sequence][at])?
            }
        };
        let bytes = bytemuck::cast_slice(&words[..self.plan.graph().tensor(id).shape.len()]).to_vec();
        Ok(memory.done(bytes))
    }

    /// Describes a kernel, and the tensors of its results that can be watched.
    fn info(&self, kernel: usize) -> (KernelInfo, Vec<TensorId>) {
        let (graph, node) = (self.plan.graph(), &self.plan.covers()[kernel]);
        let bytes = |t: &Tensor| match t.dtype {
            DType::Packed(format) => format.row_bytes(t.shape.cols()).unwrap_or(0) as u64 * t.shape.rows() as u64,
            DType::F32 | DType::I32 | DType::Coded(_) => t.shape.len() as u64 * 4,
        };
        let out = node.outputs.first().map(|id| graph.tensor(*id).shape);
        let [cols, rows] = out.map_or([0, 0], |s| [s.cols() as u32, s.rows() as u32]);
        let (inputs, outputs) = (node.inputs.iter().enumerate(), node.outputs.iter().enumerate());
        let inputs = inputs.map(|(i, id)| (Bound::Input(i), bytes(graph.tensor(*id))));
        let outputs = outputs.map(|(i, id)| (Bound::Output(i), bytes(graph.tensor(*id))));
        let bound = inputs.chain(outputs).collect::<Vec<_>>();
        let mut info = KernelInfo::new(graph, node, node.form.name().into(), [cols, rows, 1], &bound);
        let made = |id: &TensorId| Made::of(graph.tensor(*id)).map(|made| (made, *id));
        let (matrices, tensors) = node.outputs.iter().filter_map(made).unzip();
        info.made = matrices;
        (info, tensors)
    }
}

impl Program for CpuProgram {
    fn step(&mut self, params: &StepParams) -> Result<(), Error> {
        self.run(&[*params], 0..self.kernels.len(), WHOLE)
    }

    fn steps(&mut self, runs: &[StepParams]) -> Result<(), Error> {
        match self.apart {
            Some(_) => self.run(runs, 0..self.kernels.len(), WHOLE),
            None => runs.iter().try_for_each(|params| self.step(params)),
        }
    }

    fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    fn part(&mut self, params: &StepParams, part: &Part) -> Result<(), Error> {
        if self.apart.is_some() {
            let why = format!("{part:?} was asked of a step of several sequences, which are run whole; run a step");
            return Err(Error::Invalid(why));
        }
        match part {
            Part::Kernels(range) => self.run(&[*params], range.clone(), WHOLE),
            Part::Units(at, units) => self.run(&[*params], *at..at + 1, units.start as usize..units.end as usize),
        }
    }

    fn kernels(&self) -> Vec<KernelInfo> {
        (0..self.kernels.len()).map(|kernel| self.info(kernel).0).collect()
    }

    fn held(&self) -> Vec<Held> {
        let slots = self.slots.iter().map(|slot| 4 * slot.len() as u64);
        vec![Held::of("slots", slots), Held::of("scratch", [4 * self.scratch.len() as u64])]
    }
}
