//! A step, and what comes of it.

use crate::{ProtoError, Seam, Wire, check::Check, limits};

/// How the last stage chooses the token after its last row.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Sampling {
    /// 0 is the best token.
    #[prost(float, tag = "1")]
    pub temperature: f32,
    /// Candidates that are kept; 0 keeps all.
    #[prost(uint32, tag = "2")]
    pub top_k: u32,
    /// Probability that kept candidates have together.
    #[prost(float, tag = "3")]
    pub top_p: f32,
    /// Chances are a hash of this and the position, so a token is the same whoever samples it.
    #[prost(uint64, tag = "4")]
    pub seed: u64,
}

/// Where a step goes next.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct Hop {
    /// The lease that the step will name there; empty for [`out`](crate::subject::out).
    #[prost(string, tag = "1")]
    pub lease: String,
    /// The subject to send to.
    #[prost(string, tag = "2")]
    pub subject: String,
}

/// One step of one session: rows [position, position + rows). The first stage takes tokens, others activations.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Step {
    /// The session.
    #[prost(uint64, tag = "1")]
    pub session: u64,
    /// The chain's epoch: what is older than a stage's own is refused.
    #[prost(uint64, tag = "2")]
    pub epoch: u64,
    /// The lease under which the receiver has the session.
    #[prost(string, tag = "3")]
    pub lease: String,
    /// The position of the first row.
    #[prost(uint32, tag = "4")]
    pub position: u32,
    /// Number of rows.
    #[prost(uint32, tag = "5")]
    pub rows: u32,
    /// Numbers of a row of activations; 0 with tokens.
    #[prost(uint32, tag = "6")]
    pub width: u32,
    /// Number format of activations, here and at every later seam.
    #[prost(enumeration = "Seam", tag = "7")]
    pub seam: i32,
    /// Token ids `[rows]`, for the first stage.
    #[prost(uint32, repeated, tag = "8")]
    pub tokens: Vec<u32>,
    /// Activations `[rows, width]`, little endian, for the others.
    #[prost(bytes = "vec", tag = "9")]
    pub activations: Vec<u8>,
    /// For the last stage, if a token is wanted after the last row.
    #[prost(message, optional, tag = "10")]
    pub sampling: Option<Sampling>,
    /// States only: the output is kept and not sent on.
    #[prost(bool, tag = "11")]
    pub replay: bool,
    /// Where the output goes, the next first. Each stage takes its own off. Without one the output goes where that of an
    /// earlier step of the epoch went.
    #[prost(message, repeated, tag = "12")]
    pub route: Vec<Hop>,
}

impl Wire for Step {
    const NAME: &'static str = "Step";
    const BYTES: usize = limits::MESSAGE_BYTES;

    fn check(&self) -> Result<(), ProtoError> {
        let check = Check(Self::NAME);
        check.name("lease", &self.lease)?;
        check.at_most("rows", self.rows.into(), limits::ROWS.into())?;
        check.holds("rows", self.rows > 0, "must be 1 at least")?;
        let end = u64::from(self.position) + u64::from(self.rows);
        check.at_most("position + rows", end, limits::CONTEXT.into())?;
        let seam = Seam::check(self.seam, &check)?;
        if self.tokens.is_empty() {
            check.at_most("width", self.width.into(), limits::WIDTH.into())?;
            check.holds("width", self.width > 0, "must be 1 at least, or tokens given")?;
            let bytes = u64::from(self.rows) * u64::from(self.width) * u64::from(seam.bytes());
            check.holds("activations", self.activations.len() as u64 == bytes, "must be rows x width numbers")?;
        } else {
            check.holds("tokens", self.tokens.len() as u64 == u64::from(self.rows), "must be one for each row")?;
            check.holds("activations", self.activations.is_empty() && self.width == 0, "must not come with tokens")?;
        }
        if let Some(sampling) = &self.sampling {
            let good = sampling.temperature.is_finite() && sampling.temperature >= 0.0;
            check.holds("temperature", good, "must be finite and not negative")?;
            check.holds("top_p", sampling.top_p > 0.0 && sampling.top_p <= 1.0, "must be above 0 and at most 1")?;
        }
        check.at_most("route", self.route.len() as u64, limits::STAGES as u64)?;
        for hop in &self.route {
            check.subject("route.subject", &hop.subject)?;
            if !hop.lease.is_empty() {
                check.name("route.lease", &hop.lease)?;
            }
        }
        Ok(())
    }
}

/// A step is through a stage: for the coordinator's deadlines.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StepDone {
    /// The session.
    #[prost(uint64, tag = "1")]
    pub session: u64,
    /// The step's epoch.
    #[prost(uint64, tag = "2")]
    pub epoch: u64,
    /// The step's position.
    #[prost(uint32, tag = "3")]
    pub position: u32,
    /// The step's rows.
    #[prost(uint32, tag = "4")]
    pub rows: u32,
    /// Time that it took here, in microseconds.
    #[prost(uint32, tag = "5")]
    pub micros: u32,
}

impl Wire for StepDone {
    const NAME: &'static str = "StepDone";

    fn check(&self) -> Result<(), ProtoError> {
        let check = Check(Self::NAME);
        check.at_most("rows", self.rows.into(), limits::ROWS.into())?;
        check.at_most("position", self.position.into(), limits::CONTEXT.into())
    }
}

/// A token of the last stage.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Token {
    /// The session.
    #[prost(uint64, tag = "1")]
    pub session: u64,
    /// The step's epoch.
    #[prost(uint64, tag = "2")]
    pub epoch: u64,
    /// The token's own position: the one after the step's last row.
    #[prost(uint32, tag = "3")]
    pub position: u32,
    /// The token.
    #[prost(uint32, tag = "4")]
    pub id: u32,
    /// Difference of the two best logits: what is near 0 may fall either way on another backend.
    #[prost(float, tag = "5")]
    pub margin: f32,
}

impl Wire for Token {
    const NAME: &'static str = "Token";

    fn check(&self) -> Result<(), ProtoError> {
        let check = Check(Self::NAME);
        check.holds("margin", self.margin >= 0.0, "must be a number and not negative")?;
        check.at_most("position", self.position.into(), limits::CONTEXT.into())
    }
}
