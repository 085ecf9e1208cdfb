//! Candidate backends: all ways to open a backend, best first, and the options of choosing among them.

use std::fmt;
use std::future::Future;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::rc::Rc;
use std::str::FromStr;

use backend_api::{Backend, Error, Products, Tuned};
use reference_cpu::Cpu;

use crate::proof::Proofs;
use crate::rung::Rung;
use crate::winners::Winners;

/// Backends that may be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Choice {
    /// The fastest backend that works.
    #[default]
    Auto,
    /// The best GPU backend that works.
    Gpu,
    /// WebGPU.
    WebGpu,
    /// WebGL2.
    WebGl,
    /// The CPU.
    Cpu,
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(name: &str) -> Result<Choice, String> {
        match name {
            "auto" => Ok(Choice::Auto),
            "gpu" => Ok(Choice::Gpu),
            "webgpu" => Ok(Choice::WebGpu),
            "webgl" => Ok(Choice::WebGl),
            "cpu" => Ok(Choice::Cpu),
            other => Err(format!("the backend {other:?} is not known; choose auto, gpu, webgpu, webgl or cpu")),
        }
    }
}

/// Layout of dense tensors in WebGL textures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Four values in each texel.
    Packed,
    /// One value in each texel; slower.
    R32f,
    /// The bits of four values in each integer texel. Needs no extension, so it works everywhere.
    Bits,
}

/// Options of a selection.
#[derive(Debug, Clone, Default)]
pub struct SelectOptions {
    /// Backends that may be chosen.
    pub backend: Choice,
    /// Makes WebGPU split weights whose bindings would be larger.
    ///
    /// *Units*: bytes.
    pub webgpu_max_binding: Option<u64>,
    /// Precision of matmuls of several rows with quantised weights on WebGPU; exact by default.
    pub webgpu_products: Products,
    /// Restricts WebGL to this layout.
    pub webgl_layout: Option<Layout>,
    /// Makes WebGL fold tensors at this texture size, even if the device allows larger ones.
    pub webgl_max_texture_size: Option<u32>,
    /// Threads of the CPU backend in native programs; by default as many as the machine runs at once. In a browser,
    /// `web::before_cpu` starts the threads.
    pub cpu_threads: Option<NonZeroUsize>,
    /// Own candidates, which come before those of this crate; [`Choice::Auto`] and [`Choice::Gpu`] include them.
    pub candidates: Vec<Candidate>,
    /// Names of candidates that are not tried, because they failed.
    pub without: Vec<&'static str>,
    /// Tuning results of devices ([`tune`](crate::tune())).
    pub tuned: Rc<Winners>,
    /// Self-test results of earlier selections on this machine ([`Report::proof`](crate::Report::proof)).
    pub proven: Rc<Proofs>,
}

impl SelectOptions {
    /// Excludes a candidate by the name that reports give it. Unknown names (for example from another version) are
    /// ignored.
    pub fn leave_out(&mut self, name: &str) {
        let known = Candidate::named(name, self);
        self.without.extend(known.map(|candidate| candidate.name));
    }
}

/// A backend that is being opened.
type Opening<'a> = Pin<Box<dyn Future<Output = Result<Box<dyn Backend>, Error>> + 'a>>;

/// A backend, whatever its variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    WebGpu,
    WebGl,
    Cpu,
    /// An application's own backend.
    Own(&'static str),
}

/// A way to open a backend, which a selection tries like all others: it is checked for the model's operators, timed,
/// and tested before it may compute anything. Own candidates come before those of this crate
/// ([`SelectOptions::candidates`]).
///
/// ```
/// use anygpu::native::block_on;
/// use anygpu::{Backend, Candidate, Choice, Engine};
/// use reference_cpu::Cpu;
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
/// #   std::env::set_current_dir("..")?; // from the package to the repository
///     let own = Candidate::new("mine", async || Ok(Box::new(Cpu::new(Default::default())) as Box<dyn Backend>));
///     let engine = Engine::builder().candidate(own).backend(Choice::Gpu);
///     let engine = block_on(engine.open("models/gab-q4_0.gguf"))?;
///     assert_eq!(engine.report().chosen, Some("mine"));
///     Ok(())
/// }
/// ```
#[derive(Clone)]
pub struct Candidate {
    pub(crate) name: &'static str,
    pub(crate) family: Family,
    /// The WebGL layout, for a variant of WebGL.
    layout: Option<Layout>,
    open: Open,
}

#[derive(Clone)]
enum Open {
    Ours(for<'a> fn(&'a SelectOptions) -> Opening<'a>),
    Own(Rc<dyn Fn() -> Opening<'static>>),
}

/// All candidates of this crate, best first.
const LADDER: &[Candidate] = &[
    Candidate {
        name: "webgpu",
        family: Family::WebGpu,
        layout: None,
        open: Open::Ours(|options| Box::pin(open_webgpu(true, options))),
    },
    Candidate {
        name: "webgpu without optional features",
        family: Family::WebGpu,
        layout: None,
        open: Open::Ours(|options| Box::pin(open_webgpu(false, options))),
    },
    Candidate {
        name: "webgl packed",
        family: Family::WebGl,
        layout: Some(Layout::Packed),
        open: Open::Ours(|options| Box::pin(async { open_webgl(Layout::Packed, options) })),
    },
    Candidate {
        name: "webgl r32f",
        family: Family::WebGl,
        layout: Some(Layout::R32f),
        open: Open::Ours(|options| Box::pin(async { open_webgl(Layout::R32f, options) })),
    },
    Candidate {
        name: "webgl bits",
        family: Family::WebGl,
        layout: Some(Layout::Bits),
        open: Open::Ours(|options| Box::pin(async { open_webgl(Layout::Bits, options) })),
    },
    Candidate {
        name: "cpu",
        family: Family::Cpu,
        layout: None,
        open: Open::Ours(|options| Box::pin(open_cpu(options))),
    },
];

/// Returns all candidates of a selection, best first. An own candidate takes the place of another one with its name.
pub(crate) fn ladder(options: &SelectOptions) -> Vec<Candidate> {
    let mut all: Vec<Candidate> = Vec::new();
    for candidate in options.candidates.iter().chain(LADDER) {
        if all.iter().all(|known| known.name != candidate.name) {
            all.push(candidate.clone());
        }
    }
    all
}

impl Candidate {
    /// Makes a candidate that `open` opens. It is called for each selection, and again after the device was lost.
    /// `name` stands in reports, and cached results are kept under it, so it should not change between versions.
    ///
    /// Where speed decides, the fastest backend wins. One that says that it is
    /// [`software`](backend_api::BackendInfo::software) must be twice as fast as the CPU.
    pub fn new<F>(name: &'static str, open: impl Fn() -> F + 'static) -> Candidate
    where
        F: Future<Output = Result<Box<dyn Backend>, Error>> + 'static,
    {
        let open = Open::Own(Rc::new(move || Box::pin(open())));
        Candidate { name, family: Family::Own(name), layout: None, open }
    }

    /// Makes it a variant of the backend that another own candidate opens: once one variant works, the others are not
    /// tried.
    #[must_use]
    pub fn variant_of(self, name: &'static str) -> Candidate {
        Candidate { family: Family::Own(name), ..self }
    }

    /// Finds a candidate by its name.
    pub(crate) fn named(name: &str, options: &SelectOptions) -> Option<Candidate> {
        ladder(options).into_iter().find(|candidate| candidate.name == name)
    }

    /// Whether it computes on the CPU.
    pub(crate) fn is_cpu(&self) -> bool {
        self.family == Family::Cpu
    }

    /// Returns the other variants of its backend.
    pub(crate) fn variants(&self, options: &SelectOptions) -> Vec<Candidate> {
        let is_other = |other: &Candidate| other.family == self.family && other.name != self.name;
        ladder(options).into_iter().filter(is_other).collect()
    }

    /// Returns the reason not to try it, if there is one.
    pub(crate) fn excluded(&self, options: &SelectOptions) -> Option<&'static str> {
        let wanted = match options.backend {
            Choice::Auto => true,
            Choice::Gpu => self.family != Family::Cpu,
            Choice::WebGpu => self.family == Family::WebGpu,
            Choice::WebGl => self.family == Family::WebGl,
            Choice::Cpu => self.family == Family::Cpu,
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
    pub(crate) async fn open(&self, options: &SelectOptions) -> Result<Box<dyn Backend>, Error> {
        match &self.open {
            Open::Ours(open) => open(options).await,
            Open::Own(open) => open().await,
        }
    }
}

/// Opens a candidate with the best known tuning of its device, and records what the device is.
///
/// *Errors*: the backend is not available.
pub(crate) async fn opened(
    candidate: &Candidate,
    options: &SelectOptions,
    rung: &mut Rung,
) -> Result<Rc<dyn Backend>, String> {
    let mut backend = candidate.open(options).await.map_err(|e| e.to_string())?;
    let stale = options.tuned.apply(candidate.name, &mut *backend).err();
    let info = backend.info();
    rung.adapter = Some(info.adapter.clone());
    rung.software = info.software;
    rung.facts.clone_from(&info.facts);
    let values = backend.tuning().into_iter().map(|Tuned { name, value }| format!("{name} {value}"));
    let values: Vec<String> = values.collect();
    if !values.is_empty() {
        rung.facts.push(("tuning", values.join(", ")));
    }
    rung.facts.extend(stale.map(|error| ("tuning not used", error.to_string())));
    Ok(Rc::from(backend))
}

impl fmt::Debug for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Candidate").field("name", &self.name).field("family", &self.family).finish_non_exhaustive()
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
