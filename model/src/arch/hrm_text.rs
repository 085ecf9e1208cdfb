//! HRM text: two stacks of blocks, a low and a high one, with a residual stream each. A pass through a stack begins with
//! the sum of both streams and gives the stack's own. Several passes through the low stack go before each through the
//! high one, and each pass has keys and values of its own.
//!
//! *Source*: Wang et al., "Hierarchical Reasoning Model", 2025.

use std::cell::Cell;

use backend_api::TensorId;
use backend_api::op::{GluKind, Norm, Repeat, RopeMode};

use super::attention::Attention;
use super::experts::FeedForward;
use super::keys::{Keys, MAX_BLOCKS, MAX_WIDTH};
use super::recorder::{Recorded, Recorder};
use super::rope::Rope;
use super::{Architecture, Sizes};
use crate::error::ModelError;

#[derive(Debug)]
struct HrmText {
    /// Sizes, with a block for each block of each pass.
    sizes: Sizes,
    norm: Norm,
    attention: Attention,
    feed_forward: FeedForward,
    embedding_scale: f32,
    /// Number of blocks of a stack.
    stack: usize,
    /// Passes through the low stack before each through the high one.
    low_passes: usize,
}

pub(super) fn read(keys: &Keys<'_>) -> Result<Box<dyn Architecture>, ModelError> {
    keys.dense()?;
    let sizes = keys.sizes()?;
    let cycles = |key| keys.size(key, MAX_BLOCKS, None);
    let (stack, high, low_passes) = (cycles("hrm.layers_per_stack")?, cycles("hrm.h_cycles")?, cycles("hrm.l_cycles")?);
    let blocks = [stack, high, low_passes + 1].into_iter().try_fold(1usize, usize::checked_mul);
    if blocks != Some(sizes.n_blocks) {
        let reason =
            format!("it is {}, but {high} cycles of {low_passes} passes and one take another number", sizes.n_blocks);
        return Err(keys.wrong("block_count", reason));
    }
    let rope = Rope { factors: None, ..Rope::read(keys, &sizes, RopeMode::Neox)? };
    Ok(Box::new(HrmText {
        sizes,
        norm: keys.rms_norm()?,
        attention: Attention { rope: Some(rope), gate: Some("attn_gate"), ..Attention::new(&sizes) },
        feed_forward: FeedForward::Glu(GluKind::Swiglu, keys.size("feed_forward_length", MAX_WIDTH, None)?),
        embedding_scale: keys.positive("embedding_scale", Some(1.0))?,
        stack,
        low_passes,
    }))
}

impl HrmText {
    /// Returns whether a pass goes through the high stack.
    fn is_high(&self, pass: usize) -> bool {
        pass % (self.low_passes + 1) == self.low_passes
    }

    /// Records the streams of both stacks before the first pass.
    fn begin(&self, m: &mut Recorder<'_>) -> Result<[TensorId; 2], ModelError> {
        let (rows, n_embd) = (m.step.rows, self.sizes.n_embd);
        let low = m.vector("hrm.z_l_init", n_embd)?;
        let low = m.shaped(&[1, n_embd], low)?;
        let low = m.op(Repeat { times: [1, 1, rows, 1] }, &[low])?;
        let high = m.embed("token_embd")?;
        Ok([low, m.scale(self.embedding_scale, high)?])
    }

    /// Records a block on the stream of its stack.
    fn block(&self, m: &mut Recorder<'_>, x: TensorId) -> Recorded {
        let a = m.unit(self.norm, x)?;
        let a = m.attention(&self.attention, a)?;
        let [a, x] = m.wanted([a, x])?;
        let a = m.linear("attn_output", self.sizes.n_embd, a)?;
        let x = m.add(a, x)?;
        let f = m.unit(self.norm, x)?;
        let f = m.feed_forward(&self.feed_forward, f)?;
        m.add(f, x)
    }
}

impl Architecture for HrmText {
    fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    fn hidden(&self) -> usize {
        2 * self.sizes.n_embd
    }

    fn record(&self, m: &mut Recorder<'_>) -> Result<(), ModelError> {
        // The stream of the last pass, which is normed where it is used, and the other one.
        let mut begun = None;
        let x = m.input(|m| Ok(begun.insert(self.begin(m)?)[0]))?;
        let [x, other] = match begun {
            Some(streams) => streams,
            None => m.columns(x, [self.sizes.n_embd; 2])?,
        };
        let other = Cell::new(other);
        let x = m.blocks(x, |m, i, mut x| {
            let (pass, at) = (i / self.stack, i % self.stack);
            let high = self.is_high(pass);
            if at == 0 {
                x = if pass > 0 { m.unit(self.norm, x)? } else { x };
                let sum = m.add(x, other.get())?;
                if high != (pass > 0 && self.is_high(pass - 1)) {
                    other.set(x);
                }
                x = sum;
            }
            m.use_weights_of(if high { self.stack + at } else { at });
            self.block(m, x)
        })?;
        let x = if m.step.stage.head { x } else { m.beside(x, other.get())? };
        m.output(x, |m, x| {
            let x = m.unit(self.norm, x)?;
            m.logits(x)
        })
    }
}
