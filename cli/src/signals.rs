//! Signals that end a server.

use std::io;

/// Ctrl-C, and SIGTERM, which service managers send.
pub struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    /// Begins to listen for signals.
    ///
    /// *Errors*: the system refuses.
    pub fn listen() -> io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
impl Signals {
    /// Begins to listen for signals.
    ///
    /// *Errors*: the system refuses.
    pub fn listen() -> io::Result<Signals> {
        Ok(Signals {})
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}
