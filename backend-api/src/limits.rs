//! Limits of a step that follow from the sizes of a graph, in one place for all backends.

use crate::backend::StorageId;
use crate::error::Error;
use crate::graph::Graph;
use crate::op::{At, Index, Op};
use crate::step::StepParams;
use crate::tensor::{Kind, Tensor, Update};

/// Limits of the parameters of a step, as follow from the sizes that the nodes were recorded for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepLimits {
    /// Most rows of a step.
    pub rows: usize,
    /// Most tokens, those of the step included.
    pub tokens: usize,
    /// How many sequences the program was compiled for.
    pub sequences: usize,
    /// Whether each row may be of another sequence.
    pub apart: bool,
    /// Whether a step has at most one row of a sequence, as each row rewrites its states.
    pub rewrites: bool,
}

impl StepLimits {
    /// The limits of a graph that is compiled for so many sequences, unless its rows are of several.
    pub fn of(graph: &Graph, sequences: usize) -> StepLimits {
        let (apart, sequences) = (graph.sequences() > 1, sequences * graph.sequences());
        let rewrites = graph.externals().any(|(_, tensor)| tensor.kind == Kind::State(Update::Replace));
        let mut limits = StepLimits { rows: usize::MAX, tokens: usize::MAX, sequences, apart, rewrites };
        for node in graph.nodes() {
            let dim = |i: usize| {
                let of_one = |id| Some(graph.rows_of_one(id)).filter(|rows| *rows > 0);
                node.inputs.get(i).and_then(|id| of_one(*id)).unwrap_or(usize::MAX)
            };
            let (rows, tokens) = match &node.op {
                Op::GetRows(op) => match op.index {
                    Index::Tokens { rows } => (rows, dim(1)),
                    Index::Positions { rows } => (rows, dim(0)),
                    Index::Last => (dim(0), usize::MAX),
                    Index::First | Index::Ids => continue,
                },
                Op::Append(op) if op.at != At::Next => (dim(1), dim(0)),
                Op::ShortConv(_) | Op::SsmScan(_) | Op::GatedDeltaNet(_) => (dim(1), usize::MAX),
                // One row of logits is that of any step's last row.
                Op::Penalize(_) if dim(0) == 1 => (usize::MAX, dim(1)),
                Op::Penalize(_) => (dim(0), dim(1)),
                Op::Rope(_) => (dim(0), dim(1)),
                // Queries that see all keys are no rows of the step.
                Op::Attention(op) if op.masking.cached && !op.masking.causal && op.masking.window == 0 => {
                    (usize::MAX, dim(1))
                }
                Op::Attention(op) if op.masking.cached => (dim(0), dim(1)),
                _ => continue,
            };
            limits.rows = limits.rows.min(rows);
            limits.tokens = limits.tokens.min(tokens);
        }
        limits
    }

    /// A step that fills the context, with as many rows as there may be.
    pub fn fullest(&self) -> StepParams {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX / 2);
        let (tokens, rows) = (count(self.tokens), count(self.rows.min(self.tokens)));
        StepParams::at(tokens - rows, rows)
    }

    /// Checks the parameters of a step.
    ///
    /// *Errors*: more rows than the graph was recorded for, or none; a position beyond the context; an
    /// unknown sequence.
    pub fn check(&self, params: &StepParams) -> Result<(), Error> {
        let (position, rows) = (params.position as usize, params.rows as usize);
        if rows == 0 || rows > self.rows {
            return Err(Error::Invalid(format!(
                "a step of {rows} rows is not in 1..={}; split it or compile more",
                self.rows
            )));
        }
        if position.saturating_add(rows) > self.tokens {
            return Err(Error::Invalid(format!(
                "{rows} rows at position {position} exceed the context of {}; start anew or use a larger context",
                self.tokens
            )));
        }
        if params.sequence as usize >= self.sequences {
            return Err(Error::Invalid(format!(
                "sequence {} is not below {}, the number of those that the program was compiled for; compile it for more",
                params.sequence, self.sequences
            )));
        }
        if self.apart && rows != 1 {
            let why = format!("{rows} rows of a sequence were asked of a program that takes one of each; give it one");
            return Err(Error::Invalid(why));
        }
        Ok(())
    }

    /// Checks what a step takes of several sequences: a row of each, or some at consecutive positions.
    ///
    /// *Errors*: as [`Self::check`]; more rows than the graph was recorded for, or none; rows of a sequence that do not follow
    /// one another, or that each rewrite its states.
    pub fn check_apart(&self, runs: &[StepParams]) -> Result<(), Error> {
        if runs.is_empty() || runs.len() > self.rows {
            let why = format!("a step of {} sequences is not in 1..={}; compile more rows", runs.len(), self.rows);
            return Err(Error::Invalid(why));
        }
        for (at, now) in runs.iter().enumerate() {
            self.check(now)?;
            let before = runs[..at].iter().rfind(|other| other.sequence == now.sequence);
            if before.is_some_and(|before| self.rewrites || now.position != before.position + 1) {
                let why =
                    format!("sequence {} stands twice in a step, again at position {}", now.sequence, now.position);
                return Err(Error::Invalid(format!("{why}; give it one row a step, or such as follow one another")));
            }
        }
        Ok(())
    }
}

/// Refuses graphs whose rows are of several sequences, for backends that run them one after another.
///
/// *Errors*: it is such a graph.
pub fn check_one_sequence(graph: &Graph) -> Result<(), Error> {
    match graph.sequences() {
        1 => Ok(()),
        many => Err(Error::Invalid(format!(
            "this backend advances one sequence a step, and the graph's rows are of {many}; run them one after another"
        ))),
    }
}

/// Checks the storages of sequences: they stand for a graph's externals, and differ in states alone. `holds` says whether a
/// storage was made for tensors like one.
///
/// *Errors*: none, or another number of them than there are externals; a weight, an input or an output of which sequences
/// would have different ones; a storage for other tensors; what `holds` returns.
pub fn check_sequences(
    graph: &Graph,
    sequences: &[&[StorageId]],
    holds: impl Fn(StorageId, &Tensor) -> Result<bool, Error>,
) -> Result<(), Error> {
    let Some(first) = sequences.first() else {
        return Err(Error::Invalid("a program is compiled for one sequence or more, not for none".into()));
    };
    let externals = graph.externals().count();
    if let Some(other) = sequences.iter().find(|storages| storages.len() != externals) {
        let given = other.len();
        return Err(Error::Invalid(format!("the graph has {externals} externals, but {given} storages were given")));
    }
    for (at, (_, tensor)) in graph.externals().enumerate() {
        let is_shared = !matches!(tensor.kind, Kind::State(_));
        if is_shared && sequences.iter().any(|storages| storages[at] != first[at]) {
            return Err(Error::Invalid(format!(
                "{} is not a state, so all sequences need the same storage for it",
                tensor.name
            )));
        }
        for storages in sequences {
            if !holds(storages[at], tensor)? {
                let (name, id) = (&tensor.name, storages[at].0);
                return Err(Error::Invalid(format!("{name} is {tensor}, but storage {id} was made for other tensors")));
            }
        }
    }
    Ok(())
}
