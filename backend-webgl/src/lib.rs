//! The WebGL2 / GLES 3 backend: each operator is one or a few draws of a triangle over float textures.
//!
//! Tensors are textures ([`Layout`]), weights are textures of 16-byte texels exactly as
//! [`Packing`](backend_api::format::Packing) lays them out, and kernels are fragment shaders of GLSL ES 3.00 in
//! `shaders/`. A program is a list of draws whose GL objects were all made when it was compiled.
#![deny(unsafe_code)]

mod dense;
#[allow(unsafe_code)]
mod gl;
mod kernel;
#[cfg(test)]
mod lint;
mod lower;
mod profile;
mod program;
mod read;
mod shader;
mod store;
#[doc(hidden)]
pub mod testing;
mod tuning;
mod watch;

use backend_api::format::Codebook;
use backend_api::testing::ShaderPatch;
use backend_api::{
    Backend, BackendInfo, Cover, Error, Graph, Matcher, Plan, Products, Program, ReadId, Stats, StorageDesc, StorageId,
    Tensor, Tunable, Tuned, Unsupported, check_one_sequence, check_sequences,
};
use dense::{Dense, Fold};
use gl::Gl;
use read::Reads;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use store::Storage;
use testing::Hooks;
use watch::Watcher;

/// The version of glow that [`WebGl::new`] takes contexts from.
pub use glow;
pub use shader::shader_files;
pub use tuning::Tuning;
pub use watch::{Picture, Tile, Watched};

/// How dense tensors lie in textures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Layout {
    /// Four neighbours of a row in a texel of `RGBA32F`.
    #[default]
    Packed,
    /// One value in a texel of `R32F`.
    R32f,
    /// The bits of four neighbours of a row in a texel of `RGBA32UI`, which every device can draw to.
    Bits,
}

impl Layout {
    /// All of them.
    pub const ALL: &'static [Layout] = &[Layout::Packed, Layout::R32f, Layout::Bits];

    /// The name on command lines and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Layout::Packed => "packed",
            Layout::R32f => "r32f",
            Layout::Bits => "bits",
        }
    }

    /// The layout of a name.
    pub fn named(name: &str) -> Option<Layout> {
        Layout::ALL.iter().copied().find(|layout| layout.name() == name)
    }
}

/// How to open the backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// How dense tensors lie in textures.
    pub layout: Layout,
    /// Use no larger textures than this, as if the device had this limit.
    pub max_texture_size: Option<u32>,
    /// How draws are shaped; by default as is best for GPUs, or for rasterisers on the CPU if the device is one.
    pub tuning: Option<Tuning>,
}

/// The backend. Clones of its state are held by its programs; all of it belongs to one thread.
pub struct WebGl {
    shared: Rc<Shared>,
    info: BackendInfo,
    storages: RefCell<HashMap<u32, Rc<Storage>>>,
    next: std::cell::Cell<u32>,
    idle: RefCell<Idle>,
    texture_size: u32,
    targets: u32,
}

/// State that programs share with the backend.
pub(crate) struct Shared {
    pub(crate) gl: Rc<Gl>,
    pub(crate) layout: Layout,
    pub(crate) fold: Fold,
    pub(crate) weight_fold: Fold,
    /// Within what the device can do.
    pub(crate) tuning: Tuning,
    pub(crate) programs: RefCell<HashMap<String, Rc<gl::Program>>>,
    pub(crate) patch: Option<ShaderPatch>,
    /// Those that programs have needed so far, by name.
    pub(crate) codebooks: RefCell<HashMap<&'static str, Rc<gl::Buffer>>>,
    pub(crate) reads: RefCell<Reads>,
    /// Callback that runs after each draw.
    pub(crate) watcher: RefCell<Option<Watcher>>,
}

impl Shared {
    /// The buffer of a codebook, which is made when a program needs it first.
    pub(crate) fn codebook(&self, codebook: &Codebook) -> Result<Rc<gl::Buffer>, Error> {
        if let Some(buffer) = self.codebooks.borrow().get(codebook.name) {
            return Ok(buffer.clone());
        }
        let buffer = Rc::new(self.gl.uniforms(codebook.bytes)?);
        self.codebooks.borrow_mut().insert(codebook.name, buffer.clone());
        Ok(buffer)
    }
}

impl Shared {
    /// Returns the shader that paints pictures of this layout's dense textures.
    pub(crate) fn picture_shader(&self) -> Result<String, Error> {
        shader::picture(self.layout, &self.fold).map_err(Error::Driver)
    }

    /// The kernel of a cover.
    ///
    /// *Errors*: why there is none.
    pub(crate) fn lower(&self, graph: &Graph, cover: &Cover) -> Result<kernel::Kernel, Unsupported> {
        lower::lower(graph, cover, self.layout, &self.tuning)
    }
}

/// A tuning as far as the device can follow it, and the folds of dense tensors and of weights.
fn shaped(
    limits: &gl::Limits,
    layout: Layout,
    tuning: Tuning,
    texture_size: u32,
    targets: u32,
) -> (Tuning, Fold, Fold) {
    let tuning = within(tuning, targets, limits.float_blend && layout != Layout::Bits);
    (tuning, Fold::dense(texture_size, &tuning), Fold::weights(texture_size, limits.layers, &tuning))
}

/// A tuning as far as a device can follow it that draws to so many targets, and perhaps blends what it draws.
fn within(tuning: Tuning, targets: u32, blends: bool) -> Tuning {
    let block_rows = if targets < 8 { 4 } else { tuning.block_rows };
    let blend = if blends { tuning.blend } else { 0 };
    Tuning { block_rows, blend, ..tuning }
}

/// The newest fence and how many submissions it covers.
#[derive(Default)]
struct Idle {
    fence: Option<gl::Fence>,
    covered: u64,
}

impl WebGl {
    /// Opens a context of its own that nobody sees: natively by EGL, in a browser on a canvas outside the page.
    ///
    /// *Errors*: no EGL library or display, no WebGL2, or a driver without the render targets of the layout; the reason
    /// says what to do.
    pub fn open(options: Options) -> Result<WebGl, Error> {
        WebGl::of(Gl::open(true)?, options, Hooks::default())
    }

    /// On a context that an application has already, say because it draws with it: of WebGL2, GLES 3, or desktop OpenGL that
    /// takes shaders of GLES 3. Natively it is current on this thread whenever the backend is used or dropped. The backend
    /// sets what it needs each time, and leaves the window's framebuffer and no vertex array bound, and the first texture unit
    /// active; what else an application needs of the context's state, it sets before it draws.
    ///
    /// *Errors*: a driver without the render targets of the layout or the language of shaders, a lost context.
    pub fn new(gl: impl Into<Arc<glow::Context>>, options: Options) -> Result<WebGl, Error> {
        WebGl::of(Gl::wrap(gl.into())?, options, Hooks::default())
    }

    fn of(gl: Rc<Gl>, options: Options, hooks: Hooks) -> Result<WebGl, Error> {
        let limits = gl.limits();
        if options.layout != Layout::Bits && !limits.float_targets {
            return Err(Error::Absent {
                backend: "webgl",
                reason: format!(
                    "{} cannot draw to float textures (no EXT_color_buffer_float); the layout bits needs none",
                    limits.renderer
                ),
            });
        }
        if !limits.shaders {
            let reason = format!(
                "{} takes no shaders of GLES 3 (no ARB_ES3_compatibility); ask for a context of GLES 3",
                limits.version
            );
            return Err(Error::Absent { backend: "webgl", reason });
        }
        let size = options.max_texture_size.unwrap_or(u32::MAX).min(limits.texture_size);
        if size == 0 {
            return Err(Error::Invalid("the largest texture size must not be 0".into()));
        }
        let targets = hooks.max_targets.unwrap_or(u32::MAX).min(limits.targets);
        let tuning = options.tuning.unwrap_or_else(|| match gl.software() {
            true => Tuning::software(&limits.renderer),
            false => Tuning::default(),
        });
        let info = BackendInfo {
            name: "webgl",
            adapter: format!("{}, {}", limits.renderer, limits.version),
            software: gl.software(),
            synchronous: false,
            short_prompt: 0,
            verify_rows: 1,
            batch_rows: 1,
            verify_after: 0,
            prompt_rows: 128,
            products: Products::F32,
            facts: vec![
                ("layout", options.layout.name().to_owned()),
                ("max_texture_size", size.to_string()),
                ("max_array_texture_layers", limits.layers.to_string()),
                ("targets", targets.to_string()),
                ("timers", limits.timers.to_string()),
            ],
        };
        let (layout, patch) = (options.layout, hooks.patch);
        let (tuning, fold, weight_fold) = shaped(gl.limits(), layout, tuning, size, targets);
        let (programs, codebooks, reads, watcher) = Default::default();
        let shared = Shared { gl, layout, fold, weight_fold, tuning, programs, patch, codebooks, reads, watcher };
        Ok(WebGl {
            shared: Rc::new(shared),
            texture_size: size,
            targets,
            info,
            storages: RefCell::default(),
            next: std::cell::Cell::new(0),
            idle: RefCell::default(),
        })
    }

    fn storage(&self, id: StorageId) -> Result<Rc<Storage>, Error> {
        let found = self.storages.borrow().get(&id.0).cloned();
        found.ok_or_else(|| Error::Invalid(format!("storage {} does not exist", id.0)))
    }
}

impl Backend for WebGl {
    fn info(&self) -> &BackendInfo {
        &self.info
    }

    fn matchers(&self) -> &[Matcher] {
        lower::MATCHERS
    }

    fn supports(&self, graph: &Graph, cover: &Cover) -> Result<(), Unsupported> {
        self.shared.lower(graph, cover).map(drop)
    }

    fn equal_results(&self) -> bool {
        true
    }

    fn slot_size(&self, tensor: &Tensor) -> u64 {
        Dense::of(tensor, self.shared.layout).texels() as u64
    }

    fn storage_bytes(&self, desc: &StorageDesc) -> Result<u64, Error> {
        store::bytes(&self.shared, desc)
    }

    fn create(&self, desc: &StorageDesc) -> Result<StorageId, Error> {
        let _entered = self.shared.gl.enter()?;
        let storage = Storage::new(&self.shared, desc)?;
        let id = self.next.get();
        self.next.set(id.checked_add(1).ok_or_else(|| Error::Invalid("too many storages were made".into()))?);
        self.storages.borrow_mut().insert(id, Rc::new(storage));
        Ok(StorageId(id))
    }

    fn write(&self, id: StorageId, first_row: usize, bytes: &[u8]) -> Result<(), Error> {
        let storage = self.storage(id)?;
        let _entered = self.shared.gl.enter()?;
        storage.write(&self.shared, first_row, bytes)
    }

    fn read(&self, id: StorageId, first_row: usize, rows: usize) -> Result<ReadId, Error> {
        let storage = self.storage(id)?;
        let _entered = self.shared.gl.enter()?;
        self.shared.reads.borrow_mut().begin(&self.shared, &storage, first_row, rows)
    }

    fn try_read(&self, read: ReadId, out: &mut [u8]) -> Result<bool, Error> {
        let _entered = self.shared.gl.enter()?;
        self.shared.reads.borrow_mut().try_finish(read, out)
    }

    fn destroy(&self, id: StorageId) {
        self.storages.borrow_mut().remove(&id.0);
    }

    fn compile_sequences(&self, plan: &Plan, sequences: &[&[StorageId]]) -> Result<Box<dyn Program>, Error> {
        let _entered = self.shared.gl.enter()?;
        check_one_sequence(plan.graph())?;
        check_sequences(plan.graph(), sequences, |id, tensor| Ok(self.storage(id)?.holds(tensor)))?;
        let storages = |storages: &&[StorageId]| storages.iter().map(|id| self.storage(*id)).collect();
        let sequences = sequences.iter().map(storages).collect::<Result<Vec<_>, _>>()?;
        Ok(Box::new(program::Compiled::new(&self.shared, plan, sequences)?))
    }

    fn idle(&self) -> Result<bool, Error> {
        let gl = &self.shared.gl;
        let _entered = gl.enter()?;
        gl.flush_deferred();
        let mut idle = self.idle.borrow_mut();
        let submits = gl.stats().submits;
        if idle.fence.is_none() && idle.covered == submits {
            return Ok(true);
        }
        let covered = match &idle.fence {
            Some(fence) if !fence.passed()? => return Ok(false),
            Some(_) => idle.covered,
            None => 0,
        };
        idle.fence = None;
        if covered == submits {
            return Ok(true);
        }
        // A fence counts as done only once the device is given the commands before it.
        idle.fence = Some(gl.fence()?);
        gl.flush();
        idle.covered = gl.stats().submits;
        Ok(false)
    }

    fn set_watcher(&self, watcher: Option<backend_api::Watcher>) -> Result<(), Error> {
        self.shared.watch(watcher.map(|watcher| Rc::new(move |pass: Watched<'_>| pass.show(&watcher)) as Watcher));
        Ok(())
    }

    fn stats(&self) -> Stats {
        self.shared.gl.stats()
    }

    fn tunables(&self) -> &'static [Tunable] {
        Tuning::ALL
    }

    fn tuning(&self) -> Vec<Tuned> {
        self.shared.tuning.values()
    }

    fn tune(&mut self, name: &str, value: usize) -> Result<(), Error> {
        let tuning = self.shared.tuning.with(name, value).map_err(Error::Invalid)?;
        let fresh = Rc::get_mut(&mut self.shared).filter(|_| self.storages.borrow().is_empty());
        let shared = fresh.ok_or_else(|| Error::Invalid("tuning comes before storages and programs".into()))?;
        (shared.tuning, shared.fold, shared.weight_fold) =
            shaped(shared.gl.limits(), shared.layout, tuning, self.texture_size, self.targets);
        Ok(())
    }
}
