//! Linked programs.

use super::{CODEBOOK_BINDING, CODEBOOKS, DENSE_SAMPLERS, Gl, PARAMS_BINDING, STEP_BINDING, WEIGHT_SAMPLERS, driver};
use backend_api::Error;
use glow::HasContext;
use std::rc::Rc;

/// A linked program.
pub(crate) struct Program {
    gl: Rc<Gl>,
    pub(super) raw: glow::Program,
    parts: [glow::Shader; 2],
}

impl Gl {
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
            let codebooks = CODEBOOKS.into_iter().zip(CODEBOOK_BINDING..);
            for (block, binding) in [("Params", PARAMS_BINDING), ("Step", STEP_BINDING)].into_iter().chain(codebooks) {
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
        if let Ok(_entered) = self.gl.enter() {
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
