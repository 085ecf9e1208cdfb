//! Reads: staging buffers that are used again and again.

use crate::backend::{Shared, count};
use crate::fault::PATIENCE;
use backend_api::{Codec, Error, ReadId};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

const PENDING: u8 = 0;
const MAPPED: u8 = 1;
const FAILED: u8 = 2;

/// The smallest staging buffer; sizes are powers of two, so that reads of about one size share buffers.
const SMALLEST: u64 = 256;
/// Buffers that are kept for later reads: more are under way only while a text is saved.
const POOL: usize = 8;

struct Staging {
    buffer: wgpu::Buffer,
    state: Arc<AtomicU8>,
    /// How often the read was asked for after it had failed.
    failures: u32,
}

/// The rows of a read.
#[derive(Debug, Clone, Copy)]
pub struct Rows {
    /// Bytes on the device.
    pub device: u64,
    /// Bytes as the host gets them.
    pub host: u64,
    /// The codec and columns of rows that the device holds otherwise than the host.
    pub coded: Option<(Codec, usize)>,
}

/// The reads under way and the staging buffers that are free.
#[derive(Default)]
pub struct Reads {
    free: Vec<Staging>,
    pending: HashMap<u32, (Staging, Rows)>,
    next: u32,
}

impl Reads {
    /// Copies a range of a buffer and asks for it to be mapped.
    pub fn begin(&mut self, shared: &Shared, source: &wgpu::Buffer, offset: u64, rows: Rows) -> Result<ReadId, Error> {
        let bytes = rows.device;
        shared.faults.check_patiently("a read", bytes)?;
        let need = bytes.max(SMALLEST).next_power_of_two().min(bytes.max(1 << 20).next_multiple_of(16));
        let fits = self.free.iter().enumerate().filter(|(_, s)| s.buffer.size() >= need);
        let staging = match fits.min_by_key(|(_, s)| s.buffer.size()).map(|(at, _)| at) {
            Some(at) => self.free.swap_remove(at),
            None => {
                let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
                Staging { buffer: shared.buffer("a read", need, usage)?, state: Arc::default(), failures: 0 }
            }
        };
        staging.state.store(PENDING, Ordering::Release);
        let pending = shared.pending.borrow_mut().take();
        let mut encoder = pending.unwrap_or_else(|| shared.device.create_command_encoder(&Default::default()));
        if bytes > 0 {
            encoder.copy_buffer_to_buffer(source, offset, &staging.buffer, 0, Some(bytes));
        }
        shared.submit(encoder);
        let state = staging.state.clone();
        staging.buffer.map_async(wgpu::MapMode::Read, .., move |result| {
            state.store(if result.is_ok() { MAPPED } else { FAILED }, Ordering::Release);
        });
        shared.faults.check_patiently("a read", bytes)?;
        let id = self.next;
        self.next = id.wrapping_add(1);
        self.pending.insert(id, (staging, rows));
        Ok(ReadId(id))
    }

    /// Copies the bytes of a read that is done and frees its staging buffer.
    pub fn finish(&mut self, shared: &Shared, read: ReadId, out: &mut [u8]) -> Result<bool, Error> {
        let unknown = || Error::Invalid(format!("read {} is unknown; each read is finished once", read.0));
        let (staging, rows) = self.pending.get_mut(&read.0).ok_or_else(unknown)?;
        if out.len() as u64 != rows.host {
            return Err(Error::Invalid(format!(
                "the read has {} bytes, but room for {} was given",
                rows.host,
                out.len()
            )));
        }
        let state = staging.state.load(Ordering::Acquire);
        // What was read while an error is passed over is not given to anybody: it may be of a step that did not run.
        if state == PENDING || state == MAPPED && shared.faults.is_in_doubt() {
            return Ok(false);
        }
        if state == FAILED {
            staging.failures += 1;
            let fault = shared.faults.check_patiently("a read", rows.device).err();
            let is_early = staging.failures <= PATIENCE || shared.faults.is_in_doubt();
            if fault.is_none() && is_early {
                return Ok(false);
            }
            shared.free(&staging.buffer);
            self.pending.remove(&read.0);
            // Any other cause would have been reported as an error.
            return Err(fault.unwrap_or_else(|| Error::Lost("a read could not be mapped".into())));
        }
        let Ok(view) = staging.buffer.get_mapped_range(..) else {
            // The device was lost after it was mapped.
            staging.state.store(FAILED, Ordering::Release);
            return Ok(false);
        };
        if let Some(part) = view.get(..rows.device as usize) {
            match rows.coded {
                Some((codec, cols)) => out.copy_from_slice(&codec.to_host(cols, part)),
                None => out.copy_from_slice(part),
            }
        }
        drop(view);
        let (staging, rows) = self.pending.remove(&read.0).ok_or_else(unknown)?;
        staging.buffer.unmap();
        if self.free.len() < POOL {
            self.free.push(staging);
        } else {
            shared.free(&staging.buffer);
        }
        count(&shared.counters.read_back, rows.device);
        Ok(true)
    }
}
