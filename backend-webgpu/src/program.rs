//! Programs: pipelines, slots, one arena of parameters and bind groups, made once; a step writes 32 bytes and encodes.

use crate::backend::{Shared, Storage, count};
use crate::kernel::{Binding, Kernel, Operand};
use crate::lower::FEW;
use crate::pipeline::Pipeline;
use crate::profile;
use crate::watch::Watched;
use backend_api::{
    Error, Held, KernelInfo, Kind, Made, Part, Piece, Place, Plan, Profile, Program, StepLimits, StepParams, TensorId,
};
use std::ops::Range;
use std::rc::Rc;

/// The first workgroup of a dispatch, behind the step's parameters.
type Origin = [u32; 4];

/// Parameters of each sequence whose rows are advanced together: position, place and seed, and how its token is
/// drawn.
type Each = [u32; 8];

/// Bytes of the step's parameters, and of those with the origin.
const PARAMS: u64 = size_of::<StepParams>() as u64;
const BLOCK: u64 = PARAMS + size_of::<Origin>() as u64;

/// Classes of its memory.
const SLOTS: &str = "slots";
const SCRATCH: &str = "scratch";
const PARAMETERS: &str = "parameters";

/// One dispatch, ready to be encoded.
pub struct Dispatch {
    pipeline: Rc<Pipeline>,
    /// For each sequence.
    groups: Vec<wgpu::BindGroup>,
    grid: [u32; 3],
    pub info: KernelInfo,
    /// Where the matrices lie that it makes.
    made: Vec<wgpu::Buffer>,
}

impl Dispatch {
    /// Encodes it on the states of a sequence.
    pub fn encode(&self, pass: &mut wgpu::ComputePass<'_>, sequence: u32) {
        self.encode_grid(pass, sequence, self.grid);
    }

    fn encode_grid(&self, pass: &mut wgpu::ComputePass<'_>, sequence: u32, [x, y, z]: [u32; 3]) {
        pass.set_pipeline(self.pipeline.get());
        pass.set_bind_group(0, &self.groups[sequence as usize], &[]);
        pass.dispatch_workgroups(x, y, z);
    }
}

/// The dimension that a grid is cut along: kernels that number their workgroups by one index count along the others
/// first.
fn outermost(grid: [u32; 3]) -> usize {
    grid.iter().rposition(|size| *size > 1).unwrap_or(0)
}

/// A compiled graph.
pub struct GpuProgram {
    shared: Rc<Shared>,
    dispatches: Vec<Dispatch>,
    /// Cost of each dispatch.
    pieces: Vec<Piece>,
    step: wgpu::Buffer,
    /// Whether the origin on the device is not 0.
    is_moved: bool,
    /// Buffers of its own, with their classes in traces.
    owned: Vec<(&'static str, wgpu::Buffer)>,
    limits: StepLimits,
    /// Parameters of the rows, if they are of several sequences.
    each: Vec<Each>,
}

/// Compiles a plan; `sequences` are the storages of its externals, for each sequence.
pub fn compile(shared: &Rc<Shared>, plan: &Plan, sequences: &[Vec<&Storage>]) -> Result<GpuProgram, Error> {
    let graph = plan.graph();
    let kernels = plan.lower(|cover| shared.lower(graph, cover))?;
    let kernels: Vec<(usize, Kernel)> = kernels
        .into_iter()
        .enumerate()
        .flat_map(|(at, list)| list.into_iter().map(move |kernel| (at, kernel)))
        .collect();
    let limits = StepLimits::of(graph, sequences.len());
    if limits.apart && limits.rows > FEW {
        let why = format!("a step of {} sequences is more than the {FEW} that kernels advance; split it", limits.rows);
        return Err(Error::Invalid(why));
    }
    let block = BLOCK + if limits.apart { (FEW * size_of::<Each>()) as u64 } else { 0 };
    let mut program = GpuProgram {
        shared: shared.clone(),
        dispatches: Vec::with_capacity(kernels.len()),
        pieces: Vec::with_capacity(kernels.len()),
        step: shared.buffer("step parameters", block, wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST)?,
        is_moved: false,
        owned: Vec::new(),
        limits,
        each: Vec::with_capacity(if limits.apart { FEW } else { 0 }),
    };
    program.owned.push((PARAMETERS, program.step.clone()));
    // Who watches may read them.
    let temporary = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC;
    let mut slots = Vec::with_capacity(plan.slots().len());
    for (i, bytes) in plan.slots().iter().enumerate() {
        let buffer = shared.buffer(&format!("slot {i}"), *bytes, temporary)?;
        program.owned.push((SLOTS, buffer.clone()));
        slots.push(buffer);
    }
    let between = |b: &Binding| matches!(b.operand, Operand::Scratch { .. });
    let scratch = kernels.iter().flat_map(|(_, k)| &k.bindings).filter(|b| between(b)).map(|b| b.bytes).max();
    let scratch = match scratch {
        Some(bytes) => Some(shared.buffer("scratch", bytes, wgpu::BufferUsages::STORAGE)?),
        None => None,
    };
    program.owned.extend(scratch.clone().map(|scratch| (SCRATCH, scratch)));
    let (arena, offsets) = parameters(shared, &kernels)?;
    program.owned.push((PARAMETERS, arena.clone()));
    let buffer_of = |storages: &[&Storage], id: TensorId, chunk: usize| match plan.place(id) {
        Some(Place::External(i)) => storages.get(i).and_then(|s| Some((s.buffers.get(chunk)?.clone(), s.begin()))),
        Some(Place::Slot(i)) => slots.get(i).map(|slot| (slot.clone(), 0)),
        None => None,
    };
    for ((at, kernel), (offset, size)) in kernels.iter().zip(offsets) {
        let cover = &plan.covers()[*at];
        let writable: Vec<bool> = kernel.bindings.iter().map(|b| b.operand.is_written()).collect();
        let mut pipelines = shared.pipelines.borrow_mut();
        let codebooks = kernel.codebooks();
        let (group_layout, layout) = pipelines.layout(&shared.device, &writable, codebooks.len());
        let pipeline = pipelines.pipeline(shared, kernel, &layout)?;
        let books = codebooks.iter().map(|codebook| shared.codebook(codebook)).collect::<Result<Vec<_>, _>>()?;
        let title = kernel.title();
        let group_of = |storages: &[&Storage]| {
            let buffers = kernel.bindings.iter().map(|binding| {
                let of = |ids: &[TensorId], i: usize| buffer_of(storages, *ids.get(i)?, binding.chunk);
                let buffer = match binding.operand {
                    Operand::Input(i) => of(&cover.inputs, i),
                    Operand::Output(i) => of(&cover.outputs, i),
                    Operand::Scratch { .. } => scratch.clone().map(|scratch| (scratch, 0)),
                };
                buffer.ok_or_else(|| Error::Invalid(format!("{} has no place", binding.name)))
            });
            let buffers = buffers.collect::<Result<Vec<_>, _>>()?;
            let operands = buffers.iter().zip(&kernel.bindings).map(|((buffer, at), b)| (buffer, *at, b.bytes));
            let entries: Vec<_> = [(&arena, offset, size), (&program.step, 0, block)]
                .into_iter()
                .chain(operands)
                .chain(books.iter().map(|book| (book, 0, book.size())))
                .zip(0..)
                .map(|((buffer, offset, size), index)| entry(index, buffer, offset, size))
                .collect();
            let group = shared.device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: Some(&title),
                layout: &group_layout,
                entries: &entries,
            });
            shared.faults.check(&title, 0)?;
            count(&shared.counters.objects, 1);
            Ok(group)
        };
        // Kernels that touch no state have one group for all sequences.
        let is_state = |id: &TensorId| matches!(graph.tensor(*id).kind, Kind::State(_));
        let mut groups = Vec::with_capacity(sequences.len());
        for storages in sequences {
            let shared = groups.first().filter(|_| !cover.inputs.iter().chain(&cover.outputs).any(is_state));
            let group = shared.cloned().map_or_else(|| group_of(storages), Ok)?;
            groups.push(group);
        }
        let mut info = KernelInfo::new(graph, cover, title, kernel.grid, &kernel.bound());
        let mut made = Vec::new();
        for binding in &kernel.bindings {
            let Operand::Output(i) = binding.operand else { continue };
            let Some(id) = cover.outputs.get(i) else { continue };
            // No state, so it is the same for each sequence.
            let buffer = sequences.first().and_then(|storages| buffer_of(storages, *id, binding.chunk));
            if let Some((matrix, (buffer, _))) = Made::of(graph.tensor(*id)).zip(buffer) {
                info.made.push(matrix);
                made.push(buffer);
            }
        }
        program.dispatches.push(Dispatch { pipeline, groups, grid: kernel.grid, info, made });
    }
    let fullest = limits.fullest();
    // A step of several sequences runs whole.
    let whole = if limits.apart { 0 } else { kernels.len() };
    for of_cover in kernels[..whole].chunk_by(|(one, _), (next, _)| one == next) {
        let at = program.pieces.len();
        let dispatches = program.dispatches[at..at + of_cover.len()].iter();
        let kernels = dispatches.map(|d| (d.info.traffic.of(&fullest), d.grid[outermost(d.grid)]));
        program.pieces.extend(Piece::of_cover(graph, &plan.covers()[of_cover[0].0], kernels));
    }
    Ok(program)
}

fn entry(binding: u32, buffer: &wgpu::Buffer, offset: u64, size: u64) -> wgpu::BindGroupEntry<'_> {
    let size = wgpu::BufferSize::new(size);
    let resource = wgpu::BindingResource::Buffer(wgpu::BufferBinding { buffer, offset, size });
    wgpu::BindGroupEntry { binding, resource }
}

/// One buffer with the parameters of all kernels; each has an aligned slice (offset, size).
fn parameters(shared: &Shared, kernels: &[(usize, Kernel)]) -> Result<(wgpu::Buffer, Vec<(u64, u64)>), Error> {
    let mut bytes: Vec<u8> = Vec::new();
    let mut offsets = Vec::with_capacity(kernels.len());
    for (_, kernel) in kernels {
        bytes.resize(bytes.len().next_multiple_of(shared.uniform_align as usize), 0);
        let offset = bytes.len() as u64;
        for (_, value) in &kernel.params {
            bytes.extend(value.bits().to_le_bytes());
        }
        bytes.resize(bytes.len().next_multiple_of(16), 0);
        offsets.push((offset, bytes.len() as u64 - offset));
    }
    let usage = wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST;
    let arena = shared.buffer("kernel parameters", bytes.len() as u64, usage)?;
    if !bytes.is_empty() {
        shared.queue.write_buffer(&arena, 0, &bytes);
        count(&shared.counters.uploaded, bytes.len() as u64);
    }
    Ok((arena, offsets))
}

impl GpuProgram {
    /// Writes the parameters of a step, or of a part with so many dispatches that begin at a workgroup.
    fn write(&mut self, params: &StepParams, dispatches: usize, origin: Origin) -> Result<(), Error> {
        self.limits.check(params)?;
        self.begin()?;
        self.put(params, dispatches);
        let moves = origin != Origin::default();
        if moves || self.is_moved {
            self.shared.queue.write_buffer(&self.step, PARAMS, bytemuck::bytes_of(&origin));
            count(&self.shared.counters.uploaded, size_of::<Origin>() as u64);
            self.is_moved = moves;
        }
        Ok(())
    }

    /// Checks the device and prepares it before the parameters of a step are written.
    fn begin(&self) -> Result<(), Error> {
        self.shared.faults.check_patiently("a step", 0)?;
        // The step before must go first: writes to the parameters take effect before the next submit.
        self.shared.submit_pending();
        #[cfg(target_arch = "wasm32")]
        self.shared.staging.clear(&self.shared);
        Ok(())
    }

    /// Writes the parameters of what has so many dispatches.
    fn put(&self, params: &StepParams, dispatches: usize) {
        let bytes = bytemuck::bytes_of(params);
        self.shared.queue.write_buffer(&self.step, 0, bytes);
        count(&self.shared.counters.uploaded, bytes.len() as u64);
        count(&self.shared.counters.dispatches, dispatches as u64);
    }

    /// Writes the parameters of a step whose rows are of several sequences.
    fn write_apart(&mut self, runs: &[StepParams]) -> Result<(), Error> {
        self.limits.check_apart(runs)?;
        let each = |run: &StepParams| {
            let StepParams { position, top_k, top_p, temperature, seed_lo, seed_hi, sequence, .. } = *run;
            [position, sequence, seed_lo, seed_hi, top_k, top_p.to_bits(), temperature.to_bits(), 0]
        };
        self.each.clear();
        self.each.extend(runs.iter().map(each));
        self.begin()?;
        let bytes: &[u8] = bytemuck::cast_slice(&self.each);
        self.shared.queue.write_buffer(&self.step, BLOCK, bytes);
        count(&self.shared.counters.uploaded, bytes.len() as u64);
        self.put(&StepParams { rows: runs.len() as u32, ..runs[0] }, self.dispatches.len());
        Ok(())
    }

    /// Encodes dispatches, which are submitted together. Of a single one the grid may be a part, perhaps the last.
    fn encode(&self, range: Range<usize>, params: &StepParams, part: Option<([u32; 3], bool)>) -> Result<(), Error> {
        let mut encoder = self.shared.device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: None });
        let watcher = self.shared.watcher.borrow().clone();
        let together = if watcher.is_some() { 1 } else { range.len().max(1) };
        // Those of a step of several sequences have one group.
        let sequence = if self.limits.apart { 0 } else { params.sequence };
        for first in range.clone().step_by(together) {
            let dispatches = &self.dispatches[first..first + together];
            {
                let pass = &mut encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
                for dispatch in dispatches {
                    dispatch.encode_grid(pass, sequence, part.map_or(dispatch.grid, |(grid, _)| grid));
                }
            }
            let is_done = part.is_none_or(|(_, is_last)| is_last);
            if let (Some(watcher), true, [Dispatch { info, made: buffers, .. }]) = (&watcher, is_done, dispatches) {
                let (kernels, encoder, shared) = (self.dispatches.len(), &mut encoder, &*self.shared);
                watcher(Watched { kernel: first, kernels, info, params, buffers, encoder, shared });
            }
        }
        *self.shared.pending.borrow_mut() = Some(encoder);
        self.shared.faults.check_patiently("a step", 0)
    }

    /// Runs some of the dispatches.
    fn run(&mut self, params: &StepParams, range: Range<usize>) -> Result<(), Error> {
        let missing = || Error::Invalid(format!("the program has no kernels {range:?}; cut its own pieces"));
        let count = self.dispatches.get(range.clone()).ok_or_else(missing)?.len();
        self.write(params, count, Origin::default())?;
        self.encode(range, params, None)
    }
}

impl Program for GpuProgram {
    fn step(&mut self, params: &StepParams) -> Result<(), Error> {
        if self.limits.apart {
            return self.steps(&[*params]);
        }
        self.run(params, 0..self.dispatches.len())
    }

    fn steps(&mut self, runs: &[StepParams]) -> Result<(), Error> {
        if !self.limits.apart {
            return runs.iter().try_for_each(|params| self.step(params));
        }
        self.write_apart(runs)?;
        self.encode(0..self.dispatches.len(), &runs[0], None)
    }

    fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    fn part(&mut self, params: &StepParams, part: &Part) -> Result<(), Error> {
        let missing = || Error::Invalid(format!("the program has no {part:?}; cut its own pieces"));
        if self.limits.apart {
            return Err(missing());
        }
        let (at, units) = match part {
            Part::Kernels(range) => return self.run(params, range.clone()),
            Part::Units(at, units) => (*at, units),
        };
        let (mut grid, mut origin) = (self.dispatches.get(at).ok_or_else(missing)?.grid, Origin::default());
        let axis = outermost(grid);
        if units.end > grid[axis] {
            return Err(missing());
        }
        let is_last = units.end == grid[axis];
        (origin[axis], grid[axis]) = (units.start, units.end.saturating_sub(units.start));
        self.write(params, 1, origin)?;
        self.encode(at..at + 1, params, Some((grid, is_last)))
    }

    fn profile(&mut self, runs: &[StepParams]) -> Result<Option<Box<dyn Profile>>, Error> {
        if !profile::possible(&self.shared, self.dispatches.len()) {
            return Ok(None);
        }
        let sequence = match runs {
            _ if self.limits.apart => {
                self.write_apart(runs)?;
                0
            }
            [params] => {
                self.write(params, self.dispatches.len(), Origin::default())?;
                params.sequence
            }
            _ => return Ok(None),
        };
        profile::begin(&self.shared, &self.dispatches, sequence).map(Some)
    }

    fn kernels(&self) -> Vec<KernelInfo> {
        self.dispatches.iter().map(|d| d.info.clone()).collect()
    }

    fn held(&self) -> Vec<Held> {
        let of = |class| {
            let buffers = self.owned.iter().filter(move |(of, _)| *of == class);
            Held::of(class, buffers.map(|(_, buffer)| buffer.size()))
        };
        [SLOTS, SCRATCH, PARAMETERS].map(of).into()
    }
}

impl Drop for GpuProgram {
    fn drop(&mut self) {
        self.owned.iter().for_each(|(_, buffer)| self.shared.free(buffer));
    }
}
