//! Textures and framebuffers: made, written and read.

use super::{Buffer, Gl, Rect, Texels, driver};
use backend_api::Error;
use glow::HasContext;
use std::rc::Rc;

/// A texture with one level.
pub(crate) struct Texture {
    gl: Rc<Gl>,
    pub(super) raw: glow::Texture,
    pub(crate) texels: Texels,
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) layers: u32,
}

/// A set of colour attachments.
pub(crate) struct Framebuffer {
    gl: Rc<Gl>,
    pub(super) raw: glow::Framebuffer,
}

impl Gl {
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
                Texels::Rgba32f | Texels::R32f | Texels::Rgba16f | Texels::R16f | Texels::Words => {
                    self.raw.tex_storage_2d(target, 1, internal, w, h);
                }
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
        for layer in 0..layers {
            self.attach_utility(&texture, layer)?;
            // SAFETY: clears the attachment just bound; the class of the call matches the class of the format.
            unsafe {
                self.raw.viewport(0, 0, w, h);
                match texels {
                    Texels::Rgba32f | Texels::R32f | Texels::Rgba16f | Texels::R16f => {
                        self.raw.clear_buffer_f32_slice(glow::COLOR, 0, &[0.0; 4]);
                    }
                    Texels::Rgba32ui | Texels::Words => self.raw.clear_buffer_u32_slice(glow::COLOR, 0, &[0; 4]),
                }
            }
        }
        // Once, because it waits for the browser's GPU process; running out of memory comes before what follows from it.
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
                Texels::Rgba32f | Texels::R32f | Texels::Rgba16f | Texels::R16f | Texels::Words => {
                    self.raw.framebuffer_texture_2d(to, at, glow::TEXTURE_2D, Some(texture.raw), 0);
                }
                Texels::Rgba32ui => {
                    self.raw.framebuffer_texture_layer(to, at, Some(texture.raw), 0, layer as i32);
                }
            }
        }
        Ok(())
    }

    /// Writes some lanes of one texel of floats: what uploads, which write whole texels, cannot do.
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
            let values = lanes.map(|lane| lane.unwrap_or(0.0));
            match texture.texels {
                Texels::Words | Texels::Rgba32ui => {
                    self.raw.clear_buffer_u32_slice(glow::COLOR, 0, &values.map(f32::to_bits));
                }
                Texels::Rgba32f | Texels::R32f | Texels::Rgba16f | Texels::R16f => {
                    self.raw.clear_buffer_f32_slice(glow::COLOR, 0, &values);
                }
            }
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
        let size = |texture: &Texture| (texture.width, texture.height);
        if targets.windows(2).any(|pair| size(pair[0]) != size(pair[1])) {
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
            // Only formats and number decide now, and asking waits for the browser's GPU process.
            let formats: Vec<Texels> = targets.iter().map(|target| target.texels).collect();
            if self.complete.borrow().contains(&formats) {
                return Ok(made);
            }
            match self.raw.check_framebuffer_status(glow::FRAMEBUFFER) {
                glow::FRAMEBUFFER_COMPLETE => {
                    self.complete.borrow_mut().insert(formats);
                    Ok(made)
                }
                status => {
                    self.check("framebuffer", 0)?;
                    Err(driver("framebuffer")(format!("incomplete, status {status:#06x}")))
                }
            }
        }
    }

    /// Begins to copy a rectangle of a texture into a pixel buffer; gives the words a texel that arrive.
    pub(crate) fn read_pixels(&self, texture: &Texture, rect: Rect, to: &Buffer) -> Result<usize, Error> {
        let lanes = self.read_lanes(texture)?;
        let need = rect.width as usize * rect.height as usize * lanes * 4;
        if to.bytes < need || rect.x + rect.width > texture.width || rect.y + rect.height > texture.height {
            return Err(Error::Invalid("a read exceeds its texture or buffer".into()));
        }
        let (format, kind) = match (texture.texels, lanes) {
            (Texels::Words, _) => (glow::RGBA_INTEGER, glow::UNSIGNED_INT),
            (_, 1) => (glow::RED, glow::FLOAT),
            _ => (glow::RGBA, glow::FLOAT),
        };
        let (x, y, w, h) = (rect.x as i32, rect.y as i32, rect.width as i32, rect.height as i32);
        // SAFETY: the buffer is large enough for the rectangle, as checked above.
        unsafe {
            self.raw.bind_buffer(glow::PIXEL_PACK_BUFFER, Some(to.raw));
            self.raw.read_pixels(x, y, w, h, format, kind, glow::PixelPackData::BufferOffset(0));
            self.raw.bind_buffer(glow::PIXEL_PACK_BUFFER, None);
        }
        self.count(|s| s.read_back += need as u64);
        Ok(lanes)
    }

    /// Attaches a texture for reading and gives how many floats of each texel this driver returns.
    pub(crate) fn read_lanes(&self, texture: &Texture) -> Result<usize, Error> {
        self.attach_utility(texture, 0)?;
        if matches!(texture.texels, Texels::Rgba32f | Texels::Rgba16f | Texels::Words) {
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
}

impl Texture {
    pub(crate) fn raw(&self) -> glow::Texture {
        self.raw
    }

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
        let mut words = Vec::<u32>::new();
        let bytes = if bytes.as_ptr().cast::<u32>().is_aligned() {
            bytes
        } else {
            words.resize(bytes.len().div_ceil(4), 0);
            let copy = &mut bytemuck::cast_slice_mut(&mut words)[..bytes.len()];
            copy.copy_from_slice(bytes);
            copy
        };
        // SAFETY: the slice has exactly the bytes that the call reads, as checked above.
        unsafe {
            let data = glow::PixelUnpackData::Slice(Some(bytes));
            raw.active_texture(glow::TEXTURE0);
            raw.bind_texture(target, Some(self.raw));
            match self.texels {
                Texels::Rgba32f | Texels::R32f | Texels::Rgba16f | Texels::R16f | Texels::Words => {
                    raw.tex_sub_image_2d(target, 0, x, y, w, h, format, kind, data);
                }
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
        if let Ok(_entered) = self.gl.enter() {
            // SAFETY: the object is ours.
            unsafe { self.gl.raw.delete_texture(self.raw) };
        }
    }
}

impl Drop for Framebuffer {
    fn drop(&mut self) {
        if let Ok(_entered) = self.gl.enter() {
            // SAFETY: the object is ours.
            unsafe { self.gl.raw.delete_framebuffer(self.raw) };
        }
    }
}
