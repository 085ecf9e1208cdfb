//! Where a decode step spends its time, by the device's own clock.

use backend_api::{KernelInfo, Role};
use model::{Host, ModelError};
use serde::Serialize;

use super::Spread;

/// Steps whose kernels are timed: the middle of their times counts.
const STEPS: usize = 9;
/// Steps that take longer are timed only once or twice.
///
/// *Units*: milliseconds.
const ENOUGH_MS: f64 = 2000.0;

/// All dispatches or draws of one kernel in a decode step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KernelTime {
    /// The kernel with its variant.
    pub kernel: String,
    /// How many of them a step has.
    pub count: usize,
    /// What all of them take.
    pub ms: f64,
    /// Bytes that all of them read and write, if they multiply with matrices: of others it depends on the position.
    pub bytes: Option<u64>,
}

/// The time of each kernel of a step, from several runs of `once`, which takes one step and gives the device's times of its
/// kernels, such as [`Session::profile`](model::Session::profile); none if the device has no clock for them.
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

/// Sums up by kernel; what takes longest comes first.
pub(super) fn by_kernel(kernels: &[KernelInfo], times: &[f64]) -> Vec<KernelTime> {
    let mut sums: Vec<KernelTime> = Vec::new();
    for (KernelInfo { name, bytes, role, .. }, ms) in kernels.iter().zip(times) {
        let bytes = (*role == Role::Matmul).then_some(*bytes);
        match sums.iter_mut().find(|sum| sum.kernel == *name) {
            Some(sum) => {
                sum.count += 1;
                sum.ms += ms;
                sum.bytes = sum.bytes.zip(bytes).map(|(sum, bytes)| sum + bytes);
            }
            None => sums.push(KernelTime { kernel: name.clone(), count: 1, ms: *ms, bytes }),
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
            role,
            subject: String::new(),
            made: vec![],
        };
        let kernels = [info("a", Role::Matmul), info("b", Role::Attention), info("a", Role::Matmul)];
        let sums = by_kernel(&kernels, &[1.0, 5.0, 2.0]);
        let kernel = |kernel: &str, count, ms, bytes| KernelTime { kernel: kernel.into(), count, ms, bytes };
        assert_eq!(sums, [kernel("b", 1, 5.0, None), kernel("a", 2, 3.0, Some(20))]);
    }
}
