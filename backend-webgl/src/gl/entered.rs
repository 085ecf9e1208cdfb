//! Contexts that an application uses, too: what is set when they are entered, and how they are left.

use super::{Gl, Surface, Turn, WEIGHT_SAMPLERS, WEIGHT_UNIT};
use backend_api::Error;
use glow::HasContext;

/// The context while it is used here.
#[must_use = "it is the application's again once this is dropped"]
pub(crate) struct Entered<'a> {
    gl: &'a Gl,
    _turn: Option<Turn>,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let depth = self.gl.depth.get() - 1;
        self.gl.depth.set(depth);
        if let (0, Some(sharing)) = (depth, &self.gl.sharing) {
            (sharing.leave)(self.gl);
        }
    }
}

/// How the context of an application is entered and left: pointers, so that a page, whose context is its own, goes without the
/// code.
pub(super) struct Sharing {
    enter: fn(&Gl),
    leave: fn(&Gl),
}

impl Sharing {
    pub(super) const NEW: Sharing = Sharing { enter: set_up, leave };
}

impl Gl {
    /// Makes the context current, as a thread may have several, and sets what an application may have set otherwise.
    ///
    /// *Errors*: it was lost.
    pub(crate) fn enter(&self) -> Result<Entered<'_>, Error> {
        let depth = self.depth.get();
        let turn = self.surface.as_ref().map(Surface::enter).transpose()?.flatten();
        if let (0, Some(sharing)) = (depth, &self.sharing) {
            (sharing.enter)(self);
        }
        self.depth.set(depth + 1);
        Ok(Entered { gl: self, _turn: turn })
    }
}

/// Sets what all calls here rely on.
fn set_up(gl: &Gl) {
    // SAFETY: plain state; the vertex array lives in this context.
    unsafe {
        for test in [glow::BLEND, glow::CULL_FACE, glow::DEPTH_TEST, glow::DITHER, glow::SCISSOR_TEST] {
            gl.raw.disable(test);
        }
        gl.raw.disable(glow::STENCIL_TEST);
        gl.raw.blend_equation(glow::FUNC_ADD);
        gl.raw.blend_func(glow::ONE, glow::ONE);
        gl.raw.color_mask(true, true, true, true);
        gl.raw.pixel_store_i32(glow::PACK_ALIGNMENT, 4);
        gl.raw.pixel_store_i32(glow::UNPACK_ALIGNMENT, 4);
        gl.raw.bind_vertex_array(gl.corners.get().map(|(array, _)| array));
        (0..WEIGHT_UNIT + WEIGHT_SAMPLERS.len() as u32).for_each(|unit| gl.raw.bind_sampler(unit, None));
    }
}

/// Gives the context back to the application: it draws to its window, with vertices of its own, and perhaps has never heard of
/// texture units.
fn leave(gl: &Gl) {
    // SAFETY: plain state.
    unsafe {
        gl.raw.bind_framebuffer(glow::FRAMEBUFFER, None);
        gl.raw.bind_vertex_array(None);
        gl.raw.active_texture(glow::TEXTURE0);
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::super::egl::Egl;
    use crate::{Options, WebGl};
    use backend_api::op::{Unary, UnaryKind};
    use backend_api::{Backend, DType, Graph, StepParams, StorageDesc};
    use glow::HasContext;
    use std::sync::Arc;

    #[test]
    fn an_application_may_set_what_it_likes() {
        if std::env::var("ANYGPU_SKIP").is_ok_and(|skip| skip.split(',').any(|name| name.trim() == "webgl")) {
            return println!("SKIPPED: ANYGPU_SKIP names webgl");
        }
        let egl = Egl::candidates().unwrap().find_map(Result::ok).unwrap();
        // SAFETY: the context is current, and the addresses are those of its functions.
        let gl = Arc::new(unsafe { glow::Context::from_loader_function(|name| egl.address(name)) });
        // SAFETY: plain object creation.
        let (array, sampler) = unsafe { (gl.create_vertex_array().unwrap(), gl.create_sampler().unwrap()) };
        let meddle = || {
            // SAFETY: plain state, and objects of this context.
            unsafe {
                for test in [glow::BLEND, glow::CULL_FACE, glow::DEPTH_TEST, glow::SCISSOR_TEST, glow::STENCIL_TEST] {
                    gl.enable(test);
                }
                gl.cull_face(glow::FRONT_AND_BACK);
                gl.blend_func(glow::ZERO, glow::ZERO);
                gl.scissor(0, 0, 0, 0);
                gl.color_mask(false, true, false, true);
                gl.bind_vertex_array(Some(array));
                gl.bind_sampler(0, Some(sampler));
                gl.active_texture(glow::TEXTURE7);
            }
        };
        meddle();
        let webgl = WebGl::new(gl.clone(), Options::default()).unwrap();
        let mut graph = Graph::new();
        let x = graph.input("x", &[2, 6], DType::F32).unwrap();
        let y = graph.push(Unary { kind: UnaryKind::Neg }, &[x]).unwrap();
        graph.output(y, "y").unwrap();
        let plan = webgl.plan(graph).unwrap();
        meddle();
        let create = |(_, tensor)| webgl.create(&StorageDesc::of(tensor)).unwrap();
        let storages: Vec<_> = plan.graph().externals().map(create).collect();
        meddle();
        let mut program = webgl.compile(&plan, &storages).unwrap();
        meddle();
        let values: Vec<f32> = (1u8..13).map(f32::from).collect();
        webgl.write(storages[0], 0, bytemuck::cast_slice(&values)).unwrap();
        meddle();
        program.step(&StepParams::at(0, 2)).unwrap();
        let bound = [glow::FRAMEBUFFER_BINDING, glow::VERTEX_ARRAY_BINDING];
        // SAFETY: queries.
        let (bound, unit) =
            unsafe { (bound.map(|name| gl.get_parameter_i32(name)), gl.get_parameter_i32(glow::ACTIVE_TEXTURE)) };
        assert_eq!((bound, unit as u32), ([0, 0], glow::TEXTURE0));
        meddle();
        let read = webgl.read(storages[1], 0, 2).unwrap();
        let mut bytes = [0; 48];
        while !webgl.try_read(read, &mut bytes).unwrap() {
            meddle();
        }
        assert_eq!(bytemuck::cast_slice::<u8, f32>(&bytes), values.iter().map(|x| -x).collect::<Vec<_>>());
        // SAFETY: a query.
        assert_eq!(unsafe { gl.get_error() }, glow::NO_ERROR);
    }
}
