//! Requests of the coordinator to a worker, and its replies.

use crate::{ProtoError, Range, Seam, Wire, check::Check, limits};

/// Coordinator to a worker.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Control {
    /// Kind of request.
    #[prost(oneof = "control::What", tags = "1, 2, 3, 4, 5, 7")]
    pub what: Option<control::What>,
}

/// Kinds of requests of [`Control`].
pub mod control {
    /// One of these.
    #[derive(Clone, PartialEq, prost::Oneof)]
    #[allow(missing_docs, reason = "each is the message of its name")]
    pub enum What {
        #[prost(message, tag = "1")]
        Assign(super::Assign),
        #[prost(message, tag = "2")]
        Open(super::Open),
        #[prost(message, tag = "3")]
        Drop(super::Drop),
        #[prost(message, tag = "4")]
        Export(super::Export),
        #[prost(message, tag = "5")]
        Replay(super::Replay),
        #[prost(message, tag = "7")]
        Release(super::Release),
    }
}

impl Wire for Control {
    const NAME: &'static str = "Control";

    fn check(&self) -> Result<(), ProtoError> {
        match &self.what {
            None => Check(Self::NAME).holds("what", false, "must ask something that this version knows"),
            Some(control::What::Assign(it)) => it.check(),
            Some(control::What::Open(it)) => it.check(),
            Some(control::What::Drop(it)) => it.check(),
            Some(control::What::Export(it)) => it.check(),
            Some(control::What::Replay(it)) => it.check(),
            Some(control::What::Release(it)) => it.check(),
        }
    }
}

/// A worker's answer.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Reply {
    /// Kind of reply.
    #[prost(oneof = "reply::What", tags = "1, 2, 3")]
    pub what: Option<reply::What>,
}

/// Kinds of replies of [`Reply`].
pub mod reply {
    /// One of these.
    #[derive(Clone, PartialEq, prost::Oneof)]
    #[allow(missing_docs, reason = "each is the message of its name")]
    pub enum What {
        #[prost(message, tag = "1")]
        Assigned(super::Assigned),
        #[prost(message, tag = "2")]
        Done(super::Done),
        #[prost(message, tag = "3")]
        Failure(super::Failure),
    }
}

impl Wire for Reply {
    const NAME: &'static str = "Reply";

    fn check(&self) -> Result<(), ProtoError> {
        match &self.what {
            None => Check(Self::NAME).holds("what", false, "must answer something that this version knows"),
            Some(reply::What::Assigned(it)) => it.check(),
            Some(reply::What::Done(it)) => it.check(),
            Some(reply::What::Failure(it)) => it.check(),
        }
    }
}

/// Fetch, load and compile a range.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Assign {
    /// The chain's epoch.
    #[prost(uint64, tag = "1")]
    pub epoch: u64,
    /// Where the file is, for ranges by HTTP.
    #[prost(string, tag = "2")]
    pub address: String,
    /// The model's digest: that of its encoded [`Manifest`](crate::Manifest).
    #[prost(bytes = "vec", tag = "3")]
    pub model: Vec<u8>,
    /// Blocks to compute.
    #[prost(message, optional, tag = "4")]
    pub range: Option<Range>,
    /// Number format of activations between stages.
    #[prost(enumeration = "Seam", tag = "5")]
    pub seam: i32,
    /// Positions of a session.
    #[prost(uint32, tag = "6")]
    pub context: u32,
    /// Sessions to hold states for.
    #[prost(uint32, tag = "7")]
    pub sessions: u32,
    /// Blocks that the head takes as long as: what a stage with it is measured at is divided by them as well.
    #[prost(double, tag = "8")]
    pub head_blocks: f64,
}

impl Wire for Assign {
    const NAME: &'static str = "Assign";

    fn check(&self) -> Result<(), ProtoError> {
        let check = Check(Self::NAME);
        check.at_most("address", self.address.len() as u64, limits::ADDRESS_BYTES as u64)?;
        check.digest("model", &self.model)?;
        check.holds("range", self.range.is_some(), "must be given")?;
        check.at_most("context", self.context.into(), limits::CONTEXT.into())?;
        check.holds("context", self.context > 0, "must be 1 at least")?;
        check.at_most("sessions", self.sessions.into(), limits::SESSIONS.into())?;
        check.holds("sessions", self.sessions > 0, "must be 1 at least")?;
        check.holds("head_blocks", (0.0..f64::INFINITY).contains(&self.head_blocks), "must be a number of blocks")?;
        Seam::check(self.seam, &check)?;
        self.range.iter().try_for_each(Range::check)
    }
}

/// How far an [`Assign`] is.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Assigned {
    /// The chain's epoch.
    #[prost(uint64, tag = "1")]
    pub epoch: u64,
    /// Bytes of weights that are there.
    #[prost(uint64, tag = "2")]
    pub fetched: u64,
    /// Bytes of weights that the range has.
    #[prost(uint64, tag = "3")]
    pub total: u64,
    /// Whether all is fetched, checked and compiled.
    #[prost(bool, tag = "4")]
    pub ready: bool,
    /// Measured time of one row through one block, in microseconds, once ready; 0 if the range has nothing to measure.
    #[prost(uint32, tag = "5")]
    pub block_micros: u32,
}

impl Wire for Assigned {
    const NAME: &'static str = "Assigned";

    fn check(&self) -> Result<(), ProtoError> {
        Check(Self::NAME).holds("fetched", self.fetched <= self.total, "must not be more than total")
    }
}

/// Give back an [`Assign`]'s memory, its sessions' included.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Release {
    /// The assignment.
    #[prost(uint64, tag = "1")]
    pub epoch: u64,
}

impl Wire for Release {
    const NAME: &'static str = "Release";

    fn check(&self) -> Result<(), ProtoError> {
        Ok(())
    }
}

/// Make states for a session.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Open {
    /// The session.
    #[prost(uint64, tag = "1")]
    pub session: u64,
    /// The chain's epoch.
    #[prost(uint64, tag = "2")]
    pub epoch: u64,
    /// The lease that its steps will name.
    #[prost(string, tag = "3")]
    pub lease: String,
}

impl Wire for Open {
    const NAME: &'static str = "Open";

    fn check(&self) -> Result<(), ProtoError> {
        Check(Self::NAME).name("lease", &self.lease)
    }
}

/// Forget a session.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Drop {
    /// The session.
    #[prost(uint64, tag = "1")]
    pub session: u64,
    /// The chain's epoch.
    #[prost(uint64, tag = "2")]
    pub epoch: u64,
}

impl Wire for Drop {
    const NAME: &'static str = "Drop";

    fn check(&self) -> Result<(), ProtoError> {
        Ok(())
    }
}

/// Send a snapshot of a session's states, as [`Import`], to a subject.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Export {
    /// The session.
    #[prost(uint64, tag = "1")]
    pub session: u64,
    /// The chain's epoch.
    #[prost(uint64, tag = "2")]
    pub epoch: u64,
    /// The [`lease`](crate::subject::lease) subject that takes it.
    #[prost(string, tag = "3")]
    pub to: String,
}

impl Wire for Export {
    const NAME: &'static str = "Export";

    fn check(&self) -> Result<(), ProtoError> {
        Check(Self::NAME).subject("to", &self.to)
    }
}

/// States of a session at a position. They are not trusted: their form is checked where they are loaded.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Import {
    /// The session.
    #[prost(uint64, tag = "1")]
    pub session: u64,
    /// The chain's epoch.
    #[prost(uint64, tag = "2")]
    pub epoch: u64,
    /// The lease under which the receiver has the session.
    #[prost(string, tag = "3")]
    pub lease: String,
    /// Rows that the states have seen.
    #[prost(uint32, tag = "4")]
    pub position: u32,
    /// The states.
    #[prost(bytes = "vec", tag = "5")]
    pub snapshot: Vec<u8>,
}

impl Wire for Import {
    const NAME: &'static str = "Import";
    const BYTES: usize = limits::MESSAGE_BYTES;

    fn check(&self) -> Result<(), ProtoError> {
        let check = Check(Self::NAME);
        check.name("lease", &self.lease)?;
        check.holds("snapshot", !self.snapshot.is_empty(), "must be given")?;
        check.at_most("position", self.position.into(), limits::CONTEXT.into())
    }
}

/// Send kept outputs of rows [from, to) again, as steps of states only, to who takes over the next stage.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Replay {
    /// The session.
    #[prost(uint64, tag = "1")]
    pub session: u64,
    /// The chain's epoch.
    #[prost(uint64, tag = "2")]
    pub epoch: u64,
    /// The first row.
    #[prost(uint32, tag = "3")]
    pub from: u32,
    /// The row after the last.
    #[prost(uint32, tag = "4")]
    pub to: u32,
    /// The lease that those steps name.
    #[prost(string, tag = "5")]
    pub lease: String,
    /// The subject that they go to.
    #[prost(string, tag = "6")]
    pub subject: String,
}

impl Wire for Replay {
    const NAME: &'static str = "Replay";

    fn check(&self) -> Result<(), ProtoError> {
        let check = Check(Self::NAME);
        check.rows("to", self.from, self.to)?;
        check.name("lease", &self.lease)?;
        check.subject("subject", &self.subject)
    }
}

/// A session was opened, dropped, imported, exported or replayed.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Done {
    /// The session.
    #[prost(uint64, tag = "1")]
    pub session: u64,
    /// The chain's epoch.
    #[prost(uint64, tag = "2")]
    pub epoch: u64,
    /// Rows that its states have seen.
    #[prost(uint32, tag = "3")]
    pub position: u32,
}

impl Wire for Done {
    const NAME: &'static str = "Done";

    fn check(&self) -> Result<(), ProtoError> {
        Check(Self::NAME).at_most("position", self.position.into(), limits::CONTEXT.into())
    }
}

/// Why something was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum Reason {
    /// Not said; refused.
    Unspecified = 0,
    /// The message was not accepted.
    Malformed = 1,
    /// The epoch or the lease is not the one in force.
    Stale = 2,
    /// No such session here.
    UnknownSession = 3,
    /// The step does not continue the session's states.
    OutOfOrder = 4,
    /// Memory did not suffice.
    OutOfMemory = 5,
    /// Weights could not be fetched.
    Fetch = 6,
    /// Weights are not those of the digest.
    Digest = 7,
    /// The device was lost.
    DeviceLost = 8,
    /// The worker is about to leave: its page is hidden or closed.
    Leaving = 9,
    /// The worker was found to compute something else.
    Banned = 10,
}

/// Something was not done.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Failure {
    /// The session, or 0.
    #[prost(uint64, tag = "1")]
    pub session: u64,
    /// The epoch of what was asked.
    #[prost(uint64, tag = "2")]
    pub epoch: u64,
    /// Why.
    #[prost(enumeration = "Reason", tag = "3")]
    pub reason: i32,
    /// In words, for a person.
    #[prost(string, tag = "4")]
    pub detail: String,
}

impl Wire for Failure {
    const NAME: &'static str = "Failure";

    fn check(&self) -> Result<(), ProtoError> {
        let check = Check(Self::NAME);
        let reason = Reason::try_from(self.reason).unwrap_or(Reason::Unspecified);
        check.holds("reason", reason != Reason::Unspecified, "must be one that this version knows")?;
        check.at_most("detail", self.detail.len() as u64, limits::DETAIL_BYTES as u64)
    }
}
