//! The message in which a worker describes itself: when it joins, and from time to time.

use crate::{ProtoError, Range, VERSION, Wire, check::Check, limits};

/// Backend that computes a worker's blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum Rung {
    /// Not said; refused.
    Unspecified = 0,
    /// The CPU.
    Cpu = 1,
    /// WebGL2 or GLES 3.
    Webgl = 2,
    /// WebGPU.
    Webgpu = 3,
}

/// A worker says what it is and can. *Units*: microseconds, bytes, bytes a second.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Hello {
    /// [`VERSION`].
    #[prost(uint32, tag = "1")]
    pub version: u32,
    /// Backend that computes.
    #[prost(enumeration = "Rung", tag = "2")]
    pub rung: i32,
    /// Bytes that weights, states and programs may take.
    #[prost(uint64, tag = "3")]
    pub memory: u64,
    /// Measured time of one row through one block.
    #[prost(uint32, tag = "4")]
    pub block_micros: u32,
    /// Measured rate of a download.
    #[prost(uint64, tag = "5")]
    pub bandwidth: u64,
    /// Time of a message to the broker and back: the shortest of a few echoes, measured once when it connects.
    #[prost(uint32, tag = "6")]
    pub hop_micros: u32,
    /// Sessions that it would hold states for.
    #[prost(uint32, tag = "7")]
    pub sessions: u32,
    /// The digest of the model that `cached` is of, or nothing.
    #[prost(bytes = "vec", tag = "8")]
    pub model: Vec<u8>,
    /// Ranges whose weights it has.
    #[prost(message, repeated, tag = "9")]
    pub cached: Vec<Range>,
    /// The broker's names of its server and of the connection, with a slash between them: the broker says which one was
    /// closed.
    #[prost(string, tag = "10")]
    pub connection: String,
    /// The name that it has, by an earlier hello or by its own choice of 64 random bits; nothing if it is to be given one.
    #[prost(string, tag = "11")]
    pub worker: String,
    /// Key that lets it see tokens, in a pool where not everybody may; or nothing.
    #[prost(string, tag = "12")]
    pub ends: String,
}

impl Wire for Hello {
    const NAME: &'static str = "Hello";

    fn check(&self) -> Result<(), ProtoError> {
        let check = Check(Self::NAME);
        check.holds("version", self.version == VERSION, "is not the one spoken here; update the older side")?;
        let rung = Rung::try_from(self.rung).unwrap_or(Rung::Unspecified);
        check.holds("rung", rung != Rung::Unspecified, "must be cpu, webgl or webgpu")?;
        check.holds("block_micros", self.block_micros > 0, "must be measured")?;
        check.holds("bandwidth", self.bandwidth > 0, "must be measured")?;
        check.holds("sessions", self.sessions > 0, "must be 1 at least")?;
        check.at_most("sessions", self.sessions.into(), limits::SESSIONS.into())?;
        check.at_most("cached", self.cached.len() as u64, limits::CACHED as u64)?;
        if !self.cached.is_empty() {
            check.digest("model", &self.model)?;
        }
        check.at_most("connection", self.connection.len() as u64, limits::NAME_BYTES as u64)?;
        check.at_most("ends", self.ends.len() as u64, limits::NAME_BYTES as u64)?;
        if !self.worker.is_empty() {
            check.name("worker", &self.worker)?;
        }
        self.cached.iter().try_for_each(Range::check)
    }
}

/// The coordinator's answer.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Welcome {
    /// The worker's name, which its subjects have.
    #[prost(string, tag = "1")]
    pub worker: String,
    /// Time between two heartbeats, in milliseconds.
    #[prost(uint32, tag = "2")]
    pub heartbeat_millis: u32,
}

impl Wire for Welcome {
    const NAME: &'static str = "Welcome";

    fn check(&self) -> Result<(), ProtoError> {
        let check = Check(Self::NAME);
        check.name("worker", &self.worker)?;
        check.holds("heartbeat_millis", self.heartbeat_millis > 0, "must be a time")
    }
}

/// A worker is there. *Units*: microseconds, bytes.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Heartbeat {
    /// Median time of one row through one block.
    #[prost(uint32, tag = "1")]
    pub block_micros: u32,
    /// Time of a message to the broker and back, as the hello had it.
    #[prost(uint32, tag = "2")]
    pub hop_micros: u32,
    /// Bytes that are free of those that it offered.
    #[prost(uint64, tag = "3")]
    pub memory_free: u64,
    /// Whether its page is seen: hidden ones are throttled soon.
    #[prost(bool, tag = "4")]
    pub visible: bool,
    /// Sessions that it has.
    #[prost(uint32, tag = "5")]
    pub sessions: u32,
    /// As in [`Hello`]: after a break it is another.
    #[prost(string, tag = "6")]
    pub connection: String,
}

impl Wire for Heartbeat {
    const NAME: &'static str = "Heartbeat";

    fn check(&self) -> Result<(), ProtoError> {
        let check = Check(Self::NAME);
        check.at_most("connection", self.connection.len() as u64, limits::NAME_BYTES as u64)?;
        check.at_most("sessions", self.sessions.into(), limits::SESSIONS.into())
    }
}
