//! Opens the variants that the suite knows on this machine.

use anygpu_conformance::variants::{Kind, Variant, WebGlShape, WebGlVariant, WebGpuVariant};
use backend_api::testing::ShaderPatch;
use backend_api::{Backend, Error};
use backend_webgl::Layout;
use backend_webgl::testing::Hooks;
use backend_webgpu::testing::open_patched;
use backend_webgpu::{Tuning, WebGpu};
use reference_cpu::{Cpu, Instructions};

/// Opens a variant; on a GPU with broken kernels, if asked to.
pub fn open(variant: &Variant, patch: Option<ShaderPatch>) -> Result<Box<dyn Backend>, Error> {
    Ok(match variant.kind {
        Kind::Reference => Box::new(Cpu::new(reference_cpu::Options { fast: false, ..Default::default() })),
        Kind::Cpu(name) => {
            let instructions = name.map(Instructions::named).transpose()?;
            Box::new(Cpu::new(reference_cpu::Options { instructions, ..Default::default() }))
        }
        Kind::WebGpu(kind) => {
            let options = webgpu_options(kind);
            Box::new(match patch {
                Some(patch) => pollster::block_on(open_patched(options, patch))?,
                None => pollster::block_on(WebGpu::open(options))?,
            })
        }
        Kind::WebGl(kind) => {
            let hooks = Hooks { max_targets: kind.max_targets, bare: kind.bare, patch };
            Box::new(backend_webgl::testing::open(webgl_options(kind)?, hooks)?)
        }
    })
}

/// How a variant of WebGPU is opened.
pub fn webgpu_options(kind: WebGpuVariant) -> backend_webgpu::Options {
    let WebGpuVariant { max_binding, optional_features, products, as_software } = kind;
    let tuning = as_software.map(|yes| match yes {
        true => Tuning::software(),
        false if !optional_features => Tuning::large(),
        false => Tuning::default(),
    });
    backend_webgpu::Options { max_binding, optional_features, products, tuning }
}

/// How a variant of WebGL is opened.
///
/// *Errors*: its layout has no such name.
pub fn webgl_options(kind: WebGlVariant) -> Result<backend_webgl::Options, Error> {
    let WebGlVariant { layout, max_texture_size, shape, .. } = kind;
    let tuning = match shape {
        WebGlShape::Usual => None,
        // Small products are made as large ones are, in slices that another draw joins.
        WebGlShape::Gpu => Some(backend_webgl::Tuning { joined_from: 0, ..Default::default() }),
        WebGlShape::NoBlend => Some(backend_webgl::Tuning { blend: 0, ..Default::default() }),
        WebGlShape::ShortLines => Some(backend_webgl::Tuning { line_shift: 4, ..backend_webgl::Tuning::software("") }),
    };
    let layout = Layout::named(layout).ok_or_else(|| Error::Invalid(format!("there is no layout {layout}")))?;
    Ok(backend_webgl::Options { layout, max_texture_size, tuning })
}
