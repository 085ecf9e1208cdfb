//! Programs: kernels that run one after the other, whole or a part of them.

use super::{Data, Kernel, Memory, Seen, Storage};
use crate::args::{Args, Bytes, MAX_INPUTS, MAX_OUTPUTS, Operand, WHOLE};
use crate::fast::lanes::Instructions;
use crate::threads::Threads;
use backend_api::{
    DType, Error, KernelInfo, Made, Part, Pass, Piece, Place, Plan, Program, ReadId, StepLimits, StepParams, StorageId,
    Tensor, TensorId,
};
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

/// A compiled graph.
pub(super) struct CpuProgram {
    pub(super) plan: Plan,
    pub(super) limits: StepLimits,
    /// The storages of the externals, for each sequence.
    pub(super) sequences: Vec<Vec<StorageId>>,
    pub(super) kernels: Vec<Kernel>,
    /// Cost of each kernel.
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

/// The words of a place, moved out while a kernel writes them, so that operands can be borrowed beside them.
fn take(place: Option<Place>, storages: &[StorageId], memory: &mut Memory, slots: &mut [Vec<u32>]) -> Vec<u32> {
    match place {
        Some(Place::Slot(slot)) => std::mem::take(&mut slots[slot]),
        Some(Place::External(at)) => match &mut memory.storages[storages[at].0 as usize] {
            Some(Storage { data: Data::Words(words), .. }) => std::mem::take(words),
            _ => Vec::new(),
        },
        None => Vec::new(),
    }
}

fn put(place: Option<Place>, words: Vec<u32>, storages: &[StorageId], memory: &mut Memory, slots: &mut [Vec<u32>]) {
    match place {
        None => {}
        Some(Place::Slot(slot)) => slots[slot] = words,
        Some(Place::External(at)) => {
            if let Some(Storage { data: Data::Words(data), .. }) = &mut memory.storages[storages[at].0 as usize] {
                *data = words;
            }
        }
    }
}

impl CpuProgram {
    /// Runs some kernels, of each these units; whoever watches is called after each.
    fn run(&mut self, params: &StepParams, range: Range<usize>, units: Range<usize>) -> Result<(), Error> {
        let watcher = self.seen.0.borrow().clone();
        let Some(watcher) = watcher else { return self.run_kernels(params, range, units) };
        for kernel in range {
            self.run_kernels(params, kernel..kernel + 1, units.clone())?;
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

    fn run_kernels(&mut self, params: &StepParams, range: Range<usize>, units: Range<usize>) -> Result<(), Error> {
        let memory = &mut *self.memory.borrow_mut();
        self.limits.check(params)?;
        let pieces = self.pieces.get(range.clone()).unwrap_or_default();
        if pieces.len() != range.len() || (units != WHOLE && pieces.iter().any(|p| units.end > p.units as usize)) {
            return Err(Error::Invalid(format!(
                "the program has no kernels {range:?} with units {units:?}; cut its own pieces"
            )));
        }
        let storages = &self.sequences[params.sequence as usize];
        if let Some(gone) = storages.iter().find(|id| memory.storage(**id).is_err()) {
            return Err(Error::Invalid(format!("storage {} was destroyed; compile the program again", gone.0)));
        }
        let CpuProgram { plan, kernels, slots, scratch, instructions, threads, .. } = self;
        let (graph, count) = (plan.graph(), threads.count());
        threads.enter(|| {
            for (kernel, node) in kernels[range.clone()].iter().zip(&plan.covers()[range.clone()]) {
                let mut outputs: [Vec<u32>; MAX_OUTPUTS] = Default::default();
                for (words, id) in outputs.iter_mut().zip(&node.outputs) {
                    *words = take(plan.place(*id), storages, memory, slots);
                }
                let mut inputs = [None; MAX_INPUTS];
                for (input, id) in inputs.iter_mut().zip(&node.inputs) {
                    let tensor = graph.tensor(*id);
                    let bytes = match plan.place(*id) {
                        None => Bytes::Words(&[]),
                        Some(Place::Slot(slot)) => Bytes::Words(&slots[slot]),
                        Some(Place::External(at)) => match &memory.storages[storages[at].0 as usize] {
                            Some(Storage { data: Data::Packed(bytes), .. }) => Bytes::Packed(bytes),
                            Some(Storage { data: Data::Words(words), .. }) => Bytes::Words(words),
                            None => Bytes::Words(&[]),
                        },
                    };
                    // Slots and guarded storages are longer than the tensor; states that are being written are empty.
                    let bytes = match bytes {
                        Bytes::Words(words) => Bytes::Words(&words[..tensor.shape.len().min(words.len())]),
                        packed => packed,
                    };
                    *input = Some(Operand { tensor, bytes });
                }
                let mut lengths = [0; MAX_OUTPUTS];
                for (len, id) in lengths.iter_mut().zip(&node.outputs) {
                    *len = graph.tensor(*id).shape.len();
                }
                let [a, b, c] = &mut outputs;
                let results = [&mut a[..lengths[0]], &mut b[..lengths[1]], &mut c[..lengths[2]]];
                let mut args = Args {
                    step: *params,
                    inputs,
                    outputs: results,
                    scratch,
                    instructions: *instructions,
                    threads: count,
                    units: units.clone(),
                };
                kernel.run(&node.form, &mut args);
                for (words, id) in outputs.into_iter().zip(&node.outputs) {
                    put(plan.place(*id), words, storages, memory, slots);
                }
            }
        });
        memory.stats.dispatches += range.len() as u64;
        memory.stats.submits += 1;
        memory.stats.uploaded += size_of::<StepParams>() as u64;
        Ok(())
    }
}

impl CpuProgram {
    /// Reads a tensor that a kernel just made.
    fn read_made(&self, id: TensorId, params: &StepParams) -> Result<ReadId, Error> {
        let missing = || Error::Invalid("the tensor has no place; report this as a bug".into());
        let memory = &mut *self.memory.borrow_mut();
        let words = match self.plan.place(id).ok_or_else(missing)? {
            Place::Slot(slot) => &self.slots[slot],
            Place::External(at) => match &memory.storage(self.sequences[params.sequence as usize][at])?.data {
                Data::Words(words) => words,
                Data::Packed(_) => return Err(missing()),
            },
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
        let bytes = node.inputs.iter().chain(&node.outputs).map(|id| bytes(graph.tensor(*id))).sum();
        let mut info = KernelInfo::new(graph, node, node.form.name().into(), [cols, rows, 1], bytes);
        let made = |id: &TensorId| Made::of(graph.tensor(*id)).map(|made| (made, *id));
        let (matrices, tensors) = node.outputs.iter().filter_map(made).unzip();
        info.made = matrices;
        (info, tensors)
    }
}

impl Program for CpuProgram {
    fn step(&mut self, params: &StepParams) -> Result<(), Error> {
        self.run(params, 0..self.kernels.len(), WHOLE)
    }

    fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    fn part(&mut self, params: &StepParams, part: &Part) -> Result<(), Error> {
        match part {
            Part::Kernels(range) => self.run(params, range.clone(), WHOLE),
            Part::Units(at, units) => self.run(params, *at..at + 1, units.start as usize..units.end as usize),
        }
    }

    fn kernels(&self) -> Vec<KernelInfo> {
        (0..self.kernels.len()).map(|kernel| self.info(kernel).0).collect()
    }
}
