//! A worker that is a native process.

use std::time::{Duration, Instant};

use anygpu_pool_proto::{Failure, Heartbeat, Hello, Reason, Reply, Welcome, Wire, reply, subject};
use anygpu_pool_worker::{Delivery, Message, Thread, Vitals, Worker};
use async_nats::connection::State;
use async_nats::{Client, RequestErrorKind, Subscriber};
use futures_util::StreamExt;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Interval, MissedTickBehavior, interval, sleep};

use crate::PoolError;
use crate::connect::{connect_worker, connection};
use crate::facts::random;

/// Time between two attempts to find a coordinator.
const AGAIN: Duration = Duration::from_millis(500);
/// Time in which a coordinator has to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Messages to oneself, of which the fastest counts.
const ECHOES: usize = 5;
/// Time that a message to oneself may take.
const ECHO: Duration = Duration::from_secs(1);

/// How a worker works.
pub struct Working {
    /// The server, such as nats://worker:SECRET@example.org:4222.
    pub server: String,
    /// Description of the worker. Names, the connection and the time of a hop are found out.
    pub hello: Hello,
}

/// Report of a worker for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// No coordinator answers; the worker goes on asking.
    Waiting,
    /// It has joined, by this name.
    Joined(String),
}

/// Works until `leave` is there. `make` makes the worker, by its name, on a thread of its own.
///
/// *Errors*: the server cannot be reached, or refuses; the coordinator does not take the worker. A coordinator that is away
/// is waited for.
pub async fn work(
    working: Working,
    make: impl FnOnce(String) -> Worker + Send + 'static,
    mut note: impl FnMut(Note),
    leave: impl Future<Output = ()>,
) -> Result<(), PoolError> {
    tokio::pin!(leave);
    let secret = format!("{:016x}{:016x}", random()?, random()?);
    let client = connect_worker(&working.server, &secret).await?;
    let mut hello = working.hello;
    hello.hop_micros = hop(&client).await?;
    // A name of its own, and an ear for it: what it is assigned follows its welcome at once.
    hello.worker = anygpu_pool_worker::name(&secret);
    let inbox = client.subscribe(subject::inbox(&hello.worker)).await;
    let inbox = inbox.map_err(|error| PoolError::Ended(error.to_string()))?;
    let welcome = tokio::select! {
        welcome = greet(&client, &mut hello, &mut note) => welcome?,
        () = &mut leave => return Ok(()),
    };
    let mut joined = Joined::new(client, hello, inbox, &welcome, make)?;
    note(Note::Joined(joined.hello.worker.clone()));
    loop {
        tokio::select! {
            biased;
            message = joined.sent.recv() => joined.send(message).await?,
            message = joined.inbox.next() => {
                if joined.take(message)? {
                    (joined.hello.model, joined.hello.cached) = joined.vitals.cached();
                    let welcome = tokio::select! {
                        welcome = greet(&joined.client, &mut joined.hello, &mut note) => welcome?,
                        () = &mut leave => break,
                    };
                    joined.welcome(&welcome);
                }
            }
            _ = joined.beat.tick() => joined.heartbeat().await?,
            () = &mut leave => break,
        }
    }
    joined.leave().await
}

/// A worker that has a name.
struct Joined {
    client: Client,
    hello: Hello,
    inbox: Subscriber,
    beat: Interval,
    vitals: Vitals,
    thread: Thread,
    post: UnboundedSender<Message>,
    sent: UnboundedReceiver<Message>,
}

impl Joined {
    fn new(
        client: Client,
        hello: Hello,
        inbox: Subscriber,
        welcome: &Welcome,
        make: impl FnOnce(String) -> Worker + Send + 'static,
    ) -> Result<Joined, PoolError> {
        let name = hello.worker.clone();
        let (post, sent) = unbounded_channel();
        let vitals = Vitals::default();
        let (told, posted) = (vitals.clone(), post.clone());
        // Nobody takes what is sent once this has ended.
        let thread = Thread::spawn(move || make(name).telling(told), move |message| drop(posted.send(message)))
            .map_err(|error| PoolError::System(error.to_string()))?;
        let beat = beats(welcome);
        Ok(Joined { client, hello, inbox, beat, vitals, thread, post, sent })
    }

    /// The coordinator wants to hear from it so often.
    fn welcome(&mut self, welcome: &Welcome) {
        self.beat = beats(welcome);
    }

    /// Hands a message over; whether it asks to say hello again.
    fn take(&mut self, message: Option<async_nats::Message>) -> Result<bool, PoolError> {
        let message = message.ok_or_else(|| PoolError::Ended("it was closed".into()))?;
        if *message.subject == *subject::greet(&self.hello.worker) {
            return Ok(true);
        }
        let answer = message.reply.map(|reply| {
            let post = self.post.clone();
            // By the same way as all else, so that what was sent before gets there before.
            let answer = move |payload| drop(post.send(Message { subject: reply.to_string(), payload }));
            Box::new(answer) as Box<dyn FnOnce(Vec<u8>) + Send>
        });
        let message = Message { subject: message.subject.to_string(), payload: message.payload.into() };
        if self.thread.deliver(Delivery { message, answer }) {
            Ok(false)
        } else {
            Err(PoolError::System("the worker's thread has ended".into()))
        }
    }

    async fn send(&mut self, message: Option<Message>) -> Result<(), PoolError> {
        let Some(Message { subject, payload }) = message else { return Ok(()) };
        self.client.publish(subject, payload.into()).await.map_err(|error| PoolError::Ended(error.to_string()))
    }

    async fn heartbeat(&mut self) -> Result<(), PoolError> {
        // One that would be kept until the connection is there again says nothing then.
        if self.client.connection_state() != State::Connected {
            return Ok(());
        }
        let measured = self.vitals.block_micros();
        if measured > 0 {
            self.hello.block_micros = measured;
        }
        let Hello { worker, block_micros, hop_micros, memory, .. } = &self.hello;
        let heartbeat = Heartbeat {
            block_micros: *block_micros,
            hop_micros: *hop_micros,
            memory_free: memory.saturating_sub(self.vitals.bytes()),
            visible: true,
            sessions: self.vitals.sessions(),
            connection: connection(&self.client),
        };
        let payload = heartbeat.to_wire().map_err(|error| PoolError::System(error.to_string()))?;
        let message = Message { subject: subject::heartbeat(worker), payload };
        self.send(Some(message)).await
    }

    /// Says that it goes.
    async fn leave(mut self) -> Result<(), PoolError> {
        let failure =
            Failure { reason: Reason::Leaving.into(), detail: "the worker leaves".into(), ..Failure::default() };
        let reply = Reply { what: Some(reply::What::Failure(failure)) };
        if let Ok(payload) = reply.to_wire() {
            let subject = subject::progress(&self.hello.worker);
            self.send(Some(Message { subject, payload })).await?;
        }
        tokio::select! {
            _ = self.client.flush() => {}
            () = sleep(AGAIN) => {}
        }
        Ok(())
    }
}

/// Heartbeats. Who stood still makes up for none.
fn beats(welcome: &Welcome) -> Interval {
    let mut beats = interval(Duration::from_millis(welcome.heartbeat_millis.max(1).into()));
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    beats
}

/// Says hello until somebody answers.
async fn greet(client: &Client, hello: &mut Hello, note: &mut impl FnMut(Note)) -> Result<Welcome, PoolError> {
    let mut told = false;
    loop {
        hello.connection = connection(client);
        let payload = hello.to_wire().map_err(|error| PoolError::Refused(error.to_string()))?;
        let request = async_nats::Request::new().payload(payload.into()).timeout(Some(PATIENCE));
        match client.send_request(subject::HELLO, request).await {
            Ok(answer) => {
                let welcome = Welcome::from_wire(&answer.payload);
                let welcome = welcome
                    .map_err(|error| refused(&answer.payload).unwrap_or(PoolError::Refused(error.to_string())))?;
                if hello.worker != welcome.worker {
                    return Err(PoolError::Refused("it gives another name".into()));
                }
                return Ok(welcome);
            }
            // Who is there and does not answer has refused, or is busy.
            Err(error) if matches!(error.kind(), RequestErrorKind::NoResponders | RequestErrorKind::TimedOut) => {
                if !std::mem::replace(&mut told, true) {
                    note(Note::Waiting);
                }
                sleep(AGAIN).await;
            }
            Err(error) => return Err(PoolError::Ended(error.to_string())),
        }
    }
}

/// Why a coordinator takes nobody of this name, if it says so.
fn refused(answer: &[u8]) -> Option<PoolError> {
    match Reply::from_wire(answer).ok()?.what? {
        reply::What::Failure(failure) => Some(PoolError::Refused(failure.detail)),
        _ => None,
    }
}

/// Time of a message to the server and from there, at best.
///
/// *Units*: microseconds.
async fn hop(client: &Client) -> Result<u32, PoolError> {
    let failed = |error: &dyn std::fmt::Display| PoolError::Ended(error.to_string());
    let subject = client.new_inbox();
    let mut echoes = client.subscribe(subject.clone()).await.map_err(|error| failed(&error))?;
    let mut best = ECHO;
    for _ in 0..ECHOES {
        let begun = Instant::now();
        client.publish(subject.clone(), "".into()).await.map_err(|error| failed(&error))?;
        if tokio::time::timeout(ECHO, echoes.next()).await.is_ok() {
            best = best.min(begun.elapsed());
        }
    }
    Ok(best.as_micros().max(1) as u32)
}
