//! Profiles of steps, by the device's clock.

use backend_api::{Role, sort_by_key};
use model::{Host, ModelError, TracedKernel};
use serde::Serialize;

use super::Spread;

/// Number of profiled steps; the median of each kernel's times counts.
const STEPS: usize = 9;
/// Time after which no more steps are profiled: slow steps run only once or twice.
///
/// *Units*: milliseconds.
const ENOUGH_MS: f64 = 2000.0;

/// All dispatches or draws of a kernel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KernelTime {
    /// The kernel with its variant.
    pub kernel: String,
    /// Number of dispatches or draws.
    pub count: usize,
    /// Time of all of them, in milliseconds.
    pub ms: f64,
    /// Bytes that all of them read and write.
    pub bytes: u64,
    /// Floating-point operations of all of them, if they multiply by weights.
    pub flops: Option<u64>,
}

/// All dispatches or draws of a role.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RoleTime {
    /// The [role](Role::name).
    pub role: &'static str,
    /// Number of dispatches or draws.
    pub kernels: usize,
    /// Bytes that all of them read and write.
    pub bytes: u64,
    /// Time of all of them, in milliseconds; null if the device has no clock for kernels.
    pub ms: Option<f64>,
    /// Their part of the time of all kernels, in percent; null as well.
    pub percent: Option<f64>,
}

/// Returns the kernels of `once` with the median time of each, from several calls; `once` traces the same steps each time,
/// such as [`Session::trace`](model::Session::trace) does. Without a clock there is one call.
///
/// *Errors*: those of `once`.
pub async fn profile(
    host: &dyn Host,
    mut once: impl AsyncFnMut() -> Result<Vec<TracedKernel>, ModelError>,
) -> Result<Vec<TracedKernel>, ModelError> {
    let (start, mut kernels) = (host.now_ms(), once().await?);
    let mut runs = vec![times(&kernels)];
    while kernels.iter().any(|kernel| kernel.ms.is_some()) && runs.len() < STEPS && host.now_ms() - start < ENOUGH_MS {
        runs.push(times(&once().await?));
    }
    for (at, kernel) in kernels.iter_mut().enumerate() {
        let of_kernel = runs.iter().map(|times| times.get(at).copied().flatten()).collect::<Option<Vec<_>>>();
        kernel.ms = of_kernel.map(|times| Spread::of(times).median);
    }
    Ok(kernels)
}

fn times(kernels: &[TracedKernel]) -> Vec<Option<f64>> {
    kernels.iter().map(|kernel| kernel.ms).collect()
}

/// Sums times by kernel, longest first; nothing without a clock.
pub(super) fn by_kernel(kernels: &[TracedKernel]) -> Option<Vec<KernelTime>> {
    let mut sums: Vec<KernelTime> = Vec::new();
    for traced in kernels {
        let (name, ms, bytes) = (&traced.info.name, traced.ms?, traced.bytes());
        let flops = Some(traced.info.flops).filter(|flops| *flops > 0);
        match sums.iter_mut().find(|sum| sum.kernel == *name) {
            Some(sum) => {
                (sum.count, sum.ms, sum.bytes) = (sum.count + 1, sum.ms + ms, sum.bytes + bytes);
                sum.flops = sum.flops.zip(flops).map(|(sum, flops)| sum + flops);
            }
            None => sums.push(KernelTime { kernel: name.clone(), count: 1, ms, bytes, flops }),
        }
    }
    // The bits of positive numbers are in their order.
    sort_by_key(&mut sums, |sum| u64::MAX - sum.ms.max(0.0).to_bits());
    Some(sums)
}

/// Sums kernels by role, in the order of [`Role::ALL`]; roles without any are left out.
pub fn by_role(kernels: &[TracedKernel]) -> Vec<RoleTime> {
    let all: Option<f64> = kernels.iter().map(|kernel| kernel.ms).sum();
    let of = |role: Role| {
        let of_role = || kernels.iter().filter(move |kernel| kernel.info.role == role);
        let ms: Option<f64> = of_role().map(|kernel| kernel.ms).sum();
        let percent = ms.zip(all).filter(|(_, all)| *all > 0.0).map(|(ms, all)| 100.0 * ms / all);
        let bytes = of_role().map(TracedKernel::bytes).sum();
        RoleTime { role: role.name(), kernels: of_role().count(), bytes, ms, percent }
    };
    Role::ALL.into_iter().map(of).filter(|time| time.kernels > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::block_on;
    use backend_api::{KernelInfo, StepParams, Traffic};

    /// A host whose clock stands still: how many steps are profiled does not depend on the machine.
    struct Still;

    impl Host for Still {
        fn wake_later(&self, waker: &std::task::Waker) {
            waker.wake_by_ref();
        }

        fn now_ms(&self) -> f64 {
            0.0
        }
    }

    fn traced(name: &str, role: Role, flops: u64, ms: Option<f64>) -> TracedKernel {
        let traffic = Traffic { fixed: 10, per_token: 1, window: None };
        let (name, subject) = (name.into(), String::new());
        let info = KernelInfo { name, grid: [1; 3], traffic, flops, role, subject, made: vec![] };
        TracedKernel { info, step: StepParams::at(4, 1), ms }
    }

    #[test]
    fn kernels_are_summed_by_name_and_by_role() {
        let of = |name: &str, role, flops, ms| traced(name, role, flops, Some(ms));
        let kernels = [
            of("a", Role::Matmul, 30, 1.0),
            of("b", Role::Attention, 0, 5.0),
            of("a", Role::Matmul, 30, 2.0),
            of("c", Role::Matmul, 7, 2.0),
        ];
        let kernel =
            |kernel: &str, count, ms, bytes, flops| KernelTime { kernel: kernel.into(), count, ms, bytes, flops };
        let sums = [kernel("b", 1, 5.0, 15, None), kernel("a", 2, 3.0, 30, Some(60)), kernel("c", 1, 2.0, 15, Some(7))];
        assert_eq!(by_kernel(&kernels).unwrap(), sums);
        let role = |role, kernels, bytes, ms, percent| RoleTime { role, kernels, bytes, ms, percent };
        let roles = [role("matmul", 3, 45, Some(5.0), Some(50.0)), role("attention", 1, 15, Some(5.0), Some(50.0))];
        assert_eq!(by_role(&kernels), roles);
        let untimed = [traced("a", Role::Matmul, 30, None)];
        assert_eq!((by_kernel(&untimed), by_role(&untimed)), (None, vec![role("matmul", 1, 15, None, None)]));
    }

    #[test]
    fn medians_are_those_of_each_kernel() {
        let mut run = 0;
        let mut once = async || {
            run += 1;
            let times = [[1.0, 9.0], [8.0, 2.0], [3.0, 5.0]][run % 3];
            Ok(times.map(|ms| traced("a", Role::Copy, 0, Some(ms))).to_vec())
        };
        let kernels = block_on(profile(&Still, &mut once)).unwrap();
        assert_eq!(times(&kernels), [Some(3.0), Some(5.0)]);
        assert_eq!(run, STEPS);
        let mut calls = 0;
        let untimed = async || {
            calls += 1;
            Ok(vec![traced("a", Role::Copy, 0, None)])
        };
        assert_eq!(times(&block_on(profile(&Still, untimed)).unwrap()), [None]);
        assert_eq!(calls, 1);
    }
}
