//! Subjects that are listened to for a while.

use std::collections::HashMap;

use async_nats::{Client, Message};
use futures_util::StreamExt;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::AbortHandle;

use crate::PoolError;

/// Brings what comes to any of its subjects to one place. Copies of steps are few: a check keeps what it hears in any case.
pub(crate) struct Ears {
    tasks: HashMap<String, AbortHandle>,
    heard: UnboundedSender<Message>,
}

impl Ears {
    pub fn new() -> (Ears, UnboundedReceiver<Message>) {
        let (heard, hears) = unbounded_channel();
        (Ears { tasks: HashMap::new(), heard }, hears)
    }

    /// Listens from now on: what this client publishes later is heard, too.
    pub async fn listen(&mut self, client: &Client, subject: String) -> Result<(), PoolError> {
        let subscribed = client.subscribe(subject.clone()).await;
        let mut messages = subscribed.map_err(|error| PoolError::Ended(error.to_string()))?;
        let heard = self.heard.clone();
        let task = tokio::spawn(async move {
            while let Some(message) = messages.next().await {
                if heard.send(message).is_err() {
                    break;
                }
            }
        });
        self.tasks.insert(subject, task.abort_handle());
        Ok(())
    }

    /// Listens no longer. The client ends the subscription with its stream.
    pub fn unlisten(&mut self, subject: &str) {
        if let Some(task) = self.tasks.remove(subject) {
            task.abort();
        }
    }
}

impl Drop for Ears {
    fn drop(&mut self) {
        self.tasks.values().for_each(AbortHandle::abort);
    }
}
