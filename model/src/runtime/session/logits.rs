//! Logits, for callers that sample themselves.

use backend_api::StepParams;
use backend_api::run::{Host, read_rows};

use super::Session;
use crate::arch::Head;
use crate::error::ModelError;
use crate::runtime::load::no_storage;

/// Most rows of logits at a time: more would take too much memory with large vocabularies.
const MAX_LOGITS_ROWS: usize = 64;

/// Rows of the smallest program for a whole text.
const LEAST_ROWS: usize = 8;

impl Session {
    /// Adds tokens to the text, and returns the logits of all of them, `[tokens, n_vocab]`, or of the last one, `[1,
    /// n_vocab]`.
    ///
    /// *Errors*: no tokens, unknown ones, or more than fit; logits that are not finite; see also [`Self::prepare`].
    pub async fn logits(&mut self, tokens: &[u32], all: bool, host: &dyn Host) -> Result<Vec<f32>, ModelError> {
        let greedy = StepParams::at(0, 1);
        if !self.model().recipe().is_causal() {
            return self.logits_at_once(tokens, all, host).await;
        }
        if !all {
            let rows = self.prefill(tokens, Head::LOGITS, &greedy, host).await?;
            let last = self.position() - 1;
            return self.read_logits((rows, Head::LOGITS), last, 1, host).await;
        }
        self.begin(tokens, host).await?;
        let mut logits = Vec::new();
        let mut left = tokens;
        while !left.is_empty() {
            let (bucket, rows) = self.bucket(left.len(), MAX_LOGITS_ROWS);
            let (now, later) = left.split_at(rows);
            let first = self.position();
            self.submit(bucket, Head::LOGITS.of_all_rows(), &StepParams::at(first as u32, rows as u32), host).await?;
            self.tokens.extend(now);
            logits.extend(self.read_logits((bucket, Head::LOGITS.of_all_rows()), first, rows, host).await?);
            left = later;
        }
        Ok(logits)
    }

    /// Returns the logits of a text whose tokens see each other: it is computed in a single step.
    async fn logits_at_once(&mut self, tokens: &[u32], all: bool, host: &dyn Host) -> Result<Vec<f32>, ModelError> {
        self.begin(tokens, host).await?;
        let head = if all { Head::LOGITS.of_all_rows() } else { Head::LOGITS };
        let (position, rows) = (self.position(), rows_for(tokens.len(), self.n_ctx()));
        self.submit(rows, head, &StepParams::at(position as u32, tokens.len() as u32), host).await?;
        self.tokens.extend(tokens);
        let first = if all { position } else { self.position() - 1 };
        self.read_logits((rows, head), first, self.position() - first, host).await
    }

    /// Reads the logits that a program computed for the tokens from position `first` on.
    async fn read_logits(
        &mut self,
        program: (usize, Head),
        first: usize,
        rows: usize,
        host: &dyn Host,
    ) -> Result<Vec<f32>, ModelError> {
        let n_vocab = self.model().recipe().sizes().n_vocab;
        let output = self.output(program).ok_or_else(|| no_storage("logits"))?;
        let mut logits = vec![0f32; rows * n_vocab];
        let bytes = bytemuck::cast_slice_mut(&mut logits);
        read_rows(&**self.model().backend(), output, 0, rows, bytes, host).await?;
        match logits.chunks_exact(n_vocab).position(|row| row.iter().any(|logit| !logit.is_finite())) {
            Some(row) => Err(self.not_a_number(first + row, host).await),
            None => Ok(logits),
        }
    }
}

/// Returns the rows of the program for a text: a power of two, or 1.5 times one. At most half as many rows again are
/// wasted, and few programs suffice for all lengths. No program exceeds the context.
pub(crate) fn rows_for(tokens: usize, n_ctx: usize) -> usize {
    let power = tokens.max(LEAST_ROWS).next_power_of_two();
    let rows = if tokens <= power / 4 * 3 && power > LEAST_ROWS { power / 4 * 3 } else { power };
    rows.min(n_ctx)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_have_enough_rows_and_not_many_more() {
        for n_ctx in [1, 5, 8, 100, 512, 2048] {
            let mut all: Vec<usize> = (1..=n_ctx).map(|tokens| rows_for(tokens, n_ctx)).collect();
            for (rows, tokens) in all.iter().zip(1..) {
                assert!(*rows >= tokens && *rows <= n_ctx, "{rows} rows for {tokens} of {n_ctx}");
                assert!(2 * rows <= 3 * tokens.max(LEAST_ROWS), "{rows} rows for {tokens}");
            }
            all.dedup();
            assert!(all.len() <= 18, "{} programs for {n_ctx}", all.len());
        }
    }
}
