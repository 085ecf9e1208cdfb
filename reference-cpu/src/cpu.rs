//! The backend: storages and slots are vectors, programs are lists of kernels.

mod program;

use crate::args::{Args, MAX_INPUTS, MAX_OUTPUTS};
use crate::fast::lanes::Instructions;
use crate::threads::Threads;
use crate::{fast, plain};
use backend_api::{
    Backend, BackendInfo, Cover, DType, Error, Form, Graph, Matcher, Piece, Plan, Products, Program, ReadId, Shape,
    Stats, StepLimits, StorageDesc, StorageId, Tensor, Unsupported, Watcher, check_sequences, host_rows,
};
use bytemuck::Zeroable;
use program::{Apart, CpuProgram};
use std::cell::RefCell;
use std::fmt;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::rc::Rc;

/// How the CPU computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// SIMD kernels; otherwise the plain definitions, on one thread.
    pub fast: bool,
    /// Instruction set of the SIMD kernels; by default the best of this machine.
    pub instructions: Option<Instructions>,
    /// Threads that the SIMD kernels use natively; by default as many as the machine runs at once. Results are the same
    /// bit for bit with any number. In a browser there are those that the module was given before, or one.
    pub threads: Option<NonZeroUsize>,
}

impl Default for Options {
    fn default() -> Options {
        Options { fast: true, instructions: None, threads: None }
    }
}

/// The CPU as a backend.
#[derive(Debug)]
pub struct Cpu {
    options: Options,
    instructions: Instructions,
    info: BackendInfo,
    threads: Rc<Threads>,
    memory: Rc<RefCell<Memory>>,
    seen: Seen,
}

/// Rows of a step of several sequences, at most. Weights are taken apart once for all of them, and each attends by itself.
const BATCH_ROWS: usize = 64;

/// States with a codec are words too: f32 values that the codec can hold. Memory is no reason for codecs here.
#[derive(Debug)]
enum Data {
    Words(Vec<u32>),
    Packed(Vec<u8>),
    /// Words of another storage, from this one on.
    View {
        of: StorageId,
        first: usize,
    },
}

#[derive(Debug)]
struct Storage {
    desc: StorageDesc,
    data: Data,
}

#[derive(Debug, Default)]
struct Memory {
    storages: Vec<Option<Storage>>,
    /// Reads are done when they are begun: steps run at once. Finished ones leave their vector for the next.
    reads: Vec<Option<Vec<u8>>>,
    spare: Vec<Vec<u8>>,
    stats: Stats,
}

/// Callback that runs after each kernel.
#[derive(Clone, Default)]
struct Seen(Rc<RefCell<Option<Watcher>>>);

impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.borrow().is_some() { "somebody" } else { "nobody" })
    }
}

impl Memory {
    /// A read that is done, of these bytes.
    fn done(&mut self, bytes: Vec<u8>) -> ReadId {
        let index = self.reads.iter().position(Option::is_none).unwrap_or(self.reads.len());
        if index == self.reads.len() {
            self.reads.push(None);
        }
        self.reads[index] = Some(bytes);
        ReadId(index as u32)
    }

    fn storage(&self, id: StorageId) -> Result<&Storage, Error> {
        self.storages.get(id.0 as usize).and_then(Option::as_ref).ok_or_else(unknown)
    }

    /// Returns the storage that holds the words of this one, and which of them: all of its own, or those of a view.
    fn place(&self, id: StorageId) -> Result<(StorageId, Range<usize>), Error> {
        let storage = self.storage(id)?;
        Ok(match &storage.data {
            Data::View { of, first } => (*of, *first..first + storage.desc.shape.len()),
            Data::Words(words) => (id, 0..words.len()),
            Data::Packed(_) => (id, 0..0),
        })
    }

    /// Returns the words of an unpacked storage.
    fn words(&self, id: StorageId) -> Result<&[u32], Error> {
        let (whole, range) = self.place(id)?;
        match &self.storage(whole)?.data {
            Data::Words(words) => words.get(range).ok_or_else(unknown),
            Data::Packed(_) | Data::View { .. } => {
                Err(Error::Invalid(format!("{} is packed and cannot be read", self.storage(id)?.desc.name)))
            }
        }
    }
}

fn unknown() -> Error {
    Error::Invalid("this storage or read does not exist (any more)".into())
}

impl Cpu {
    /// Opens the CPU, which is always there. Where threads cannot be started it computes on the caller's, and its facts
    /// say why.
    pub fn new(options: Options) -> Cpu {
        let threads = if options.fast { Threads::new(options.threads) } else { Threads::one() };
        let kernels = match cfg!(all(target_arch = "wasm32", not(target_feature = "simd128"))) {
            true => "kernels without SIMD",
            false => "SIMD kernels",
        };
        let adapter = match (options.fast, threads.count()) {
            (false, _) => "CPU, plain definitions".into(),
            (true, 1) => format!("CPU, {kernels}, 1 thread"),
            (true, count) => format!("CPU, {kernels}, {count} threads"),
        };
        let instructions = options.instructions.unwrap_or_else(Instructions::best);
        let facts = vec![("instructions", instructions.name().into()), ("threads", threads.describe())];
        let info = BackendInfo {
            name: "cpu",
            adapter,
            software: false,
            synchronous: true,
            short_prompt: 0,
            verify_rows: 8,
            batch_rows: BATCH_ROWS,
            verify_after: 0,
            prompt_rows: 128,
            products: Products::F32,
            facts,
        };
        Cpu { options, instructions, info, threads: Rc::new(threads), memory: Rc::default(), seen: Seen::default() }
    }

    /// The kernel of a form.
    fn lower(&self, form: &Form) -> Result<Kernel, &'static str> {
        match (form, if self.options.fast { fast::kernel(form) } else { None }) {
            (_, Some(kernel)) => Ok(Kernel::Fast(kernel)),
            (Form::Op(op), None) => Ok(Kernel::Plain(plain::definition(op))),
            (_, None) => Err("its nodes are run one by one"),
        }
    }
}

/// Implementation that runs a cover.
#[derive(Clone, Copy)]
enum Kernel {
    Plain(plain::Definition),
    Fast(fast::Kernel),
}

impl Kernel {
    fn run(self, form: &Form, args: &mut Args<'_>) {
        match (self, form) {
            (Kernel::Fast(kernel), _) => kernel(form, args),
            (Kernel::Plain(definition), Form::Op(op)) => definition(op, args),
            // Definitions are of operators alone.
            (Kernel::Plain(_), _) => {}
        }
    }
}

/// Returns zeros, as the system gives them: pages of memory that nothing is written to take none.
fn zeros<T: Zeroable>(len: usize, what: &str) -> Result<Vec<T>, Error> {
    let refused = |()| Error::OutOfMemory { what: what.into(), bytes: (len * size_of::<T>()) as u64 };
    bytemuck::try_zeroed_vec(len).map_err(refused)
}

impl Backend for Cpu {
    fn info(&self) -> &BackendInfo {
        &self.info
    }

    fn matchers(&self) -> &[Matcher] {
        if self.options.fast { fast::MATCHERS } else { &[] }
    }

    fn supports(&self, _: &Graph, cover: &Cover) -> Result<(), Unsupported> {
        let refused = |reason: &str| Unsupported { op: cover.form.name().into(), reason: reason.into() };
        if cover.inputs.len() > MAX_INPUTS || cover.outputs.len() > MAX_OUTPUTS {
            return Err(refused("it has more operands or results than a kernel takes"));
        }
        self.lower(&cover.form).map(|_| ()).map_err(refused)
    }

    fn slot_size(&self, tensor: &Tensor) -> u64 {
        tensor.shape.len() as u64
    }

    fn storage_bytes(&self, desc: &StorageDesc) -> Result<u64, Error> {
        let (rows, cols) = host_rows(&desc.shape);
        let row = match desc.dtype {
            DType::Packed(format) => format.row_bytes(cols)?,
            // Those of codecs are decoded.
            DType::F32 | DType::I32 | DType::Coded(_) => cols * size_of::<f32>(),
        };
        (rows as u64 + desc.guard_rows as u64).checked_mul(row as u64).ok_or_else(unknown)
    }

    fn create(&self, desc: &StorageDesc) -> Result<StorageId, Error> {
        let bytes = self.storage_bytes(desc)? as usize;
        let data = match desc.dtype {
            DType::Packed(_) => Data::Packed(zeros(bytes, &desc.name)?),
            DType::F32 | DType::I32 | DType::Coded(_) => Data::Words(zeros(bytes / size_of::<f32>(), &desc.name)?),
        };
        let mut memory = self.memory.borrow_mut();
        memory.stats.objects += 1;
        memory.stats.memory += data.len() as u64;
        memory.storages.push(Some(Storage { desc: desc.clone(), data }));
        Ok(StorageId(memory.storages.len() as u32 - 1))
    }

    fn write(&self, id: StorageId, first_row: usize, bytes: &[u8]) -> Result<(), Error> {
        let mut memory = self.memory.borrow_mut();
        memory.stats.uploaded += bytes.len() as u64;
        let (whole, range) = memory.place(id)?;
        let &StorageDesc { shape, dtype, .. } = &memory.storage(id)?.desc;
        let storage = memory.storages.get_mut(whole.0 as usize).and_then(Option::as_mut).ok_or_else(unknown)?;
        let (_, cols) = host_rows(&shape);
        let widened: Vec<f32>;
        let are_whole = |row: usize| bytes.len().is_multiple_of(row);
        let bytes = match dtype {
            DType::Coded(codec) if are_whole(codec.row_bytes(cols)) => {
                widened = codec.decode(bytes);
                bytemuck::cast_slice(&widened)
            }
            _ => bytes,
        };
        let (target, row): (&mut [u8], usize) = match (&mut storage.data, dtype) {
            (Data::Packed(data), dtype) => (data, dtype.row_bytes(cols)?),
            (Data::Words(words), _) => (bytemuck::cast_slice_mut(&mut words[range]), cols * 4),
            (Data::View { .. }, _) => return Err(unknown()),
        };
        let start = first_row.saturating_mul(row);
        let room = target.get_mut(start..start.saturating_add(bytes.len()));
        match room {
            Some(room) if bytes.len().is_multiple_of(row) => room.copy_from_slice(bytes),
            _ => {
                return Err(Error::Invalid(format!(
                    "cannot write {} bytes at row {first_row} of {}: rows are {row} bytes each",
                    bytes.len(),
                    storage.desc.name
                )));
            }
        }
        Ok(())
    }

    fn read(&self, id: StorageId, first_row: usize, rows: usize) -> Result<ReadId, Error> {
        let mut memory = self.memory.borrow_mut();
        let mut copy = memory.spare.pop().unwrap_or_default();
        copy.clear();
        let storage = memory.storage(id)?;
        let (_, cols) = host_rows(&storage.desc.shape);
        let words = memory.words(id)?;
        let range = first_row.saturating_mul(cols)..first_row.saturating_add(rows).saturating_mul(cols);
        let words = words.get(range).ok_or_else(|| {
            Error::Invalid(format!("rows {first_row}+{rows} of {} are out of range", storage.desc.name))
        })?;
        match storage.desc.dtype {
            DType::Coded(codec) => copy.extend(codec.encode(bytemuck::cast_slice(words))),
            _ => copy.extend_from_slice(bytemuck::cast_slice(words)),
        }
        Ok(memory.done(copy))
    }

    fn try_read(&self, read: ReadId, out: &mut [u8]) -> Result<bool, Error> {
        let mut memory = self.memory.borrow_mut();
        let slot = memory.reads.get_mut(read.0 as usize).ok_or_else(unknown)?;
        let bytes = slot.take_if(|bytes| bytes.len() == out.len()).ok_or_else(unknown)?;
        out.copy_from_slice(&bytes);
        memory.stats.read_back += bytes.len() as u64;
        memory.spare.push(bytes);
        Ok(true)
    }

    fn view(&self, id: StorageId, first_row: usize, rows: usize) -> Result<StorageId, Error> {
        let mut memory = self.memory.borrow_mut();
        let (whole, range) = memory.place(id)?;
        let desc = &memory.storage(id)?.desc;
        let mut dims: Vec<usize> = desc.shape.dims().collect();
        let all = dims.first().copied().unwrap_or(0);
        if matches!(desc.dtype, DType::Packed(_)) || rows == 0 || first_row.saturating_add(rows) > all {
            let why = format!("rows {first_row}+{rows} of {} are none of its {all} unpacked rows", desc.name);
            return Err(Error::Invalid(why));
        }
        let first = range.start + first_row * (desc.shape.len() / all);
        dims[0] = rows;
        let shape = Shape::new(&dims).map_err(|why| Error::Invalid(format!("{}: {why}", desc.name)))?;
        let desc = StorageDesc { shape, guard_rows: 0, ..desc.clone() };
        memory.storages.push(Some(Storage { desc, data: Data::View { of: whole, first } }));
        Ok(StorageId(memory.storages.len() as u32 - 1))
    }

    fn destroy(&self, id: StorageId) {
        let mut memory = self.memory.borrow_mut();
        if let Some(storage) = memory.storages.get_mut(id.0 as usize).and_then(Option::take) {
            memory.stats.memory -= storage.data.len() as u64;
        }
    }

    fn compile_sequences(&self, plan: &Plan, sequences: &[&[StorageId]]) -> Result<Box<dyn Program>, Error> {
        let graph = plan.graph();
        let lowered = |cover: &Cover| {
            let refused = |reason: &str| Unsupported { op: cover.form.name().into(), reason: reason.into() };
            self.supports(graph, cover)?;
            self.lower(&cover.form).map_err(refused)
        };
        let kernels = plan.lower(lowered)?;
        let mut memory = self.memory.borrow_mut();
        check_sequences(graph, sequences, |id, tensor| {
            let desc = &memory.storage(id)?.desc;
            Ok(desc.shape == tensor.shape && desc.dtype == tensor.dtype)
        })?;
        let slots =
            plan.slots().iter().map(|words| zeros::<u32>(*words as usize, "a slot")).collect::<Result<Vec<_>, _>>()?;
        let operands = |cover: &Cover| cover.inputs.iter().map(|id| graph.tensor(*id)).collect::<Vec<_>>();
        let needs = |cover: &Cover| fast::needs(&cover.form, &operands(cover), self.threads.count());
        let needs: Vec<fast::Needs> = plan.covers().iter().map(needs).collect();
        let scratch = needs.iter().map(|needs| needs.scratch).max().unwrap_or(0);
        let parts = needs.iter().map(|needs| needs.parts).max().unwrap_or(1);
        // Definitions are short and read as they are written: they run whole.
        let units = |kernel: &Kernel, units: usize| if matches!(kernel, Kernel::Fast(_)) { units as u32 } else { 1 };
        let pieces = plan.covers().iter().zip(&kernels).zip(&needs).map(|((cover, kernel), needs)| Piece {
            cost: cover.cost(graph),
            units: units(kernel, needs.units).max(1),
        });
        let apart = Apart::new(plan)?;
        // Steps of several sequences are run whole.
        let pieces = if apart.is_none() { pieces.collect() } else { Vec::new() };
        let scratch = zeros::<f32>(scratch, "scratch memory")?;
        let held = (slots.iter().map(Vec::len).sum::<usize>() + scratch.len()) as u64 * 4;
        memory.stats.memory += held;
        memory.stats.objects += 1;
        Ok(Box::new(CpuProgram {
            limits: StepLimits::of(graph, sequences.len()),
            plan: plan.clone(),
            sequences: sequences.iter().map(|storages| storages.to_vec()).collect(),
            kernels,
            apart,
            pieces,
            slots,
            scratch,
            held,
            instructions: self.instructions,
            threads: if parts > 1 { self.threads.clone() } else { Rc::new(Threads::one()) },
            memory: self.memory.clone(),
            seen: self.seen.clone(),
        }))
    }

    fn idle(&self) -> Result<bool, Error> {
        Ok(true)
    }

    fn set_watcher(&self, watcher: Option<Watcher>) -> Result<(), Error> {
        self.seen.0.replace(watcher);
        Ok(())
    }

    fn stats(&self) -> Stats {
        self.memory.borrow().stats
    }
}

impl Data {
    fn len(&self) -> usize {
        match self {
            Data::Words(words) => words.len() * 4,
            Data::Packed(bytes) => bytes.len(),
            Data::View { .. } => 0,
        }
    }
}
