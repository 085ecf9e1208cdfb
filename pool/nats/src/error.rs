//! What ends a coordinator or a worker.

/// Why a pool cannot be served or worked for.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// There is no server, or it refuses.
    #[error(
        "cannot reach the NATS server at {server} ({reason}); start one, see `anygpu pool config --help`, or name another"
    )]
    Connect {
        /// Its address, without secrets.
        server: String,
        /// What it says.
        reason: String,
    },
    /// The server lets too little through.
    #[error(
        "the NATS server lets messages of {got} bytes through, and a pool needs {needed}; set its max_payload to 8MB"
    )]
    Payload {
        /// What it lets through.
        got: usize,
        /// What it has to.
        needed: usize,
    },
    /// The connection has ended for good.
    #[error("the connection to the NATS server has ended ({0}); start again")]
    Ended(String),
    /// The coordinator does not take this worker.
    #[error("the coordinator does not take this worker: {0}")]
    Refused(String),
    /// What outlives a restart cannot be read or written.
    #[error("cannot keep the state of the pool in {path} ({reason}); name another file")]
    Facts {
        /// The file.
        path: String,
        /// What the system says.
        reason: String,
    },
    /// The system gives no thread or no chance.
    #[error("the system refuses: {0}")]
    System(String),
}

impl From<getrandom::Error> for PoolError {
    fn from(error: getrandom::Error) -> PoolError {
        PoolError::System(error.to_string())
    }
}
