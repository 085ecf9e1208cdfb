//! The coordinator as a client of a server.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anygpu::handle::elsewhere::Asked;
use anygpu_pool::dispatch::{Dispatcher, Out, Picture, Trace};
use anygpu_pool::{Facts, Micros, SessionId};
use anygpu_pool_proto::{Wire, subject};
use async_nats::{Client, Message, StatusCode, Subscriber};
use futures_util::StreamExt;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;
use tokio::time::{sleep, sleep_until};

use crate::PoolError;
use crate::connect::{connect, connect_coordinator, password};
use crate::ears::Ears;
use crate::facts::{Keeper, random};
use crate::grant::{ASKED, Authority};
use crate::presence::{self, CLOSED};
use crate::texts::{Taken, Texts};

/// Time between two looks at who still listens, and two pictures.
const LOOK: Duration = Duration::from_millis(500);
/// Messages that are taken before anything else is looked at.
const BATCH: usize = 64;

/// How a pool is coordinated.
#[derive(Debug, Clone)]
pub struct Coordinating {
    /// The server, such as nats://coordinator:SECRET@127.0.0.1:4222.
    pub server: String,
    /// Address of the server for workers. Its password is the one that the server must ask workers for, if it asks
    /// the coordinator.
    pub workers: String,
    /// Address of the server for a user of its system account, who is told at once when a worker's connection closes.
    /// Without one that is known by heartbeats and deadlines alone.
    pub system: Option<String>,
    /// Time between two heartbeats of a worker.
    pub heartbeat: Duration,
    /// Where what outlives a restart is kept.
    pub facts: Option<PathBuf>,
}

/// Reports of the coordinator to its observers.
pub struct Telling {
    /// Has the picture of the pool.
    pub picture: watch::Sender<Picture>,
    /// Has the last steps.
    pub traces: watch::Sender<Vec<Trace>>,
    /// Takes notes for a person.
    pub note: Box<dyn Fn(&str) + Send + Sync>,
}

/// Tells what is so now, if it was not before.
fn tell<T: PartialEq>(to: &watch::Sender<T>, now: T) {
    to.send_if_modified(|last| {
        let changed = *last != now;
        *last = now;
        changed
    });
}

/// Coordinates until the sender of requests is gone. `facts` are those that the dispatcher went on from.
///
/// *Errors*: the server cannot be reached, or lets too little through; facts cannot be kept. Later breaks of the connection
/// are waited for.
pub async fn coordinate(
    coordinating: &Coordinating,
    dispatcher: Dispatcher,
    facts: &Facts,
    mut asked: UnboundedReceiver<Asked>,
    telling: Telling,
) -> Result<(), PoolError> {
    let (client, mut breaks) = connect_coordinator(&coordinating.server).await?;
    let subscribe = async |client: &Client, subject: String| {
        client.subscribe(subject).await.map_err(|error| PoolError::Ended(error.to_string()))
    };
    let inbox = client.new_inbox();
    let mut hellos = subscribe(&client, subject::HELLO.into()).await?;
    let mut said = subscribe(&client, "pool.up.>".into()).await?;
    let mut tokens = subscribe(&client, "pool.out.>".into()).await?;
    let mut strangers = subscribe(&client, ASKED.into()).await?;
    let mut answers = subscribe(&client, format!("{inbox}.*")).await?;
    let system = match &coordinating.system {
        Some(server) => Some(connect(server, "anygpu coordinator").await?),
        None => None,
    };
    let mut closed: Option<Subscriber> = match &system {
        Some(client) => Some(subscribe(client, CLOSED.into()).await?),
        None => None,
    };
    let (texts, unheard) = Texts::of(facts);
    let begun = Instant::now();
    let heartbeat_millis = coordinating.heartbeat.as_millis() as u32;
    let keeper = Keeper::new(coordinating.facts.clone());
    let (ears, mut heard) = Ears::new();
    let (authority, workers) =
        (Authority::new(password(&coordinating.server))?, password(&coordinating.workers).into());
    let mut service = Service {
        client,
        system,
        inbox,
        dispatcher,
        texts,
        begun,
        heartbeat_millis,
        keeper,
        telling,
        ears,
        authority,
        workers,
    };
    for session in unheard {
        service.cancel(session).await?;
    }
    let mut look = tokio::time::interval(LOOK);
    loop {
        let due = service.dispatcher.due().map(|due| begun + Duration::from_micros(due));
        // While texts are under way they change with every token.
        let (waiting, running) = service.dispatcher.coordinator().load();
        let keep = service.keeper.due().filter(|_| waiting + running > 0);
        tokio::select! {
            // Tokens before all else but breaks: they begin the next lap.
            biased;
            Some(there) = breaks.recv() => service.broken(there).await?,
            message = tokens.next() => service.came(message, &mut tokens).await?,
            message = said.next() => service.came(message, &mut said).await?,
            message = answers.next() => service.answered(message).await?,
            Some(message) = heard.recv() => service.heard(message).await?,
            message = next(&mut closed) => service.closed(message).await?,
            message = strangers.next() => service.stranger(message).await?,
            message = hellos.next() => service.hello(message).await?,
            request = asked.recv() => match request {
                Some(request) => service.ask(request).await?,
                None => break,
            },
            () = at(due) => service.tick().await?,
            _ = look.tick() => service.look().await?,
            () = at(keep) => service.keep()?,
        }
    }
    service.keep()?;
    // What was sent is to get there.
    tokio::select! {
        _ = service.client.flush() => {}
        () = sleep(LOOK) => {}
    }
    Ok(())
}

/// Waits for a moment, or for ever.
async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment.into()).await,
        None => std::future::pending().await,
    }
}

/// The next message, if anything was subscribed to.
async fn next(subscriber: &mut Option<Subscriber>) -> Option<Message> {
    match subscriber {
        Some(subscriber) => subscriber.next().await,
        None => std::future::pending().await,
    }
}

/// A client has given up.
fn ended() -> PoolError {
    PoolError::Ended("it was closed".into())
}

struct Service {
    client: Client,
    system: Option<Client>,
    /// Where workers answer.
    inbox: String,
    dispatcher: Dispatcher,
    texts: Texts,
    begun: Instant,
    heartbeat_millis: u32,
    keeper: Keeper,
    telling: Telling,
    ears: Ears,
    authority: Authority,
    /// The password of workers.
    workers: String,
}

impl Service {
    fn now(&self) -> Micros {
        self.begun.elapsed().as_micros() as u64
    }

    /// Takes a message of a worker, and those right after it.
    async fn came(&mut self, message: Option<Message>, more: &mut Subscriber) -> Result<(), PoolError> {
        let mut message = message.ok_or_else(ended)?;
        for _ in 0..BATCH {
            let out = self.dispatcher.came(self.now(), &message.subject, &message.payload);
            self.carry(out).await?;
            match futures_util::FutureExt::now_or_never(more.next()).flatten() {
                Some(next) => message = next,
                None => break,
            }
        }
        Ok(())
    }

    /// Takes a message of a subject that is subscribed to.
    async fn heard(&mut self, message: Message) -> Result<(), PoolError> {
        let out = self.dispatcher.came(self.now(), &message.subject, &message.payload);
        self.carry(out).await
    }

    async fn answered(&mut self, message: Option<Message>) -> Result<(), PoolError> {
        let message = message.ok_or_else(ended)?;
        let id = message.subject.rsplit('.').next().and_then(|id| id.parse().ok());
        let Some(id) = id else { return Ok(()) };
        let payload = (message.status != Some(StatusCode::NO_RESPONDERS)).then_some(&message.payload[..]);
        let out = self.dispatcher.answered(self.now(), id, payload);
        self.carry(out).await
    }

    async fn closed(&mut self, message: Option<Message>) -> Result<(), PoolError> {
        let message = message.ok_or_else(ended)?;
        let Some(connection) = presence::closed(&message.payload) else { return Ok(()) };
        let out = self.dispatcher.closed(self.now(), &connection);
        self.carry(out).await
    }

    /// A server asks who may connect.
    async fn stranger(&mut self, message: Option<Message>) -> Result<(), PoolError> {
        let message = message.ok_or_else(ended)?;
        let answer = self.authority.answer(&message.payload, &self.workers, |name| self.dispatcher.is_banned(name));
        match message.reply.zip(answer) {
            Some((reply, answer)) => self.publish(reply.to_string(), None, answer.into_bytes()).await,
            None => Ok(()),
        }
    }

    async fn hello(&mut self, message: Option<Message>) -> Result<(), PoolError> {
        let message = message.ok_or_else(ended)?;
        let Some(reply) = message.reply else { return Ok(()) };
        match self.dispatcher.joined(self.now(), random()?, &message.payload, self.heartbeat_millis) {
            Ok((welcome, out)) => {
                (self.telling.note)(&format!("{} joins", welcome.worker));
                // The name first: what follows is for it.
                if let Ok(payload) = welcome.to_wire() {
                    self.publish(reply.to_string(), None, payload).await?;
                }
                self.carry(out).await
            }
            Err(error) => {
                (self.telling.note)(&format!("somebody is not taken: {error}"));
                match error.answer() {
                    Some(payload) => self.publish(reply.to_string(), None, payload).await,
                    None => Ok(()),
                }
            }
        }
    }

    async fn ask(&mut self, asked: Asked) -> Result<(), PoolError> {
        match self.texts.take(asked)? {
            Taken::Known => Ok(()),
            Taken::Ask(request) => {
                let out = self.dispatcher.ask(self.now(), request);
                self.carry(out).await
            }
        }
    }

    /// The connection is there again, or it is not.
    async fn broken(&mut self, there: bool) -> Result<(), PoolError> {
        let now = self.now();
        let out = if there { self.dispatcher.returned(now) } else { self.dispatcher.cut(now) };
        self.carry(out).await
    }

    async fn tick(&mut self) -> Result<(), PoolError> {
        let out = self.dispatcher.tick(self.now());
        self.carry(out).await
    }

    async fn cancel(&mut self, session: SessionId) -> Result<(), PoolError> {
        let out = self.dispatcher.cancel(self.now(), session);
        self.carry(out).await
    }

    async fn look(&mut self) -> Result<(), PoolError> {
        for session in self.texts.sweep() {
            self.cancel(session).await?;
        }
        tell(&self.telling.picture, self.dispatcher.picture());
        tell(&self.telling.traces, self.dispatcher.traces());
        Ok(())
    }

    fn keep(&mut self) -> Result<(), PoolError> {
        self.keeper.keep(&self.dispatcher.coordinator().facts())
    }

    async fn publish(&self, subject: String, reply: Option<String>, payload: Vec<u8>) -> Result<(), PoolError> {
        let sent = match reply {
            Some(reply) => self.client.publish_with_reply(subject, reply, payload.into()).await,
            None => self.client.publish(subject, payload.into()).await,
        };
        sent.map_err(|error| PoolError::Ended(error.to_string()))
    }

    /// Does what is to be done outside, and what follows from that.
    async fn carry(&mut self, out: Vec<Out>) -> Result<(), PoolError> {
        let mut all = std::collections::VecDeque::from(out);
        while let Some(out) = all.pop_front() {
            match out {
                Out::Send { subject, payload } => self.publish(subject, None, payload).await?,
                Out::Ask { id, subject, payload } => {
                    self.publish(subject, Some(format!("{}.{id}", self.inbox)), payload).await?;
                }
                Out::Listen(subject) => self.ears.listen(&self.client, subject).await?,
                Out::Unlisten(subject) => self.ears.unlisten(&subject),
                Out::Say(session, _, token) => {
                    if !self.texts.say(session, token) {
                        all.extend(self.dispatcher.cancel(self.now(), session));
                    }
                }
                Out::End(session, why) => self.texts.end(session, why),
                Out::Greet(worker) => self.publish(subject::greet(&worker), None, Vec::new()).await?,
                Out::Ban { worker, connection } => {
                    (self.telling.note)(&format!("{worker} is banned: it computed something else"));
                    let kick = connection.as_deref().and_then(presence::kick);
                    if let (Some(system), Some((subject, payload))) = (&self.system, kick) {
                        // It is not spoken to any more in any case.
                        let _ = system.publish(subject, payload.into()).await;
                    }
                }
            }
        }
        Ok(())
    }
}
