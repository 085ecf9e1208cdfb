//! A worker on a thread of its own: devices belong to one thread, and a broker's client should not wait for them.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use anygpu::native::block_on;

use crate::{Message, Worker};

/// A message that came for a worker, and who wants its answer.
pub struct Delivery {
    /// Message, with its subject.
    pub message: Message,
    /// Takes the answer to what is a request.
    pub answer: Option<Box<dyn FnOnce(Vec<u8>) + Send>>,
}

/// The thread. It ends when this goes and what was delivered is done.
pub struct Thread {
    inbox: Option<Sender<Delivery>>,
    handle: Option<JoinHandle<()>>,
}

impl Thread {
    /// Starts it. `make` makes the worker there, and `send` gets what it sends, in order.
    ///
    /// *Errors*: the system has no thread to spare.
    pub fn spawn(
        make: impl FnOnce() -> Worker + Send + 'static,
        mut send: impl FnMut(Message) + Send + 'static,
    ) -> std::io::Result<Thread> {
        let (inbox, messages): (Sender<Delivery>, Receiver<Delivery>) = channel();
        let run = move || {
            let mut worker = make();
            for Delivery { message, answer } in messages {
                let reply = block_on(worker.deliver(&message, &mut send));
                if let (Some(answer), Some(reply)) = (answer, reply) {
                    answer(reply);
                }
            }
        };
        let handle = std::thread::Builder::new().name("worker".into()).spawn(run)?;
        Ok(Thread { inbox: Some(inbox), handle: Some(handle) })
    }

    /// Hands a message over; tells whether the thread still takes any.
    pub fn deliver(&self, delivery: Delivery) -> bool {
        self.inbox.as_ref().is_some_and(|inbox| inbox.send(delivery).is_ok())
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.inbox.take();
        if let Some(handle) = self.handle.take() {
            // A panic was reported by the thread itself.
            let _ = handle.join();
        }
    }
}
