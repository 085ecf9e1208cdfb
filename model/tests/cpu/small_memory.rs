//! Models that do not fit a device's memory.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use anygpu_model::{BytesSource, GenerateOptions, Gguf, Model, ModelError, Recipe, Session};
use backend_api::run::NativeHost;
use backend_api::{
    Backend, BackendInfo, Cover, Error, Graph, Matcher, Plan, Program, ReadId, Stats, StorageDesc, StorageId, Tensor,
    Unsupported,
};
use reference_cpu::{Cpu, Options};

use crate::common::{block_on, models};

/// CPU backend with memory for so many elements.
struct Small {
    cpu: Cpu,
    left: Cell<usize>,
    held: RefCell<HashMap<StorageId, usize>>,
}

impl Small {
    fn with(left: usize) -> Rc<Small> {
        let cpu = Cpu::new(Options { fast: false, ..Default::default() });
        Rc::new(Small { cpu, left: Cell::new(left), held: RefCell::default() })
    }
}

impl Backend for Small {
    fn info(&self) -> &BackendInfo {
        self.cpu.info()
    }

    fn matchers(&self) -> &[Matcher] {
        self.cpu.matchers()
    }

    fn supports(&self, graph: &Graph, cover: &Cover) -> Result<(), Unsupported> {
        self.cpu.supports(graph, cover)
    }

    fn slot_size(&self, tensor: &Tensor) -> u64 {
        self.cpu.slot_size(tensor)
    }

    fn storage_bytes(&self, desc: &StorageDesc) -> Result<u64, Error> {
        self.cpu.storage_bytes(desc)
    }

    fn create(&self, desc: &StorageDesc) -> Result<StorageId, Error> {
        match self.left.get().checked_sub(desc.shape.len()) {
            Some(left) => self.left.set(left),
            None => return Err(Error::OutOfMemory { what: desc.name.clone(), bytes: desc.shape.len() as u64 }),
        }
        let id = self.cpu.create(desc)?;
        self.held.borrow_mut().insert(id, desc.shape.len());
        Ok(id)
    }

    fn write(&self, id: StorageId, first_row: usize, rows: &[u8]) -> Result<(), Error> {
        self.cpu.write(id, first_row, rows)
    }

    fn read(&self, id: StorageId, first_row: usize, rows: usize) -> Result<ReadId, Error> {
        self.cpu.read(id, first_row, rows)
    }

    fn try_read(&self, read: ReadId, out: &mut [u8]) -> Result<bool, Error> {
        self.cpu.try_read(read, out)
    }

    fn destroy(&self, id: StorageId) {
        self.left.set(self.left.get() + self.held.borrow_mut().remove(&id).unwrap_or(0));
        self.cpu.destroy(id);
    }

    fn compile_sequences(&self, plan: &Plan, sequences: &[&[StorageId]]) -> Result<Box<dyn Program>, Error> {
        self.cpu.compile_sequences(plan, sequences)
    }

    fn idle(&self) -> Result<bool, Error> {
        self.cpu.idle()
    }

    fn stats(&self) -> Stats {
        self.cpu.stats()
    }
}

#[test]
fn experts_that_do_not_fit_are_refused_with_the_figures() {
    let bytes = models("fixtures/mixtral-4x2.gguf");
    let recipe = Recipe::new(&Gguf::from_bytes(&bytes).unwrap(), None).unwrap();
    // Memory suffices up to the gates of the second block's experts.
    let fits = recipe.weights().iter().take_while(|weight| weight.name != "blk.1.ffn_up_exps.weight");
    let small = Small::with(fits.map(|weight| weight.shape.iter().product::<usize>()).sum());
    let matrices = 4 * 24 * 20 * 4;
    let loaded =
        block_on(Model::load(&BytesSource(bytes), recipe, small.clone(), &NativeHost::default(), &mut |_, _| {}));
    let Err(error) = loaded else { panic!("it fits") };
    assert_eq!(error, ModelError::Experts { bytes: 6 * matrices, fits: 4 * matrices });
    assert!(error.to_string().contains("46080 bytes, of which 30720 fit"), "{error}");
    assert_eq!(small.stats().memory, 0, "what was made is freed");
    assert_eq!(small.stats().uploaded, 0, "no bytes moved");
}

#[test]
fn a_cache_that_cannot_grow_leaves_a_session_that_goes_on_with_short_texts() {
    let bytes = models("fixtures/llama-gqa-tied.gguf");
    let recipe = Recipe::new(&Gguf::from_bytes(&bytes).unwrap(), Some(256)).unwrap();
    let (small, host) = (Small::with(usize::MAX), NativeHost::default());
    let model =
        block_on(Model::load(&BytesSource(bytes), recipe, small.clone(), &host, &mut |_, _| {})).map(Rc::new).unwrap();
    let mut session = Session::with_capacity(model.clone(), 16).unwrap();
    let mut answer = |max_tokens| {
        let options = GenerateOptions {
            max_tokens: Some(max_tokens),
            stop_tokens: Some(Vec::new()),
            ..GenerateOptions::default()
        };
        let prompt = session.resume(&[3, 1, 4, 1, 5]).to_vec();
        block_on(session.generate(&prompt, &options, None, &host, &mut |_| {})).map(|done| done.tokens)
    };
    let short = answer(8).unwrap();
    // Some of the caches can grow, but not all.
    small.left.set(3 * 16 * 16);
    let refused = answer(30);
    assert!(matches!(refused, Err(ModelError::Backend(Error::OutOfMemory { .. }))), "{refused:?}");
    assert_eq!(answer(8).unwrap(), short, "short texts fit still");
    small.left.set(usize::MAX / 2);
    let long = answer(30).unwrap();
    assert_eq!(long[..8], short, "and long ones once there is memory");
}
