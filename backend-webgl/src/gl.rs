//! The one module with `unsafe`: a small safe layer over GL objects, which counts what it makes.
//!
//! Safety rests on three facts: every object belongs to the context that its handle holds alive; [`Gl::enter`] makes
//! that context current before each call; and all pointers handed to GL come from slices whose lengths are checked
//! here against the rectangle or range they are for.

use backend_api::{Error, Stats};
use glow::HasContext;
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

mod buffer;
#[cfg(not(target_arch = "wasm32"))]
mod egl;
mod entered;
mod picture;
mod program;
mod query;
mod rect;
mod texture;
#[cfg(target_arch = "wasm32")]
mod web;

pub(crate) use buffer::{Buffer, Fence};
use entered::Sharing;
pub(crate) use picture::{Picture, Tile};
pub(crate) use program::Program;
pub(crate) use query::Timer;
pub(crate) use rect::Rect;
pub(crate) use texture::{Framebuffer, Texture};

#[cfg(not(target_arch = "wasm32"))]
use egl::{Egl as Surface, Turn};
#[cfg(target_arch = "wasm32")]
use web::{Canvas as Surface, Turn};

/// How a texture holds values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Texels {
    /// Four floats.
    Rgba32f,
    /// One float.
    R32f,
    /// Four halves.
    Rgba16f,
    /// One half.
    R16f,
    /// Four unsigned words; always an array texture.
    Rgba32ui,
    /// Four unsigned words, which are drawn to.
    Words,
}

impl Texels {
    pub(crate) const fn bytes(self) -> usize {
        match self {
            Texels::Rgba32f | Texels::Rgba32ui | Texels::Words => 16,
            Texels::Rgba16f => 8,
            Texels::R32f => 4,
            Texels::R16f => 2,
        }
    }

    const fn codes(self) -> (u32, u32, u32) {
        match self {
            Texels::Rgba32f => (glow::RGBA32F, glow::RGBA, glow::FLOAT),
            Texels::R32f => (glow::R32F, glow::RED, glow::FLOAT),
            Texels::Rgba16f => (glow::RGBA16F, glow::RGBA, glow::HALF_FLOAT),
            Texels::R16f => (glow::R16F, glow::RED, glow::HALF_FLOAT),
            Texels::Rgba32ui | Texels::Words => (glow::RGBA32UI, glow::RGBA_INTEGER, glow::UNSIGNED_INT),
        }
    }

    const fn target(self) -> u32 {
        match self {
            Texels::Rgba32f | Texels::R32f | Texels::Rgba16f | Texels::R16f | Texels::Words => glow::TEXTURE_2D,
            Texels::Rgba32ui => glow::TEXTURE_2D_ARRAY,
        }
    }
}

/// Limits of the context.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    pub(crate) texture_size: u32,
    pub(crate) layers: u32,
    pub(crate) uniform_align: u32,
    /// Textures that one draw may write.
    pub(crate) targets: u32,
    /// Whether float textures can be drawn to.
    pub(crate) float_targets: bool,
    /// Whether what is drawn to float textures may be added to what they hold.
    pub(crate) float_blend: bool,
    /// Whether it takes the shaders of GLES 3.
    pub(crate) shaders: bool,
    /// Whether the device tells how long draws take.
    pub(crate) timers: bool,
    pub(crate) renderer: String,
    pub(crate) version: String,
}

/// A context.
pub(crate) struct Gl {
    raw: Arc<glow::Context>,
    /// Surface of a context that was opened here. Declared after `raw`, so that the context outlives the function
    /// table.
    surface: Option<Surface>,
    /// State that is shared with the application, if the context is the application's.
    sharing: Option<Sharing>,
    stats: Cell<Stats>,
    /// How many [`Entered`] there are: what is dropped meanwhile enters, too.
    depth: Cell<u32>,
    /// Whether the last step was not flushed yet.
    unflushed: Cell<bool>,
    limits: Limits,
    utility: RefCell<Option<glow::Framebuffer>>,
    /// Formats of targets that the driver is known to draw to together.
    complete: RefCell<HashSet<Vec<Texels>>>,
    /// The one vertex array of all draws, and the buffer with the corners of the triangle that they draw.
    corners: Cell<Option<(glow::VertexArray, glow::Buffer)>>,
}

/// Sampler uniforms of dense operands and of weights, and the texture unit where weights begin.
const DENSE_SAMPLERS: [&str; 10] = ["t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9"];
const WEIGHT_SAMPLERS: [&str; 2] = ["weights_a", "weights_b"];
/// The first texture unit of weights.
pub(crate) const WEIGHT_UNIT: u32 = DENSE_SAMPLERS.len() as u32;
/// The triangle that covers the viewport, and the attribute of its corners.
const CORNERS: [[f32; 2]; 3] = [[-1.0, -1.0], [3.0, -1.0], [-1.0, 3.0]];
const CORNER: u32 = 0;
const PARAMS_BINDING: u32 = 0;
const STEP_BINDING: u32 = 1;
/// Uniform blocks of codebooks, and the binding where they begin.
const CODEBOOKS: [&str; 2] = ["Codebook0", "Codebook1"];
const CODEBOOK_BINDING: u32 = 2;

/// Enough to keep one upload call short.
pub(crate) const UPLOAD_BYTES: usize = 4 << 20;

fn driver(what: &str) -> impl FnOnce(String) -> Error + '_ {
    move |why| Error::Driver(format!("{what}: {why}; update the graphics driver, or choose another backend"))
}

impl Gl {
    /// Opens a windowless context: the first one that is no software renderer, else the first. Without `extensions` it
    /// seems to have none.
    ///
    /// *Errors*: no library, display or context.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn open(extensions: bool) -> Result<Rc<Gl>, Error> {
        let mut software = None;
        let mut failure = None;
        for candidate in egl::Egl::candidates()? {
            let opened = candidate.and_then(|egl| {
                // SAFETY: the context is current, and the addresses are those of its functions.
                let raw = unsafe { glow::Context::from_loader_function(|name| egl.address(name)) };
                let _turn = egl.enter()?;
                Gl::finish(Arc::new(raw), Some(egl), None, extensions)
            });
            match opened {
                Ok(gl) if !gl.software() => return Ok(gl),
                Ok(gl) => software = software.or(Some(gl)),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        software.ok_or_else(|| {
            failure.unwrap_or_else(|| Error::Absent { backend: "webgl", reason: "EGL offers no display".into() })
        })
    }

    /// Opens the context of a canvas that nobody sees. Without `extensions` it seems to have none.
    ///
    /// *Errors*: the browser gives none.
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn open(extensions: bool) -> Result<Rc<Gl>, Error> {
        let canvas = Surface::open()?;
        Gl::finish(Arc::new(canvas.functions()), Some(canvas), None, extensions)
    }

    /// Wraps a context that the caller made, uses, too, and keeps current.
    pub(crate) fn wrap(raw: Arc<glow::Context>) -> Result<Rc<Gl>, Error> {
        let gl = Gl::finish(raw, None, Some(Sharing::NEW), true)?;
        drop(gl.enter()?);
        Ok(gl)
    }

    fn finish(
        raw: Arc<glow::Context>,
        surface: Option<Surface>,
        sharing: Option<Sharing>,
        extensions: bool,
    ) -> Result<Rc<Gl>, Error> {
        // SAFETY: queries and state of a current context.
        let limits = unsafe {
            let int = |name| u32::try_from(raw.get_parameter_i32(name)).unwrap_or(0);
            let has = |name: &str| {
                let known = raw.supported_extensions();
                extensions && (known.contains(name) || known.contains(&format!("GL_{name}")))
            };
            // Desktop OpenGL has in its core what are extensions of GLES 3.
            let desktop = !raw.version().is_embedded;
            raw.disable(glow::BLEND);
            raw.blend_func(glow::ONE, glow::ONE);
            raw.disable(glow::DITHER);
            raw.disable(glow::DEPTH_TEST);
            raw.disable(glow::SCISSOR_TEST);
            Limits {
                texture_size: int(glow::MAX_TEXTURE_SIZE),
                layers: int(glow::MAX_ARRAY_TEXTURE_LAYERS),
                targets: int(glow::MAX_DRAW_BUFFERS).min(int(glow::MAX_COLOR_ATTACHMENTS)),
                uniform_align: int(glow::UNIFORM_BUFFER_OFFSET_ALIGNMENT).max(16),
                float_targets: desktop || has("EXT_color_buffer_float"),
                float_blend: desktop || has("EXT_float_blend"),
                shaders: !desktop || has("ARB_ES3_compatibility"),
                timers: has("EXT_disjoint_timer_query_webgl2") || has("EXT_disjoint_timer_query"),
                #[cfg(not(target_arch = "wasm32"))]
                renderer: raw.get_parameter_string(glow::RENDERER),
                #[cfg(target_arch = "wasm32")]
                renderer: (surface.as_ref().and_then(Surface::renderer))
                    .unwrap_or_else(|| raw.get_parameter_string(glow::RENDERER)),
                version: raw.get_parameter_string(glow::VERSION),
            }
        };
        let gl = Rc::new(Gl {
            raw,
            sharing,
            surface,
            stats: Cell::default(),
            depth: Cell::default(),
            unflushed: Cell::default(),
            limits,
            utility: RefCell::default(),
            complete: RefCell::default(),
            corners: Cell::default(),
        });
        #[cfg(not(target_arch = "wasm32"))]
        if let Some(egl) = gl.surface.as_ref().filter(|_| !gl.software()) {
            egl.use_beside_others();
        }
        // SAFETY: one vertex array for all draws; the buffer has the three corners that they read.
        unsafe {
            let array = gl.made("vertex array", gl.raw.create_vertex_array())?;
            let buffer = gl.made("vertex buffer", gl.raw.create_buffer())?;
            gl.corners.set(Some((array, buffer)));
            gl.raw.bind_vertex_array(Some(array));
            gl.raw.bind_buffer(glow::ARRAY_BUFFER, Some(buffer));
            gl.raw.buffer_data_u8_slice(glow::ARRAY_BUFFER, bytemuck::cast_slice(&CORNERS), glow::STATIC_DRAW);
            gl.raw.enable_vertex_attrib_array(CORNER);
            gl.raw.vertex_attrib_pointer_f32(CORNER, 2, glow::FLOAT, false, 0, 0);
            gl.raw.bind_buffer(glow::ARRAY_BUFFER, None);
            let utility = gl.made("framebuffer", gl.raw.create_framebuffer())?;
            *gl.utility.borrow_mut() = Some(utility);
        }
        gl.count(|s| s.objects += 3);
        gl.check("opening the context", 0)?;
        Ok(gl)
    }

    /// Whether the renderer is known to run on the CPU.
    pub(crate) fn software(&self) -> bool {
        #[cfg(target_arch = "wasm32")]
        if self.surface.as_ref().is_some_and(|canvas| canvas.slow) {
            return true;
        }
        let name = self.limits.renderer.to_ascii_lowercase();
        ["llvmpipe", "softpipe", "swrast", "swiftshader", "software"].iter().any(|known| name.contains(known))
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn stats(&self) -> Stats {
        self.stats.get()
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut Stats)) {
        let mut stats = self.stats.get();
        change(&mut stats);
        self.stats.set(stats);
    }

    /// Turns a pending GL error into an [`Error`].
    pub(crate) fn check(&self, what: &str, bytes: u64) -> Result<(), Error> {
        const CONTEXT_LOST: u32 = 0x0507;
        const CONTEXT_LOST_WEBGL: u32 = 0x9242;
        // SAFETY: a query.
        match unsafe { self.raw.get_error() } {
            glow::NO_ERROR => Ok(()),
            CONTEXT_LOST | CONTEXT_LOST_WEBGL => Err(Error::Lost(format!("noticed by {what}"))),
            glow::OUT_OF_MEMORY => Err(Error::OutOfMemory { what: what.into(), bytes }),
            code => Err(driver(what)(format!("GL error {code:#06x}"))),
        }
    }

    /// A fresh object, or why there is none: contexts that were lost make none.
    fn made<T>(&self, what: &str, object: Result<T, String>) -> Result<T, Error> {
        object.or_else(|why| {
            self.check(what, 0)?;
            Err(driver(what)(why))
        })
    }

    /// Notes that there is work which the device was not given yet: the next step or read hands it over.
    pub(crate) fn defer_flush(&self) {
        self.unflushed.set(true);
    }

    /// Hands deferred work to the device.
    pub(crate) fn flush_deferred(&self) {
        if self.unflushed.get() {
            self.flush();
        }
    }

    /// Hands encoded work to the device.
    pub(crate) fn flush(&self) {
        self.unflushed.set(false);
        // SAFETY: no operands.
        unsafe { self.raw.flush() };
        self.count(|s| s.submits += 1);
    }

    /// Selects a program.
    pub(crate) fn use_program(&self, program: &Program) {
        // SAFETY: the program lives in this context.
        unsafe { self.raw.use_program(Some(program.raw)) };
    }

    /// Selects what is drawn to.
    pub(crate) fn draw_to(&self, framebuffer: &Framebuffer) {
        // SAFETY: the framebuffer lives in this context.
        unsafe { self.raw.bind_framebuffer(glow::FRAMEBUFFER, Some(framebuffer.raw)) };
    }

    /// Selects the rectangle that draws cover.
    pub(crate) fn viewport(&self, rect: Rect) {
        // SAFETY: plain state.
        unsafe { self.raw.viewport(rect.x as i32, rect.y as i32, rect.width as i32, rect.height as i32) };
    }

    /// Binds a texture to a unit.
    pub(crate) fn bind(&self, unit: u32, texture: &Texture) {
        // SAFETY: the texture lives in this context.
        unsafe {
            self.raw.active_texture(glow::TEXTURE0 + unit);
            self.raw.bind_texture(texture.texels.target(), Some(texture.raw));
        }
    }

    /// Binds a draw's parameters.
    pub(crate) fn bind_params(&self, buffer: &Buffer, offset: usize, bytes: usize) {
        // SAFETY: the range lies in the buffer: both come from the program's arena.
        unsafe {
            let (at, size) = (offset as i32, bytes as i32);
            self.raw.bind_buffer_range(glow::UNIFORM_BUFFER, PARAMS_BINDING, Some(buffer.raw), at, size);
        }
    }

    /// Binds the step's parameters.
    pub(crate) fn bind_step(&self, buffer: &Buffer) {
        // SAFETY: the buffer lives in this context.
        unsafe { self.raw.bind_buffer_base(glow::UNIFORM_BUFFER, STEP_BINDING, Some(buffer.raw)) };
    }

    /// Binds a draw's codebooks.
    pub(crate) fn bind_codebooks(&self, buffers: &[Rc<Buffer>]) {
        for (buffer, binding) in buffers.iter().zip(CODEBOOK_BINDING..) {
            // SAFETY: the buffer lives in this context.
            unsafe { self.raw.bind_buffer_base(glow::UNIFORM_BUFFER, binding, Some(buffer.raw)) };
        }
    }

    /// Keeps what is drawn and cleared within a rectangle, until [`Self::release`].
    pub(crate) fn confine(&self, rect: Rect) {
        // SAFETY: plain state.
        unsafe {
            self.raw.enable(glow::SCISSOR_TEST);
            self.raw.scissor(rect.x as i32, rect.y as i32, rect.width as i32, rect.height as i32);
        }
    }

    /// Lets draws have the whole viewport again.
    pub(crate) fn release(&self) {
        // SAFETY: plain state.
        unsafe { self.raw.disable(glow::SCISSOR_TEST) };
    }

    /// Draws one triangle that covers the viewport.
    pub(crate) fn draw(&self) {
        // SAFETY: the three corners are read.
        unsafe { self.raw.draw_arrays(glow::TRIANGLES, 0, 3) };
        self.count(|s| s.dispatches += 1);
    }

    /// Draws such triangles one upon the other, where their sum remains; `texels` are those drawn. A band keeps both
    /// within it.
    pub(crate) fn draw_sum(&self, texels: &[Rect], triangles: usize, band: Option<Rect>) {
        for rect in texels.iter().filter_map(|rect| band.map_or(Some(*rect), |band| rect.within(band))) {
            self.confine(rect);
            // SAFETY: the values are four.
            unsafe { self.raw.clear_buffer_f32_slice(glow::COLOR, 0, &[0.0; 4]) };
        }
        match band {
            Some(band) => self.confine(band),
            None => self.release(),
        }
        // SAFETY: as above; the state is put back.
        unsafe {
            self.raw.enable(glow::BLEND);
            self.raw.draw_arrays_instanced(glow::TRIANGLES, 0, 3, triangles as i32);
            self.raw.disable(glow::BLEND);
        }
        self.count(|s| s.dispatches += 1);
    }
}

impl Drop for Gl {
    fn drop(&mut self) {
        let Ok(_entered) = self.enter() else { return };
        // SAFETY: the objects are ours.
        unsafe {
            if let Some(raw) = self.utility.borrow_mut().take() {
                self.raw.delete_framebuffer(raw);
            }
            if let Some((array, buffer)) = self.corners.take() {
                self.raw.delete_vertex_array(array);
                self.raw.delete_buffer(buffer);
            }
        }
    }
}
