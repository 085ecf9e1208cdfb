//! The backends and variants that the suite knows.

use backend_api::{Backend, Error, ShaderPatch};
use backend_webgl::{Layout, WebGl};
use backend_webgpu::WebGpu;
use model::Host;
use reference_cpu::Cpu;
use std::task::Waker;
use std::time::{Duration, Instant};

/// A backend, or why it is not there.
pub type Opened = Result<Box<dyn Backend>, Error>;

/// A backend or variant of the suite.
pub struct Candidate {
    /// Its name in reports and on the command line.
    pub name: &'static str,
    /// What is particular.
    pub about: &'static str,
    /// Opens it; on a GPU with broken kernels, if asked to.
    pub open: fn(Option<ShaderPatch>) -> Opened,
}

/// All of them.
pub const ALL: &[Candidate] = &[
    Candidate {
        name: "reference",
        about: "the plain definitions, which only cases from outside can judge",
        open: |_| Ok(Box::new(Cpu::new(reference_cpu::Options { fast: false }))),
    },
    Candidate { name: "cpu", about: "the SIMD path of the CPU", open: |_| Ok(Box::new(Cpu::new(Default::default()))) },
    Candidate { name: "webgpu", about: "WebGPU", open: |patch| webgpu(patch, None) },
    Candidate {
        name: "webgpu-split",
        about: "WebGPU whose bindings hold 20 KiB, so that weights are split",
        open: |patch| webgpu(patch, Some(20 * 1024)),
    },
    Candidate {
        name: "webgl",
        about: "WebGL2 or GLES 3, packed layout",
        open: |patch| webgl(patch, Layout::Packed, None),
    },
    Candidate {
        name: "webgl-r32f",
        about: "the same, one value a texel",
        open: |patch| webgl(patch, Layout::R32f, None),
    },
    Candidate {
        name: "webgl-fold",
        about: "packed, in textures of 256 x 256, so that tensors are folded and layered",
        open: |patch| webgl(patch, Layout::Packed, Some(256)),
    },
];

fn webgpu(patch: Option<ShaderPatch>, max_binding: Option<u64>) -> Opened {
    let options = backend_webgpu::Options { max_binding, patch, ..Default::default() };
    Ok(Box::new(pollster::block_on(WebGpu::open(options))?))
}

fn webgl(patch: Option<ShaderPatch>, layout: Layout, max_texture_size: Option<u32>) -> Opened {
    let options = backend_webgl::Options { layout, max_texture_size, patch };
    Ok(Box::new(WebGl::open_egl(options)?))
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
