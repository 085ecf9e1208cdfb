//! A step whose dispatches the device times one by one. It makes objects, so ordinary steps have no part in it.

use crate::backend::{Shared, count};
use crate::program::Dispatch;
use backend_api::{Error, Profile};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

const PENDING: u8 = 0;
const MAPPED: u8 = 1;
const FAILED: u8 = 2;

/// Bytes of one timestamp.
const TICKS: usize = size_of::<u64>();

/// The times of one step, under way.
struct GpuProfile {
    shared: Rc<Shared>,
    resolved: wgpu::Buffer,
    staging: wgpu::Buffer,
    state: Arc<AtomicU8>,
    /// *Units*: nanoseconds a tick.
    period: f64,
}

/// Whether the device has timestamps, and as many as so many dispatches take.
pub fn possible(shared: &Shared, dispatches: usize) -> bool {
    let most = wgpu::QUERY_SET_MAX_QUERIES as usize / 2;
    shared.device.features().contains(wgpu::Features::TIMESTAMP_QUERY) && (1..=most).contains(&dispatches)
}

/// Encodes and submits all dispatches, each in a pass of its own with a timestamp before and after it.
///
/// *Errors*: out of memory, device lost.
pub fn begin(shared: &Rc<Shared>, dispatches: &[Dispatch], sequence: u32) -> Result<Box<dyn Profile>, Error> {
    let stamps = 2 * dispatches.len() as u32;
    let bytes = u64::from(stamps) * TICKS as u64;
    let query_set = shared.device.create_query_set(&wgpu::QuerySetDescriptor {
        label: Some("profile"),
        ty: wgpu::QueryType::Timestamp,
        count: stamps,
    });
    count(&shared.counters.objects, 1);
    let usage = wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC;
    let resolved = shared.buffer("timestamps", bytes, usage)?;
    let staging = match shared.buffer("a profile", bytes, wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST) {
        Ok(staging) => staging,
        Err(error) => {
            shared.free(&resolved);
            return Err(error);
        }
    };
    let mut encoder = shared.device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: None });
    for (dispatch, first) in dispatches.iter().zip((0..).step_by(2)) {
        let timestamp_writes = Some(wgpu::ComputePassTimestampWrites {
            query_set: &query_set,
            beginning_of_pass_write_index: Some(first),
            end_of_pass_write_index: Some(first + 1),
        });
        let label = Some(dispatch.info.name.as_str());
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label, timestamp_writes });
        dispatch.encode(&mut pass, sequence);
    }
    encoder.resolve_query_set(&query_set, 0..stamps, &resolved, 0);
    encoder.copy_buffer_to_buffer(&resolved, 0, &staging, 0, Some(bytes));
    shared.submit(encoder);
    let state: Arc<AtomicU8> = Arc::default();
    let told = state.clone();
    staging.map_async(wgpu::MapMode::Read, .., move |result| {
        told.store(if result.is_ok() { MAPPED } else { FAILED }, Ordering::Release);
    });
    let period = f64::from(shared.queue.get_timestamp_period());
    Ok(Box::new(GpuProfile { shared: shared.clone(), resolved, staging, state, period }))
}

impl Profile for GpuProfile {
    fn try_read(&mut self) -> Result<Option<Vec<f64>>, Error> {
        self.shared.poll()?;
        match self.state.load(Ordering::Acquire) {
            PENDING => Ok(None),
            MAPPED => {
                let view = self.staging.get_mapped_range(..).map_err(|e| Error::Driver(e.to_string()))?;
                let stamp = |bytes: &[u8]| bytes.iter().rev().fold(0u64, |ticks, byte| ticks << 8 | u64::from(*byte));
                let pairs = view.chunks_exact(2 * TICKS).map(|pair| {
                    let (begin, end) = pair.split_at(TICKS);
                    // Coarse clocks of browsers may put the end before the beginning.
                    stamp(end).saturating_sub(stamp(begin)) as f64 * self.period / 1e6
                });
                Ok(Some(pairs.collect()))
            }
            _ => Err(Error::Lost("the times of a step could not be read".into())),
        }
    }
}

impl Drop for GpuProfile {
    fn drop(&mut self) {
        self.shared.free(&self.staging);
        self.shared.free(&self.resolved);
    }
}
