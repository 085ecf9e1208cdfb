//! Parts that the matrices of a graph are put together of.

use crate::gguf::TensorInfo;

/// Rows of a tensor of the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part<'a> {
    /// The tensor's name without `.weight`.
    pub name: &'a str,
    /// How many.
    pub rows: usize,
    /// Turns that belong to the part, for a tensor that is dealt in turns of so many rows each; otherwise all rows
    /// do.
    pub turn: Option<(&'a [usize], usize)>,
}

impl<'a> Part<'a> {
    /// The rows of turn `nth` of each of some rounds.
    pub fn dealt(name: &'a str, rounds: usize, turns: &'a [usize], nth: usize) -> Part<'a> {
        Part { name, rows: rounds * turns[nth], turn: Some((turns, nth)) }
    }

    /// The rows of a tensor of the file, as tensors of their own that lie in it.
    pub fn of(&self, tensor: &TensorInfo) -> Vec<TensorInfo> {
        let Some((turns, nth)) = self.turn else { return vec![tensor.clone()] };
        let (round, before): (usize, usize) = (turns.iter().sum(), turns[..nth].iter().sum());
        let row = tensor.bytes / tensor.shape[0] as u64;
        let starts = (0..tensor.shape[0]).step_by(round).map(|first| (first + before) as u64);
        let piece = |start| {
            let mut piece = TensorInfo { offset: tensor.offset + start * row, ..tensor.clone() };
            (piece.shape[0], piece.bytes) = (turns[nth], turns[nth] as u64 * row);
            piece
        };
        starts.map(piece).collect()
    }

    /// The rows of the tensor that it is of.
    pub fn whole(&self) -> usize {
        self.turn.map_or(self.rows, |(turns, nth)| self.rows / turns[nth] * turns.iter().sum::<usize>())
    }
}

impl<'a> From<(&'a str, usize)> for Part<'a> {
    fn from((name, rows): (&'a str, usize)) -> Part<'a> {
        Part { name, rows, turn: None }
    }
}

/// The rows of all parts.
pub(super) fn width(parts: &[Part<'_>]) -> usize {
    parts.iter().map(|part| part.rows).sum()
}
