//! A text in a worker's stage.

use anygpu::{GenerateOptions, Host, ModelError, Sampling, StageOutput, StageSession, StageStep};
use anygpu_pool_proto::{Hop, Reason, Step};

use crate::Refused;

/// The states of a text, and what the stage has to be able to say again.
pub(crate) struct Held {
    /// The latest epoch that was heard of.
    pub epoch: u64,
    /// Lease that senders of steps must name.
    pub lease: String,
    pub session: StageSession,
    /// How the last token was chosen.
    sampling: Option<anygpu_pool_proto::Sampling>,
    kept: Kept,
    /// Where steps of an epoch go next.
    next: Option<(u64, Hop)>,
}

/// Rows that were handed over: the stage that follows may be lost, and computed again from them.
#[derive(Default)]
struct Kept {
    /// The position of the first row.
    first: usize,
    bytes: Vec<u8>,
}

impl Kept {
    /// Rows from a position on, in the place of what was there.
    fn put(&mut self, position: usize, row: usize, bytes: &[u8]) {
        if position < self.first || position > self.first + self.bytes.len() / row {
            *self = Kept { first: position, bytes: Vec::new() };
        }
        self.bytes.truncate((position - self.first) * row);
        self.bytes.extend(bytes);
    }

    fn get(&self, from: usize, to: usize, row: usize) -> Option<&[u8]> {
        let from = from.checked_sub(self.first)?.checked_mul(row)?;
        self.bytes.get(from..to.checked_sub(self.first)?.checked_mul(row)?)
    }
}

/// How the last stage chooses.
pub(crate) fn chosen(it: &anygpu_pool_proto::Sampling) -> GenerateOptions {
    let (temperature, top_k, top_p, seed) = (it.temperature, it.top_k, it.top_p, it.seed);
    let sampling = Sampling::Random { temperature, top_k, top_p, seed };
    // Of the two likeliest tokens is told how near they were.
    GenerateOptions { sampling, log_probs: Some(2), ..GenerateOptions::default() }
}

impl Held {
    pub fn new(epoch: u64, lease: String, session: StageSession) -> Held {
        Held { epoch, lease, session, sampling: None, kept: Kept::default(), next: None }
    }

    /// Refuses what is not under the lease, or older than what was heard.
    pub fn admit(&mut self, epoch: u64, lease: &str) -> Result<(), Refused> {
        if lease != self.lease || epoch < self.epoch {
            return Err(Refused::new(Reason::Stale, "the lease or the epoch is past; ask the coordinator anew"));
        }
        self.epoch = epoch;
        Ok(())
    }

    fn row(&self) -> usize {
        self.session.model().recipe().hidden() * self.session.seam().bytes()
    }

    /// Takes a step, and keeps what it gave.
    pub async fn step(&mut self, step: &Step, host: &dyn Host) -> Result<StageOutput, Refused> {
        let choose = step.sampling.is_some() && !step.replay && self.session.model().recipe().stage().head;
        if let Some(it) = step.sampling.filter(|it| choose && self.sampling != Some(*it)) {
            self.session.choose(&chosen(&it), 0)?;
            self.sampling = Some(it);
        }
        let position = step.position as usize;
        if step.replay && position < self.session.position() {
            // Sent again from further back than what is here, such as a later snapshot than was counted on.
            self.session.rewind(position)?;
        }
        if let Some(output) = self.before(step) {
            return Ok(output);
        }
        let given = StageStep { position, tokens: &step.tokens, hidden: &step.activations, choose };
        let output = self.session.step(&given, host).await?;
        if let StageOutput::Hidden(bytes) = &output {
            let row = self.row();
            self.kept.put(position, row, bytes);
        }
        Ok(output)
    }

    /// Returns the output of a step that was taken before: several steps of a prompt are under way, and those that a
    /// later stage lost are all sent again.
    fn before(&self, step: &Step) -> Option<StageOutput> {
        let (from, to) = (step.position, step.position.checked_add(step.rows)?);
        if (to as usize) >= self.session.position() {
            return None;
        }
        match self.session.model().recipe().stage().head {
            true => Some(StageOutput::Nothing),
            false => Some(StageOutput::Hidden(self.handed(from, to).ok()?.to_vec())),
        }
    }

    /// Where a step goes next: as its route says, or as that of an earlier one of its epoch did.
    pub fn next(&mut self, epoch: u64, route: &[Hop]) -> Option<Hop> {
        if let Some(hop) = route.first() {
            self.next = Some((epoch, hop.clone()));
        }
        self.next.as_ref().filter(|(of, _)| *of == epoch).map(|(_, hop)| hop.clone())
    }

    /// Returns the rows that were handed over.
    pub fn handed(&self, from: u32, to: u32) -> Result<&[u8], Refused> {
        let missing =
            || Refused::new(Reason::OutOfOrder, format!("rows {from} to {to} are not kept here; begin earlier"));
        self.kept.get(from as usize, to as usize, self.row()).ok_or_else(missing)
    }

    /// Goes on from states of elsewhere.
    pub async fn import(&mut self, snapshot: &[u8], position: u32, host: &dyn Host) -> Result<(), Refused> {
        let snapshot = anygpu::Snapshot::from_bytes(snapshot).map_err(ModelError::from)?;
        if snapshot.header().position != position as usize {
            return Err(Refused::new(Reason::Malformed, "the states are of another position; send them again"));
        }
        self.session.import(&snapshot, host).await?;
        self.kept = Kept { first: position as usize, bytes: Vec::new() };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_kept_from_where_they_follow() {
        let mut kept = Kept::default();
        kept.put(0, 2, &[0, 1, 2, 3]);
        kept.put(2, 2, &[4, 5]);
        assert_eq!(kept.get(1, 3, 2), Some(&[2, 3, 4, 5][..]));
        assert_eq!(kept.get(1, 4, 2), None);
        kept.put(1, 2, &[9, 9]);
        assert_eq!(kept.get(0, 2, 2), Some(&[0, 1, 9, 9][..]));
        assert_eq!(kept.get(2, 3, 2), None);
        kept.put(7, 2, &[7, 7]);
        assert_eq!((kept.get(7, 8, 2), kept.get(6, 8, 2), kept.get(9, 8, 2)), (Some(&[7, 7][..]), None, None));
    }
}
