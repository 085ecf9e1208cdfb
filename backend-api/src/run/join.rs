//! Several futures at once, on one thread.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// A future of the thread that polls it.
pub type Local<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Polls futures in turn until all are done; gives what they gave, in order.
pub async fn join<T>(futures: Vec<Local<'_, T>>) -> Vec<T> {
    let mut futures: Vec<(Local<'_, T>, Option<T>)> = futures.into_iter().map(|future| (future, None)).collect();
    poll_fn(|context| {
        for (future, done) in futures.iter_mut().filter(|(_, done)| done.is_none()) {
            if let Poll::Ready(value) = future.as_mut().poll(context) {
                *done = Some(value);
            }
        }
        if futures.iter().all(|(_, done)| done.is_some()) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    futures.into_iter().filter_map(|(_, done)| done).collect()
}
