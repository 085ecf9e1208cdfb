//! Errors at run time, each with its remedy.

/// An operator that a backend cannot run, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{op}: {reason}")]
pub struct Unsupported {
    /// The operator with its shapes and dtypes.
    pub op: String,
    /// Why not.
    pub reason: String,
}

/// An error of a backend, a graph or a storage. Every message names the cause and, where there is one, the remedy.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// The caller asked for something malformed.
    #[error("{0}")]
    Invalid(String),
    /// The backend cannot run these nodes; all of them are listed.
    #[error("this backend cannot run {} of the operators: {}", .0.len(), list(.0))]
    Unsupported(Vec<Unsupported>),
    /// The device is too small in one respect.
    #[error("{what} needs {need}, but this device allows {have}; {remedy}")]
    Limit {
        /// The requirement that is not met, with its unit.
        what: String,
        /// How much is needed.
        need: u64,
        /// How much there is.
        have: u64,
        /// Advice to the user.
        remedy: &'static str,
    },
    /// Memory ran out.
    #[error("out of memory for {what} ({bytes} bytes); use a smaller context or model, or another backend")]
    OutOfMemory {
        /// The allocation that failed.
        what: String,
        /// Its size in bytes.
        bytes: u64,
    },
    /// No driver, adapter or context could be had.
    #[error("{backend} is not available here: {reason}")]
    Absent {
        /// The backend's name.
        backend: &'static str,
        /// Why, and what to install.
        reason: String,
    },
    /// The device or context was lost.
    #[error("the device was lost ({0}); load the model again, or choose another backend")]
    Lost(String),
    /// The driver refused or broke something that should have worked.
    #[error("driver error: {0}")]
    Driver(String),
}

fn list(items: &[Unsupported]) -> String {
    items.iter().map(Unsupported::to_string).collect::<Vec<_>>().join("; ")
}
