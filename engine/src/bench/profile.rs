//! Profile of a decode step, by the device's clock.

use backend_api::{KernelInfo, Role};
use model::{Host, ModelError};
use serde::Serialize;

use super::Spread;

/// Number of profiled steps; the median of each kernel's times counts.
const STEPS: usize = 9;
/// Time after which no more steps are profiled: slow steps run only once or twice.
///
/// *Units*: milliseconds.
const ENOUGH_MS: f64 = 2000.0;

/// All dispatches or draws of a kernel in a decode step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KernelTime {
    /// The kernel with its variant.
    pub kernel: String,
    /// Number of dispatches or draws.
    pub count: usize,
    /// Time of all of them, in milliseconds.
    pub ms: f64,
    /// Bytes that all of them read and write, for matmuls; for other kernels it depends on the position.
    pub bytes: Option<u64>,
    /// Floating-point operations of all of them, for matmuls.
    pub flops: Option<u64>,
}

/// Returns the median time of each kernel of a step, from several calls of `once`, which runs one step and returns the
/// device's times of its kernels, such as [`Session::profile`](model::Session::profile). Returns nothing if the device
/// has no clock for them.
///
/// *Units*: milliseconds.
///
/// *Errors*: those of `once`.
pub async fn profile(
    host: &dyn Host,
    mut once: impl AsyncFnMut() -> Result<Option<Vec<f64>>, ModelError>,
) -> Result<Option<Vec<f64>>, ModelError> {
    let (start, mut runs) = (host.now_ms(), Vec::with_capacity(STEPS));
    while runs.is_empty() || (runs.len() < STEPS && host.now_ms() - start < ENOUGH_MS) {
        match once().await? {
            Some(times) => runs.push(times),
            None => return Ok(None),
        }
    }
    let kernels = runs.first().map_or(0, Vec::len);
    let middle = |at: usize| Spread::of(runs.iter().filter_map(|times| times.get(at)).copied().collect()).median;
    Ok(Some((0..kernels).map(middle).collect()))
}

/// Sums times by kernel, longest first.
pub(super) fn by_kernel(kernels: &[KernelInfo], times: &[f64]) -> Vec<KernelTime> {
    let mut sums: Vec<KernelTime> = Vec::new();
    for (KernelInfo { name, bytes, flops, role, .. }, ms) in kernels.iter().zip(times) {
        let [bytes, flops] = [bytes, flops].map(|count| (*role == Role::Matmul).then_some(*count));
        match sums.iter_mut().find(|sum| sum.kernel == *name) {
            Some(sum) => {
                sum.count += 1;
                sum.ms += ms;
                sum.bytes = sum.bytes.zip(bytes).map(|(sum, bytes)| sum + bytes);
                sum.flops = sum.flops.zip(flops).map(|(sum, flops)| sum + flops);
            }
            None => sums.push(KernelTime { kernel: name.clone(), count: 1, ms: *ms, bytes, flops }),
        }
    }
    sums.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_summed_by_name() {
        let info = |name: &str, role| KernelInfo {
            name: name.into(),
            grid: [1; 3],
            bytes: 10,
            flops: 30,
            role,
            subject: String::new(),
            made: vec![],
        };
        let kernels = [info("a", Role::Matmul), info("b", Role::Attention), info("a", Role::Matmul)];
        let sums = by_kernel(&kernels, &[1.0, 5.0, 2.0]);
        let kernel =
            |kernel: &str, count, ms, bytes, flops| KernelTime { kernel: kernel.into(), count, ms, bytes, flops };
        assert_eq!(sums, [kernel("b", 1, 5.0, None, None), kernel("a", 2, 3.0, Some(20), Some(60))]);
    }
}
