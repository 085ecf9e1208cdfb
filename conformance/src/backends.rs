//! Opens the variants that the suite knows on this machine.

use backend_api::{Backend, Error, ShaderPatch};
use backend_webgl::{Layout, WebGl};
use backend_webgpu::{Tuning, WebGpu};
use conformance::variants::{Kind, Variant, WebGpuVariant};
use model::Host;
use reference_cpu::Cpu;
use std::task::Waker;
use std::time::{Duration, Instant};

/// Opens a variant; on a GPU with broken kernels, if asked to.
pub fn open(variant: &Variant, patch: Option<ShaderPatch>) -> Result<Box<dyn Backend>, Error> {
    Ok(match variant.kind {
        Kind::Reference => Box::new(Cpu::new(reference_cpu::Options { fast: false, ..Default::default() })),
        Kind::Cpu => Box::new(Cpu::new(Default::default())),
        Kind::WebGpu(WebGpuVariant { max_binding, optional_features, products, as_software }) => {
            let tuning = as_software.map(|yes| if yes { Tuning::software() } else { Tuning::default() });
            let options = backend_webgpu::Options { max_binding, optional_features, products, tuning, patch };
            Box::new(pollster::block_on(WebGpu::open(options))?)
        }
        Kind::WebGl { packed, max_texture_size, max_targets, as_gpu } => {
            let tuning = as_gpu.then(backend_webgl::Tuning::default);
            let layout = if packed { Layout::Packed } else { Layout::R32f };
            Box::new(WebGl::open(backend_webgl::Options { layout, max_texture_size, max_targets, tuning, patch })?)
        }
    })
}

/// A program without an event loop: it sleeps for a moment where a browser would do other things.
pub struct Sleeper(pub Instant);

impl Host for Sleeper {
    fn wake_later(&self, waker: &Waker) {
        std::thread::sleep(Duration::from_micros(20));
        waker.wake_by_ref();
    }

    fn now_ms(&self) -> f64 {
        self.0.elapsed().as_secs_f64() * 1e3
    }
}
