//! A backend on which one call fails.

use std::cell::Cell;
use std::rc::Rc;

use backend_api::{
    Backend, BackendInfo, Cover, Error, Graph, Held, KernelInfo, Matcher, Part, Piece, Plan, Program, ReadId, Stats,
    StepParams, StorageDesc, StorageId, Tensor, Unsupported,
};

use crate::ladder::Candidate;
use crate::ladder::SelectOptions;
use crate::native::block_on;

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum How {
    /// The device is lost: this call and all later ones fail.
    Lost,
    OutOfMemory,
    Driver,
}

/// Counts calls, and makes one of them fail.
pub struct Fault {
    /// Index of the call that fails, counting those to create, write, read, compile and step.
    pub at: usize,
    pub how: How,
    /// Calls so far.
    pub calls: Cell<usize>,
}

impl Fault {
    fn call(&self) -> Result<(), Error> {
        let call = self.calls.replace(self.calls.get() + 1);
        match self.how {
            How::Lost if call >= self.at => Err(Error::Lost("a test".into())),
            How::OutOfMemory if call == self.at => Err(Error::OutOfMemory { what: "a test".into(), bytes: 1 }),
            How::Driver if call == self.at => Err(Error::Driver("a test".into())),
            _ => Ok(()),
        }
    }
}

pub struct Failing {
    pub inner: Rc<dyn Backend>,
    pub fault: Rc<Fault>,
}

impl Backend for Failing {
    fn info(&self) -> &BackendInfo {
        self.inner.info()
    }
    fn matchers(&self) -> &[Matcher] {
        self.inner.matchers()
    }
    fn supports(&self, graph: &Graph, cover: &Cover) -> Result<(), Unsupported> {
        self.inner.supports(graph, cover)
    }
    fn slot_size(&self, tensor: &Tensor) -> u64 {
        self.inner.slot_size(tensor)
    }
    fn equal_results(&self) -> bool {
        self.inner.equal_results()
    }
    fn storage_bytes(&self, desc: &StorageDesc) -> Result<u64, Error> {
        self.inner.storage_bytes(desc)
    }
    fn create(&self, desc: &StorageDesc) -> Result<StorageId, Error> {
        self.fault.call()?;
        self.inner.create(desc)
    }
    fn view(&self, id: StorageId, first_row: usize, rows: usize) -> Result<StorageId, Error> {
        self.inner.view(id, first_row, rows)
    }
    fn write(&self, id: StorageId, first_row: usize, bytes: &[u8]) -> Result<(), Error> {
        self.fault.call()?;
        self.inner.write(id, first_row, bytes)
    }
    fn read(&self, id: StorageId, first_row: usize, rows: usize) -> Result<ReadId, Error> {
        self.fault.call()?;
        self.inner.read(id, first_row, rows)
    }
    fn try_read(&self, read: ReadId, out: &mut [u8]) -> Result<bool, Error> {
        // The number of polls depends on the device's speed, so only the successful one counts.
        let done = self.inner.try_read(read, out)?;
        if done {
            self.fault.call()?;
        }
        Ok(done)
    }
    fn destroy(&self, id: StorageId) {
        self.inner.destroy(id);
    }
    fn compile_sequences(&self, plan: &Plan, sequences: &[&[StorageId]]) -> Result<Box<dyn Program>, Error> {
        self.fault.call()?;
        let inner = self.inner.compile_sequences(plan, sequences)?;
        Ok(Box::new(FailingProgram { inner, fault: self.fault.clone() }))
    }
    fn ready(&self) -> Result<bool, Error> {
        self.inner.ready()
    }
    fn idle(&self) -> Result<bool, Error> {
        self.inner.idle()
    }
    fn stats(&self) -> Stats {
        self.inner.stats()
    }
}

struct FailingProgram {
    inner: Box<dyn Program>,
    fault: Rc<Fault>,
}

impl Program for FailingProgram {
    fn step(&mut self, params: &StepParams) -> Result<(), Error> {
        self.fault.call()?;
        self.inner.step(params)
    }
    fn steps(&mut self, runs: &[StepParams]) -> Result<(), Error> {
        self.fault.call()?;
        self.inner.steps(runs)
    }
    fn pieces(&self) -> &[Piece] {
        self.inner.pieces()
    }
    fn part(&mut self, params: &StepParams, part: &Part) -> Result<(), Error> {
        self.fault.call()?;
        self.inner.part(params, part)
    }
    fn kernels(&self) -> Vec<KernelInfo> {
        self.inner.kernels()
    }
    fn held(&self) -> Vec<Held> {
        self.inner.held()
    }
}

/// Opens a candidate by name; prints a line if it is not available.
pub fn rung(name: &str) -> Option<Rc<dyn Backend>> {
    let options = SelectOptions::default();
    match block_on(Candidate::named(name, &options)?.open(&options)) {
        Ok(backend) => Some(Rc::from(backend)),
        Err(error) => {
            println!("not run, because {name} is not there: {error}");
            None
        }
    }
}
