//! The thread that owns the engine: it takes requests and gives each one turns.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use futures_channel::oneshot;
use model::{Embedder, Model, ModelError, Sessions};

use super::answer::Teller;
use super::turns::Turns;
use super::{Embed, Embedded, Facts, Generate, HandleError, Limits, Opened, Place, Shared, Status, Texts};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::native::block_on;

mod round;
mod seats;
mod text;
mod vectors;

use seats::{AHEAD, Seats};
use text::Text;
use vectors::Vectors;

/// Device memory that the KV caches of sequences which advance together may always take, unless a limit is given.
///
/// *Units*: bytes.
const TOGETHER: usize = 1 << 30;
/// Memory that they may take on the CPU, where a cache takes memory only as its text grows.
///
/// *Units*: bytes.
const TOGETHER_ON_CPU: usize = 2 << 30;

/// Time without a request after which the next program is compiled that requests may need: one that comes then has to wait.
const IDLE: Duration = Duration::from_secs(2);

/// Message to the thread.
pub(crate) enum Job {
    Generate { request: Generate, told: Teller, place: Place },
    Embed { request: Embed, told: oneshot::Sender<Result<Embedded, HandleError>>, place: Place },
}

/// Purpose of the model: text or embeddings.
enum Work {
    Texts { sessions: Box<Sessions>, seats: Seats },
    Vectors(Box<Embedder>),
}

/// A request that takes turns.
enum Task {
    Text(Box<Text>),
    Vectors(Box<Vectors>),
}

impl Task {
    /// Returns whether anybody still waits for it.
    fn is_wanted(&self) -> bool {
        match self {
            Task::Text(text) => text.is_wanted(),
            Task::Vectors(vectors) => vectors.is_wanted(),
        }
    }

    fn text(&self) -> Option<&Text> {
        match self {
            Task::Text(text) => Some(text),
            Task::Vectors(_) => None,
        }
    }
}

/// Function that loads the model again.
type Reopen = Box<dyn FnMut() -> Option<Opened>>;

pub(crate) struct Actor {
    work: Work,
    opened: Opened,
    reopen: Reopen,
    turns: Turns<Task>,
    slice: usize,
    /// Sequences so far, to name them.
    count: u64,
    shared: Arc<Shared>,
}

impl Actor {
    pub fn new<E: From<HandleError>>(
        mut open: impl FnMut() -> Result<Opened, E> + 'static,
        limits: Limits,
        shared: Arc<Shared>,
    ) -> Result<Actor, E> {
        let opened = open()?;
        let (work, begun) = work(&opened.engine, &limits).map_err(HandleError::from)?;
        let reopen = Box::new(move || open().ok());
        let turns = Turns::new(begun);
        let actor = Actor { work, opened, reopen, turns, slice: limits.slice.max(1), count: 0, shared };
        actor.show(0);
        Ok(actor)
    }

    /// Returns the constant facts about the model.
    pub fn facts(&self) -> Facts {
        let engine = &self.opened.engine;
        let facts = Facts::of(engine.metadata(), engine.model().recipe(), engine.has_chat_template());
        Facts { load_ms: engine.model().load_ms(), together: self.seats(), ..facts }
    }

    /// Returns the tokenizer and the template, for other threads.
    pub fn texts(&self) -> Texts {
        self.opened.engine.texts()
    }

    /// Answers requests until all handles are dropped.
    pub fn run(&mut self, jobs: &Receiver<Job>) {
        loop {
            if self.turns.is_empty() {
                self.show(0);
                match self.wait(jobs) {
                    Some(job) => self.admit(job),
                    None => return,
                }
            }
            while let Ok(job) = jobs.try_recv() {
                self.admit(job);
            }
            self.turns.retain(|task| task.is_wanted());
            self.turns.begin();
            self.fit();
            let tasks = self.turns.next(self.seats());
            self.show(tasks.len());
            let go_on = self.advance_all(tasks);
            self.turns.again(go_on);
        }
    }

    /// Waits for the next request; nothing once all handles are dropped. On a GPU that is idle, what conversations need once they
    /// advance together is compiled meanwhile: a driver takes most of a second for each number of them.
    fn wait(&self, jobs: &Receiver<Job>) -> Option<Job> {
        let info = self.opened.engine.backend().info();
        loop {
            match jobs.recv_timeout(IDLE) {
                Err(RecvTimeoutError::Timeout) => {}
                ended => return ended.ok(),
            }
            match &self.work {
                // What cannot be compiled is reported to the conversations that need it.
                Work::Texts { sessions, .. }
                    if !info.software && !info.synchronous && sessions.compile_ahead().unwrap_or(false) => {}
                _ => return jobs.recv().ok(),
            }
        }
    }

    /// Accepts a request, or refuses it at once.
    fn admit(&mut self, job: Job) {
        match job {
            Job::Generate { request, told, place } => {
                self.opened.engine.tell_time();
                let is_text = match &self.work {
                    Work::Texts { .. } => Ok(()),
                    Work::Vectors(_) => Err(self.opened.engine.model().recipe().no_text().into()),
                };
                let text = Text::admit(request, told, place, &self.opened.engine, is_text);
                self.push(text.map(|text| Task::Text(Box::new(text))));
            }
            Job::Embed { request, told, place } => {
                let engine = &self.opened.engine;
                let vectors = Vectors::admit(request, told, place, engine);
                self.push(vectors.map(|vectors| Task::Vectors(Box::new(vectors))));
            }
        }
    }

    fn push(&mut self, task: Option<Task>) {
        task.into_iter().for_each(|task| self.turns.push(task));
    }

    /// Returns how many requests can have their turn at a time.
    fn seats(&self) -> usize {
        match &self.work {
            Work::Texts { sessions, .. } => sessions.seats(),
            Work::Vectors(_) => 1,
        }
    }

    /// Sees that each sequence which takes turns fits into a slot.
    fn fit(&mut self) {
        let Work::Texts { sessions, seats } = &mut self.work else { return };
        let n_ctx = self.opened.engine.model().recipe().sizes().n_ctx;
        let needs = |task: &Task| task.text().map_or(0, |text| text.sequence().needs(AHEAD).min(n_ctx));
        let begun = self.turns.begun();
        let (count, longest) = (begun.len(), begun.map(needs).max().unwrap_or(0));
        let Err(error) = seats.fit(longest, count, &self.opened.engine, sessions) else { return };
        if error.lost().is_some()
            && let Some(opened) = (self.reopen)()
            && let Ok(session) = opened.engine.session()
        {
            block_on(sessions.reduce_to(Some(session), opened.engine.host()));
            self.opened = opened;
            return;
        }
        let room = sessions.room();
        let why = match error {
            EngineError::Model(ModelError::Backend(why)) => why,
            other => backend_api::Error::Invalid(other.to_string()),
        };
        self.turns.retain(|task| match task {
            Task::Text(text) if text.sequence().needs(AHEAD).min(n_ctx) > room => {
                text.refuse(ModelError::Backend(why.clone()).into());
                false
            }
            _ => true,
        });
    }

    /// Gives requests a turn, sequences as one batch; returns those that go on.
    fn advance_all(&mut self, mut tasks: Vec<Task>) -> Vec<Task> {
        if tasks.len() < 2 {
            return tasks.pop().and_then(|task| self.advance(task)).into_iter().collect();
        }
        let texts = tasks.into_iter().filter_map(|task| if let Task::Text(text) = task { Some(*text) } else { None });
        let mut texts: Vec<Text> = texts.collect();
        for at in 0..texts.len() {
            let (before, rest) = texts.split_at_mut(at);
            if let Some((text, after)) = rest.split_first_mut() {
                self.begin(text, before.iter().chain(&*after));
            }
        }
        let Work::Texts { sessions, .. } = &mut self.work else { return Vec::new() };
        let count = texts.len();
        let others = || self.shared.requests.load(Ordering::Relaxed) > count;
        round::round(texts, &mut self.opened, sessions, self.slice, &others)
            .into_iter()
            .map(|text| Task::Text(Box::new(text)))
            .collect()
    }

    /// Names a sequence whose first turn comes, unlike all that are begun or in `beside`.
    fn begin<'a>(&mut self, text: &mut Text, beside: impl Iterator<Item = &'a Text>) {
        let Work::Texts { sessions, .. } = &self.work else { return };
        if text.is_new() {
            let begun = self.turns.begun().filter_map(Task::text);
            let mut used: Vec<&str> = begun.map(Text::name).collect();
            beside.for_each(|other| used.push(other.name()));
            self.count += 1;
            let known = name(sessions, text.sequence().text(), |name| used.contains(&name));
            text.begin(known.unwrap_or_else(|| self.count.to_string()));
        }
    }

    /// Gives a request a turn; returns it if it goes on.
    fn advance(&mut self, mut task: Task) -> Option<Task> {
        if let Task::Text(text) = &mut task {
            self.begin(text, std::iter::empty());
        }
        match (task, &mut self.work) {
            (Task::Text(text), Work::Texts { sessions, .. }) => {
                // A turn is only cut short if other requests exist.
                let others = || self.shared.requests.load(Ordering::Relaxed) > 1;
                let text = text.turn(&mut self.opened, sessions, self.slice, &others);
                text.map(|text| Task::Text(Box::new(text)))
            }
            (Task::Vectors(mut vectors), Work::Vectors(embedder)) => {
                let mut ended = vectors.turn(&self.opened.engine, embedder);
                if let Err(error) = &ended
                    && error.lost().is_some()
                    && self.reload()
                    && let Work::Vectors(embedder) = &mut self.work
                {
                    ended = vectors.turn(&self.opened.engine, embedder);
                }
                vectors.told(ended).map(|vectors| Task::Vectors(Box::new(vectors)))
            }
            // Requests that do not suit the model were refused by `admit`.
            (Task::Text(_), Work::Vectors(_)) | (Task::Vectors(_), Work::Texts { .. }) => None,
        }
    }

    /// Loads the model again, on the device that is best now; returns whether that worked.
    fn reload(&mut self) -> bool {
        let Some(opened) = (self.reopen)() else { return false };
        let Ok(embedder) = opened.engine.embedder() else { return false };
        self.work = Work::Vectors(Box::new(embedder));
        self.opened = opened;
        true
    }

    /// Updates the status, while so many requests have their turn.
    fn show(&self, at_work: usize) {
        let backend = self.opened.engine.backend();
        let (info, device_memory) = (backend.info(), backend.stats().memory);
        let begun = self.turns.begun().len() + at_work;
        let adapter = info.adapter.clone();
        *self.shared.status() =
            Status { backend: info.name, adapter, begun, waiting: self.turns.waiting(), device_memory };
    }
}

/// Prepares the model for its purpose, and returns how many requests can take turns.
fn work(engine: &Engine, limits: &Limits) -> Result<(Work, usize), EngineError> {
    let begun = limits.begun.max(1);
    let recipe = engine.model().recipe();
    if recipe.pooling().is_some() {
        return Ok((Work::Vectors(Box::new(engine.embedder()?)), begun));
    }
    recipe.makes_text()?;
    // At least one of them is on the device; the budget is for those in host memory.
    let footprint = Model::footprint(recipe, engine.backend())?;
    let [whole, weights] =
        [footprint.states.max(1), footprint.weights].map(|n| usize::try_from(n).unwrap_or(usize::MAX));
    let budget = limits.session_memory.unwrap_or(Sessions::BUDGET.max(whole.saturating_mul(begun - 1)));
    let begun = begun.min(1 + budget / whole);
    let least = if engine.backend().info().synchronous { TOGETHER_ON_CPU } else { TOGETHER };
    let memory = limits.batch_memory.unwrap_or(weights.max(least));
    let (seats, sessions) = Seats::open(engine, begun, memory, budget)?;
    Ok((Work::Texts { sessions: Box::new(sessions), seats }, begun))
}

/// Finds the sequence that a prompt continues: the one whose last request's prompt is the longest beginning of it. It
/// is the next turn of that conversation.
fn name(sessions: &Sessions, prompt: &[u32], is_used: impl Fn(&str) -> bool) -> Option<String> {
    let begins = |name: &str| {
        let asked = sessions.request(name)?.0.prompt;
        let before = sessions.tokens(name)?.get(..asked)?;
        (asked > 0 && prompt.starts_with(before)).then_some(asked)
    };
    let texts = sessions.list();
    let known =
        texts.iter().filter(|text| !is_used(text.name)).filter_map(|text| Some((begins(text.name)?, text.name)));
    known.max_by_key(|(asked, _)| *asked).map(|(_, name)| name.into())
}

/// Returns the time since `start`.
///
/// *Units*: milliseconds.
pub(super) fn since(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}
