//! Errors that the driver reports outside of any call: kept until the next call of the backend returns them.

use backend_api::Error;
use std::sync::{Arc, Mutex, PoisonError};

/// Errors that the driver reported.
#[derive(Debug, Default)]
struct Reported {
    lost: Option<String>,
    memory: bool,
    driver: Option<String>,
    /// How often the driver's error was passed over.
    passed_over: u32,
    /// When it was first, in milliseconds since some moment.
    since: f64,
}

/// How often what may be the first sign of a lost device is passed over before it is reported as it is: some browsers
/// reject the commands and reads of a lost device before they say that it is lost, or never say so.
pub const PATIENCE: u32 = 500;
/// For how long it is passed over at least, in milliseconds: on a busy machine a browser may need longer than so many looks
/// to say that the device is lost.
const LEAST: f64 = 3000.0;

/// The faults of one device. Callbacks may come from other threads natively.
#[derive(Debug, Clone, Default)]
pub struct Faults(Arc<Mutex<Reported>>);

impl Faults {
    /// Listens to a device.
    pub fn listen(device: &wgpu::Device) -> Faults {
        let faults = Faults::default();
        let on_error = faults.clone();
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            on_error.with(|r| match error {
                wgpu::Error::OutOfMemory { .. } => r.memory = true,
                other => {
                    // The first error is the cause of those that follow.
                    r.driver.get_or_insert_with(|| other.to_string());
                }
            });
        }));
        let on_lost = faults.clone();
        device.set_device_lost_callback(move |reason, message| {
            on_lost.with(|r| r.lost = Some(format!("{reason:?}: {message}")));
        });
        faults
    }

    fn with<T>(&self, f: impl FnOnce(&mut Reported) -> T) -> T {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Fails if something could not be made, and a lost device stays lost. `what` of `bytes` is what memory was asked for.
    /// Browsers report errors later: what they have reported by now is of calls before.
    pub fn check(&self, what: &str, bytes: u64) -> Result<(), Error> {
        if cfg!(target_arch = "wasm32") { self.check_patiently(what, bytes) } else { self.report(what, bytes) }
    }

    /// Fails with what was reported since the last time.
    fn report(&self, what: &str, bytes: u64) -> Result<(), Error> {
        self.with(|r| {
            if let Some(reason) = &r.lost {
                return Err(Error::Lost(reason.clone()));
            }
            r.passed_over = 0;
            if std::mem::take(&mut r.memory) {
                r.driver = None;
                return Err(Error::OutOfMemory { what: what.to_owned(), bytes });
            }
            r.driver.take().map_or(Ok(()), |message| Err(Error::Driver(message)))
        })
    }

    /// Whether an error of the driver is passed over at present: what the device left may be wrong.
    pub fn is_in_doubt(&self) -> bool {
        self.with(|r| r.driver.is_some())
    }

    /// Like [`check`](Faults::check), but passes over an error of the driver for a while: for writes, steps and reads, whose
    /// results nobody takes before the error is reported.
    pub fn check_patiently(&self, what: &str, bytes: u64) -> Result<(), Error> {
        self.check_at(now(), what, bytes)
    }

    fn check_at(&self, now: f64, what: &str, bytes: u64) -> Result<(), Error> {
        let wait = self.with(|r| {
            if r.passed_over == 0 {
                r.since = now;
            }
            let is_early = r.passed_over < PATIENCE || now - r.since < LEAST;
            let wait = r.lost.is_none() && !r.memory && r.driver.is_some() && is_early;
            r.passed_over = r.passed_over.saturating_add(wait.into());
            wait
        });
        if wait { Ok(()) } else { self.report(what, bytes) }
    }
}

/// In milliseconds since some moment.
#[cfg(target_arch = "wasm32")]
fn now() -> f64 {
    js_sys::Date::now()
}

/// In milliseconds since some moment.
#[cfg(not(target_arch = "wasm32"))]
fn now() -> f64 {
    static START: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    START.elapsed().as_secs_f64() * 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faulty() -> Faults {
        let faults = Faults::default();
        faults.with(|r| r.driver = Some("a buffer is invalid".into()));
        faults
    }

    #[test]
    fn an_error_of_the_driver_is_passed_over_for_a_while_and_then_told() {
        let is_told = |faults: &Faults, now: f64| match faults.check_at(now, "a step", 0) {
            Ok(()) => !faults.is_in_doubt(),
            Err(error) => error == Error::Driver("a buffer is invalid".into()) && !faults.is_in_doubt(),
        };
        // Many looks take a moment on a fast machine; a page that was frozen has looked once for a long time.
        for (looks, ms) in [(3 * PATIENCE, LEAST - 1.0), (PATIENCE, LEAST + 1.0)] {
            let faults = faulty();
            for look in 0..looks {
                let now = 7.0 + ms * f64::from(look) / f64::from(looks);
                assert!(!is_told(&faults, now), "look {look} of {looks} in {ms} ms");
            }
            assert!(is_told(&faults, 8.0 + LEAST));
        }
    }

    #[test]
    fn patience_begins_anew_after_memory_ran_out() {
        let faults = faulty();
        for look in 0..2 * PATIENCE {
            assert_eq!(faults.check_at(f64::from(look), "a step", 0), Ok(()));
        }
        faults.with(|r| r.memory = true);
        assert!(matches!(faults.check_at(LEAST, "a step", 8), Err(Error::OutOfMemory { bytes: 8, .. })));
        faults.with(|r| r.driver = Some("a buffer is invalid".into()));
        assert_eq!(faults.check_at(2.0 * LEAST, "a step", 0), Ok(()));
        assert!(faults.is_in_doubt());
    }

    #[test]
    fn a_device_that_turns_out_to_be_lost_is_told_as_lost() {
        let faults = faulty();
        assert_eq!(faults.check_patiently("a write", 0), Ok(()));
        faults.with(|r| r.lost = Some("destroyed".into()));
        assert_eq!(faults.check_patiently("a write", 0), Err(Error::Lost("destroyed".into())));
    }
}
