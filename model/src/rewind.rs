//! Going back in a text. What it takes follows from how the text's states change, and is known here alone: rows that were
//! appended wait where they are, but states that steps rewrite go on only from where they are, or from a checkpoint: the
//! empty text, whose states are zeros, and a few copies of all states, on the host, of positions that texts go back to.

use backend_api::run::{Host, finish_read, read_rows};
use backend_api::{Backend, Error, ReadId, StorageId, Tensor, Update};

/// Copies of the states that are kept; of more, those of the earliest positions go.
const COPIES: usize = 4;

/// A state that steps rewrite.
#[derive(Debug)]
struct State {
    name: String,
    id: StorageId,
    rows: usize,
    bytes: usize,
}

/// The states at a position, in order.
#[derive(Debug)]
struct Copy {
    position: usize,
    states: Vec<Vec<u8>>,
}

/// The states that steps rewrite, how far they have come, and copies of them.
#[derive(Debug, Default)]
pub(crate) struct Rewritten {
    states: Vec<State>,
    /// Tokens that have gone into them.
    position: usize,
    /// In the order of positions, all within the text.
    copies: Vec<Copy>,
    /// Reads of a copy under way, and its position unless the text has gone back before it meanwhile.
    under_way: Option<(Option<usize>, Vec<ReadId>)>,
}

impl Rewritten {
    /// Takes note of a state of zeros.
    pub fn add(&mut self, id: StorageId, state: &Tensor, update: Update) -> Result<(), Error> {
        match update {
            Update::Append => {}
            Update::Replace => {
                let rows = state.shape.rows();
                let bytes = state.dtype.row_bytes(state.shape.cols())? * rows;
                self.states.push(State { name: state.name.clone(), id, rows, bytes });
            }
        }
        Ok(())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// Takes note of a step that ends at a position.
    pub fn moved_to(&mut self, position: usize) {
        self.position = position;
    }

    /// Takes note that the text ends at a position, if it went beyond.
    pub fn cut(&mut self, position: usize) {
        self.copies.retain(|copy| copy.position <= position);
        if let Some((of, _)) = &mut self.under_way {
            *of = of.filter(|of| *of <= position);
        }
    }

    /// The last position, this one or before it, from which steps can go on.
    pub fn checkpoint(&self, position: usize) -> usize {
        if self.are_at(position) {
            return position;
        }
        let under_way = self.under_way.iter().filter_map(|(of, _)| *of);
        let all = self.copies.iter().map(|copy| copy.position).chain(under_way);
        all.filter(|of| *of <= position).max().unwrap_or(0)
    }

    /// The names, rows and bytes of the states, in order.
    pub fn sizes(&self) -> impl Iterator<Item = (&str, usize, usize)> {
        self.states.iter().map(|state| (state.name.as_str(), state.rows, state.bytes))
    }

    /// The states at a position that [`Self::checkpoint`] gave.
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

    /// Goes on from states that were read elsewhere, which become the only copy.
    ///
    /// *Errors*: the device was lost.
    pub fn write(&mut self, position: usize, states: &[Vec<u8>], backend: &dyn Backend) -> Result<(), Error> {
        self.states.iter().zip(states).try_for_each(|(state, bytes)| backend.write(state.id, 0, bytes))?;
        self.position = position;
        self.under_way = None;
        self.copies = vec![Copy { position, states: states.to_vec() }];
        Ok(())
    }

    /// Whether steps can go on from a position as things are.
    pub fn are_at(&self, position: usize) -> bool {
        self.states.is_empty() || self.position == position
    }

    /// Begins to copy the states as they are after all steps submitted so far, unless there is such a copy.
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

    /// Waits for what is under way.
    ///
    /// *Errors*: the device was lost.
    pub async fn settle(&mut self, backend: &dyn Backend, host: &dyn Host) -> Result<(), Error> {
        let Some((of, reads)) = self.under_way.take() else { return Ok(()) };
        // The memory of a copy that goes serves the one that comes.
        let goes = of.is_some() && self.copies.len() >= COPIES;
        let mut states = if goes { self.copies.remove(0).states } else { Vec::new() };
        states.resize(self.states.len(), Vec::new());
        let mut ended = Ok(());
        for ((state, read), bytes) in self.states.iter().zip(reads).zip(&mut states) {
            bytes.resize(state.bytes, 0);
            // After a failure, too: what is not finished holds memory.
            ended = finish_read(backend, read, bytes, host).await.and(ended);
        }
        ended?;
        if let Some(position) = of {
            let at = self.copies.partition_point(|copy| copy.position < position);
            self.copies.insert(at, Copy { position, states });
        }
        Ok(())
    }

    /// Goes back to the last checkpoint that is not after a position, and gives it.
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

    /// Goes back to the empty text.
    ///
    /// *Errors*: the device was lost.
    pub fn clear(&mut self, backend: &dyn Backend) -> Result<(), Error> {
        self.states.iter().try_for_each(|state| backend.write(state.id, 0, &vec![0; state.bytes]))?;
        self.position = 0;
        Ok(())
    }
}
