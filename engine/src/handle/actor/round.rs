//! Turns of a batch: several sequences that the device advances together.

use std::cell::Cell;

use backend_api::run::{Local, join};
use model::Sessions;

use super::block_on;
use super::text::{Length, Round, Text};
use crate::error::EngineError;
use crate::handle::Opened;

/// Gives each sequence a turn, at most as many as there are seats; returns those that go on. If the device is lost,
/// each one takes the rest of its turn alone, and there is a single seat from then on.
pub(super) fn round(
    mut texts: Vec<Text>,
    opened: &mut Opened,
    sessions: &mut Sessions,
    slice: usize,
    others: &dyn Fn() -> bool,
) -> Vec<Text> {
    let start = opened.engine.host().now_ms();
    let seats = match seat(&texts, opened, sessions) {
        Ok(seats) => seats,
        Err(_) => return one_by_one(texts, opened, sessions, slice, others),
    };
    let engine = &opened.engine;
    let round = Round {
        length: Length::new(slice, engine.host().now_ms() - start),
        seats: sessions.seats(),
        live: Cell::new(texts.len()),
        outgrown: Cell::new(false),
        others,
    };
    let mut places: Vec<_> = sessions.sessions_mut().map(Some).collect();
    let turns = texts.iter_mut().zip(&seats).filter_map(|(text, seat)| {
        let session = places.get_mut(*seat)?.take()?;
        let turn: Local<'_, _> = Box::pin(text.slice(engine, session, &round));
        Some(turn)
    });
    let ended = block_on(join(turns.collect()));
    let (mut go_on, mut lost) = (Vec::new(), Vec::new());
    for ((text, seat), ended) in texts.into_iter().zip(seats).zip(ended) {
        sessions.select(seat);
        match ended {
            None => lost.push(text),
            Some(goes_on) => {
                sessions.note(text.sequence());
                go_on.extend(goes_on.then_some(text));
            }
        }
    }
    if !lost.is_empty() {
        go_on.extend(one_by_one(lost, opened, sessions, slice, others));
    }
    go_on
}

/// Brings sequences to the device, each to a seat of its own; returns the seats.
fn seat(texts: &[Text], opened: &Opened, sessions: &mut Sessions) -> Result<Vec<usize>, EngineError> {
    let mut seats = Vec::with_capacity(texts.len());
    for text in texts {
        block_on(sessions.turn_beside(text.name(), &text.sequence().context(), &seats, opened.engine.host()))?;
        seats.push(sessions.seat());
    }
    Ok(seats)
}

/// Gives each sequence a turn alone, and reduces the device to one seat.
fn one_by_one(
    texts: Vec<Text>,
    opened: &mut Opened,
    sessions: &mut Sessions,
    slice: usize,
    others: &dyn Fn() -> bool,
) -> Vec<Text> {
    block_on(sessions.reduce_to(opened.engine.session().ok(), opened.engine.host()));
    texts.into_iter().filter_map(|text| text.turn(opened, sessions, slice, others)).collect()
}
