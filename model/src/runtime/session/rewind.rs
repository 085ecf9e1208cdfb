//! Rewinding of sessions with recurrent states. Rows of the KV cache simply stay where they are, but a recurrent state
//! can continue only from its current position or from a checkpoint. Checkpoints are the empty text, whose states are
//! zeros, and a few copies of all recurrent states on the host, for positions to which texts are rewound.

use backend_api::run::{Host, finish_read, read_rows};
use backend_api::{Backend, Error, ReadId, StorageId, Tensor, Update};

/// Most copies that are kept; those of the earliest positions are dropped.
const COPIES: usize = 4;

/// A recurrent state.
#[derive(Debug)]
struct State {
    name: String,
    id: StorageId,
    rows: usize,
    bytes: usize,
}

/// A copy of all recurrent states at a position.
#[derive(Debug)]
struct Copy {
    position: usize,
    states: Vec<Vec<u8>>,
}

/// Recurrent states of a session, their position, and copies of them.
#[derive(Debug, Default)]
pub(crate) struct Rewritten {
    states: Vec<State>,
    /// Number of tokens that they have processed.
    position: usize,
    /// Copies in the order of their positions, all within the text.
    copies: Vec<Copy>,
    /// Pending reads of a copy, and its position unless the text was rewound to before it.
    under_way: Option<(Option<usize>, Vec<ReadId>)>,
}

impl Rewritten {
    /// Adds a state, which is zero, if it is recurrent.
    pub fn add(&mut self, id: StorageId, state: &Tensor, update: Update) -> Result<(), Error> {
        match update {
            Update::Append | Update::ByCaller => {}
            Update::Replace => {
                let rows = state.shape.rows();
                let bytes = state.dtype.row_bytes(state.shape.cols())? * rows;
                self.states.push(State { name: state.name.clone(), id, rows, bytes });
            }
        }
        Ok(())
    }

    /// Returns whether there are no recurrent states.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// Records a step that ends at a position.
    pub fn moved_to(&mut self, position: usize) {
        self.position = position;
    }

    /// Drops the copies after a position, to which the text was rewound.
    pub fn cut(&mut self, position: usize) {
        self.copies.retain(|copy| copy.position <= position);
        if let Some((of, _)) = &mut self.under_way {
            *of = of.filter(|of| *of <= position);
        }
    }

    /// Returns the last position, not after `position`, from which steps can continue.
    pub fn checkpoint(&self, position: usize) -> usize {
        if self.are_at(position) {
            return position;
        }
        let under_way = self.under_way.iter().filter_map(|(of, _)| *of);
        let all = self.copies.iter().map(|copy| copy.position).chain(under_way);
        all.filter(|of| *of <= position).max().unwrap_or(0)
    }

    /// Iterates over the names, rows and bytes of the states.
    pub fn sizes(&self) -> impl Iterator<Item = (&str, usize, usize)> {
        self.states.iter().map(|state| (state.name.as_str(), state.rows, state.bytes))
    }

    /// Returns the states at a position that [`Self::checkpoint`] returned.
    ///
    /// *Errors*: the device was lost.
    pub async fn read(&self, position: usize, backend: &dyn Backend, host: &dyn Host) -> Result<Vec<Vec<u8>>, Error> {
        if !self.are_at(position) {
            let copy = self.copies.iter().find(|copy| copy.position == position);
            return Ok(copy.map_or_else(|| self.sizes().map(|(.., len)| vec![0; len]).collect(), |c| c.states.clone()));
        }
        let mut all = Vec::new();
        for state in &self.states {
            let mut bytes = vec![0; state.bytes];
            read_rows(backend, state.id, 0, state.rows, &mut bytes, host).await?;
            all.push(bytes);
        }
        Ok(all)
    }

    /// Replaces the states by those of a snapshot, which become the only copy.
    ///
    /// *Errors*: the device was lost.
    pub fn write(&mut self, position: usize, states: &[Vec<u8>], backend: &dyn Backend) -> Result<(), Error> {
        self.states.iter().zip(states).try_for_each(|(state, bytes)| backend.write(state.id, 0, bytes))?;
        self.position = position;
        self.under_way = None;
        self.copies = vec![Copy { position, states: states.to_vec() }];
        Ok(())
    }

    /// Returns whether steps can continue from a position without restoring a copy.
    pub fn are_at(&self, position: usize) -> bool {
        self.states.is_empty() || self.position == position
    }

    /// Begins to copy the states after all submitted steps, unless there is such a copy.
    ///
    /// *Errors*: the device was lost.
    pub async fn copy(&mut self, backend: &dyn Backend, host: &dyn Host) -> Result<(), Error> {
        self.settle(backend, host).await?;
        if self.states.is_empty() || self.copies.iter().any(|copy| copy.position == self.position) {
            return Ok(());
        }
        let (_, reads) = self.under_way.insert((None, Vec::new()));
        for state in &self.states {
            reads.push(backend.read(state.id, 0, state.rows)?);
        }
        self.under_way.iter_mut().for_each(|(of, _)| *of = Some(self.position));
        Ok(())
    }

    /// Waits for the pending copy.
    ///
    /// *Errors*: the device was lost.
    pub async fn settle(&mut self, backend: &dyn Backend, host: &dyn Host) -> Result<(), Error> {
        let Some((of, reads)) = self.under_way.take() else { return Ok(()) };
        // The memory of the copy that is dropped is reused for the new one.
        let goes = of.is_some() && self.copies.len() >= COPIES;
        let mut states = if goes { self.copies.remove(0).states } else { Vec::new() };
        states.resize(self.states.len(), Vec::new());
        let mut ended = Ok(());
        for ((state, read), bytes) in self.states.iter().zip(reads).zip(&mut states) {
            bytes.resize(state.bytes, 0);
            // This also runs after a failure: unfinished reads hold memory.
            ended = finish_read(backend, read, bytes, host).await.and(ended);
        }
        ended?;
        if let Some(position) = of {
            let at = self.copies.partition_point(|copy| copy.position < position);
            self.copies.insert(at, Copy { position, states });
        }
        Ok(())
    }

    /// Restores the last checkpoint that is not after a position; returns its position.
    ///
    /// *Errors*: the device was lost.
    pub fn restore(&mut self, backend: &dyn Backend, position: usize) -> Result<usize, Error> {
        let Some(copy) = self.copies.iter().rfind(|copy| copy.position <= position) else {
            self.clear(backend)?;
            return Ok(0);
        };
        self.states.iter().zip(&copy.states).try_for_each(|(state, bytes)| backend.write(state.id, 0, bytes))?;
        self.position = copy.position;
        Ok(copy.position)
    }

    /// Resets the states to those of the empty text.
    ///
    /// *Errors*: the device was lost.
    pub fn clear(&mut self, backend: &dyn Backend) -> Result<(), Error> {
        self.states.iter().try_for_each(|state| backend.write(state.id, 0, &vec![0; state.bytes]))?;
        self.position = 0;
        Ok(())
    }
}
