//! How weights get to the device in browsers: through memory that is mapped, copied from and mapped again. For what
//! `writeBuffer` is given a browser makes new memory, which takes several times as long as copying it.

use crate::backend::{Shared, count};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Bytes of a piece of such memory.
pub const SIZE: u64 = 4 << 20;
/// Pieces at most: what is written while the device has not taken in so much goes by `writeBuffer`.
const MOST: usize = 8;
/// Fewer bytes are not worth it.
const LEAST: u64 = 64 << 10;
/// Alignment of ranges of mapped memory.
const ALIGN: u64 = 8;

/// The pieces.
#[derive(Default)]
pub struct Staging {
    /// Mapped, to be written to.
    free: Rc<RefCell<Vec<wgpu::Buffer>>>,
    made: Rc<Cell<usize>>,
    open: RefCell<Option<Open>>,
}

/// A piece with bytes that are not on their way yet.
struct Open {
    memory: wgpu::Buffer,
    /// Its bytes, asked for once: a device that is lost takes them away, and to ask for them again then is an exception.
    bytes: js_sys::Uint8Array,
    used: u64,
    copies: wgpu::CommandEncoder,
}

impl Staging {
    /// Takes bytes for a buffer, which are there for whatever is submitted later; false if they are for `writeBuffer`.
    pub fn write(&self, shared: &Shared, buffer: &wgpu::Buffer, offset: u64, bytes: &[u8]) -> bool {
        let len = bytes.len() as u64;
        let suits = (LEAST..=SIZE).contains(&len) && (offset | len).is_multiple_of(wgpu::COPY_BUFFER_ALIGNMENT);
        let is_full = |open: &Open| open.used + len > SIZE;
        if !suits || self.open.borrow().as_ref().is_some_and(is_full) {
            self.flush(shared);
        }
        if !suits {
            return false;
        }
        let Some(mut open) = self.open.take().or_else(|| self.begin(shared)) else { return false };
        if u64::from(open.bytes.length()) != SIZE {
            // The device was lost, which whoever asks is told.
            self.made.set(self.made.get() - 1);
            return false;
        }
        // No more than SIZE, as is `len`.
        let used = open.used as u32;
        open.bytes.subarray(used, used + len as u32).copy_from(bytes);
        open.copies.copy_buffer_to_buffer(&open.memory, open.used, buffer, offset, Some(len));
        open.used = (open.used + len).next_multiple_of(ALIGN);
        self.open.replace(Some(open));
        true
    }

    fn begin(&self, shared: &Shared) -> Option<Open> {
        let memory = self.free.borrow_mut().pop().or_else(|| self.make(shared))?;
        let Ok(mapped) = memory.get_mapped_range(..) else {
            // The device was lost.
            self.made.set(self.made.get() - 1);
            return None;
        };
        let bytes = mapped.as_uint8array().clone();
        let copies = shared.device.create_command_encoder(&Default::default());
        Some(Open { memory, bytes, used: 0, copies })
    }

    fn make(&self, shared: &Shared) -> Option<wgpu::Buffer> {
        if self.made.get() == MOST {
            return None;
        }
        self.made.set(self.made.get() + 1);
        count(&shared.counters.objects, 1);
        count(&shared.counters.memory, SIZE);
        let usage = wgpu::BufferUsages::MAP_WRITE | wgpu::BufferUsages::COPY_SRC;
        let (label, size) = (Some("an upload"), SIZE);
        Some(shared.device.create_buffer(&wgpu::BufferDescriptor { label, size, usage, mapped_at_creation: true }))
    }

    /// Sends what was taken on its way.
    pub fn flush(&self, shared: &Shared) {
        let Some(Open { memory, copies, .. }) = self.open.take() else { return };
        memory.unmap();
        shared.queue.submit([copies.finish()]);
        count(&shared.counters.submits, 1);
        let (free, made, back) = (self.free.clone(), self.made.clone(), memory.clone());
        memory.map_async(wgpu::MapMode::Write, .., move |mapped| match mapped {
            Ok(()) => free.borrow_mut().push(back),
            Err(_) => made.set(made.get() - 1),
        });
    }

    /// Frees what is not in use: hardly anything is written once a program runs.
    pub fn clear(&self, shared: &Shared) {
        for memory in self.free.take() {
            self.made.set(self.made.get() - 1);
            shared.free(&memory);
        }
    }
}
