//! Several texts that take turns on the device. The states of those that are not there wait in host memory, within a
//! budget; and a text begins with what any of them has computed of it already, such as a prompt that all have in
//! common.

use std::borrow::Cow;

use backend_api::run::Host;

use crate::error::ModelError;
use crate::request::{Sampling, SavedRequest};
use crate::session::{Session, common_prefix};
use crate::snapshot::Snapshot;

/// Bytes that a text takes besides its tokens and states, at most.
const OVERHEAD: usize = 4096;
/// Bytes of a name, at most.
const MAX_NAME: usize = 256;

/// What is known of one of several texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo<'a> {
    /// Its name.
    pub name: &'a str,
    /// Tokens of it, those included whose states are not there yet.
    pub tokens: usize,
    /// What it takes of the budget.
    ///
    /// *Units*: bytes.
    pub bytes: usize,
    /// Whether it is the one on the device.
    pub is_on_device: bool,
}

/// The text on the device.
#[derive(Debug, Default)]
struct Text {
    name: String,
    tokens: Vec<u32>,
    sampling: Option<Sampling>,
    request: Option<SavedRequest>,
}

/// A text in host memory. That of the text on the device stays, so that only what is new has to be read when it goes.
#[derive(Debug)]
struct Aside {
    name: String,
    snapshot: Snapshot,
    /// When it was used last, in turns.
    used: u64,
}

impl Aside {
    fn bytes(&self) -> usize {
        self.snapshot.bytes() + OVERHEAD
    }

    /// The same with other tokens behind those whose states are there.
    fn bytes_with(&self, tokens: &[u32]) -> usize {
        self.bytes() + 4 * tokens.len() - 4 * self.snapshot.tokens().len()
    }

    /// The tokens whose states are there.
    fn computed(&self) -> &[u32] {
        let snapshot = &self.snapshot;
        &snapshot.tokens()[..snapshot.header().position]
    }
}

/// Texts with names, which share one session on the device. A request goes to one of them: [`Self::turn_to`] brings it
/// to the device, then [`Self::session_mut`] generates, and [`Self::note`] takes note of the text.
pub struct Sessions {
    session: Session,
    budget: usize,
    turns: u64,
    text: Text,
    aside: Vec<Aside>,
}

impl Sessions {
    /// What texts that wait in host memory may take by default.
    ///
    /// *Units*: bytes.
    pub const BUDGET: usize = 256 << 20;

    /// No texts but the empty one, whose name is empty. `budget` is what texts that wait may take of host memory,
    /// tokens and states together; those that were not used for longest go first. 0 keeps none.
    ///
    /// *Units*: bytes.
    pub fn new(session: Session, budget: usize) -> Sessions {
        Sessions { session, budget, turns: 0, text: Text::default(), aside: Vec::new() }
    }

    /// The session on the device.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The same, to generate with.
    pub fn session_mut(&mut self) -> &mut Session {
        &mut self.session
    }

    /// The name of the text on the device.
    pub fn name(&self) -> &str {
        &self.text.name
    }

    /// The tokens of a text; none if there is no such text.
    pub fn tokens(&self, name: &str) -> Option<&[u32]> {
        if self.text.name == name {
            return Some(&self.text.tokens);
        }
        self.find(name).map(|at| self.aside[at].snapshot.tokens())
    }

    /// All texts, last used first.
    pub fn list(&self) -> Vec<SessionInfo<'_>> {
        let bytes = |name| self.find(name).map_or(0, |at| self.aside[at].bytes());
        let Text { name, tokens, .. } = &self.text;
        let mut all = vec![SessionInfo { name, tokens: tokens.len(), bytes: bytes(name), is_on_device: true }];
        let mut others: Vec<&Aside> = self.aside.iter().filter(|aside| aside.name != *name).collect();
        others.sort_by_key(|aside| std::cmp::Reverse(aside.used));
        all.extend(others.into_iter().map(|aside| SessionInfo {
            name: &aside.name,
            tokens: aside.snapshot.tokens().len(),
            bytes: aside.bytes(),
            is_on_device: false,
        }));
        all.retain(|info| info.tokens > 0);
        all
    }

    /// Makes a text the one on the device, as far as it helps with a prompt: the text that was there is set aside, by
    /// the rows that were not set aside before, and of all texts the one that begins like the prompt for longest gives
    /// its rows.
    ///
    /// *Errors*: a name of more than 256 bytes; the device was lost.
    pub async fn turn_to(&mut self, name: &str, prompt: &[u32], host: &dyn Host) -> Result<(), ModelError> {
        check(name)?;
        if self.text.name != name {
            self.set_aside(host).await?;
        }
        let session = &self.session;
        let reusable = |aside: &Aside| session.reusable_of(&aside.snapshot, prompt);
        let best = self.aside.iter().max_by_key(|aside| (reusable(aside), aside.used));
        if let Some(best) = best
            && let count = reusable(best)
            && count > session.reusable(prompt)
        {
            self.session.bring(&best.snapshot, count, host).await?;
        }
        self.text = Text { name: name.into(), tokens: prompt.to_vec(), ..Text::default() };
        self.turns += 1;
        if let Some(at) = self.find(name) {
            self.aside[at].used = self.turns;
        }
        Ok(())
    }

    /// Takes note of the text on the device after a generation: all of its tokens, how they were chosen, and what was
    /// asked, unless some of that had to make room.
    pub fn note(&mut self, tokens: Vec<u32>, sampling: Sampling, request: Option<SavedRequest>) {
        self.text.tokens = tokens;
        self.text.sampling = Some(sampling);
        self.text.request = request;
    }

    /// A text with its states; none if there is no such text.
    ///
    /// *Errors*: the device was lost.
    pub async fn export(&mut self, name: &str, host: &dyn Host) -> Result<Option<Cow<'_, Snapshot>>, ModelError> {
        if self.text.name != name {
            return Ok(self.find(name).map(|at| Cow::Borrowed(&self.aside[at].snapshot)));
        }
        Ok(Some(Cow::Owned(self.read(0, host).await?)))
    }

    /// Makes a saved text the one on the device, under a name.
    ///
    /// *Errors*: as [`Session::import`], or a name of more than 256 bytes; then all texts are as they were.
    pub async fn import(&mut self, name: &str, snapshot: &Snapshot, host: &dyn Host) -> Result<(), ModelError> {
        check(name)?;
        self.session.check(snapshot)?;
        if self.text.name != name {
            self.set_aside(host).await?;
        }
        self.session.import(snapshot, host).await?;
        let header = snapshot.header();
        self.text = Text {
            name: name.into(),
            tokens: snapshot.tokens().to_vec(),
            sampling: header.sampling,
            request: header.request.clone(),
        };
        Ok(())
    }

    /// What was asked of the last generation of a text, and how its tokens are chosen.
    pub fn request(&self, name: &str) -> Option<(&SavedRequest, Sampling)> {
        let (request, sampling) = if self.text.name == name {
            (self.text.request.as_ref(), self.text.sampling)
        } else {
            let header = self.aside[self.find(name)?].snapshot.header();
            (header.request.as_ref(), header.sampling)
        };
        request.zip(sampling)
    }

    /// Forgets a text; gives whether it was there.
    pub fn remove(&mut self, name: &str) -> bool {
        let before = self.aside.len();
        self.aside.retain(|aside| aside.name != name);
        let is_on_device = self.text.name == name && !self.text.tokens.is_empty();
        if self.text.name == name {
            self.session.rewind(0);
            self.text = Text::default();
        }
        is_on_device || self.aside.len() < before
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.aside.iter().position(|aside| aside.name == name)
    }

    /// Reads the text on the device, from a position on.
    async fn read(&mut self, from: usize, host: &dyn Host) -> Result<Snapshot, ModelError> {
        let Text { tokens, sampling, request, .. } = &self.text;
        let mut snapshot = self.session.export(tokens, from, host).await?;
        sampling.iter().for_each(|sampling| snapshot.set_sampling(*sampling));
        request.iter().for_each(|request| snapshot.set_request(request.clone()));
        Ok(snapshot)
    }

    /// Copies what is new of the text on the device to host memory.
    async fn set_aside(&mut self, host: &dyn Host) -> Result<(), ModelError> {
        let position = self.session.saves(&self.text.tokens);
        let own = self.find(&self.text.name);
        let known = own.map_or(0, |at| common_prefix(self.aside[at].computed(), &self.text.tokens));
        // Of states that steps rewrite, an earlier copy may be of a later position than can be gone back to now.
        if let Some(at) = own.filter(|at| known > position && known == self.aside[*at].computed().len()) {
            let bytes = self.aside[at].bytes_with(&self.text.tokens);
            if !self.make_room(bytes) {
                self.forget_copy();
            } else if let Some(at) = self.find(&self.text.name) {
                let Text { tokens, sampling, request, .. } = &self.text;
                self.aside[at].snapshot.set_text(tokens, *sampling, request.clone());
            }
            return Ok(());
        }
        if position == 0 || !self.make_room(self.session.snapshot_bytes(&self.text.tokens)? + OVERHEAD) {
            self.forget_copy();
            return Ok(());
        }
        let from = known.min(position);
        let part = match self.read(from, host).await {
            Ok(part) => part,
            Err(ModelError::Backend(lost @ backend_api::Error::Lost(_))) => return Err(lost.into()),
            // A text that cannot be read is computed again when its turn comes.
            Err(_) => {
                self.forget_copy();
                return Ok(());
            }
        };
        match own.and_then(|_| self.find(&self.text.name)) {
            Some(at) if from > 0 => self.aside[at].snapshot.extend(part)?,
            found => {
                found.into_iter().for_each(|at| drop(self.aside.swap_remove(at)));
                // It was on the device until now.
                self.aside.push(Aside { name: self.text.name.clone(), snapshot: part, used: self.turns });
            }
        }
        Ok(())
    }

    /// Forgets what was set aside of the text on the device earlier.
    fn forget_copy(&mut self) {
        let name = &self.text.name;
        self.aside.retain(|aside| aside.name != *name);
    }

    /// Makes room for the text on the device to have so many bytes in host memory; says whether there is. The texts
    /// that were not used for longest go.
    fn make_room(&mut self, bytes: usize) -> bool {
        let name = &self.text.name;
        if bytes > self.budget {
            return false;
        }
        let others = |all: &[Aside]| all.iter().filter(|a| a.name != *name).map(Aside::bytes).sum::<usize>();
        while others(&self.aside) > self.budget - bytes {
            let oldest = self.aside.iter().enumerate().filter(|(_, aside)| aside.name != *name);
            let Some((at, _)) = oldest.min_by_key(|(_, aside)| aside.used) else { break };
            self.aside.swap_remove(at);
        }
        true
    }
}

fn check(name: &str) -> Result<(), ModelError> {
    if name.len() > MAX_NAME {
        let why =
            format!("the session's name has {} bytes, and may have {MAX_NAME}; give it a shorter one", name.len());
        return Err(ModelError::Options(why));
    }
    Ok(())
}
