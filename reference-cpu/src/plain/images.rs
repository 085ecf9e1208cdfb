//! Images: resized, as rows for a product, convolved.

use crate::args::Args;
use backend_api::Op;
use backend_api::op::{Resize, ResizeMode, Window};
use std::ops::RangeInclusive;

/// The weight of an element at a distance in elements, of which one result is made of `scale`.
fn weight(mode: ResizeMode, distance: f64, scale: f64) -> f64 {
    const A: f64 = -0.75;
    let d = distance.abs();
    match mode {
        ResizeMode::Nearest => 1.0,
        ResizeMode::Linear => (1.0 - d).max(0.0),
        ResizeMode::Antialias => (1.0 - d / scale.max(1.0)).max(0.0),
        ResizeMode::Cubic if d <= 1.0 => (A + 2.0) * d.powi(3) - (A + 3.0) * d.powi(2) + 1.0,
        ResizeMode::Cubic if d < 2.0 => A * (d.powi(3) - 5.0 * d.powi(2) + 8.0 * d - 4.0),
        ResizeMode::Cubic => 0.0,
    }
}

/// Where output `i` of a dimension lies among `from` elements, and which of them may have a weight there. Those beyond the
/// edges are the ones at the edges, but antialiasing leaves them out.
fn around(op: &Resize, axis: usize, from: usize, i: usize) -> (f64, RangeInclusive<i64>) {
    let (to, last) = (op.dims[axis], from as i64 - 1);
    if axis < 2 || op.mode == ResizeMode::Nearest {
        let at = (i * from / to) as i64;
        return (at as f64, at..=at);
    }
    let at = match op.align_corners {
        true => i as f64 * last as f64 / (to - 1).max(1) as f64,
        false => (i as f64 + 0.5) * from as f64 / to as f64 - 0.5,
    };
    let (floor, reach) = (at.floor() as i64, from.div_ceil(to) as i64);
    let near = match op.mode {
        ResizeMode::Nearest | ResizeMode::Linear => floor..=floor + 1,
        ResizeMode::Cubic => floor - 1..=floor + 2,
        ResizeMode::Antialias => (floor - reach).max(0)..=(floor + 1 + reach).min(last),
    };
    (at, near)
}

pub(super) fn resize(op: &Op, args: &mut Args<'_>) {
    let Op::Resize(op) = op else { return };
    let x = args.input(0);
    let (from, to, x) = (x.shape().dims4(), op.dims, x.floats());
    let scale = [2, 3].map(|axis| from[axis] as f64 / to[axis] as f64);
    for (i, y) in args.out().iter_mut().enumerate() {
        let along = |axis: usize| around(op, axis, from[axis], i / to[axis + 1..].iter().product::<usize>() % to[axis]);
        let [(_, outer), (_, inner), (at_row, rows), (at_col, cols)] = [0, 1, 2, 3].map(along);
        let plane = *outer.start() as usize * from[1] + *inner.start() as usize;
        let (mut sum, mut weights) = (0.0, 0.0);
        for row in rows {
            let by_row = weight(op.mode, row as f64 - at_row, scale[0]);
            let first = (plane * from[2] + row.clamp(0, from[2] as i64 - 1) as usize) * from[3];
            for col in cols.clone() {
                let both = by_row * weight(op.mode, col as f64 - at_col, scale[1]);
                sum += both * f64::from(x[first + col.clamp(0, from[3] as i64 - 1) as usize]);
                weights += both;
            }
        }
        *y = (sum / weights) as f32;
    }
}

/// The pixel that place `k` of a kernel falls on in a dimension of `size`, if there is one.
fn pixel(window: &Window, axis: usize, result: usize, k: usize, size: usize) -> Option<usize> {
    let at = result * window.stride[axis] + k * window.dilation[axis];
    at.checked_sub(window.before[axis]).filter(|at| *at < size)
}

pub(super) fn im2col(op: &Op, args: &mut Args<'_>) {
    let Op::Im2Col(op) = op else { return };
    let x = args.input(0);
    let ([_, c, h, w], [kh, kw], x) = (x.shape().dims4(), op.kernel, x.floats());
    let Ok([down, across]) = op.window.places([h, w], op.kernel) else { return };
    for (i, y) in args.out().iter_mut().enumerate() {
        let (k, place) = (i % (c * kh * kw), i / (c * kh * kw));
        let (channel, image) = (k / (kh * kw), place / (down * across));
        let row = pixel(&op.window, 0, place / across % down, k / kw % kh, h);
        let col = pixel(&op.window, 1, place % across, k % kw, w);
        *y = row.zip(col).map_or(0.0, |(row, col)| x[((image * c + channel) * h + row) * w + col]);
    }
}

pub(super) fn conv2d(op: &Op, args: &mut Args<'_>) {
    let Op::Conv2d(op) = op else { return };
    let (x, kernel) = (args.input(0), args.input(1));
    let ([_, c, h, w], [m, own, kh, kw]) = (x.shape().dims4(), kernel.shape().dims4());
    let (x, kernel, of_group) = (x.floats(), kernel.floats(), m / (c / own));
    let Ok([down, across]) = op.window.places([h, w], [kh, kw]) else { return };
    for (i, y) in args.out().iter_mut().enumerate() {
        let (place, result, image) = (i % (down * across), i / (down * across) % m, i / (down * across) / m);
        let mut sum = 0.0;
        for channel in 0..own {
            let plane = image * c + result / of_group * own + channel;
            for ky in 0..kh {
                let Some(row) = pixel(&op.window, 0, place / across, ky, h) else { continue };
                for kx in 0..kw {
                    let Some(col) = pixel(&op.window, 1, place % across, kx, w) else { continue };
                    let factor = kernel[((result * own + channel) * kh + ky) * kw + kx];
                    sum += f64::from(factor) * f64::from(x[(plane * h + row) * w + col]);
                }
            }
        }
        *y = sum as f32;
    }
}
