//! WebGPU: binds the backend's own buffers and paints them between dispatches, with a pipeline on the window's device.

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::Result;
use backend_webgpu::wgpu;
use backend_webgpu::{Options, Watched, WebGpu};
use bytemuck::{Pod, Zeroable};
use eframe::egui::TextureId;
use eframe::egui_wgpu::{RenderState, WgpuConfiguration, WgpuSetup};
use std::sync::Arc;

use crate::board::{Board, Places, SIDE};

/// Most tiles of a step.
const TILES: usize = 1024;

/// A tile, in the layout of the shader.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Entry {
    origin: [u32; 2],
    first: u32,
    stride: u32,
    count: u32,
    pad: [u32; 3],
}

/// Configures the device as the engine needs it: with subgroups if there are any, and with the adapter's largest memory
/// limits.
pub fn ask(options: &mut WgpuConfiguration) {
    let WgpuSetup::CreateNew(new) = &mut options.wgpu_setup else { return };
    new.device_descriptor = Arc::new(|adapter| {
        let offered = adapter.limits();
        wgpu::DeviceDescriptor {
            label: Some("the window's"),
            required_features: adapter.features() & wgpu::Features::SUBGROUP,
            required_limits: wgpu::Limits {
                max_texture_dimension_2d: offered.max_texture_dimension_2d,
                max_buffer_size: offered.max_buffer_size,
                max_storage_buffer_binding_size: offered.max_storage_buffer_binding_size,
                ..wgpu::Limits::default()
            },
            ..Default::default()
        }
    });
}

fn whole(binding: u32, buffer: &wgpu::Buffer) -> wgpu::BindGroupEntry<'_> {
    wgpu::BindGroupEntry { binding, resource: buffer.as_entire_binding() }
}

/// Painter of buffers.
struct Painter {
    device: wgpu::Device,
    queue: wgpu::Queue,
    pipeline: wgpu::RenderPipeline,
    tiles: wgpu::Buffer,
    picture: wgpu::TextureView,
}

impl Painter {
    fn new(state: &RenderState) -> Painter {
        let device = &state.device;
        let module = device.create_shader_module(wgpu::include_wgsl!("picture.wgsl"));
        let format = wgpu::TextureFormat::Rgba8Unorm;
        let size = wgpu::Extent3d { width: SIDE, height: SIDE, depth_or_array_layers: 1 };
        let picture = device.create_texture(&wgpu::TextureDescriptor {
            label: Some("picture"),
            size,
            mip_level_count: 1,
            sample_count: 1,
            dimension: wgpu::TextureDimension::D2,
            format,
            usage: wgpu::TextureUsages::RENDER_ATTACHMENT | wgpu::TextureUsages::TEXTURE_BINDING,
            view_formats: &[],
        });
        let tiles = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("tiles"),
            size: (TILES * size_of::<Entry>()) as u64,
            usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let pipeline = device.create_render_pipeline(&wgpu::RenderPipelineDescriptor {
            label: Some("picture"),
            layout: None,
            vertex: wgpu::VertexState {
                module: &module,
                entry_point: None,
                compilation_options: Default::default(),
                buffers: &[],
            },
            fragment: Some(wgpu::FragmentState {
                module: &module,
                entry_point: None,
                compilation_options: Default::default(),
                targets: &[Some(format.into())],
            }),
            primitive: wgpu::PrimitiveState::default(),
            depth_stencil: None,
            multisample: wgpu::MultisampleState::default(),
            multiview_mask: None,
            cache: None,
        });
        let picture = picture.create_view(&Default::default());
        Painter { device: device.clone(), queue: state.queue.clone(), pipeline, tiles, picture }
    }

    /// Paints the result of a dispatch.
    fn paint(&self, board: &mut Board, places: &mut Places<wgpu::Buffer>, pass: Watched<'_>) {
        if !board.begin(pass.kernel, pass.params) {
            return;
        }
        places.begin(pass.kernel);
        for (made, buffer) in pass.info.made.iter().zip(pass.buffers) {
            let Some((index, tile)) = board.add(pass.info, made, places.number(buffer.clone())) else {
                continue;
            };
            if index >= TILES {
                return;
            }
            let [x, y, width, height] = tile.area;
            let (count, first, stride) = (made.rows * made.cols, tile.first as u32, tile.stride as u32);
            let entry = Entry { origin: [x, y], first, stride, count: count as u32, pad: [0; 3] };
            let at = (index * size_of::<Entry>()) as u64;
            // The write happens before the step is submitted, and each tile of a step has its own entry.
            self.queue.write_buffer(&self.tiles, at, bytemuck::bytes_of(&entry));
            let group = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: Some("picture"),
                layout: &self.pipeline.get_bind_group_layout(0),
                entries: &[whole(0, buffer), whole(1, &self.tiles)],
            });
            let mut painting = pass.encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
                label: Some("picture"),
                color_attachments: &[Some(wgpu::RenderPassColorAttachment {
                    view: &self.picture,
                    depth_slice: None,
                    resolve_target: None,
                    ops: wgpu::Operations { load: wgpu::LoadOp::Load, store: wgpu::StoreOp::Store },
                })],
                ..Default::default()
            });
            painting.set_pipeline(&self.pipeline);
            painting.set_bind_group(0, &group, &[]);
            painting.set_viewport(x as f32, y as f32, width as f32, height as f32, 0.0, 1.0);
            painting.draw(0..3, index as u32..index as u32 + 1);
        }
    }
}

/// Opens a watched backend on the window's device. Returns it with the picture that passes are painted in, and the
/// board.
pub async fn open(state: &RenderState) -> Result<(WebGpu, TextureId, Rc<RefCell<Board>>)> {
    let backend = WebGpu::from_device(state.device.clone(), state.queue.clone(), Options::default()).await?;
    let (painter, board) = (Painter::new(state), Rc::new(RefCell::<Board>::default()));
    let picture =
        state.renderer.write().register_native_texture(&state.device, &painter.picture, wgpu::FilterMode::Nearest);
    let (watched, places) = (board.clone(), RefCell::new(Places::new()));
    backend.watch(move |pass| painter.paint(&mut watched.borrow_mut(), &mut places.borrow_mut(), pass));
    Ok((backend, picture, board))
}
