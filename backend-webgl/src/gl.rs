//! The one module with `unsafe`: a small safe layer over GL objects, which counts what it makes.
//!
//! Safety rests on three facts: every object belongs to the context that its handle holds alive; [`Gl::enter`] makes
//! that context current before each call; and all pointers handed to GL come from slices whose lengths are checked
//! here against the rectangle or range they are for.

use backend_api::{Error, Stats};
use glow::HasContext;
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

#[cfg(not(target_arch = "wasm32"))]
mod egl;
#[cfg(target_arch = "wasm32")]
mod web;

#[cfg(not(target_arch = "wasm32"))]
use egl::Egl as Surface;
#[cfg(target_arch = "wasm32")]
use web::Canvas as Surface;

/// How a texture holds values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Texels {
    /// Four floats.
    Rgba32f,
    /// One float.
    R32f,
    /// Four unsigned words; always an array texture.
    Rgba32ui,
}

impl Texels {
    pub(crate) const fn bytes(self) -> usize {
        match self {
            Texels::Rgba32f | Texels::Rgba32ui => 16,
            Texels::R32f => 4,
        }
    }

    const fn codes(self) -> (u32, u32, u32) {
        match self {
            Texels::Rgba32f => (glow::RGBA32F, glow::RGBA, glow::FLOAT),
            Texels::R32f => (glow::R32F, glow::RED, glow::FLOAT),
            Texels::Rgba32ui => (glow::RGBA32UI, glow::RGBA_INTEGER, glow::UNSIGNED_INT),
        }
    }

    const fn target(self) -> u32 {
        match self {
            Texels::Rgba32f | Texels::R32f => glow::TEXTURE_2D,
            Texels::Rgba32ui => glow::TEXTURE_2D_ARRAY,
        }
    }
}

/// A rectangle of texels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rect {
    pub(crate) x: u32,
    pub(crate) y: u32,
    pub(crate) width: u32,
    pub(crate) height: u32,
}

/// Limits of the context.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    pub(crate) texture_size: u32,
    pub(crate) layers: u32,
    pub(crate) uniform_align: u32,
    pub(crate) renderer: String,
    pub(crate) version: String,
}

/// A context.
pub(crate) struct Gl {
    raw: glow::Context,
    /// What the context belongs to, if it was opened here. Declared after `raw`, so that the context outlives the
    /// function table.
    surface: Option<Surface>,
    stats: Cell<Stats>,
    /// Whether the last step was not flushed yet.
    unflushed: Cell<bool>,
    limits: Limits,
    utility: RefCell<Option<glow::Framebuffer>>,
    /// The one vertex array of all draws.
    corners: Cell<Option<glow::VertexArray>>,
}

/// A texture with one level.
pub(crate) struct Texture {
    gl: Rc<Gl>,
    raw: glow::Texture,
    pub(crate) texels: Texels,
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) layers: u32,
}

/// A set of colour attachments.
pub(crate) struct Framebuffer {
    gl: Rc<Gl>,
    raw: glow::Framebuffer,
}

/// A linked program.
pub(crate) struct Program {
    gl: Rc<Gl>,
    raw: glow::Program,
    parts: [glow::Shader; 2],
}

/// A buffer.
pub(crate) struct Buffer {
    gl: Rc<Gl>,
    raw: glow::Buffer,
    target: u32,
    pub(crate) bytes: usize,
}

/// A fence in the command stream.
pub(crate) struct Fence {
    gl: Rc<Gl>,
    raw: glow::Fence,
}

/// Sampler uniforms of dense operands and of weights, and the texture unit where weights begin.
const DENSE_SAMPLERS: [&str; 6] = ["t0", "t1", "t2", "t3", "t4", "t5"];
const WEIGHT_SAMPLERS: [&str; 2] = ["weights_a", "weights_b"];
/// The first texture unit of weights.
pub(crate) const WEIGHT_UNIT: u32 = DENSE_SAMPLERS.len() as u32;
const PARAMS_BINDING: u32 = 0;
const STEP_BINDING: u32 = 1;

/// Enough to keep one upload call short.
pub(crate) const UPLOAD_BYTES: usize = 4 << 20;

fn driver(what: &str) -> impl FnOnce(String) -> Error + '_ {
    move |why| Error::Driver(format!("{what}: {why}; update the graphics driver, or choose another backend"))
}

impl Gl {
    /// Opens a windowless context: the first one that is no software renderer, else the first.
    ///
    /// *Errors*: no library, display or context.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn open() -> Result<Rc<Gl>, Error> {
        let mut software = None;
        let mut failure = None;
        for candidate in egl::Egl::candidates()? {
            let opened = candidate.and_then(|egl| {
                // SAFETY: the context is current, and the addresses are those of its functions.
                let raw = unsafe { glow::Context::from_loader_function(|name| egl.address(name)) };
                Gl::finish(raw, Some(egl))
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

    /// Opens the context of a canvas that nobody sees.
    ///
    /// *Errors*: the browser gives none.
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn open() -> Result<Rc<Gl>, Error> {
        let canvas = Surface::open()?;
        Gl::finish(canvas.functions(), Some(canvas))
    }

    /// Wraps a context that the caller made and keeps current.
    pub(crate) fn wrap(raw: glow::Context) -> Result<Rc<Gl>, Error> {
        Gl::finish(raw, None)
    }

    fn finish(raw: glow::Context, surface: Option<Surface>) -> Result<Rc<Gl>, Error> {
        #[cfg(not(target_arch = "wasm32"))]
        let renderer = None;
        #[cfg(target_arch = "wasm32")]
        let renderer = surface.as_ref().and_then(Surface::renderer);
        // SAFETY: queries and state of a current context.
        let limits = unsafe {
            let int = |name| u32::try_from(raw.get_parameter_i32(name)).unwrap_or(0);
            let limits = Limits {
                texture_size: int(glow::MAX_TEXTURE_SIZE),
                layers: int(glow::MAX_ARRAY_TEXTURE_LAYERS),
                uniform_align: int(glow::UNIFORM_BUFFER_OFFSET_ALIGNMENT).max(16),
                renderer: renderer.unwrap_or_else(|| raw.get_parameter_string(glow::RENDERER)),
                version: raw.get_parameter_string(glow::VERSION),
            };
            let has = |name: &str| {
                let known = raw.supported_extensions();
                known.contains(name) || known.contains(&format!("GL_{name}"))
            };
            if !has("EXT_color_buffer_float") {
                let draws = if has("EXT_color_buffer_half_float") {
                    "draws to half-float textures only (no EXT_color_buffer_float), which cannot hold ids and sums"
                } else {
                    "cannot draw to float textures (no EXT_color_buffer_float)"
                };
                return Err(Error::Absent {
                    backend: "webgl",
                    reason: format!("{} {draws}; another backend runs the model", limits.renderer),
                });
            }
            raw.disable(glow::BLEND);
            raw.disable(glow::DITHER);
            raw.disable(glow::DEPTH_TEST);
            raw.disable(glow::SCISSOR_TEST);
            limits
        };
        let gl = Rc::new(Gl {
            raw,
            surface,
            stats: Cell::default(),
            unflushed: Cell::default(),
            limits,
            utility: RefCell::default(),
            corners: Cell::default(),
        });
        // SAFETY: one vertex array for all draws; the triangle's corners come from gl_VertexID.
        unsafe {
            let corners = gl.made("vertex array", gl.raw.create_vertex_array())?;
            gl.corners.set(Some(corners));
            gl.raw.bind_vertex_array(Some(corners));
            let utility = gl.made("framebuffer", gl.raw.create_framebuffer())?;
            *gl.utility.borrow_mut() = Some(utility);
        }
        gl.count(|s| s.objects += 2);
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

    /// Makes the context current: a thread may have several.
    ///
    /// *Errors*: it was lost.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn enter(&self) -> Result<(), Error> {
        self.surface.as_ref().map_or(Ok(()), |egl| {
            egl.enter().map_err(|e| Error::Lost(format!("the context cannot be made current: {e}")))
        })
    }

    /// Makes sure that the context is still there: after a loss its calls do nothing, and `getError` tells only once.
    ///
    /// *Errors*: it was lost.
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn enter(&self) -> Result<(), Error> {
        let lost = self.surface.as_ref().is_some_and(Surface::is_lost);
        if lost { Err(Error::Lost("the browser took the WebGL context away".into())) } else { Ok(()) }
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

    /// Makes a texture filled with zeros.
    ///
    /// *Errors*: out of memory, device lost.
    pub(crate) fn texture(
        self: &Rc<Self>,
        what: &str,
        texels: Texels,
        [width, height, layers]: [u32; 3],
    ) -> Result<Texture, Error> {
        let (internal, _, _) = texels.codes();
        let target = texels.target();
        let (w, h, d) = (width as i32, height as i32, layers as i32);
        // SAFETY: sizes were checked against the limits by the caller; a wrong one gives a GL error, checked below.
        let raw = unsafe {
            let raw = self.made(what, self.raw.create_texture())?;
            self.raw.active_texture(glow::TEXTURE0);
            self.raw.bind_texture(target, Some(raw));
            match texels {
                Texels::Rgba32f | Texels::R32f => self.raw.tex_storage_2d(target, 1, internal, w, h),
                Texels::Rgba32ui => self.raw.tex_storage_3d(target, 1, internal, w, h, d),
            }
            for (name, value) in [
                (glow::TEXTURE_MIN_FILTER, glow::NEAREST),
                (glow::TEXTURE_MAG_FILTER, glow::NEAREST),
                (glow::TEXTURE_WRAP_S, glow::CLAMP_TO_EDGE),
                (glow::TEXTURE_WRAP_T, glow::CLAMP_TO_EDGE),
            ] {
                self.raw.tex_parameter_i32(target, name, value as i32);
            }
            raw
        };
        let texture = Texture { gl: self.clone(), raw, texels, width, height, layers };
        self.count(|s| {
            s.objects += 1;
            s.memory += texture.size();
        });
        self.check(what, texture.size())?;
        for layer in 0..layers {
            self.attach_utility(&texture, layer)?;
            // SAFETY: clears the attachment just bound; the class of the call matches the class of the format.
            unsafe {
                self.raw.viewport(0, 0, w, h);
                match texels {
                    Texels::Rgba32f | Texels::R32f => self.raw.clear_buffer_f32_slice(glow::COLOR, 0, &[0.0; 4]),
                    Texels::Rgba32ui => self.raw.clear_buffer_u32_slice(glow::COLOR, 0, &[0; 4]),
                }
            }
        }
        self.check(what, texture.size())?;
        Ok(texture)
    }

    /// Binds the framebuffer that clears and reads share, with one texture attached.
    fn attach_utility(&self, texture: &Texture, layer: u32) -> Result<(), Error> {
        let utility = *self.utility.borrow();
        // SAFETY: both objects live in this context.
        unsafe {
            self.raw.bind_framebuffer(glow::FRAMEBUFFER, utility);
            let (to, at) = (glow::FRAMEBUFFER, glow::COLOR_ATTACHMENT0);
            match texture.texels {
                Texels::Rgba32f | Texels::R32f => {
                    self.raw.framebuffer_texture_2d(to, at, glow::TEXTURE_2D, Some(texture.raw), 0);
                }
                Texels::Rgba32ui => {
                    self.raw.framebuffer_texture_layer(to, at, Some(texture.raw), 0, layer as i32);
                }
            }
        }
        Ok(())
    }

    /// Writes some lanes of one texel of a float texture: what uploads, which write whole texels, cannot do.
    pub(crate) fn write_lanes(
        &self,
        texture: &Texture,
        (x, y): (u32, u32),
        lanes: [Option<f32>; 4],
    ) -> Result<(), Error> {
        self.attach_utility(texture, 0)?;
        // SAFETY: a masked clear of one texel of the attachment; the state is put back.
        unsafe {
            self.raw.enable(glow::SCISSOR_TEST);
            self.raw.scissor(x as i32, y as i32, 1, 1);
            let [r, g, b, a] = lanes.map(|lane| lane.is_some());
            self.raw.color_mask(r, g, b, a);
            self.raw.clear_buffer_f32_slice(glow::COLOR, 0, &lanes.map(|lane| lane.unwrap_or(0.0)));
            self.raw.color_mask(true, true, true, true);
            self.raw.disable(glow::SCISSOR_TEST);
        }
        self.count(|s| s.uploaded += 4 * lanes.iter().flatten().count() as u64);
        Ok(())
    }

    /// Makes a framebuffer of the given targets.
    ///
    /// *Errors*: the driver cannot draw to them together; they differ in size, which WebGL2 forbids though GLES does
    /// not.
    pub(crate) fn framebuffer(self: &Rc<Self>, targets: &[&Texture]) -> Result<Framebuffer, Error> {
        if targets.windows(2).any(|pair| (pair[0].width, pair[0].height) != (pair[1].width, pair[1].height)) {
            return Err(Error::Invalid("textures of different sizes cannot be drawn to together".into()));
        }
        // SAFETY: all objects live in this context.
        unsafe {
            let raw = self.made("framebuffer", self.raw.create_framebuffer())?;
            self.count(|s| s.objects += 1);
            let made = Framebuffer { gl: self.clone(), raw };
            self.raw.bind_framebuffer(glow::FRAMEBUFFER, Some(raw));
            let mut buffers = Vec::with_capacity(targets.len());
            for (at, texture) in (glow::COLOR_ATTACHMENT0..).zip(targets) {
                self.raw.framebuffer_texture_2d(glow::FRAMEBUFFER, at, glow::TEXTURE_2D, Some(texture.raw), 0);
                buffers.push(at);
            }
            self.raw.draw_buffers(&buffers);
            match self.raw.check_framebuffer_status(glow::FRAMEBUFFER) {
                glow::FRAMEBUFFER_COMPLETE => Ok(made),
                status => {
                    self.check("framebuffer", 0)?;
                    Err(driver("framebuffer")(format!("incomplete, status {status:#06x}")))
                }
            }
        }
    }

    /// Begins to compile and link a program; [`Program::finish`] asks for the outcome, so that drivers may work on
    /// several at once.
    pub(crate) fn program(self: &Rc<Self>, vertex: &str, fragment: &str) -> Result<Program, Error> {
        // SAFETY: plain object creation.
        unsafe {
            let raw = self.made("program", self.raw.create_program())?;
            let shader = |kind, source: &str| {
                let shader = self.made("shader", self.raw.create_shader(kind))?;
                self.raw.shader_source(shader, source);
                self.raw.compile_shader(shader);
                self.raw.attach_shader(raw, shader);
                Ok::<_, Error>(shader)
            };
            let parts = [shader(glow::VERTEX_SHADER, vertex)?, shader(glow::FRAGMENT_SHADER, fragment)?];
            self.raw.link_program(raw);
            self.count(|s| s.objects += 1);
            Ok(Program { gl: self.clone(), raw, parts })
        }
    }

    fn buffer(self: &Rc<Self>, target: u32, usage: u32, bytes: usize, data: Option<&[u8]>) -> Result<Buffer, Error> {
        let size =
            i32::try_from(bytes).map_err(|_| Error::Invalid(format!("a buffer of {bytes} bytes is too large")))?;
        // SAFETY: the slice, if any, has `bytes` bytes.
        let raw = unsafe {
            let raw = self.made("buffer", self.raw.create_buffer())?;
            self.raw.bind_buffer(target, Some(raw));
            match data {
                Some(data) => self.raw.buffer_data_u8_slice(target, data, usage),
                None => self.raw.buffer_data_size(target, size, usage),
            }
            // A bound pixel buffer would redirect later reads and uploads.
            self.raw.bind_buffer(target, None);
            raw
        };
        self.count(|s| {
            s.objects += 1;
            s.memory += bytes as u64;
            s.uploaded += data.map_or(0, |d| d.len() as u64);
        });
        let buffer = Buffer { gl: self.clone(), raw, target, bytes };
        self.check("buffer", bytes as u64)?;
        Ok(buffer)
    }

    /// A uniform buffer with fixed content.
    pub(crate) fn uniforms(self: &Rc<Self>, data: &[u8]) -> Result<Buffer, Error> {
        self.buffer(glow::UNIFORM_BUFFER, glow::STATIC_DRAW, data.len(), Some(data))
    }

    /// A uniform buffer that is rewritten every step.
    pub(crate) fn step_uniforms(self: &Rc<Self>, bytes: usize) -> Result<Buffer, Error> {
        self.buffer(glow::UNIFORM_BUFFER, glow::DYNAMIC_DRAW, bytes, None)
    }

    /// A buffer for pixels that are read back.
    pub(crate) fn pixel_buffer(self: &Rc<Self>, bytes: usize) -> Result<Buffer, Error> {
        self.buffer(glow::PIXEL_PACK_BUFFER, glow::STREAM_READ, bytes, None)
    }

    /// Begins to copy a rectangle of a float texture into a pixel buffer; gives the floats a texel that arrive.
    pub(crate) fn read_pixels(&self, texture: &Texture, rect: Rect, to: &Buffer) -> Result<usize, Error> {
        let lanes = self.read_lanes(texture)?;
        let need = rect.width as usize * rect.height as usize * lanes * 4;
        if to.bytes < need || rect.x + rect.width > texture.width || rect.y + rect.height > texture.height {
            return Err(Error::Invalid("a read exceeds its texture or buffer".into()));
        }
        let format = if lanes == 1 { glow::RED } else { glow::RGBA };
        let (x, y, w, h) = (rect.x as i32, rect.y as i32, rect.width as i32, rect.height as i32);
        // SAFETY: the buffer is large enough for the rectangle, as checked above.
        unsafe {
            self.raw.bind_buffer(glow::PIXEL_PACK_BUFFER, Some(to.raw));
            self.raw.read_pixels(x, y, w, h, format, glow::FLOAT, glow::PixelPackData::BufferOffset(0));
            self.raw.bind_buffer(glow::PIXEL_PACK_BUFFER, None);
        }
        self.count(|s| s.read_back += need as u64);
        Ok(lanes)
    }

    /// Attaches a texture for reading and gives how many floats of each texel this driver returns.
    pub(crate) fn read_lanes(&self, texture: &Texture) -> Result<usize, Error> {
        self.attach_utility(texture, 0)?;
        if texture.texels == Texels::Rgba32f {
            return Ok(4);
        }
        // SAFETY: queries about the framebuffer just bound.
        let (format, kind) = unsafe {
            (
                self.raw.get_parameter_i32(glow::IMPLEMENTATION_COLOR_READ_FORMAT) as u32,
                self.raw.get_parameter_i32(glow::IMPLEMENTATION_COLOR_READ_TYPE) as u32,
            )
        };
        // Only RGBA is guaranteed.
        Ok(if (format, kind) == (glow::RED, glow::FLOAT) { 1 } else { 4 })
    }

    /// Puts a fence after everything so far.
    pub(crate) fn fence(self: &Rc<Self>) -> Result<Fence, Error> {
        // SAFETY: plain object creation.
        let raw = unsafe { self.raw.fence_sync(glow::SYNC_GPU_COMMANDS_COMPLETE, 0) }
            .map_err(|why| Error::Lost(format!("no fence could be made: {why}")))?;
        Ok(Fence { gl: self.clone(), raw })
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

    /// Selects program and framebuffer.
    pub(crate) fn target(&self, program: &Program, framebuffer: &Framebuffer) {
        // SAFETY: both live in this context.
        unsafe {
            self.raw.use_program(Some(program.raw));
            self.raw.bind_framebuffer(glow::FRAMEBUFFER, Some(framebuffer.raw));
        }
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

    /// Draws one triangle that covers a rectangle.
    pub(crate) fn draw(&self, rect: Rect) {
        // SAFETY: no vertex attributes are read.
        unsafe {
            self.raw.viewport(rect.x as i32, rect.y as i32, rect.width as i32, rect.height as i32);
            self.raw.draw_arrays(glow::TRIANGLES, 0, 3);
        }
        self.count(|s| s.dispatches += 1);
    }
}

impl Drop for Gl {
    fn drop(&mut self) {
        if self.enter().is_err() {
            return;
        }
        // SAFETY: the objects are ours.
        unsafe {
            if let Some(raw) = self.utility.borrow_mut().take() {
                self.raw.delete_framebuffer(raw);
            }
            if let Some(raw) = self.corners.take() {
                self.raw.delete_vertex_array(raw);
            }
        }
    }
}

impl Texture {
    /// Its size in bytes.
    pub(crate) fn size(&self) -> u64 {
        u64::from(self.width) * u64::from(self.height) * u64::from(self.layers) * self.texels.bytes() as u64
    }

    /// Writes whole texels of one layer.
    ///
    /// *Errors*: the bytes are not those of the rectangle, or it exceeds the texture.
    pub(crate) fn upload(&self, layer: u32, rect: Rect, bytes: &[u8]) -> Result<(), Error> {
        let fits = rect.x + rect.width <= self.width && rect.y + rect.height <= self.height && layer < self.layers;
        if !fits || rect.width as usize * rect.height as usize * self.texels.bytes() != bytes.len() {
            return Err(Error::Invalid("an upload exceeds its texture".into()));
        }
        let (_, format, kind) = self.texels.codes();
        let target = self.texels.target();
        let (x, y, w, h) = (rect.x as i32, rect.y as i32, rect.width as i32, rect.height as i32);
        let raw = &self.gl.raw;
        // Browsers take typed arrays, whose words are aligned.
        let words: Cow<'_, [u32]> = match bytemuck::try_cast_slice(bytes) {
            Ok(words) => Cow::Borrowed(words),
            Err(_) => bytes.chunks_exact(4).map(|b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]])).collect(),
        };
        let bytes: &[u8] = bytemuck::cast_slice(&words);
        // SAFETY: the slice has exactly the bytes that the call reads, as checked above.
        unsafe {
            let data = glow::PixelUnpackData::Slice(Some(bytes));
            raw.active_texture(glow::TEXTURE0);
            raw.bind_texture(target, Some(self.raw));
            match self.texels {
                Texels::Rgba32f | Texels::R32f => raw.tex_sub_image_2d(target, 0, x, y, w, h, format, kind, data),
                Texels::Rgba32ui => raw.tex_sub_image_3d(target, 0, x, y, layer as i32, w, h, 1, format, kind, data),
            }
        }
        self.gl.count(|s| s.uploaded += bytes.len() as u64);
        Ok(())
    }
}

impl Drop for Texture {
    fn drop(&mut self) {
        let size = self.size();
        self.gl.count(|s| s.memory -= size);
        if self.gl.enter().is_ok() {
            // SAFETY: the object is ours.
            unsafe { self.gl.raw.delete_texture(self.raw) };
        }
    }
}

impl Drop for Framebuffer {
    fn drop(&mut self) {
        if self.gl.enter().is_ok() {
            // SAFETY: the object is ours.
            unsafe { self.gl.raw.delete_framebuffer(self.raw) };
        }
    }
}

impl Program {
    /// Asks for the outcome of compiling and linking, and assigns texture units and uniform blocks.
    ///
    /// *Errors*: the driver's log.
    pub(crate) fn finish(&self, name: &str) -> Result<(), Error> {
        let raw = &self.gl.raw;
        // SAFETY: queries and state of objects of this context.
        unsafe {
            if !raw.get_program_link_status(self.raw) {
                self.gl.check(name, 0)?;
                let logs: Vec<String> = self.parts.iter().map(|part| raw.get_shader_info_log(*part)).collect();
                let log = format!("{} {}", raw.get_program_info_log(self.raw), logs.join(" "));
                return Err(driver(name)(log.trim().to_string()));
            }
            raw.use_program(Some(self.raw));
            let samplers = DENSE_SAMPLERS.iter().chain(&WEIGHT_SAMPLERS);
            for (unit, sampler) in (0..).zip(samplers) {
                if let Some(location) = raw.get_uniform_location(self.raw, sampler) {
                    raw.uniform_1_i32(Some(&location), unit);
                }
            }
            for (block, binding) in [("Params", PARAMS_BINDING), ("Step", STEP_BINDING)] {
                if let Some(index) = raw.get_uniform_block_index(self.raw, block) {
                    raw.uniform_block_binding(self.raw, index, binding);
                }
            }
        }
        self.gl.check(name, 0)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.gl.enter().is_ok() {
            // SAFETY: the objects are ours.
            unsafe {
                for part in self.parts {
                    self.gl.raw.delete_shader(part);
                }
                self.gl.raw.delete_program(self.raw);
            }
        }
    }
}

impl Buffer {
    /// Rewrites the beginning.
    pub(crate) fn update(&self, data: &[u8]) {
        let data = &data[..data.len().min(self.bytes)];
        // SAFETY: the data fits the buffer.
        unsafe {
            self.gl.raw.bind_buffer(self.target, Some(self.raw));
            self.gl.raw.buffer_sub_data_u8_slice(self.target, 0, data);
        }
        self.gl.count(|s| s.uploaded += data.len() as u64);
    }

    /// Hands the first `bytes` bytes to `take`. The caller has seen the fence after the copy into the buffer pass.
    pub(crate) fn download(&self, bytes: usize, take: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        let bytes = bytes.min(self.bytes);
        let raw = &self.gl.raw;
        // SAFETY: the mapped range lies in the buffer and is unmapped before this returns.
        unsafe {
            raw.bind_buffer(self.target, Some(self.raw));
            #[cfg(not(target_arch = "wasm32"))]
            {
                let at = raw.map_buffer_range(self.target, 0, bytes as i32, glow::MAP_READ_BIT);
                if at.is_null() {
                    raw.bind_buffer(self.target, None);
                    self.gl.check("mapping a read", bytes as u64)?;
                    return Err(driver("mapping a read")("no address".into()));
                }
                take(std::slice::from_raw_parts(at, bytes));
                raw.unmap_buffer(self.target);
            }
            #[cfg(target_arch = "wasm32")]
            {
                let mut copy = vec![0u8; bytes];
                raw.get_buffer_sub_data(self.target, 0, &mut copy);
                take(&copy);
            }
            raw.bind_buffer(self.target, None);
        }
        Ok(())
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let bytes = self.bytes as u64;
        self.gl.count(|s| s.memory -= bytes);
        if self.gl.enter().is_ok() {
            // SAFETY: the object is ours.
            unsafe { self.gl.raw.delete_buffer(self.raw) };
        }
    }
}

impl Fence {
    /// Whether the device has passed it; never waits.
    ///
    /// *Errors*: device lost.
    pub(crate) fn passed(&self) -> Result<bool, Error> {
        // SAFETY: a query with a timeout of zero.
        match unsafe { self.gl.raw.client_wait_sync(self.raw, 0, 0) } {
            glow::ALREADY_SIGNALED | glow::CONDITION_SATISFIED => Ok(true),
            glow::TIMEOUT_EXPIRED => Ok(false),
            _ => {
                self.gl.check("waiting for the device", 0)?;
                Err(Error::Lost("a fence failed".into()))
            }
        }
    }
}

impl Drop for Fence {
    fn drop(&mut self) {
        if self.gl.enter().is_ok() {
            // SAFETY: the object is ours.
            unsafe { self.gl.raw.delete_sync(self.raw) };
        }
    }
}
