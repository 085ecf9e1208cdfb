//! Programs: pipelines, slots, one arena of parameters and bind groups, made once; a step writes 32 bytes and encodes.

use crate::backend::{Shared, Storage, count};
use crate::kernel::{Binding, Kernel, Operand};
use crate::lower::lower;
use crate::profile;
use crate::shader::assemble;
use backend_api::op::{Append, At, GetRows, Index};
use backend_api::{Error, Graph, KernelInfo, Op, Place, Plan, Profile, Program, StepParams, TensorId};
use std::collections::HashMap;
use std::rc::Rc;

/// Compiled kernels of a device by source text, and bind group layouts by the writability of their storages.
#[derive(Default)]
pub struct Pipelines {
    pipelines: HashMap<String, wgpu::ComputePipeline>,
    layouts: HashMap<Vec<bool>, (wgpu::BindGroupLayout, wgpu::PipelineLayout)>,
}

impl Pipelines {
    fn layout(&mut self, shared: &Shared, writable: &[bool]) -> (wgpu::BindGroupLayout, wgpu::PipelineLayout) {
        let make = || {
            let uniform = [wgpu::BufferBindingType::Uniform; 2];
            let storage = writable.iter().map(|w| wgpu::BufferBindingType::Storage { read_only: !w });
            let entries: Vec<wgpu::BindGroupLayoutEntry> = uniform
                .into_iter()
                .chain(storage)
                .zip(0..)
                .map(|(ty, binding)| wgpu::BindGroupLayoutEntry {
                    binding,
                    visibility: wgpu::ShaderStages::COMPUTE,
                    ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size: None },
                    count: None,
                })
                .collect();
            let group = shared
                .device
                .create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries });
            let pipeline = shared.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                label: None,
                bind_group_layouts: &[Some(&group)],
                immediate_size: 0,
            });
            (group, pipeline)
        };
        self.layouts.entry(writable.to_vec()).or_insert_with(make).clone()
    }

    fn pipeline(
        &mut self,
        shared: &Shared,
        kernel: &Kernel,
        layout: &wgpu::PipelineLayout,
    ) -> Result<wgpu::ComputePipeline, Error> {
        let title = kernel.title();
        let source = assemble(kernel).map_err(|why| Error::Driver(format!("shader {title}: {why}")))?;
        let source = match &shared.patch {
            Some(patch) => patch.apply(&source),
            None => source,
        };
        if let Some(pipeline) = self.pipelines.get(&source) {
            return Ok(pipeline.clone());
        }
        let label = Some(title.as_str());
        let module = shared.device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label,
            source: wgpu::ShaderSource::Wgsl(source.as_str().into()),
        });
        let pipeline = shared.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label,
            layout: Some(layout),
            module: &module,
            entry_point: Some("main"),
            compilation_options: Default::default(),
            cache: None,
        });
        shared.faults.check(&title, 0)?;
        count(&shared.counters.objects, 1);
        self.pipelines.insert(source, pipeline.clone());
        Ok(pipeline)
    }
}

/// One dispatch, ready to be encoded.
pub struct Dispatch {
    pipeline: wgpu::ComputePipeline,
    group: wgpu::BindGroup,
    grid: [u32; 3],
    pub info: KernelInfo,
}

impl Dispatch {
    /// Encodes it.
    pub fn encode(&self, pass: &mut wgpu::ComputePass<'_>) {
        let [x, y, z] = self.grid;
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(0, &self.group, &[]);
        pass.dispatch_workgroups(x, y, z);
    }
}

/// A compiled graph.
pub struct GpuProgram {
    shared: Rc<Shared>,
    dispatches: Vec<Dispatch>,
    step: wgpu::Buffer,
    owned: Vec<wgpu::Buffer>,
    bounds: Bounds,
}

/// Compiles a plan; `storages` are those of its externals.
pub fn compile(shared: &Rc<Shared>, plan: &Plan, storages: &[&Storage]) -> Result<GpuProgram, Error> {
    let graph = plan.graph();
    check_externals(graph, storages)?;
    let kernels = lower_all(shared, graph)?;
    let mut program = GpuProgram {
        shared: shared.clone(),
        dispatches: Vec::with_capacity(kernels.len()),
        step: shared.buffer(
            "step parameters",
            size_of::<StepParams>() as u64,
            wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
        )?,
        owned: Vec::new(),
        bounds: Bounds::of(graph),
    };
    program.owned.push(program.step.clone());
    let mut slots = Vec::with_capacity(plan.slots().len());
    for (i, bytes) in plan.slots().iter().enumerate() {
        let buffer = shared.buffer(&format!("slot {i}"), *bytes, wgpu::BufferUsages::STORAGE)?;
        program.owned.push(buffer.clone());
        slots.push(buffer);
    }
    let between = |b: &Binding| matches!(b.operand, Operand::Scratch { .. });
    let scratch = kernels.iter().flat_map(|(_, k)| &k.bindings).filter(|b| between(b)).map(|b| b.bytes).max();
    let scratch = match scratch {
        Some(bytes) => Some(shared.buffer("scratch", bytes, wgpu::BufferUsages::STORAGE)?),
        None => None,
    };
    program.owned.extend(scratch.clone());
    let (arena, offsets) = parameters(shared, &kernels)?;
    program.owned.push(arena.clone());
    let buffer_of = |id: TensorId, chunk: usize| match plan.place(id) {
        Place::External(i) => storages.get(i).and_then(|s| s.buffers.get(chunk)),
        Place::Slot(i) => slots.get(i),
    };
    for ((at, kernel), (offset, size)) in kernels.iter().zip(offsets) {
        let node = &graph.nodes()[*at];
        let writable: Vec<bool> = kernel.bindings.iter().map(|b| b.operand.is_written()).collect();
        let mut pipelines = shared.pipelines.borrow_mut();
        let (group_layout, layout) = pipelines.layout(shared, &writable);
        let pipeline = pipelines.pipeline(shared, kernel, &layout)?;
        let mut entries =
            vec![entry(0, &arena, offset, size), entry(1, &program.step, 0, size_of::<StepParams>() as u64)];
        for (binding, index) in kernel.bindings.iter().zip(2..) {
            let buffer = match binding.operand {
                Operand::Input(i) => node.inputs.get(i).and_then(|id| buffer_of(*id, binding.chunk)),
                Operand::Output(i) => node.outputs.get(i).and_then(|id| buffer_of(*id, binding.chunk)),
                Operand::Scratch { .. } => scratch.as_ref(),
            };
            let buffer = buffer.ok_or_else(|| Error::Invalid(format!("{} has no place", binding.name)))?;
            entries.push(entry(index, buffer, 0, binding.bytes));
        }
        let title = kernel.title();
        let group = shared.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some(&title),
            layout: &group_layout,
            entries: &entries,
        });
        shared.faults.check(&title, 0)?;
        count(&shared.counters.objects, 1);
        let bytes = kernel.bindings.iter().map(|b| b.bytes).sum();
        let info = KernelInfo { name: title, grid: kernel.grid, bytes };
        program.dispatches.push(Dispatch { pipeline, group, grid: kernel.grid, info });
    }
    Ok(program)
}

fn entry(binding: u32, buffer: &wgpu::Buffer, offset: u64, size: u64) -> wgpu::BindGroupEntry<'_> {
    let size = wgpu::BufferSize::new(size);
    let resource = wgpu::BindingResource::Buffer(wgpu::BufferBinding { buffer, offset, size });
    wgpu::BindGroupEntry { binding, resource }
}

fn check_externals(graph: &Graph, storages: &[&Storage]) -> Result<(), Error> {
    let externals: Vec<_> = graph.externals().map(|(_, tensor)| tensor).collect();
    if externals.len() != storages.len() {
        return Err(Error::Invalid(format!(
            "the graph has {} externals, but {} storages were given",
            externals.len(),
            storages.len()
        )));
    }
    for (tensor, storage) in externals.iter().zip(storages) {
        if tensor.shape != storage.desc.shape || tensor.dtype != storage.desc.dtype {
            return Err(Error::Invalid(format!(
                "{} is {tensor}, but its storage {} is {} {}",
                tensor.name, storage.desc.name, storage.desc.dtype, storage.desc.shape
            )));
        }
    }
    Ok(())
}

/// The kernels of all nodes with the node's index.
fn lower_all(shared: &Shared, graph: &Graph) -> Result<Vec<(usize, Kernel)>, Error> {
    let (mut kernels, mut refused) = (Vec::new(), Vec::new());
    for (at, node) in graph.nodes().iter().enumerate() {
        let inputs = graph.operands(node);
        let outputs: Vec<_> = node.outputs.iter().map(|id| graph.tensor(*id)).collect();
        match lower(&node.op, &shared.node(&inputs, &outputs)) {
            Ok(list) => kernels.extend(list.into_iter().map(|k| (at, k))),
            Err(unsupported) => refused.push(unsupported),
        }
    }
    if refused.is_empty() { Ok(kernels) } else { Err(Error::Unsupported(refused)) }
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

/// What step parameters a graph can take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Most rows of a step.
    rows: usize,
    /// Most tokens, those of the step included.
    tokens: usize,
}

impl Bounds {
    /// The rows and the context that the nodes were recorded for.
    pub fn of(graph: &Graph) -> Bounds {
        let mut bounds = Bounds { rows: usize::MAX, tokens: usize::MAX };
        for node in graph.nodes() {
            let dim = |i: usize| node.inputs.get(i).map_or(usize::MAX, |id| graph.tensor(*id).shape.dim(0));
            let (rows, tokens) = match &node.op {
                Op::GetRows(GetRows { index: Index::Tokens { rows } }) => (*rows, dim(1)),
                Op::GetRows(GetRows { index: Index::Positions { rows } }) => (*rows, usize::MAX),
                Op::GetRows(GetRows { index: Index::Last }) => (dim(0), usize::MAX),
                Op::Append(Append { at: At::Position }) => (dim(1), usize::MAX),
                Op::Rope(_) => (dim(0), dim(1)),
                Op::QkvAppend(op) => (dim(0), dim(if op.rope.is_some() { 2 } else { 1 })),
                Op::LinearQkv(_) => (dim(0), dim(node.inputs.len() - 1)),
                Op::Attention(op) if op.masking.cached => (dim(0), dim(1)),
                Op::AttentionLinear(op) if op.attention.masking.cached => (dim(0), dim(1)),
                Op::Embed(op) => (op.rows, dim(1)),
                _ => continue,
            };
            bounds.rows = bounds.rows.min(rows);
            bounds.tokens = bounds.tokens.min(tokens);
        }
        bounds
    }

    /// Checks the parameters of a step.
    pub fn check(&self, params: &StepParams) -> Result<(), Error> {
        let rows = params.rows as usize;
        if rows == 0 || rows > self.rows {
            let most = self.rows;
            return Err(Error::Invalid(format!(
                "a step of {rows} rows is not in 1..={most}; split it or compile more"
            )));
        }
        if params.position as usize + rows > self.tokens {
            return Err(Error::Invalid(format!(
                "{rows} rows at position {} exceed the context of {}; start anew or use a larger context",
                params.position, self.tokens
            )));
        }
        Ok(())
    }
}

impl GpuProgram {
    /// Writes the parameters of a step.
    fn write(&self, params: &StepParams) -> Result<(), Error> {
        self.bounds.check(params)?;
        self.shared.faults.check_patiently("a step", 0)?;
        // The step before must go first: writes to the parameters take effect before the next submit.
        self.shared.submit_pending();
        let bytes = bytemuck::bytes_of(params);
        self.shared.queue.write_buffer(&self.step, 0, bytes);
        count(&self.shared.counters.uploaded, bytes.len() as u64);
        count(&self.shared.counters.dispatches, self.dispatches.len() as u64);
        Ok(())
    }
}

impl Program for GpuProgram {
    fn step(&mut self, params: &StepParams) -> Result<(), Error> {
        self.write(params)?;
        let mut encoder = self.shared.device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: None });
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            self.dispatches.iter().for_each(|dispatch| dispatch.encode(&mut pass));
        }
        *self.shared.pending.borrow_mut() = Some(encoder);
        self.shared.faults.check_patiently("a step", 0)
    }

    fn profile(&mut self, params: &StepParams) -> Result<Option<Box<dyn Profile>>, Error> {
        if !profile::possible(&self.shared, self.dispatches.len()) {
            return Ok(None);
        }
        self.write(params)?;
        profile::begin(&self.shared, &self.dispatches).map(Some)
    }

    fn kernels(&self) -> Vec<KernelInfo> {
        self.dispatches.iter().map(|d| d.info.clone()).collect()
    }
}

impl Drop for GpuProgram {
    fn drop(&mut self) {
        self.owned.iter().for_each(|b| self.shared.free(b));
    }
}
