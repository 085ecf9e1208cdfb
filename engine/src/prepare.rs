//! Sessions and embedders whose programs are compiled before the weights are loaded.

use std::rc::Rc;

use model::{Embedder, Head, Model, ModelError, Session};

/// Prompt lengths to compile for, in tokens: a short prompt, which uses the kernels of decoding, a longer one, and one
/// with the kernels of all longer prompts.
const PROMPTS: [usize; 3] = [2, 16, 64];

/// A session, or an embedder.
pub(crate) enum Prepared {
    Text(Box<Session>),
    Embeddings(Box<Embedder>),
}

impl Prepared {
    /// Compiles the programs of short prompts, so that the first answer does not wait for them. A software device takes
    /// seconds for each program, so there only the shortest prompt is prepared.
    ///
    /// *Errors*: shader or driver errors, memory, the device was lost.
    pub fn new(model: &Rc<Model>, capacity: Option<usize>) -> Result<Prepared, ModelError> {
        let info = model.backend().info();
        let prompts = if info.software { &PROMPTS[..1] } else { &PROMPTS };
        if model.recipe().pooling().is_some() {
            let mut embedder = Embedder::new(model.clone())?;
            prompts.iter().try_for_each(|tokens| embedder.prepare(*tokens))?;
            return Ok(Prepared::Embeddings(Box::new(embedder)));
        }
        let mut session = new_session(model, capacity)?;
        session.set_short_prompt(info.short_prompt);
        // A model that makes no text is prepared for none.
        let prompts = if model.recipe().is_causal() { prompts } else { &[] };
        prompts.iter().try_for_each(|tokens| session.prepare_prompt(*tokens, Head::GREEDY))?;
        Ok(Prepared::Text(Box::new(session)))
    }
}

/// Makes an empty session, with room for so many tokens if a number is given.
///
/// *Errors*: as [`Session::new`].
pub(crate) fn new_session(model: &Rc<Model>, capacity: Option<usize>) -> Result<Session, ModelError> {
    match capacity {
        Some(tokens) => Session::with_capacity(model.clone(), tokens),
        None => Session::new(model.clone()),
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::*;
    use crate::native::{NativeHost, block_on};
    use crate::recover::failing::{Failing, Fault, How, rung};
    use crate::{Engine, EngineOptions, Progress};
    use model::gguf::ReadFuture;
    use model::{ByteSource, BytesSource};
    use std::cell::{Cell, RefCell};

    /// A model's bytes, with a note of how many calls the backend had had before each read.
    struct Noted {
        bytes: BytesSource<&'static [u8]>,
        fault: Rc<Fault>,
        calls: RefCell<Vec<usize>>,
    }

    impl ByteSource for Noted {
        fn len(&self) -> u64 {
            self.bytes.len()
        }

        fn read_at<'a>(&'a self, offset: u64, buf: &'a mut [u8]) -> ReadFuture<'a> {
            self.calls.borrow_mut().push(self.fault.calls.get());
            self.bytes.read_at(offset, buf)
        }
    }

    /// Returns the calls before the first weight was read, after all weights were loaded, and after a session had its
    /// programs.
    fn calls(name: &str, prepare: bool) -> Option<[usize; 3]> {
        let fault = Rc::new(Fault { at: usize::MAX, how: How::Driver, calls: Cell::new(0) });
        let backend = Box::new(Failing { inner: rung(name)?, fault: fault.clone() });
        let bytes = BytesSource(include_bytes!("../../models/gab-q4_0.gguf").as_slice());
        let source = Noted { bytes, fault: fault.clone(), calls: RefCell::default() };
        let options = EngineOptions { n_ctx: Some(64), prepare, ..Default::default() };
        let mut phases = Vec::new();
        let mut progress = |at: Progress| phases.push(std::mem::discriminant(&at));
        let host = Rc::new(NativeHost::default());
        let engine = block_on(Engine::with_backend(backend, &source, &options, host, &mut progress)).unwrap();
        phases.dedup();
        assert_eq!(phases.len(), if prepare { 3 } else { 2 }, "the header, programs, weights");
        let first = source.calls.borrow().iter().copied().find(|calls| *calls > 0).unwrap();
        let loaded = fault.calls.get();
        let mut session = engine.session().unwrap();
        session.prepare_prompt(PROMPTS[0], Head::GREEDY).unwrap();
        Some([first, loaded, fault.calls.get()])
    }

    #[test]
    fn programs_are_compiled_before_the_first_weight_is_read_and_not_again() {
        for name in ["cpu", "webgpu", "webgl packed"] {
            let Some([first, loaded, all]) = calls(name, true) else { continue };
            let [first_without, loaded_without, all_without] = calls(name, false).unwrap();
            assert_eq!(all, loaded, "{name}: the session is there");
            assert!(first > first_without && all_without > loaded_without, "{name}");
            assert_eq!(loaded - first, loaded_without - first_without, "{name}: weights alone are written meanwhile");
        }
    }
}
