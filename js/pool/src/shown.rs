//! State of a worker for people: read from the messages that it receives and sends.

use anygpu_pool_proto::{Assigned, Control, Failure, Range, Reply, Wire, control, reply};
use serde::Serialize;

/// A worker's part, and how far it is.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Shown {
    part: Option<Part>,
    /// Median time of a row through a block; 0 until it was measured.
    ///
    /// *Units*: microseconds.
    pub block_micros: u32,
    /// Texts whose states it holds.
    pub sessions: u32,
    /// Steps that went through.
    pub steps: u64,
    /// The last refusal, with its reason.
    refused: Option<String>,
}

/// A range of blocks.
#[derive(Debug, Clone, Serialize)]
struct Part {
    first: u32,
    end: u32,
    embedding: bool,
    head: bool,
    /// Bytes of weights: how many are there, and of how many.
    fetched: u64,
    total: u64,
    ready: bool,
}

impl Part {
    fn of(Range { first, end, embedding, head }: Range) -> Part {
        Part { first, end, embedding, head, fetched: 0, total: 0, ready: false }
    }
}

impl Shown {
    /// Something was asked.
    pub fn asked(&mut self, payload: &[u8]) {
        match Control::from_wire(payload).ok().and_then(|control| control.what) {
            Some(control::What::Assign(assign)) => {
                self.part = assign.range.map(Part::of);
                self.refused = None;
            }
            Some(control::What::Release(_)) => self.part = None,
            _ => {}
        }
    }

    /// Something was answered, or said as it went on.
    pub fn said(&mut self, payload: &[u8]) {
        match Reply::from_wire(payload).ok().and_then(|reply| reply.what) {
            Some(reply::What::Assigned(Assigned { fetched, total, ready, .. })) => {
                if let Some(part) = &mut self.part {
                    (part.fetched, part.total, part.ready) = (fetched, total, ready);
                }
            }
            Some(reply::What::Failure(Failure { session, detail, .. })) => {
                self.refused = Some(detail);
                // What a text alone is refused leaves the part as it is.
                if session == 0 && self.part.as_ref().is_some_and(|part| !part.ready) {
                    self.part = None;
                }
            }
            _ => {}
        }
    }
}
