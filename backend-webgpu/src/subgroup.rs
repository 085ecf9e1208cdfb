//! Subgroups: invocations that exchange values without the memory of their workgroup.

use crate::shader::ENABLE_SUBGROUPS;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

/// With fewer invocations kernels gain nothing. Browsers that keep a device's sizes secret say 4.
const LEAST: u32 = 8;
/// More are no use to any kernel.
const MOST: u32 = 32;
/// How long the trial may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Which invocations share a subgroup is up to the driver. All known ones take them in order of their index, which kernels
/// rely on, so it is tried: every invocation must find the partners that its index names.
const TRIAL: &str = "
@group(0) @binding(0) var<storage, read_write> partners: array<u32>;

@compute @workgroup_size(WG)
fn main(@builtin(local_invocation_index) lane: u32) {
    var found = 1u;
    for (var distance = 1u; distance < WIDTH; distance <<= 1u) {
        found &= u32(subgroupShuffleXor(lane, distance) == (lane ^ distance));
    }
    partners[lane] = found;
}
";
/// Invocations of the trial: the largest workgroup that every device has.
const TRIAL_WG: u64 = 256;

/// Invocations that share a subgroup wherever their indices differ in no higher bit; 1 if kernels are to use none.
pub async fn width(device: &wgpu::Device, queue: &wgpu::Queue, about: &wgpu::AdapterInfo) -> usize {
    let width = about.subgroup_min_size.min(MOST);
    let useful = width >= LEAST && width.is_power_of_two() && device.features().contains(wgpu::Features::SUBGROUP);
    if useful && in_order(device, queue, width).await { width as usize } else { 1 }
}

/// Runs the trial.
async fn in_order(device: &wgpu::Device, queue: &wgpu::Queue, width: u32) -> bool {
    let source = TRIAL.replace("WG", &TRIAL_WG.to_string()).replace("WIDTH", &format!("{width}u"));
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: Some("subgroups"),
        source: wgpu::ShaderSource::Wgsl(format!("{ENABLE_SUBGROUPS}{source}").into()),
    });
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some("subgroups"),
        layout: None,
        module: &module,
        entry_point: Some("main"),
        compilation_options: Default::default(),
        cache: None,
    });
    let buffer = |usage| {
        let descriptor =
            wgpu::BufferDescriptor { label: Some("subgroups"), size: 4 * TRIAL_WG, usage, mapped_at_creation: false };
        device.create_buffer(&descriptor)
    };
    let partners = buffer(wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC);
    let staging = buffer(wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
    let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &pipeline.get_bind_group_layout(0),
        entries: &[wgpu::BindGroupEntry { binding: 0, resource: partners.as_entire_binding() }],
    });
    let mut encoder = device.create_command_encoder(&Default::default());
    {
        let mut pass = encoder.begin_compute_pass(&Default::default());
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.dispatch_workgroups(1, 1, 1);
    }
    encoder.copy_buffer_to_buffer(&partners, 0, &staging, 0, None);
    queue.submit([encoder.finish()]);
    let mapped = map(device, &staging).await;
    let all = |found: &[u8]| found.chunks_exact(4).all(|word| word == 1u32.to_le_bytes());
    let in_order = mapped && staging.get_mapped_range(..).is_ok_and(|found| all(&found));
    partners.destroy();
    staging.destroy();
    in_order
}

/// Waits for a buffer to be mapped; natively no longer than [`PATIENCE`]. False if that fails.
async fn map(device: &wgpu::Device, buffer: &wgpu::Buffer) -> bool {
    let state: Arc<Mutex<(Option<bool>, Option<Waker>)>> = Arc::default();
    let told = state.clone();
    buffer.map_async(wgpu::MapMode::Read, .., move |result| {
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        told.0 = Some(result.is_ok());
        if let Some(waker) = told.1.take() {
            waker.wake();
        }
    });
    let wait = wgpu::PollType::Wait { submission_index: None, timeout: Some(PATIENCE) };
    let _waited = device.poll(wait);
    poll_fn(|context| {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.0 {
            Some(mapped) => Poll::Ready(mapped),
            // Browsers call back later, others have by now.
            None if cfg!(target_arch = "wasm32") => {
                state.1 = Some(context.waker().clone());
                Poll::Pending
            }
            None => Poll::Ready(false),
        }
    })
    .await
}
