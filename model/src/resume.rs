//! Taking a session out of a device and into another.

use backend_api::run::{Host, read_rows};
use backend_api::{StepParams, StorageId, Update};

use crate::arch::{HISTORY, Head};
use crate::error::ModelError;
use crate::overflow::Room;
use crate::request::GenerateOptions;
use crate::session::{Session, no_storage};
use crate::snapshot::{Header, Rows, Snapshot, SnapshotError};

/// Bytes of a state that are read or written at a time.
const PIECE: usize = 4 << 20;

/// A state to which steps append.
struct Appended {
    name: String,
    id: StorageId,
    row_bytes: usize,
}

impl Session {
    /// Saves the text: `tokens` begin with those of the session, of which [`Self::tokens`] tells; more may follow, which
    /// were not computed yet. Rows before position `from` are left out, since an earlier snapshot has them. The session
    /// stays as it is.
    ///
    /// Where steps rewrite states and have gone beyond the text, it is the last position that they can go back to.
    ///
    /// *Errors*: the device was lost.
    pub async fn export(&mut self, tokens: &[u32], from: usize, host: &dyn Host) -> Result<Snapshot, ModelError> {
        self.settle_states(host).await?;
        let common = self.tokens().iter().zip(tokens).take_while(|(a, b)| a == b).count();
        let position = self.rewritten.checkpoint(common);
        let from = from.min(position);
        let (mut states, mut sizes) = (Vec::new(), Vec::new());
        let backend = self.model().backend().clone();
        for Appended { name, id, row_bytes } in self.appended()? {
            let rows = position - from;
            let mut bytes = vec![0; rows * row_bytes];
            let step = (PIECE / row_bytes).max(1);
            for (at, piece) in bytes.chunks_mut(step * row_bytes).enumerate() {
                read_rows(&*backend, id, from + at * step, piece.len() / row_bytes, piece, host).await?;
            }
            states.push(bytes);
            sizes.push(Rows { name, appended: true, rows, row_bytes });
        }
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
            from,
            position,
            tokens: tokens.len(),
            states: sizes,
        };
        Ok(Snapshot { header, tokens: tokens[from..].to_vec(), states })
    }

    /// Takes a saved text in the place of this one. Afterwards [`Self::resume`] with the snapshot's tokens, or a text that
    /// begins with them, leaves what is to be computed.
    ///
    /// *Errors*: a snapshot of another model or KV cache, or of more than the context holds; one that is not whole; the
    /// device was lost. Unless it was, the session is then as it was before.
    pub async fn import(&mut self, snapshot: &Snapshot, host: &dyn Host) -> Result<(), ModelError> {
        let appended = self.appended()?;
        self.check(snapshot, &appended)?;
        self.settle_states(host).await?;
        self.rewind(0);
        let backend = self.model().backend().clone();
        let (rows, rewritten) = snapshot.states.split_at(appended.len());
        for (Appended { id, row_bytes, .. }, bytes) in appended.iter().zip(rows) {
            let step = (PIECE / row_bytes).max(1);
            for (at, piece) in bytes.chunks(step * row_bytes).enumerate() {
                backend.write(*id, at * step, piece)?;
                host.turn().await;
            }
        }
        if !self.rewritten.is_empty() {
            self.rewritten.write(snapshot.header.position, rewritten, &*backend)?;
        }
        let tokens = &snapshot.tokens[..snapshot.header.position];
        if !tokens.is_empty() {
            self.write_history(tokens)?;
        }
        self.tokens.extend(tokens);
        Ok(())
    }

    /// Computes what a generation that was broken off had computed in another session of the same model, whose device
    /// may be gone: in the same steps, so that states are the same to the last bit where the device is. `text` is all
    /// of it, what was dropped included, and its last token is left to [`Self::generate_after`]; so is a context whose
    /// tokens had just made room. The text of this session goes.
    ///
    /// *Errors*: as [`Self::generate`]; the device was lost.
    pub async fn replay(
        &mut self,
        lost: &Session,
        text: &[u32],
        options: &GenerateOptions,
        host: &dyn Host,
    ) -> Result<(), ModelError> {
        self.rewind(0);
        let room = Room::new(options.overflow, text.len(), self.n_ctx())?;
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
            self.prepare(program, Head::None)?;
            let position = self.position();
            self.submit(program, Head::None, &StepParams::at(position as u32, rows as u32))?;
            self.tokens.extend(&tokens[position..position + rows]);
            host.turn().await;
        }
        let rest = &tokens[self.position()..];
        self.advance(rest, Head::None, &StepParams::at(0, 1), host).await.map(|_| ())
    }

    /// Whether a snapshot can go on here.
    fn check(&self, snapshot: &Snapshot, appended: &[Appended]) -> Result<(), ModelError> {
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
        let n_ctx = self.n_ctx();
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

    /// The states to which steps append, but for the history, which the tokens tell.
    fn appended(&self) -> Result<Vec<Appended>, ModelError> {
        let mut all = Vec::new();
        for spec in self.model().recipe().states()? {
            if spec.update == Update::Append && spec.name != HISTORY {
                let cols = spec.shape.iter().skip(1).product();
                let row_bytes = spec.dtype.row_bytes(cols)?;
                let id = self.state(&spec.name).ok_or_else(|| no_storage(&spec.name))?;
                all.push(Appended { name: spec.name, id, row_bytes });
            }
        }
        Ok(all)
    }
}
