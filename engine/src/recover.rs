//! Recovery from a lost device in the middle of a generation.

#[cfg(all(test, not(target_arch = "wasm32")))]
pub(crate) mod failing;
#[cfg(all(test, not(target_arch = "wasm32")))]
mod killer;
#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;

use std::rc::Rc;

use backend_api::{Backend, Error};
use model::{ByteSource, GenerateOptions, Generation, ModelError, Piece, Sequence, Session};

use crate::engine::{Engine, EngineOptions, read};
use crate::error::EngineError;
use crate::ladder::SelectOptions;
use crate::report::Report;
use crate::select::select;

/// Most losses in a row without a token between them.
const LOSSES: usize = 3;

/// A device was lost, and another one, or the same one opened anew, has taken over.
#[derive(Debug, Clone, PartialEq)]
pub struct Recovered {
    /// The candidate that was lost.
    pub from: String,
    /// The candidate that took over.
    pub to: String,
    /// The backend's reason for the loss.
    pub reason: String,
    /// Time from the loss until the generation went on.
    ///
    /// *Units*: milliseconds.
    pub ms: f64,
}

/// Event of a generation that survives a loss.
#[derive(Debug)]
pub enum Event<'a> {
    /// A new token, as in [`Engine::generate`].
    Piece(Piece<'a>),
    /// The generation goes on after a loss.
    Recovered(&'a Recovered),
}

impl EngineError {
    /// Returns the reason if the device was lost: a retry on a new device may work.
    pub fn lost(&self) -> Option<&str> {
        match self {
            EngineError::Model(ModelError::Backend(Error::Lost(reason))) => Some(reason),
            _ => None,
        }
    }

    /// Returns whether memory ran out: a retry on another backend may work.
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self, EngineError::Model(ModelError::Backend(Error::OutOfMemory { .. }) | ModelError::Experts { .. }))
    }
}

impl Engine {
    /// Generates as [`Self::generate`] does, and survives the loss of the device. The best candidate that works then
    /// takes over: it loads the weights from `source` again, recomputes the text in the same steps, and the generation
    /// goes on as if nothing had happened. A candidate that is lost again before it gave a token is left out. `options`
    /// and `source` are those of [`Self::load`].
    ///
    /// *Errors*: as [`Self::generate`] and [`Self::load`]; several losses in a row.
    pub async fn generate_surviving(
        &mut self,
        source: &dyn ByteSource,
        options: &EngineOptions,
        session: &mut Session,
        tokens: &[u32],
        generate: &GenerateOptions,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<Generation, EngineError> {
        let mut sequence = self.sequence(tokens, generate)?;
        self.run_surviving(source, options, session, &mut sequence, &mut |_| false, on_event).await?;
        Ok(sequence.into_generation(&mut |piece| on_event(Event::Piece(piece))))
    }

    /// Runs a sequence until it ends or `pauses` returns true, which is asked after each step of a prompt and whenever
    /// there are new tokens. Survives the loss of the device as [`Self::generate_surviving`] does.
    ///
    /// *Errors*: as [`Self::generate_surviving`].
    pub async fn run_surviving(
        &mut self,
        source: &dyn ByteSource,
        options: &EngineOptions,
        session: &mut Session,
        sequence: &mut Sequence,
        pauses: &mut dyn FnMut(&Sequence) -> bool,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), EngineError> {
        let host = self.shared_host();
        let mut without = options.select.without.clone();
        let open = async |lost: &Lost| {
            if lost.again {
                without.extend(lost.rung);
            }
            let (_, recipe) = read(source, options, &mut |_| {}).await?;
            // A device that was just lost runs all self-tests again.
            let (without, proven) = (without.clone(), Rc::default());
            let select_options = SelectOptions { without, proven, ..options.select.clone() };
            select(Some(&recipe), &select_options, &*host).await
        };
        self.survive((source, options), session, sequence, pauses, on_event, open).await
    }

    /// Runs a sequence that survives losses, with backends that `open` supplies.
    pub(crate) async fn survive(
        &mut self,
        loaded: (&dyn ByteSource, &EngineOptions),
        session: &mut Session,
        sequence: &mut Sequence,
        pauses: &mut dyn FnMut(&Sequence) -> bool,
        on_event: &mut dyn FnMut(Event<'_>),
        mut open: impl AsyncFnMut(&Lost) -> Result<(Rc<dyn Backend>, Report), EngineError>,
    ) -> Result<(), EngineError> {
        let mut losses = 0;
        loop {
            let before = sequence.tokens().len();
            let mut on_piece = |piece: Piece<'_>| on_event(Event::Piece(piece));
            let error = match self.run_until(session, sequence, pauses, &mut on_piece).await {
                Err(error) if error.lost().is_some() => error,
                ended => return ended,
            };
            let start = self.host().now_ms();
            if sequence.tokens().len() > before {
                losses = 0;
            }
            let reason = error.lost().unwrap_or_default().to_owned();
            let from = self.rung();
            let mut error = Some(error);
            while let Some(lost) = error.take() {
                losses += 1;
                if losses > LOSSES {
                    return Err(lost);
                }
                let lost = Lost { rung: self.report().chosen, again: losses > 1 };
                match self.take_over(loaded, session, sequence, &lost, &mut open).await {
                    Err(again) if again.lost().is_some() || again.is_out_of_memory() => error = Some(again),
                    taken => taken?,
                }
            }
            let ms = self.host().now_ms() - start;
            on_event(Event::Recovered(&Recovered { from, to: self.rung(), reason, ms }));
        }
    }

    /// Runs a sequence until it ends, `pauses` returns true or the session has no room for more of it.
    async fn run_until(
        &self,
        session: &mut Session,
        sequence: &mut Sequence,
        pauses: &mut dyn FnMut(&Sequence) -> bool,
        on_piece: &mut dyn FnMut(Piece<'_>),
    ) -> Result<(), EngineError> {
        let mut run = self.begin(session, sequence, on_piece).await?;
        while run.advance(on_piece).await? {
            if run.is_out_of_room() || (run.may_pause() && pauses(run.sequence())) {
                return Ok(run.pause(on_piece).await?);
            }
        }
        Ok(())
    }

    /// Loads the model on another device, and recomputes there the text's states.
    async fn take_over(
        &mut self,
        (source, options): (&dyn ByteSource, &EngineOptions),
        session: &mut Session,
        sequence: &Sequence,
        lost: &Lost,
        open: &mut impl AsyncFnMut(&Lost) -> Result<(Rc<dyn Backend>, Report), EngineError>,
    ) -> Result<(), EngineError> {
        let (backend, report) = open(lost).await?;
        self.move_to(backend, report, source, options).await?;
        let mut here = self.session()?;
        here.replay(session, sequence, self.host()).await?;
        *session = here;
        Ok(())
    }

    fn rung(&self) -> String {
        self.report().chosen.unwrap_or(self.backend().info().name).into()
    }
}

/// The candidate that was lost.
#[derive(Debug)]
pub(crate) struct Lost {
    /// The name.
    pub rung: Option<&'static str>,
    /// Whether it was lost before and gave no token since.
    pub again: bool,
}
