//! A watcher sees the result of each kernel, although the next but one reuses its buffer, and steps stay as they are.
#![cfg(not(target_arch = "wasm32"))]

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use anygpu_backend_webgpu::{Options, Watched, WebGpu, wgpu};
use backend_api::case::Fill;
use backend_api::op::{Cumsum, Unary, UnaryKind};
use backend_api::run::{NativeHost, Rig};
use backend_api::{Backend, DType, Graph, Part, StepParams, StorageDesc};
use pollster::block_on;

const KERNELS: usize = 6;
/// Sums of them are exact.
const X: [f32; 4] = [0.5, -2.0, 3.0, 4.0];

/// An application's copier of a buffer that it may only bind for reading.
struct Copier {
    device: wgpu::Device,
    queue: wgpu::Queue,
    pipeline: wgpu::ComputePipeline,
    copies: Vec<wgpu::Buffer>,
}

impl Copier {
    /// None if `ANYGPU_SKIP` names webgpu: a machine without an adapter must say so, or the test fails.
    fn open() -> Option<Copier> {
        if std::env::var("ANYGPU_SKIP").is_ok_and(|skip| skip.split(',').any(|name| name.trim() == "webgpu")) {
            println!("SKIPPED: ANYGPU_SKIP names webgpu");
            return None;
        }
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
        let adapter =
            block_on(instance.request_adapter(&Default::default())).expect("or skip it with ANYGPU_SKIP=webgpu");
        let (device, queue) = block_on(adapter.request_device(&Default::default())).unwrap();
        let source = "
            @group(0) @binding(0) var<storage, read> source: array<f32>;
            @group(0) @binding(1) var<storage, read_write> target_: array<f32>;
            @compute @workgroup_size(4) fn copy(@builtin(local_invocation_index) i: u32) { target_[i] = source[i]; }";
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: None,
            source: wgpu::ShaderSource::Wgsl(source.into()),
        });
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: None,
            compilation_options: Default::default(),
            cache: None,
        });
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC;
        let copy = |_| {
            device.create_buffer(&wgpu::BufferDescriptor { label: None, size: 16, usage, mapped_at_creation: false })
        };
        let copies = (0..KERNELS).map(copy).collect();
        Some(Copier { device, queue, pipeline, copies })
    }

    fn copy(&self, pass: Watched<'_>) {
        let entry =
            |binding, buffer| wgpu::BindGroupEntry { binding, resource: wgpu::Buffer::as_entire_binding(buffer) };
        let group = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &self.pipeline.get_bind_group_layout(0),
            entries: &[entry(0, &pass.buffers[0]), entry(1, &self.copies[pass.kernel])],
        });
        let mut copying = pass.encoder.begin_compute_pass(&Default::default());
        copying.set_pipeline(&self.pipeline);
        copying.set_bind_group(0, &group, &[]);
        copying.dispatch_workgroups(1, 1, 1);
    }

    /// Reads a copy.
    fn read(&self, at: usize) -> Vec<f32> {
        let usage = wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ;
        let to = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: 16,
            usage,
            mapped_at_creation: false,
        });
        let mut encoder = self.device.create_command_encoder(&Default::default());
        encoder.copy_buffer_to_buffer(&self.copies[at], 0, &to, 0, 16);
        self.queue.submit([encoder.finish()]);
        to.map_async(wgpu::MapMode::Read, .., |mapped| mapped.unwrap());
        self.device.poll(wgpu::PollType::Wait { submission_index: None, timeout: None }).unwrap();
        bytemuck::cast_slice(&to.get_mapped_range(..).unwrap()).to_vec()
    }
}

#[test]
fn each_matrix_is_there_before_the_next_kernel_runs() {
    let Some(copier) = Copier::open() else { return };
    let mut graph = Graph::new();
    let mut x = graph.input("x", &[1, 4], DType::F32).unwrap();
    for _ in 0..KERNELS {
        // No form has several of them.
        x = graph.push(Cumsum, &[x]).unwrap();
    }
    graph.output(x, "y").unwrap();
    let (device, queue) = (copier.device.clone(), copier.queue.clone());
    let gpu = block_on(WebGpu::from_device(device, queue, Options::default())).unwrap();
    let mut rig = Rig::new(&gpu, &graph).unwrap();
    rig.fill(&[Fill::Values(X.to_vec()), Fill::Values(vec![0.0])], &|index| index as u64).unwrap();
    let step = StepParams::at(0, 1);
    rig.step(&step).unwrap();
    let unwatched = block_on(rig.results(&NativeHost::default())).unwrap();

    let (copier, seen) = (Rc::new(copier), Rc::new(RefCell::new(Vec::new())));
    let (copies, see) = (copier.clone(), seen.clone());
    gpu.watch(move |pass| {
        let [made] = &pass.info.made[..] else { panic!("{} makes one matrix", pass.info.name) };
        see.borrow_mut().push((pass.kernel, pass.kernels, made.rows, made.cols, pass.buffers[0].clone()));
        copies.copy(pass);
    });
    let before = gpu.stats();
    rig.step(&step).unwrap();
    assert!(block_on(rig.results(&NativeHost::default())).unwrap() == unwatched);
    let stats = gpu.stats().since(&before);
    assert_eq!((stats.dispatches, stats.objects), (KERNELS as u64, 0));
    let mut sums = X;
    for kernel in 0..KERNELS {
        (1..sums.len()).for_each(|i| sums[i] += sums[i - 1]);
        assert_eq!(copier.read(kernel), sums, "kernel {kernel}");
    }
    let seen = seen.borrow();
    let shapes: Vec<_> =
        seen.iter().map(|(kernel, kernels, rows, cols, _)| (*kernel, *kernels, *rows, *cols)).collect();
    assert_eq!(shapes, (0..KERNELS).map(|kernel| (kernel, KERNELS, 1, 4)).collect::<Vec<_>>());
    let is_first = |at: usize| !seen[..at].iter().any(|(.., buffer)| *buffer == seen[at].4);
    assert_eq!((0..KERNELS).filter(|at| is_first(*at)).count(), 3, "two slots and the output");
}

#[test]
fn a_dispatch_in_parts_is_seen_once() {
    let Some(Copier { device, queue, .. }) = Copier::open() else { return };
    let gpu = block_on(WebGpu::from_device(device, queue, Options::default())).unwrap();
    let mut graph = Graph::new();
    let x = graph.input("x", &[64, 256], DType::F32).unwrap();
    let y = graph.push(Unary { kind: UnaryKind::Neg }, &[x]).unwrap();
    graph.output(y, "y").unwrap();
    let plan = gpu.plan(graph).unwrap();
    let storages: Vec<_> =
        plan.graph().externals().map(|(_, tensor)| gpu.create(&StorageDesc::of(tensor)).unwrap()).collect();
    let mut program = gpu.compile(&plan, &storages).unwrap();
    let seen = Rc::new(Cell::new(0));
    let see = seen.clone();
    gpu.watch(move |_| see.set(see.get() + 1));
    let units = program.pieces()[0].units;
    for (part, watched) in [(0..1, 0), (1..units, 1)] {
        program.part(&StepParams::at(0, 64), &Part::Units(0, part)).unwrap();
        assert_eq!(seen.get(), watched);
    }
}
