//! A backend of one's own: a toy that multiplies, adds and scales in the memory of the host. It says what else it lacks,
//! and the suite's cases of what it has pass.
//!
//!     cargo run --release -p anygpu-examples --bin own_backend

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use anygpu::native::{NativeHost, block_on};
use anygpu_conformance::run::{Outcome, check};
use anygpu_conformance::suite::cases;
use anyhow::{Result, bail};
use backend_api::op::BinaryKind;
use backend_api::{
    Backend, BackendInfo, Cover, DType, Error, Form, Graph, KernelInfo, Op, Place, Plan, Products, Program, ReadId,
    Stats, StepLimits, StepParams, StorageDesc, StorageId, Tensor, TensorId, Unsupported, check_one_sequence,
    check_sequences, host_rows,
};
use reference_cpu::Cpu;

/// The storages, by their ids. Freed ones are empty.
type Memory = Rc<RefCell<Vec<(StorageDesc, Vec<f32>)>>>;

struct Toy {
    info: BackendInfo,
    memory: Memory,
    reads: RefCell<Vec<Vec<u8>>>,
    steps: Rc<Cell<u64>>,
}

impl Toy {
    fn new() -> Toy {
        let info = BackendInfo {
            name: "toy",
            adapter: "vectors of the host".into(),
            software: true,
            synchronous: true,
            short_prompt: 0,
            prompt_rows: 1,
            verify_rows: 1,
            batch_rows: 1,
            verify_after: 0,
            products: Products::F32,
            facts: Vec::new(),
        };
        Toy { info, memory: Memory::default(), reads: RefCell::default(), steps: Rc::default() }
    }

    /// The numbers of some rows of a storage.
    fn range(desc: &StorageDesc, first: usize, rows: usize) -> Result<std::ops::Range<usize>, Error> {
        let (all, cols) = host_rows(&desc.shape);
        match first.checked_add(rows).filter(|end| *end <= all + desc.guard_rows) {
            Some(end) => Ok(first * cols..end * cols),
            None => {
                Err(Error::Invalid(format!("rows {first}+{rows} are outside of {}; ask for rows within", desc.name)))
            }
        }
    }
}

fn unknown(id: StorageId) -> Error {
    Error::Invalid(format!("there is no storage {}", id.0))
}

impl Backend for Toy {
    fn info(&self) -> &BackendInfo {
        &self.info
    }

    fn supports(&self, graph: &Graph, cover: &Cover) -> Result<(), Unsupported> {
        let refused = |reason: &str| Err(Unsupported { op: cover.form.name().into(), reason: reason.into() });
        let shapes: Vec<_> = cover.inputs.iter().map(|id| graph.tensor(*id).shape).collect();
        match &cover.form {
            Form::Op(Op::Scale(_)) => Ok(()),
            Form::Op(Op::Binary(_)) if shapes[0] == shapes[1] => Ok(()),
            Form::Op(Op::Binary(_)) => refused("the toy does not broadcast"),
            _ => refused("the toy has two operators"),
        }
    }

    fn slot_size(&self, tensor: &Tensor) -> u64 {
        tensor.shape.len() as u64
    }

    fn storage_bytes(&self, desc: &StorageDesc) -> Result<u64, Error> {
        let (rows, cols) = host_rows(&desc.shape);
        Ok(((rows + desc.guard_rows) * cols * 4) as u64)
    }

    fn create(&self, desc: &StorageDesc) -> Result<StorageId, Error> {
        if desc.dtype != DType::F32 {
            return Err(Error::Invalid(format!("{} is {}; the toy has f32 only", desc.name, desc.dtype)));
        }
        let numbers = vec![0.0; self.storage_bytes(desc)? as usize / 4];
        let mut memory = self.memory.borrow_mut();
        memory.push((desc.clone(), numbers));
        Ok(StorageId(memory.len() as u32 - 1))
    }

    fn write(&self, id: StorageId, first_row: usize, bytes: &[u8]) -> Result<(), Error> {
        let mut memory = self.memory.borrow_mut();
        let (desc, numbers) = memory.get_mut(id.0 as usize).ok_or_else(|| unknown(id))?;
        let (_, cols) = host_rows(&desc.shape);
        let range = Toy::range(desc, first_row, bytes.len() / (4 * cols.max(1)))?;
        let given = bytes.chunks_exact(4).map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]]));
        numbers[range].iter_mut().zip(given).for_each(|(to, from)| *to = from);
        Ok(())
    }

    fn read(&self, id: StorageId, first_row: usize, rows: usize) -> Result<ReadId, Error> {
        let memory = self.memory.borrow();
        let (desc, numbers) = memory.get(id.0 as usize).ok_or_else(|| unknown(id))?;
        let range = Toy::range(desc, first_row, rows)?;
        let mut reads = self.reads.borrow_mut();
        reads.push(bytemuck::cast_slice(&numbers[range]).to_vec());
        Ok(ReadId(reads.len() as u32 - 1))
    }

    fn try_read(&self, read: ReadId, out: &mut [u8]) -> Result<bool, Error> {
        let reads = self.reads.borrow();
        match reads.get(read.0 as usize).filter(|bytes| bytes.len() == out.len()) {
            Some(bytes) => out.copy_from_slice(bytes),
            None => return Err(Error::Invalid(format!("read {} is not of {} bytes", read.0, out.len()))),
        }
        Ok(true)
    }

    fn destroy(&self, id: StorageId) {
        self.memory.borrow_mut().get_mut(id.0 as usize).into_iter().for_each(|(_, numbers)| *numbers = Vec::new());
    }

    fn compile_sequences(&self, plan: &Plan, sequences: &[&[StorageId]]) -> Result<Box<dyn Program>, Error> {
        check_one_sequence(plan.graph())?;
        let memory = self.memory.borrow();
        check_sequences(plan.graph(), sequences, |id, tensor| {
            let (desc, _) = memory.get(id.0 as usize).ok_or_else(|| unknown(id))?;
            Ok(desc.shape == tensor.shape)
        })?;
        let slots = plan.slots().iter().map(|len| vec![0.0; *len as usize]).collect();
        let sequences = sequences.iter().map(|storages| storages.to_vec()).collect();
        let limits = StepLimits::of(plan.graph(), 1);
        let (plan, memory, steps) = (plan.clone(), self.memory.clone(), self.steps.clone());
        Ok(Box::new(ToyProgram { plan, sequences, slots, limits, memory, steps }))
    }

    fn idle(&self) -> Result<bool, Error> {
        Ok(true)
    }

    fn stats(&self) -> Stats {
        Stats { dispatches: self.steps.get(), ..Stats::default() }
    }
}

struct ToyProgram {
    plan: Plan,
    sequences: Vec<Vec<StorageId>>,
    slots: Vec<Vec<f32>>,
    limits: StepLimits,
    memory: Memory,
    steps: Rc<Cell<u64>>,
}

impl ToyProgram {
    /// The numbers of a tensor.
    fn get(&self, id: TensorId, sequence: usize) -> Vec<f32> {
        let len = self.plan.graph().tensor(id).shape.len();
        match self.plan.place(id) {
            Some(Place::Slot(slot)) => self.slots[slot][..len].to_vec(),
            Some(Place::External(at)) => {
                self.memory.borrow()[self.sequences[sequence][at].0 as usize].1[..len].to_vec()
            }
            None => Vec::new(),
        }
    }

    fn put(&mut self, id: TensorId, sequence: usize, numbers: &[f32]) {
        match self.plan.place(id) {
            Some(Place::Slot(slot)) => self.slots[slot][..numbers.len()].copy_from_slice(numbers),
            Some(Place::External(at)) => {
                let storage = self.sequences[sequence][at].0 as usize;
                self.memory.borrow_mut()[storage].1[..numbers.len()].copy_from_slice(numbers);
            }
            None => {}
        }
    }
}

impl Program for ToyProgram {
    fn step(&mut self, params: &StepParams) -> Result<(), Error> {
        self.limits.check(params)?;
        let sequence = params.sequence as usize;
        for cover in self.plan.covers().to_vec() {
            let x = self.get(cover.inputs[0], sequence);
            let result: Vec<f32> = match &cover.form {
                Form::Op(Op::Scale(op)) => x.iter().map(|x| op.factor * x + op.bias).collect(),
                Form::Op(Op::Binary(op)) => {
                    let calculate = |(a, b): (&f32, &f32)| match op.kind {
                        BinaryKind::Add => a + b,
                        BinaryKind::Sub => a - b,
                        BinaryKind::Mul => a * b,
                        BinaryKind::Div => a / b,
                    };
                    x.iter().zip(&self.get(cover.inputs[1], sequence)).map(calculate).collect()
                }
                form => return Err(Error::Invalid(format!("{} was not to be covered", form.name()))),
            };
            self.put(cover.outputs[0], sequence, &result);
            self.steps.set(self.steps.get() + 1);
        }
        Ok(())
    }

    fn kernels(&self) -> Vec<KernelInfo> {
        let graph = self.plan.graph();
        let kernel = |cover: &Cover| KernelInfo::new(graph, cover, cover.form.name().into(), [1; 3], &[]);
        self.plan.covers().iter().map(kernel).collect()
    }
}

fn main() -> Result<()> {
    let (toy, host) = (Toy::new(), NativeHost::default());
    let reference = Cpu::new(reference_cpu::Options { fast: false, ..Default::default() });
    for op in ["scale", "binary", "matmul"] {
        let (mut passed, mut lacks, mut failed) = (0, 0, Vec::new());
        for case in cases(Some(op)) {
            if toy.plan(case.graph.clone()).is_err() {
                lacks += 1;
                continue;
            }
            match block_on(check(&toy, &reference, &case, &host)) {
                Outcome::Passed { .. } => passed += 1,
                Outcome::Failed(why) => failed.push(format!("{}: {why}", case.name)),
            }
        }
        println!("{op}: {passed} passed, {lacks} that it says it lacks, {} failed", failed.len());
        if !failed.is_empty() {
            bail!("{}", failed.join("\n"));
        }
    }
    Ok(())
}
