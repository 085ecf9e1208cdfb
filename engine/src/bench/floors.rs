//! Lower bounds of a decode step's time on this device (roofline), as measured with the backend's own kernels.

use backend_api::case::Fill;
use backend_api::op::{MatMul, Unary, UnaryKind};
use backend_api::{Backend, DType, Error, Format, Graph};
use model::Host;
use serde::Serialize;

use super::Spread;
use crate::timing;

/// Columns of the timed weight.
const COLS: usize = 4096;
/// Sizes of the timed weight, tried in turn until one takes long enough. The last one is larger than any cache.
///
/// *Units*: bytes.
const SIZES: [usize; 3] = [8 << 20, 64 << 20, 256 << 20];
/// Time of a matvec that is long enough.
///
/// *Units*: milliseconds.
const LONG_MS: f64 = 2.0;
/// Formats that may be read fastest: plain floats, half the bytes, and scales in a plane of their own.
const FORMATS: [Format; 3] = [Format::F32, Format::F16, Format::Q8_0];
/// Operators of the long chain; each one needs the result of the one before.
const CHAIN: usize = 129;
/// Time to spend on a measurement, about.
///
/// *Units*: milliseconds.
const ENOUGH_MS: f64 = 60.0;
/// Most steps that are submitted before a read.
const STEPS: usize = 256;
/// Elements of a tiny tensor: 256 bytes.
const TINY: usize = 64;
/// Number of reads whose latency is measured.
const READS: usize = 21;

/// Read bandwidth of a weight format.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Bandwidth {
    /// The format of the weight.
    pub format: &'static str,
    /// The size of the weight, in bytes.
    pub bytes: usize,
    /// The time of one matvec, in milliseconds.
    pub ms: f64,
    /// The bandwidth, in billions of bytes a second.
    pub gb_per_s: f64,
}

/// Lower bounds of this device. They are measured with the backend's own kernels, so the hardware may be capable of
/// more.
#[derive(Debug, Clone, Serialize)]
pub struct Floors {
    /// Read bandwidth: the best one of `read`.
    ///
    /// *Units*: billions of bytes a second.
    pub read_gb_per_s: f64,
    /// Read bandwidth of each of a few formats.
    pub read: Vec<Bandwidth>,
    /// Time of one more dispatch or draw in a step, which needs the result of the one before and does next to nothing.
    ///
    /// *Units*: microseconds.
    pub dispatch_us: f64,
    /// Time of a step with one such dispatch, while other steps are submitted.
    ///
    /// *Units*: microseconds.
    pub step_us: f64,
    /// Latency of a read of 256 bytes from an idle device.
    ///
    /// *Units*: milliseconds.
    pub readback_ms: Spread,
}

impl Floors {
    /// Returns the least time of reading so many bytes.
    ///
    /// *Units*: milliseconds.
    pub fn read_ms(&self, bytes: f64) -> f64 {
        bytes / (self.read_gb_per_s * 1e6)
    }

    /// Returns the least time of so many dispatches.
    ///
    /// *Units*: milliseconds.
    pub fn dispatch_ms(&self, dispatches: f64) -> f64 {
        dispatches * self.dispatch_us / 1e3
    }
}

/// Measures the floors. A weight that does not fit the device ends the search for the bandwidth, with the results of
/// smaller ones.
///
/// *Errors*: those of the backend.
pub async fn floors(backend: &dyn Backend, host: &dyn Host) -> Result<Floors, Error> {
    let mut read = Vec::new();
    for format in FORMATS {
        read.push(bandwidth(backend, format, host).await?);
        host.turn().await;
    }
    let (one, many) = (chain(backend, 1, host).await?, chain(backend, CHAIN, host).await?);
    Ok(Floors {
        read_gb_per_s: read.iter().map(|r| r.gb_per_s).fold(0.0, f64::max),
        read,
        dispatch_us: 1e3 * (many - one).max(0.0) / (CHAIN - 1) as f64,
        step_us: 1e3 * one,
        readback_ms: readback(backend, host).await?,
    })
}

async fn bandwidth(backend: &dyn Backend, format: Format, host: &dyn Host) -> Result<Bandwidth, Error> {
    let mut found: Option<Bandwidth> = None;
    for size in SIZES {
        let row = format.row_bytes(COLS)?;
        let rows = size / row;
        let ms = match matvec(backend, format, rows, host).await {
            Ok(ms) => ms,
            Err(error) => return found.ok_or(error),
        };
        let bytes = rows * row;
        found = Some(Bandwidth { format: format.name(), bytes, ms, gb_per_s: bytes as f64 / ms / 1e6 });
        if ms >= LONG_MS {
            break;
        }
    }
    found.ok_or_else(|| Error::Invalid("no size of weights to measure with".into()))
}

/// Times one matvec with a weight of so many rows.
async fn matvec(backend: &dyn Backend, format: Format, rows: usize, host: &dyn Host) -> Result<f64, Error> {
    let mut graph = Graph::new();
    let x = graph.input("x", &[1, COLS], DType::F32)?;
    let w = graph.weight("w", &[rows, COLS], DType::Packed(format))?;
    let y = graph.push(MatMul, &[x, w])?;
    graph.output(y, "y")?;
    let mut rig = timing::rig(backend, &graph, &[Fill::Uniform(-1.0, 1.0), Fill::Blocks, Fill::Blocks])?;
    timing::step_ms(&mut rig, STEPS, ENOUGH_MS, host).await
}

/// Times a step of so many tiny operators.
async fn chain(backend: &dyn Backend, len: usize, host: &dyn Host) -> Result<f64, Error> {
    let mut graph = Graph::new();
    let mut x = graph.input("x", &[1, TINY], DType::F32)?;
    for _ in 0..len {
        x = graph.push(Unary { kind: UnaryKind::Neg }, &[x])?;
    }
    graph.output(x, "y")?;
    let mut rig = timing::rig(backend, &graph, &[Fill::Blocks, Fill::Blocks])?;
    timing::step_ms(&mut rig, STEPS, ENOUGH_MS, host).await
}

async fn readback(backend: &dyn Backend, host: &dyn Host) -> Result<Spread, Error> {
    let mut graph = Graph::new();
    let x = graph.input("x", &[1, TINY], DType::F32)?;
    let y = graph.push(Unary { kind: UnaryKind::Neg }, &[x])?;
    graph.output(y, "y")?;
    let mut rig = timing::rig(backend, &graph, &[Fill::Blocks, Fill::Blocks])?;
    // The first read allocates what later ones reuse.
    timing::time(&mut rig, 1, host).await?;
    let mut times = Vec::with_capacity(READS);
    for _ in 0..READS {
        times.push(timing::time(&mut rig, 0, host).await?);
    }
    Ok(Spread::of(times))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::{NativeHost, block_on};
    use reference_cpu::Cpu;

    #[test]
    fn floors_of_the_cpu_are_positive_and_finite() {
        let floors = block_on(floors(&Cpu::new(Default::default()), &NativeHost::default())).unwrap();
        assert_eq!(floors.read.len(), FORMATS.len());
        for value in [floors.read_gb_per_s, floors.step_us, floors.readback_ms.median] {
            assert!(value > 0.0 && value.is_finite(), "{floors:?}");
        }
        assert!(floors.dispatch_us >= 0.0 && floors.read.iter().all(|r| r.bytes >= SIZES[0] / 2));
    }

    #[test]
    fn floors_add_up_in_milliseconds() {
        let readback_ms = Spread::of(vec![1.0]);
        let floors = Floors { read_gb_per_s: 50.0, read: Vec::new(), dispatch_us: 4.0, step_us: 9.0, readback_ms };
        assert_eq!(floors.read_ms(100e6), 2.0);
        assert_eq!(floors.dispatch_ms(150.0), 0.6);
    }
}
