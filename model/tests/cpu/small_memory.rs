//! A model that a device's memory cannot hold.

use std::cell::Cell;
use std::rc::Rc;

use anygpu_model::{BytesSource, Gguf, Model, ModelError, Recipe};
use backend_api::run::NativeHost;
use backend_api::{
    Backend, BackendInfo, Cover, Error, Graph, Matcher, Plan, Program, ReadId, Stats, StorageDesc, StorageId, Tensor,
    Unsupported,
};
use reference_cpu::{Cpu, Options};

use crate::common::{block_on, models};

/// The CPU with so many elements of memory.
struct Small {
    cpu: Cpu,
    left: Cell<usize>,
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
        self.cpu.create(desc)
    }

    fn write(&self, _: StorageId, _: usize, _: &[u8]) -> Result<(), Error> {
        panic!("bytes moved");
    }

    fn read(&self, id: StorageId, first_row: usize, rows: usize) -> Result<ReadId, Error> {
        self.cpu.read(id, first_row, rows)
    }

    fn try_read(&self, read: ReadId, out: &mut [u8]) -> Result<bool, Error> {
        self.cpu.try_read(read, out)
    }

    fn destroy(&self, id: StorageId) {
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
    // Up to the gates of the second block's experts, and the embedding besides.
    let fits = recipe.weights().iter().take_while(|weight| weight.name != "blk.1.ffn_up_exps.weight");
    let left = Cell::new(fits.map(|weight| weight.shape.iter().product::<usize>()).sum());
    let small = Rc::new(Small { cpu: Cpu::new(Options { fast: false, ..Default::default() }), left });
    let matrices = 4 * 24 * 20 * 4;
    let loaded =
        block_on(Model::load(&BytesSource(bytes), recipe, small.clone(), &NativeHost::default(), &mut |_, _| {}));
    let Err(error) = loaded else { panic!("it fits") };
    assert_eq!(error, ModelError::Experts { bytes: 6 * matrices, fits: 4 * matrices });
    assert!(error.to_string().contains("46080 bytes, of which 30720 fit"), "{error}");
    assert_eq!(small.stats().memory, 0, "what was made is freed");
}
