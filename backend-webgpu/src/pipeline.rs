//! Compiled kernels of a device, shared by all of its programs.

use crate::backend::{Shared, count};
use crate::kernel::Kernel;
use crate::shader::{assemble, variant};
use backend_api::Error;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::rc::Rc;

/// A kernel that is compiled, or will be when it is first needed.
pub struct Pipeline {
    device: wgpu::Device,
    title: String,
    module: wgpu::ShaderModule,
    layout: wgpu::PipelineLayout,
    made: OnceCell<wgpu::ComputePipeline>,
}

impl Pipeline {
    /// Has the driver compile it, or what stands in for the driver.
    fn make(&self) -> wgpu::ComputePipeline {
        self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(&self.title),
            layout: Some(&self.layout),
            module: &self.module,
            entry_point: Some("main"),
            // Kernels write their workgroups' memory before they read it. Natively one invocation would clear it all first.
            compilation_options: wgpu::PipelineCompilationOptions {
                zero_initialize_workgroup_memory: false,
                ..Default::default()
            },
            cache: None,
        })
    }

    /// The pipeline; whoever cannot wait until it [is ready](Pipelines::ready) has it compiled here.
    pub fn get(&self) -> &wgpu::ComputePipeline {
        self.made.get_or_init(|| self.make())
    }
}

/// Kernels by variant, and bind group layouts by the writability of their storages and the number of codebooks.
#[derive(Default)]
pub struct Pipelines {
    pipelines: HashMap<String, Rc<Pipeline>>,
    layouts: HashMap<(Vec<bool>, usize), (wgpu::BindGroupLayout, wgpu::PipelineLayout)>,
    #[cfg(target_arch = "wasm32")]
    ahead: ahead::Ahead,
}

impl Pipelines {
    pub fn layout(
        &mut self,
        device: &wgpu::Device,
        writable: &[bool],
        codebooks: usize,
    ) -> (wgpu::BindGroupLayout, wgpu::PipelineLayout) {
        let make = || {
            let uniform = |count| std::iter::repeat_n(wgpu::BufferBindingType::Uniform, count);
            let storage = writable.iter().map(|w| wgpu::BufferBindingType::Storage { read_only: !w });
            let entries: Vec<wgpu::BindGroupLayoutEntry> = uniform(2)
                .chain(storage)
                .chain(uniform(codebooks))
                .zip(0..)
                .map(|(ty, binding)| wgpu::BindGroupLayoutEntry {
                    binding,
                    visibility: wgpu::ShaderStages::COMPUTE,
                    ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size: None },
                    count: None,
                })
                .collect();
            let group =
                device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries });
            let pipeline = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                label: None,
                bind_group_layouts: &[Some(&group)],
                immediate_size: 0,
            });
            (group, pipeline)
        };
        self.layouts.entry((writable.to_vec(), codebooks)).or_insert_with(make).clone()
    }

    /// The pipeline of a kernel: natively compiled, in browsers not yet.
    ///
    /// *Errors*: those of the shader or the driver, device lost.
    pub fn pipeline(
        &mut self,
        shared: &Shared,
        kernel: &Kernel,
        layout: &wgpu::PipelineLayout,
    ) -> Result<Rc<Pipeline>, Error> {
        let variant = variant(kernel);
        if let Some(pipeline) = self.pipelines.get(&variant) {
            return Ok(pipeline.clone());
        }
        let title = kernel.title();
        let source = assemble(kernel).map_err(|why| Error::Driver(format!("shader {title}: {why}")))?;
        let source = match &shared.patch {
            Some(patch) => patch.apply(&source),
            None => source,
        };
        let module = shared.device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some(&title),
            source: wgpu::ShaderSource::Wgsl(source.into()),
        });
        let device = shared.device.clone();
        let pipeline = Rc::new(Pipeline { device, title, module, layout: layout.clone(), made: OnceCell::new() });
        #[cfg(target_arch = "wasm32")]
        self.ahead.add(pipeline.clone());
        #[cfg(not(target_arch = "wasm32"))]
        pipeline.get();
        shared.faults.check(&pipeline.title, 0)?;
        count(&shared.counters.objects, 1);
        self.pipelines.insert(variant, pipeline.clone());
        Ok(pipeline)
    }

    /// Whether all are compiled. Those that nobody asked for before are begun, all at once.
    pub fn ready(&mut self) -> bool {
        #[cfg(target_arch = "wasm32")]
        return self.ahead.ready();
        #[cfg(not(target_arch = "wasm32"))]
        true
    }
}

/// Compiling in browsers, where a pipeline that is made by `createComputePipeline` holds up whatever the device is given
/// after it, while others wait for their turn. `createComputePipelineAsync` compiles several at once beside all else.
#[cfg(target_arch = "wasm32")]
mod ahead {
    use super::Pipeline;
    use crate::web::{Compiling, adopt, compile};
    use std::rc::Rc;

    /// Pipelines that are not compiled yet.
    #[derive(Default)]
    pub struct Ahead {
        wanted: Vec<Rc<Pipeline>>,
        under_way: Vec<(Rc<Pipeline>, Compiling)>,
    }

    impl Ahead {
        pub fn add(&mut self, pipeline: Rc<Pipeline>) {
            self.wanted.push(pipeline);
        }

        pub fn ready(&mut self) -> bool {
            // A step may have needed one before.
            for pipeline in self.wanted.drain(..).filter(|pipeline| pipeline.made.get().is_none()) {
                let compiling = compile(&pipeline.device, || pipeline.make());
                self.under_way.push((pipeline, compiling));
            }
            self.under_way.retain(|(pipeline, compiling)| {
                let Some(compiled) = compiling.take() else { return true };
                match compiled {
                    Ok(made) => pipeline.made.get_or_init(|| adopt(&pipeline.device, &made, || pipeline.make())),
                    // The same again: the device tells of the error as of any other.
                    Err(_) => pipeline.get(),
                };
                false
            });
            self.under_way.is_empty()
        }
    }
}
