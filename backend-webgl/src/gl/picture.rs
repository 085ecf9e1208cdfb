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
        if let Ok(_entered) = self.gl.enter() {
            // SAFETY: the objects are ours.
            unsafe {
                self.gl.raw.delete_framebuffer(self.framebuffer);
                self.gl.raw.delete_texture(self.raw);
            }
        }
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::*;
    use crate::{Layout, Options, Tile as Place, WebGl};
    use backend_api::op::MatMul;
    use backend_api::{Backend, DType, Graph, Part, StepParams, StorageDesc};
    use std::cell::RefCell;

    /// Red, green and blue of a value.
    fn colour(value: f32) -> [f32; 3] {
        let hue = if value < 0.0 { [0.25, 0.65, 1.0] } else { [1.0, 0.62, 0.15] };
        let t = ((1.0 + 100.0 * value.abs()).ln() / 10001f32.ln()).min(1.0);
        [0, 1, 2].map(|i| 255.0 * ([0.10, 0.11, 0.13][i] * (1.0 - t) + hue[i] * t))
    }

    /// Red, green, blue and alpha of all texels.
    fn texels(picture: &Picture) -> Vec<[u8; 4]> {
        let [width, height] = picture.size;
        let mut all = vec![0; bytes(picture.size) as usize];
        let gl = &picture.gl;
        let _entered = gl.enter().unwrap();
        // SAFETY: the slice has as many bytes as the picture.
        unsafe {
            gl.raw.bind_framebuffer(glow::FRAMEBUFFER, Some(picture.framebuffer));
            let to = glow::PixelPackData::Slice(Some(&mut all));
            gl.raw.read_pixels(0, 0, width as i32, height as i32, glow::RGBA, glow::UNSIGNED_BYTE, to);
        }
        all.chunks_exact(4).map(|texel| texel.try_into().unwrap()).collect()
    }

    #[test]
    fn each_matrix_is_painted_before_the_next_draw() {
        if std::env::var("ANYGPU_SKIP").is_ok_and(|skip| skip.split(',').any(|name| name.trim() == "webgl")) {
            return println!("SKIPPED: ANYGPU_SKIP names webgl");
        }
        const KERNELS: usize = 6;
        for layout in Layout::ALL.iter().copied() {
            let webgl = WebGl::open(Options { layout, ..Options::default() }).unwrap();
            let mut graph = Graph::new();
            let mut x = graph.input("x", &[3, 5], DType::F32).unwrap();
            // A product with this changes the signs alone, and is a draw by itself.
            let minus = graph.input("minus", &[5, 5], DType::F32).unwrap();
            for _ in 0..KERNELS {
                x = graph.push(MatMul, &[x, minus]).unwrap();
            }
            graph.output(x, "y").unwrap();
            let plan = webgl.plan(graph).unwrap();
            let create = |(_, tensor)| webgl.create(&StorageDesc::of(tensor)).unwrap();
            let storages: Vec<_> = plan.graph().externals().map(create).collect();
            let mut program = webgl.compile(&plan, &storages).unwrap();
            let values: Vec<f32> = (0..15).map(|i| (i as f32 - 7.0) * 10f32.powi(i % 5 - 2)).collect();
            webgl.write(storages[0], 0, bytemuck::cast_slice(&values)).unwrap();
            let minus: Vec<f32> = (0..25).map(|i| if i % 6 == 0 { -1.0 } else { 0.0 }).collect();
            webgl.write(storages[1], 0, bytemuck::cast_slice(&minus)).unwrap();

            // A picture has a line of tiles of 5 x 3 texels, and above them what shows the last two rows, one texel apart.
            let picture = Rc::new(webgl.picture(40, 8).unwrap());
            let (painted, failed) = (picture.clone(), Rc::new(RefCell::new(Vec::new())));
            let (fails, textures) = (failed.clone(), Rc::new(RefCell::new(Vec::new())));
            let see = textures.clone();
            webgl.watch(move |pass| {
                let x = 6 * pass.kernel as u32;
                let place = |y, first, stride| Place { area: [x, y, 5, 3], first, stride };
                pass.paint(0, &painted, &place(0, 0, 5)).unwrap();
                pass.paint(0, &painted, &place(4, 6, 5)).unwrap();
                see.borrow_mut().push(pass.texture(0).unwrap());
                let wrong = [pass.paint(1, &painted, &place(0, 0, 5)), pass.paint(0, &painted, &place(6, 0, 5))];
                fails.borrow_mut().extend(wrong.map(|error| error.is_err()));
            });
            program.step(&StepParams::at(0, 3)).unwrap();
            assert_eq!(*failed.borrow(), [true; 2 * KERNELS]);
            let texels = texels(&picture.painted);
            let dark = [25.5, 28.05, 33.15];
            for kernel in 0..KERNELS {
                for at in 0..15 {
                    let (column, line) = (6 * kernel + at % 5, at / 5);
                    let sign = if kernel % 2 == 0 { -1.0 } else { 1.0 };
                    let lower = colour(sign * values[at]);
                    let upper = values.get(at + 6).map_or(dark, |value| colour(sign * value));
                    for (line, expected) in [(line, lower), (line + 4, upper)] {
                        let seen = texels[40 * line + column];
                        let is_near =
                            seen.iter().zip(expected).all(|(seen, wanted)| (f32::from(*seen) - wanted).abs() < 1.5);
                        assert!(is_near, "{layout:?} {kernel} {column} {line}: {seen:?}, not {expected:?}");
                    }
                }
            }
            textures.borrow_mut().sort();
            textures.borrow_mut().dedup();
            assert_eq!(textures.borrow().len(), 3, "two slots and the output");
            let units = program.pieces()[0].units;
            for (part, watched) in [(0..1, KERNELS), (1..units, KERNELS + 1)] {
                program.part(&StepParams::at(0, 3), &Part::Units(0, part)).unwrap();
                assert_eq!(failed.borrow().len(), 2 * watched, "a draw in parts is seen once");
            }
            drop(program);
            let before = webgl.stats().memory;
            webgl.watch(|_| {});
            drop(picture);
            assert_eq!(before - webgl.stats().memory, 40 * 8 * 4);
        }
    }
}
