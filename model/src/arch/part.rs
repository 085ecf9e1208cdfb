//! Parts of tensors, from which the matrices of a graph are assembled.

use crate::gguf::TensorInfo;

/// Rows of a tensor of the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part<'a> {
    /// The tensor's name without `.weight`.
    pub name: &'a str,
    /// Number of rows.
    pub rows: usize,
    /// Interleaving, if the tensor's rows are: the rows of each turn, and the turn that belongs to this part.
    pub turn: Option<(&'a [usize], usize)>,
}

impl<'a> Part<'a> {
    /// Makes the part of an interleaved tensor that has turn `nth` of each round.
    pub fn dealt(name: &'a str, rounds: usize, turns: &'a [usize], nth: usize) -> Part<'a> {
        Part { name, rows: rounds * turns[nth], turn: Some((turns, nth)) }
    }

    /// Returns the part's rows as tensors within the file's tensor.
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

    /// Returns the rows of the whole tensor.
    pub fn whole(&self) -> usize {
        self.turn.map_or(self.rows, |(turns, nth)| self.rows / turns[nth] * turns.iter().sum::<usize>())
    }
}

impl<'a> From<(&'a str, usize)> for Part<'a> {
    fn from((name, rows): (&'a str, usize)) -> Part<'a> {
        Part { name, rows, turn: None }
    }
}

/// Returns the rows of all parts.
pub(super) fn width(parts: &[Part<'_>]) -> usize {
    parts.iter().map(|part| part.rows).sum()
}
