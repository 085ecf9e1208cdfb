//! The stage that a worker has.

use std::pin::Pin;
use std::rc::Rc;

use anygpu::{
    ByteSource, Engine, EngineOptions, Host, ModelError, Progress, Seam, SelectOptions, Stage, StageSession, StageStep,
};
use anygpu_pool_proto::{Assign, Manifest, Range, Reason};

use crate::Refused;
use crate::checked::{Checked, Chunks};
use crate::held::chosen;

/// Rows of a prompt's step whose programs are compiled before the first one comes.
const PROMPT_ROWS: usize = 64;
/// Steps that are timed; the first is not.
const TIMED: usize = 5;

/// A file of a model. Nothing of it is trusted.
pub struct Opened {
    /// The file, which is read by ranges.
    pub source: Box<dyn ByteSource>,
    /// Manifest that it is checked with.
    pub manifest: Manifest,
    /// Where its chunks are kept for the next time, if anywhere.
    pub kept: Option<Box<dyn Chunks>>,
}

/// A file that is being opened.
pub type OpenFuture<'a> = Pin<Box<dyn Future<Output = Result<Opened, Refused>> + 'a>>;

/// Where the files of models are.
pub trait Models {
    /// The file of an assignment.
    ///
    /// *Errors*: there is none, or it may not be read.
    fn open<'a>(&'a self, assign: &'a Assign) -> OpenFuture<'a>;
}

/// A stage, ready to run.
pub(crate) struct Loaded {
    pub epoch: u64,
    /// The digest of the model.
    model: Vec<u8>,
    pub engine: Engine,
    pub range: Range,
    pub seam: Seam,
    /// Sessions that it may hold states for.
    pub sessions: usize,
    /// Bytes of the file that its weights take.
    pub bytes: u64,
    /// Median time of a row through a block; 0 where the range has nothing to measure it by.
    ///
    /// *Units*: microseconds.
    pub block_micros: u32,
}

impl Loaded {
    /// Reads the weights of a range, and compiles what its steps take. `progress` is told bytes of weights: how many are
    /// there, and of how many.
    pub async fn new(
        assign: &Assign,
        models: &dyn Models,
        select: &SelectOptions,
        host: &Rc<dyn Host>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Loaded, Refused> {
        let range =
            assign.range.ok_or_else(|| Refused::new(Reason::Malformed, "there is no range to load; give one"))?;
        let stage =
            Stage { embed: range.embedding, blocks: range.first as usize..range.end as usize, head: range.head };
        let source = Checked::new(models.open(assign).await?, &assign.model)?;
        let options = EngineOptions {
            select: select.clone(),
            n_ctx: Some(assign.context as usize),
            stage: Some(stage),
            ..EngineOptions::default()
        };
        let mut bytes = 0;
        let mut watch = |at: Progress| {
            if let Progress::Weights { done, total } = at {
                bytes = total;
                progress(done, total);
            }
        };
        let loaded = Engine::load(&source, &options, host.clone(), &mut watch).await;
        let engine = loaded.map_err(|error| match source.is_forged() {
            true => Refused::new(Reason::Digest, error.to_string()),
            false => error.into(),
        })?;
        if !range.embedding && engine.model().recipe().reads_tokens()? {
            let why =
                "every block of this model looks at tokens, which only a chain's first stage is sent; choose another";
            return Err(Refused::new(Reason::Malformed, why));
        }
        let (epoch, seam, sessions) = (assign.epoch, seam(assign.seam)?, assign.sessions as usize);
        let mut loaded =
            Loaded { epoch, model: assign.model.clone(), engine, range, seam, sessions, bytes, block_micros: 0 };
        loaded.block_micros = per_block(loaded.measure().await?, &range, assign.head_blocks);
        Ok(loaded)
    }

    /// Whether this is what an assignment asks for. The engine has the context that it asked for, or less.
    pub fn is(&self, assign: &Assign) -> bool {
        let context = self.engine.model().recipe().sizes().n_ctx == assign.context as usize;
        self.model == assign.model && assign.range == Some(self.range) && seam(assign.seam) == Ok(self.seam) && context
    }

    /// An empty text.
    pub fn session(&self) -> Result<StageSession, Refused> {
        Ok(self.engine.stage_session(self.seam)?)
    }

    /// Numbers of a row of activations.
    pub fn width(&self) -> usize {
        self.engine.model().recipe().hidden()
    }

    /// The median time of steps of one row, on a text of its own.
    ///
    /// *Units*: milliseconds.
    async fn measure(&self) -> Result<f64, Refused> {
        let mut session = self.session()?;
        // Greedy last: that is what is timed.
        for temperature in [1.0, 0.0] {
            let sampling = anygpu_pool_proto::Sampling { temperature, top_k: 0, top_p: 1.0, seed: 0 };
            session.choose(&chosen(&sampling), 0)?;
            session.prepare(PROMPT_ROWS)?;
        }
        let hidden = match self.range.embedding {
            true => Vec::new(),
            false => self.seam.encode(&vec![1.0; self.width()]).map_err(ModelError::from)?,
        };
        let tokens = if self.range.embedding { &[0][..] } else { &[] };
        let host = self.engine.host();
        let most = (TIMED + 1).min(self.engine.model().recipe().sizes().n_ctx - 1);
        let mut times = Vec::new();
        for position in 0..most {
            let begun = host.now_ms();
            let step = StageStep { position, tokens, hidden: &hidden, choose: self.range.head };
            session.step(&step, host).await?;
            if position > 0 || most == 1 {
                times.push(host.now_ms() - begun);
            }
        }
        times.sort_by(f64::total_cmp);
        Ok(times.get(times.len() / 2).copied().unwrap_or(0.0))
    }
}

/// The time of a block where a row through a range takes `millis`: plans add the head's again.
///
/// *Units*: microseconds.
fn per_block(millis: f64, range: &Range, head_blocks: f64) -> u32 {
    let blocks = f64::from(range.blocks()) + if range.head { head_blocks } else { 0.0 };
    if blocks > 0.0 { (1e3 * millis / blocks).ceil().max(1.0) as u32 } else { 0 }
}

/// The seam of an assignment.
pub(crate) fn seam(seam: i32) -> Result<Seam, Refused> {
    match anygpu_pool_proto::Seam::try_from(seam) {
        Ok(anygpu_pool_proto::Seam::F16) => Ok(Seam::F16),
        Ok(anygpu_pool_proto::Seam::F32) => Ok(Seam::F32),
        _ => Err(Refused::new(Reason::Malformed, "the seam is not known here; choose f16 or f32")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_is_no_part_of_what_a_block_takes() {
        let range = |blocks, head| Range { first: 0, end: blocks, embedding: false, head };
        // A block and a head that takes as long as eight.
        assert_eq!(per_block(9.0, &range(1, true), 8.0), 1000);
        assert_eq!(per_block(9.0, &range(3, false), 8.0), 3000);
        assert_eq!(per_block(8.0, &range(0, true), 8.0), 1000);
        assert_eq!(per_block(1e-9, &range(3, false), 8.0), 1);
        assert_eq!(per_block(9.0, &range(0, false), 8.0), 0, "an embedding alone says nothing of blocks");
    }
}
