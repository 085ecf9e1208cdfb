//! The stage that a worker has.

use std::pin::Pin;
use std::rc::Rc;

use anygpu::{
    ByteSource, Engine, EngineOptions, Host, ModelError, Progress, Seam, SelectOptions, Stage, StageSession, StageStep,
};
use anygpu_pool_proto::{Assign, Manifest, Range, Reason};

use crate::Refused;
use crate::checked::Checked;
use crate::held::chosen;

/// Rows of a prompt's step whose programs are compiled before the first one comes.
const PROMPT_ROWS: usize = 64;
/// Steps that are timed; the first is not.
const TIMED: usize = 5;

/// A file, which is read by ranges, and its manifest. Neither is trusted.
pub type Opened = (Box<dyn ByteSource>, Manifest);

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
    /// Median time of a row through a block.
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
        let (source, manifest) = models.open(assign).await?;
        let source = Checked::new(source, manifest, &assign.model)?;
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
        loaded.block_micros = loaded.measure().await?;
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

    /// Times steps of one row, on a text of its own.
    async fn measure(&self) -> Result<u32, Refused> {
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
        let median = times.get(times.len() / 2).copied().unwrap_or(0.0);
        Ok((1e3 * median / f64::from(self.range.blocks().max(1))).ceil().max(1.0) as u32)
    }
}

/// The seam of an assignment.
pub(crate) fn seam(seam: i32) -> Result<Seam, Refused> {
    match anygpu_pool_proto::Seam::try_from(seam) {
        Ok(anygpu_pool_proto::Seam::F16) => Ok(Seam::F16),
        Ok(anygpu_pool_proto::Seam::F32) => Ok(Seam::F32),
        _ => Err(Refused::new(Reason::Malformed, "the seam is not known here; choose f16 or f32")),
    }
}
