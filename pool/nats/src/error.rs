//! Errors that end a coordinator or a worker.

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
        /// Message of the server.
        reason: String,
    },
    /// The server lets too little through.
    #[error(
        "the NATS server lets messages of {got} bytes through, and a pool needs {needed}; set its max_payload to 8MB"
    )]
    Payload {
        /// Largest message that the server lets through.
        got: usize,
        /// Largest message that a pool needs.
        needed: usize,
    },
    /// The connection has ended for good.
    #[error("the connection to the NATS server has ended ({0}); start again")]
    Ended(String),
    /// The coordinator does not take this worker.
    #[error("the coordinator does not take this worker: {0}")]
    Refused(String),
    /// The file of the facts that outlive a restart cannot be read or written.
    #[error("cannot keep the state of the pool in {path} ({reason}); name another file")]
    Facts {
        /// The file.
        path: String,
        /// Message of the system.
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
