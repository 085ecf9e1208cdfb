//! Encoding of prompts, on other threads than those that answer.

use super::error::ApiError;
use anygpu::handle::{Encoded, Handle, Prompt};
use anygpu::{ChatOptions, Overflow};
use axum::http::StatusCode;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// Most long requests whose prompts are encoded at a time.
const AT_ONCE: usize = 2;
/// Bytes from which on a request is long. Shorter ones do not wait for long ones.
const LONG: usize = 64 << 10;

/// Encoder of prompts.
pub struct Prompts {
    places: Arc<Semaphore>,
}

impl Default for Prompts {
    fn default() -> Prompts {
        Prompts { places: Arc::new(Semaphore::new(AT_ONCE)) }
    }
}

impl Prompts {
    /// Encodes the prompts of a request of `bytes`; see [`Handle::encode`].
    ///
    /// *Errors*: an invalid prompt.
    pub async fn encode(
        &self,
        handle: &Handle,
        bytes: usize,
        prompts: Vec<Prompt>,
        chat: ChatOptions,
        (overflow, room): (Overflow, usize),
    ) -> Result<Vec<Arc<Encoded>>, ApiError> {
        // The semaphore is never closed.
        let place = if bytes < LONG { None } else { self.places.clone().acquire_owned().await.ok() };
        let handle = handle.clone();
        let encoded = spawn_blocking(move || {
            // The place stays taken until the work is done, even if the client has disconnected.
            let _place = place;
            let encode = |prompt: &Prompt| handle.encode(prompt, &chat, overflow, room).map(Arc::new);
            prompts.iter().map(encode).collect::<Result<Vec<_>, _>>()
        });
        let failed = |_| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "a prompt could not be read; ask again");
        Ok(encoded.await.map_err(failed)??)
    }
}
