//! A device that the application has already, say because it draws with it: the engine runs on it, too, and what it holds
//! is the application's to use in between.
//!
//!     cargo run --release -p anygpu-examples --bin shared_device -- [MODEL.gguf]

use std::rc::Rc;

use anygpu::native::{NativeHost, block_on, open_files};
use anygpu::{Engine, EngineOptions, GenerateOptions};
use anyhow::{Context, Result};
use backend_webgpu::{Options, WebGpu, wgpu};

fn main() -> Result<()> {
    let model = std::env::args().nth(1).unwrap_or_else(|| "models/gab-q4_0.gguf".into());
    // The application's own.
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let adapter = block_on(instance.request_adapter(&Default::default())).context("there is no adapter")?;
    let (device, queue) = block_on(adapter.request_device(&Default::default()))?;
    let buffer = device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("the application's"),
        size: 16,
        usage: wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC,
        mapped_at_creation: false,
    });

    let backend = block_on(WebGpu::from_device(device.clone(), queue.clone(), Options::default()))?;
    let (source, options) = (open_files(model.as_ref())?, EngineOptions::default());
    let (host, mut loading) = (Rc::new(NativeHost::default()), |_| {});
    let engine = block_on(Engine::with_backend(Box::new(backend), &source, &options, host, &mut loading))?;
    let options = GenerateOptions { max_tokens: Some(12), ..engine.generate_options() };
    let prompt = engine.encode("Once upon a time")?;
    let mut frames = 0;
    let mut beside = |_: anygpu::Piece<'_>| {
        // Work of the application's, between that of the engine: after each part of the prompt and each token.
        queue.write_buffer(&buffer, 0, &[frames; 16]);
        queue.submit([]);
        frames += 1;
    };
    let story = block_on(engine.generate(&mut engine.session()?, &prompt, &options, &mut beside))?;
    println!("Once upon a time{}", story.text);
    drop(engine);
    // The device stays when the engine goes.
    queue.write_buffer(&buffer, 0, &[1; 16]);
    let done = queue.submit([]);
    device.poll(wgpu::PollType::Wait { submission_index: Some(done), timeout: None })?;
    println!("and {frames} frames beside it on {}", device.adapter_info().name);
    Ok(())
}
