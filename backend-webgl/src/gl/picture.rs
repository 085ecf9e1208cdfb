//! Pictures of textures, for who watches.

use super::{Gl, Program, Rect, Texture, driver};
use backend_api::Error;
use glow::HasContext;
use std::rc::Rc;

/// A texture that others may show, with what paints in it.
pub(crate) struct Picture {
    gl: Rc<Gl>,
    raw: glow::Texture,
    framebuffer: glow::Framebuffer,
    program: Program,
    size: [u32; 2],
}

/// Where a matrix is painted, and its first element, the elements from line to line, and its rows and columns.
pub(crate) struct Tile {
    pub(crate) area: [u32; 4],
    pub(crate) elements: [i32; 4],
}

impl Gl {
    /// Makes a picture, all black, and the program that paints in it.
    pub(crate) fn picture(self: &Rc<Self>, shader: &str, size: [u32; 2]) -> Result<Picture, Error> {
        let program = self.program(crate::shader::VERTEX, shader)?;
        program.finish("picture")?;
        let [width, height] = size.map(|side| side as i32);
        // SAFETY: the size is within the limit, as the caller checked; all objects live in this context.
        let (raw, framebuffer) = unsafe {
            let raw = self.made("picture", self.raw.create_texture())?;
            self.raw.active_texture(glow::TEXTURE0);
            self.raw.bind_texture(glow::TEXTURE_2D, Some(raw));
            self.raw.tex_storage_2d(glow::TEXTURE_2D, 1, glow::RGBA8, width, height);
            for name in [glow::TEXTURE_MIN_FILTER, glow::TEXTURE_MAG_FILTER] {
                self.raw.tex_parameter_i32(glow::TEXTURE_2D, name, glow::NEAREST as i32);
            }
            (raw, self.made("framebuffer", self.raw.create_framebuffer())?)
        };
        self.count(|s| (s.objects, s.memory) = (s.objects + 2, s.memory + bytes(size)));
        let picture = Picture { gl: self.clone(), raw, framebuffer, program, size };
        // SAFETY: as above; the attachment is cleared.
        unsafe {
            let to = glow::FRAMEBUFFER;
            self.raw.bind_framebuffer(to, Some(framebuffer));
            self.raw.framebuffer_texture_2d(to, glow::COLOR_ATTACHMENT0, glow::TEXTURE_2D, Some(raw), 0);
            if self.raw.check_framebuffer_status(to) != glow::FRAMEBUFFER_COMPLETE {
                return Err(driver("picture")("it cannot be drawn to".into()));
            }
            self.raw.clear_buffer_f32_slice(glow::COLOR, 0, &[0.0, 0.0, 0.0, 1.0]);
        }
        self.check("picture", bytes(size))?;
        Ok(picture)
    }

    /// Paints a texture into a tile of a picture.
    pub(crate) fn paint(&self, picture: &Picture, texture: &Texture, tile: &Tile) -> Result<(), Error> {
        let [x, y, width, height] = tile.area;
        let within = |from: u32, len: u32, all: u32| from.checked_add(len).is_some_and(|end| end <= all);
        if !within(x, width, picture.size[0]) || !within(y, height, picture.size[1]) {
            let [wide, high] = picture.size;
            return Err(Error::Invalid(format!("the tile {:?} leaves a picture of {wide} x {high} texels", tile.area)));
        }
        self.use_program(&picture.program);
        self.bind(0, texture);
        self.viewport(Rect { x, y, width, height });
        // SAFETY: all objects live in this context; the arrays have as many values as the calls take.
        unsafe {
            self.raw.bind_framebuffer(glow::FRAMEBUFFER, Some(picture.framebuffer));
            let uniform = |name| self.raw.get_uniform_location(picture.program.raw, name);
            self.raw.uniform_2_i32_slice(uniform("origin").as_ref(), &[x as i32, y as i32]);
            self.raw.uniform_4_i32_slice(uniform("elements").as_ref(), &tile.elements);
            self.raw.draw_arrays(glow::TRIANGLES, 0, 3);
        }
        self.check("painting", 0)
    }
}

impl Picture {
    pub(crate) fn texture(&self) -> glow::Texture {
        self.raw
    }
}

fn bytes([width, height]: [u32; 2]) -> u64 {
    u64::from(width) * u64::from(height) * 4
}

impl Drop for Picture {
    fn drop(&mut self) {
        self.gl.count(|s| s.memory -= bytes(self.size));
        if self.gl.enter().is_ok() {
            // SAFETY: the objects are ours.
            unsafe {
                self.gl.raw.delete_framebuffer(self.framebuffer);
                self.gl.raw.delete_texture(self.raw);
            }
        }
    }
}
