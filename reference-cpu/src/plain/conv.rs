//! Convolutions.

use crate::args::Args;
use backend_api::Op;

pub(super) fn short_conv(_: &Op, args: &mut Args<'_>) {
    let (x, kernel) = (args.input(1), args.input(2));
    let (d, taps) = (x.shape().cols(), kernel.shape().cols());
    let (rows, before) = ((args.step.rows as usize).min(x.shape().dim(0)), taps - 1);
    let (x, kernel) = (x.floats(), kernel.floats());
    let [y, state, _] = &mut args.outputs;
    let (y, state): (&mut [f32], &mut [f32]) = (bytemuck::cast_slice_mut(y), bytemuck::cast_slice_mut(state));
    for (i, y) in y.chunks_exact_mut(d).enumerate() {
        for (c, y) in y.iter_mut().enumerate() {
            let s = |at: usize| if at < before { state[at * d + c] } else { x[(at - before) * d + c] };
            *y = (0..taps).map(|j| f64::from(kernel[c * taps + j]) * f64::from(s(i + j))).sum::<f64>() as f32;
        }
    }
    // What lies before the step's last real row: rows of the state that remain, then rows of x.
    let kept = before.saturating_sub(rows);
    state.copy_within((before - kept) * d.., 0);
    state[kept * d..].copy_from_slice(&x[(kept + rows - before) * d..][..(before - kept) * d]);
}
