//! Export and import of sessions, and their replay on another device.

use std::collections::VecDeque;
use std::ops::Range;

use backend_api::run::{self, Host, finish_read};
use backend_api::{StepParams, StorageId, Update};

use super::{Session, common_prefix};
use crate::arch::{HISTORY, Head};
use crate::error::ModelError;
use crate::runtime::load::no_storage;
use crate::runtime::sequence::{Header, Room, Rows, Sequence, Snapshot, SnapshotError};

/// Bytes of a state that are read or written at a time.
const PIECE: usize = 4 << 20;
/// Most bytes of reads that are requested before the first one is awaited.
const AHEAD: usize = 4 * PIECE;

/// A state that steps append to (KV cache).
pub(crate) struct Appended {
    pub name: String,
    pub id: StorageId,
    pub row_bytes: usize,
}

impl Session {
    /// Saves the text. `tokens` begins with [`Self::tokens`]; more may follow that are not computed yet. Rows before
    /// position `from` are omitted, since an earlier snapshot has them. The session does not change.
    ///
    /// If recurrent states are past the text's end, the snapshot ends at the last checkpoint.
    ///
    /// *Errors*: the device was lost.
    pub async fn export(&mut self, tokens: &[u32], from: usize, host: &dyn Host) -> Result<Snapshot, ModelError> {
        self.settle_states(host).await?;
        let position = self.saves(tokens);
        let from = from.min(position);
        let backend = self.model().backend().clone();
        let appended = self.appended()?;
        let mut states = self.read_rows(&appended, from..position, host).await?;
        let rows = position - from;
        let new = |Appended { name, row_bytes, .. }| Rows { name, appended: true, rows, row_bytes };
        let mut sizes: Vec<Rows> = appended.into_iter().map(new).collect();
        states.extend(self.rewritten.read(position, &*backend, host).await?);
        let rewritten = self.rewritten.sizes();
        sizes.extend(rewritten.map(|(name, rows, bytes)| Rows {
            name: name.into(),
            appended: false,
            rows,
            row_bytes: bytes / rows,
        }));
        let recipe = self.model().recipe();
        let blocks = &recipe.stage().blocks;
        let header = Header {
            model: self.model().identity().to_string(),
            architecture: recipe.architecture().into(),
            blocks: [blocks.start, blocks.end],
            kv_cache: recipe.kv_cache().to_string(),
            sampling: None,
            request: None,
            from,
            position,
            tokens: tokens.len(),
            states: sizes,
        };
        Ok(Snapshot { header, tokens: tokens[from..].to_vec(), states })
    }

    /// Replaces the text by a saved one. Afterwards, [`Self::resume`] with the snapshot's tokens, or with a text that
    /// begins with them, returns the tokens that are still to be computed.
    ///
    /// *Errors*: a snapshot of another model or KV cache dtype, or longer than the context; an incomplete one; the
    /// device was lost. The session does not change unless the device was lost.
    pub async fn import(&mut self, snapshot: &Snapshot, host: &dyn Host) -> Result<(), ModelError> {
        self.check(snapshot)?;
        self.rewind(0);
        self.bring(snapshot, snapshot.header.position, host).await
    }

    /// Replaces the text by the first `count` tokens of a saved one, with their states. `count` is the result of
    /// [`Self::reusable_of`], or all. Rows of the common beginning stay where they are.
    ///
    /// *Errors*: the device was lost.
    pub(crate) async fn bring(&mut self, snapshot: &Snapshot, count: usize, host: &dyn Host) -> Result<(), ModelError> {
        self.settle_states(host).await?;
        let tokens = &snapshot.tokens[..count];
        let from = common_prefix(self.tokens(), tokens);
        self.rewind(from);
        self.reserve(count, from, host).await?;
        let appended = self.appended()?;
        let backend = self.model().backend().clone();
        let (rows, rewritten) = snapshot.states.split_at(appended.len());
        for (state, bytes) in appended.iter().zip(rows) {
            self.write_rows(state, from, &bytes[from * state.row_bytes..count * state.row_bytes], host).await?;
        }
        if !self.rewritten.is_empty() {
            self.rewritten.write(count, rewritten, &*backend)?;
        }
        if count > from && self.history().is_ok() {
            self.write_history(&tokens[from..])?;
        }
        self.note_steps(from, count);
        self.tokens.extend(&tokens[from..]);
        Ok(())
    }

    /// Returns the number of a prompt's first tokens that need not be computed if [`Self::bring`] copies them from a
    /// snapshot.
    pub(crate) fn reusable_of(&self, snapshot: &Snapshot, prompt: &[u32]) -> usize {
        let position = snapshot.header.position;
        let common = common_prefix(&snapshot.tokens[..position], prompt).min(prompt.len().saturating_sub(1));
        // Recurrent states are saved for a single position.
        if self.rewritten.is_empty() || common == position { common } else { 0 }
    }

    /// Returns the position up to which [`Self::export`] saves a text.
    pub(crate) fn saves(&self, tokens: &[u32]) -> usize {
        self.rewritten.checkpoint(common_prefix(self.tokens(), tokens))
    }

    /// Returns the size of a snapshot of a whole text.
    ///
    /// *Units*: bytes of host memory.
    pub(crate) fn snapshot_bytes(&self, tokens: &[u32]) -> Result<usize, ModelError> {
        let row: usize = self.appended()?.iter().map(|state| state.row_bytes).sum();
        let rewritten: usize = self.rewritten.sizes().map(|(.., bytes)| bytes).sum();
        Ok(4 * tokens.len() + row * self.saves(tokens) + rewritten)
    }

    /// Writes rows of a state from a position on, in chunks.
    pub(crate) async fn write_rows(
        &self,
        state: &Appended,
        from: usize,
        rows: &[u8],
        host: &dyn Host,
    ) -> Result<(), ModelError> {
        let step = (PIECE / state.row_bytes).max(1);
        for (at, piece) in rows.chunks(step * state.row_bytes).enumerate() {
            self.model().backend().write(state.id, from + at * step, piece)?;
            host.turn().await;
        }
        Ok(())
    }

    /// Reads rows of the KV cache. Several reads are requested before the first is awaited: the latency of a read costs
    /// more than its bytes.
    pub(crate) async fn read_rows(
        &self,
        appended: &[Appended],
        rows: Range<usize>,
        host: &dyn Host,
    ) -> Result<Vec<Vec<u8>>, ModelError> {
        let backend = &**self.model().backend();
        let mut states: Vec<Vec<u8>> = appended.iter().map(|state| vec![0; rows.len() * state.row_bytes]).collect();
        let mut under_way = VecDeque::new();
        let mut bytes = 0;
        let pieces = appended.iter().enumerate().flat_map(|(at, state)| {
            let step = (PIECE / state.row_bytes).max(1);
            rows.clone().step_by(step).map(move |first| (at, state, first, step))
        });
        let reading = async {
            for (at, state, first, step) in pieces {
                let count = step.min(rows.end - first);
                let begin = (first - rows.start) * state.row_bytes;
                let part = begin..begin + count * state.row_bytes;
                bytes += part.len();
                under_way.push_back((backend.read(state.id, first, count)?, at, part));
                while bytes > AHEAD
                    && let Some((read, at, part)) = under_way.pop_front()
                {
                    bytes -= part.len();
                    finish_read(backend, read, &mut states[at][part], host).await?;
                }
            }
            while let Some((read, at, part)) = under_way.pop_front() {
                finish_read(backend, read, &mut states[at][part], host).await?;
            }
            Ok(())
        };
        let ended = reading.await;
        // This also runs after a failure: unfinished reads hold memory.
        for (read, at, part) in under_way {
            let _ = finish_read(backend, read, &mut states[at][part], host).await;
        }
        ended.map(|()| states)
    }

    /// Recomputes the text of a sequence, from a session of the same model whose device may be lost. It takes the same
    /// steps, so that states are the same to the last bit on the same device. The last token is left to the next
    /// [run](crate::Run), as is a context that was just shifted. The text of this session is replaced.
    ///
    /// *Errors*: as [`Self::generate`]; the device was lost.
    pub async fn replay(&mut self, lost: &Session, sequence: &Sequence, host: &dyn Host) -> Result<(), ModelError> {
        self.rewind(0);
        let text = sequence.text();
        let room = Room::new(sequence.options.overflow, text.len(), self.n_ctx())?;
        let context = room.context(text);
        let tokens = match (context.split_last(), room.since(text.len())) {
            (None, _) | (_, Some(0)) => &[],
            (Some((_, tokens)), _) => tokens,
        };
        if tokens.is_empty() {
            return Ok(());
        }
        self.begin(tokens, host).await?;
        for (program, rows) in lost.steps.of(tokens.len()) {
            let position = self.position();
            self.submit(program, Head::NONE, &StepParams::at(position as u32, rows as u32), host).await?;
            self.tokens.extend(&tokens[position..position + rows]);
            run::turn(self.pace.as_mut(), host).await;
        }
        let rest = &tokens[self.position()..];
        self.advance(rest, host).await
    }

    /// Checks that a snapshot can be loaded into this session.
    ///
    /// *Errors*: as [`Self::import`].
    pub(crate) fn check(&self, snapshot: &Snapshot) -> Result<(), ModelError> {
        let appended = self.appended()?;
        let (header, recipe) = (&snapshot.header, self.model().recipe());
        let other = |saved: String, here: String, remedy| Err(SnapshotError::Other { saved, here, remedy }.into());
        let identity = self.model().identity().to_string();
        let stage = &recipe.stage().blocks;
        if header.model != identity || header.blocks != [stage.start, stage.end] {
            let name = |architecture: &str, digest: &str, blocks: &str| {
                format!("a {architecture} model {}{blocks}", digest.get(..12).unwrap_or(digest))
            };
            let parts = |[start, end]: [usize; 2]| format!(" (blocks {start} to {end})");
            return other(
                format!("with {}", name(&header.architecture, &header.model, &parts(header.blocks))),
                name(recipe.architecture(), &identity, &parts([stage.start, stage.end])),
                "load it with the model file that it was saved with",
            );
        }
        let kv_cache = recipe.kv_cache().to_string();
        if header.kv_cache != kv_cache {
            return other(
                format!("with a KV cache of {}", header.kv_cache),
                format!("one of {kv_cache}"),
                "load the model with that KV cache",
            );
        }
        let n_ctx = self.room();
        if header.position > n_ctx {
            return Err(ModelError::ContextFull { tokens: header.position, used: 0, n_ctx });
        }
        if header.from != 0 {
            return Err(SnapshotError::Gap { from: header.from, end: 0 }.into());
        }
        let here = appended.iter().map(|s| (s.name.as_str(), true, s.row_bytes, header.position));
        let rewritten = self.rewritten.sizes().map(|(name, rows, bytes)| (name, false, bytes / rows, rows));
        let saved = header.states.iter().map(|s| (s.name.as_str(), s.appended, s.row_bytes, s.rows));
        let n_vocab = recipe.sizes().n_vocab;
        match snapshot.tokens.iter().find(|id| **id as usize >= n_vocab) {
            Some(&id) => Err(ModelError::Token { id, vocab: n_vocab }),
            None if saved.eq(here.chain(rewritten)) => Ok(()),
            None => Err(SnapshotError::Damaged("it has other states than this model".into()).into()),
        }
    }

    /// Returns the states that steps append to, except for the token history, which is restored from the tokens.
    pub(crate) fn appended(&self) -> Result<Vec<Appended>, ModelError> {
        let mut all = Vec::new();
        for spec in self.model().recipe().states()? {
            if spec.update == Update::Append && spec.name != HISTORY {
                let cols = spec.shape.iter().skip(1).product();
                let row_bytes = spec.dtype.row_bytes(cols)?;
                let id = self.states.get(&spec.name).ok_or_else(|| no_storage(&spec.name))?;
                all.push(Appended { name: spec.name, id, row_bytes });
            }
        }
        Ok(all)
    }
}
