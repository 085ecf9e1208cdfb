//! Candidate backends: all ways to open a backend, best first.

use std::future::Future;
use std::pin::Pin;

use backend_api::{Backend, Error, Products};
use reference_cpu::Cpu;

use crate::select::{Choice, Layout, SelectOptions};

/// A backend that is being opened.
type Opening<'a> = Pin<Box<dyn Future<Output = Result<Box<dyn Backend>, Error>> + 'a>>;

/// A way to open a backend.
pub(crate) struct Candidate {
    /// The name in reports.
    pub name: &'static str,
    /// The backend. Once one variant of a backend works, its other variants are not tried.
    pub family: Choice,
    /// The WebGL layout, for a variant of WebGL.
    layout: Option<Layout>,
    open: for<'a> fn(&'a SelectOptions) -> Opening<'a>,
}

/// All candidates, best first.
pub(crate) const LADDER: &[Candidate] = &[
    Candidate {
        name: "webgpu",
        family: Choice::WebGpu,
        layout: None,
        open: |options| Box::pin(open_webgpu(true, options)),
    },
    Candidate {
        name: "webgpu without optional features",
        family: Choice::WebGpu,
        layout: None,
        open: |options| Box::pin(open_webgpu(false, options)),
    },
    Candidate {
        name: "webgl packed",
        family: Choice::WebGl,
        layout: Some(Layout::Packed),
        open: |options| Box::pin(async { open_webgl(Layout::Packed, options) }),
    },
    Candidate {
        name: "webgl r32f",
        family: Choice::WebGl,
        layout: Some(Layout::R32f),
        open: |options| Box::pin(async { open_webgl(Layout::R32f, options) }),
    },
    Candidate {
        name: "webgl bits",
        family: Choice::WebGl,
        layout: Some(Layout::Bits),
        open: |options| Box::pin(async { open_webgl(Layout::Bits, options) }),
    },
    Candidate { name: "cpu", family: Choice::Cpu, layout: None, open: |options| Box::pin(open_cpu(options)) },
];

impl Candidate {
    /// Finds a candidate by its name.
    pub fn named(name: &str) -> Option<&'static Candidate> {
        LADDER.iter().find(|candidate| candidate.name == name)
    }

    /// Whether it computes on the CPU.
    pub fn is_cpu(&self) -> bool {
        self.family == Choice::Cpu
    }

    /// Iterates over the other variants of its backend.
    pub fn variants(&self) -> impl Iterator<Item = &'static Candidate> {
        LADDER.iter().filter(move |other| other.family == self.family && other.name != self.name)
    }

    /// Returns the reason not to try it, if there is one.
    pub fn excluded(&self, options: &SelectOptions) -> Option<&'static str> {
        let wanted = match options.backend {
            Choice::Auto => true,
            Choice::Gpu => self.family != Choice::Cpu,
            family => self.family == family,
        };
        let other_layout = options.webgl_layout.is_some_and(|only| self.layout.is_some_and(|layout| layout != only));
        match (wanted, other_layout) {
            (false, _) => Some("another backend was asked for"),
            (_, true) => Some("another layout was asked for"),
            _ if options.without.contains(&self.name) => Some("it failed before"),
            _ => None,
        }
    }

    /// Opens the backend, with the defaults of its tunables.
    ///
    /// *Errors*: the backend is not available.
    pub async fn open(&self, options: &SelectOptions) -> Result<Box<dyn Backend>, Error> {
        (self.open)(options).await
    }
}

async fn open_cpu(options: &SelectOptions) -> Result<Box<dyn Backend>, Error> {
    #[cfg(target_arch = "wasm32")]
    crate::web::prepare_cpu().await;
    Ok(Box::new(Cpu::new(reference_cpu::Options { threads: options.cpu_threads, ..Default::default() })))
}

#[cfg(feature = "webgpu")]
async fn open_webgpu(optional_features: bool, options: &SelectOptions) -> Result<Box<dyn Backend>, Error> {
    let options = backend_webgpu::Options {
        optional_features,
        max_binding: options.webgpu_max_binding,
        // Without optional features nothing is risked: the exact mode works on every device.
        products: if optional_features { options.webgpu_products } else { Products::F32 },
        ..Default::default()
    };
    Ok(Box::new(backend_webgpu::WebGpu::open(options).await?))
}

#[cfg(feature = "webgl")]
fn open_webgl(layout: Layout, options: &SelectOptions) -> Result<Box<dyn Backend>, Error> {
    let layout = match layout {
        Layout::Packed => backend_webgl::Layout::Packed,
        Layout::R32f => backend_webgl::Layout::R32f,
        Layout::Bits => backend_webgl::Layout::Bits,
    };
    let max_texture_size = options.webgl_max_texture_size;
    let options = backend_webgl::Options { layout, max_texture_size, ..Default::default() };
    Ok(Box::new(backend_webgl::WebGl::open(options)?))
}

#[cfg(not(feature = "webgpu"))]
async fn open_webgpu(_: bool, _: &SelectOptions) -> Result<Box<dyn Backend>, Error> {
    Err(Error::Absent { backend: "webgpu", reason: "this program was built without it".into() })
}

#[cfg(not(feature = "webgl"))]
fn open_webgl(_: Layout, _: &SelectOptions) -> Result<Box<dyn Backend>, Error> {
    Err(Error::Absent { backend: "webgl", reason: "this program was built without it".into() })
}
