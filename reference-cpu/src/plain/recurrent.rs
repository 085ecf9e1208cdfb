//! Recurrences along the rows. States are rounded to f32 after each row, so that steps of any rows give the same.

use crate::args::Args;
use backend_api::op::UnaryKind;
use backend_api::{Op, Tensor};

pub(super) fn ssm_scan(_: &Op, args: &mut Args<'_>) {
    let [x, dt, a, b, c, skip] = [1, 2, 3, 4, 5, 6].map(|i| args.input(i));
    let (d, n, heads) = (x.shape().cols(), args.input(0).shape().cols(), a.shape().dim(0));
    let (rows, decays, mixes) = (args.step.rows as usize, a.shape().cols(), b.shape().cols());
    let (head_dim, group_heads) = (d / heads, heads / (mixes / n));
    let [x, dt, a, b, c, skip] = [x, dt, a, b, c, skip].map(|operand| operand.floats());
    let [y, state, _] = &mut args.outputs;
    let (y, state): (&mut [f32], &mut [f32]) = (bytemuck::cast_slice_mut(y), bytemuck::cast_slice_mut(state));
    y.fill(0.0);
    for (i, y) in y.chunks_exact_mut(d).enumerate().take(rows) {
        for (j, (y, state)) in y.iter_mut().zip(state.chunks_exact_mut(n)).enumerate() {
            let (head, x) = (j / head_dim, f64::from(x[i * d + j]));
            let pace = UnaryKind::Softplus.of(f64::from(dt[i * heads + head]));
            let mix = i * mixes + head / group_heads * n;
            let decay = |k: usize| (pace * f64::from(a[head * decays + k])).exp();
            let alike = (decays == 1).then(|| decay(0));
            let mut sum = f64::from(skip[head]) * x;
            for (k, s) in state.iter_mut().enumerate() {
                let decay = alike.unwrap_or_else(|| decay(k));
                *s = (f64::from(*s) * decay + pace * x * f64::from(b[mix + k])) as f32;
                sum += f64::from(*s) * f64::from(c[mix + k]);
            }
            *y = sum as f32;
        }
    }
}

pub(super) fn gated_delta_net(op: &Op, args: &mut Args<'_>) {
    let Op::GatedDeltaNet(op) = op else { return };
    let operands: [_; 6] = std::array::from_fn(|i| args.input(i));
    let tensors: [&Tensor; 6] = operands.map(|operand| operand.tensor);
    let (heads, heads_k) = backend_api::op::GatedDeltaNet::heads(&tensors);
    let [dk, values, gates] = [0, 3, 4].map(|i| tensors[i].shape.cols());
    let (dv, rows) = (values / heads, args.step.rows as usize);
    let [_, q, k, v, g, beta] = operands.map(|operand| operand.floats());
    let [o, state, _] = &mut args.outputs;
    let (o, state): (&mut [f32], &mut [f32]) = (bytemuck::cast_slice_mut(o), bytemuck::cast_slice_mut(state));
    o.fill(0.0);
    for (i, o) in o.chunks_exact_mut(values).enumerate().take(rows) {
        for (j, (o, m)) in o.iter_mut().zip(state.chunks_exact_mut(dk)).enumerate() {
            let head = j / dv;
            let head_k = if op.grouped { head / (heads / heads_k) } else { head % heads_k };
            let [q, k] = [q, k].map(|x| &x[(i * heads_k + head_k) * dk..][..dk]);
            let g = &g[i * gates + head * gates / heads..][..gates / heads];
            let fade = |e: usize| f64::from(g[e]).exp();
            let alike = (g.len() == 1).then(|| fade(0));
            let mut recalled = 0.0;
            for (e, (m, k)) in m.iter_mut().zip(k).enumerate() {
                *m = (f64::from(*m) * alike.unwrap_or_else(|| fade(e))) as f32;
                recalled += f64::from(*m) * f64::from(*k);
            }
            let learned = (f64::from(v[i * values + j]) - recalled) * f64::from(beta[i * heads + head]);
            let mut sum = 0.0;
            for (m, (k, q)) in m.iter_mut().zip(k.iter().zip(q)) {
                *m = (f64::from(*m) + learned * f64::from(*k)) as f32;
                sum += f64::from(*m) * f64::from(*q);
            }
            *o = (sum / (dk as f64).sqrt()) as f32;
        }
    }
}
