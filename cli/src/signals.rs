//! What ends a program that serves.

use std::io;

/// Ctrl-C, and what a service manager sends.
pub struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    /// Begins to listen.
    ///
    /// *Errors*: the system refused.
    pub fn listen() -> io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Waits for the next one.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
impl Signals {
    /// Begins to listen.
    ///
    /// *Errors*: the system refused.
    pub fn listen() -> io::Result<Signals> {
        Ok(Signals {})
    }

    /// Waits for the next one.
    pub async fn next(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}
