//! Errors that the driver reports outside of any call: kept until the next call of the backend returns them.

use backend_api::Error;
use std::sync::{Arc, Mutex, PoisonError};

/// What the driver reported.
#[derive(Debug, Default)]
struct Reported {
    lost: Option<String>,
    memory: bool,
    driver: Option<String>,
    /// How often the driver's error was passed over.
    passed_over: u32,
}

/// How often what may be the first sign of a lost device is passed over before it is reported as it is: some browsers
/// reject the commands and reads of a lost device before they say that it is lost, or never say so.
pub const PATIENCE: u32 = 500;

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

    /// Fails with what was reported since the last check; a lost device stays lost. `what` of `bytes` is what memory
    /// was asked for.
    pub fn check(&self, what: &str, bytes: u64) -> Result<(), Error> {
        self.with(|r| {
            if let Some(reason) = &r.lost {
                return Err(Error::Lost(reason.clone()));
            }
            if std::mem::take(&mut r.memory) {
                r.driver = None;
                return Err(Error::OutOfMemory { what: what.to_owned(), bytes });
            }
            r.passed_over = 0;
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
        let wait = self.with(|r| {
            let wait = r.lost.is_none() && !r.memory && r.driver.is_some() && r.passed_over < PATIENCE;
            r.passed_over += u32::from(wait);
            wait
        });
        if wait { Ok(()) } else { self.check(what, bytes) }
    }
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
        let faults = faulty();
        for _ in 0..PATIENCE {
            assert_eq!(faults.check_patiently("a step", 0), Ok(()));
            assert!(faults.is_in_doubt());
        }
        assert_eq!(faults.check_patiently("a step", 0), Err(Error::Driver("a buffer is invalid".into())));
        assert!(!faults.is_in_doubt());
    }

    #[test]
    fn a_device_that_turns_out_to_be_lost_is_told_as_lost() {
        let faults = faulty();
        assert_eq!(faults.check_patiently("a write", 0), Ok(()));
        faults.with(|r| r.lost = Some("destroyed".into()));
        assert_eq!(faults.check_patiently("a write", 0), Err(Error::Lost("destroyed".into())));
    }
}
