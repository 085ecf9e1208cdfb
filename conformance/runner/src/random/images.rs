//! Images, and systems of equations.

use super::draw::Draw;
use super::operators::{case, once};
use backend_api::case::{Case, Fill};
use backend_api::op::{Conv2d, Im2Col, Resize, ResizeMode, SolveTriangular, Window};

/// Where a resized image might happen to be small in all places, it has more columns than this.
const FEWEST: usize = 32;

pub fn resize(draw: &mut Draw<'_>) -> Case {
    let mode = draw.pick(&ResizeMode::ALL);
    let align_corners = matches!(mode, ResizeMode::Linear | ResizeMode::Cubic) && draw.chance();
    let from: Vec<usize> = [4, 4, 20, 40].map(|most| draw.size(most)).into();
    let dims = [draw.size(4), draw.size(4), draw.size(20), FEWEST + draw.size(60)];
    case(Resize { dims, mode, align_corners }, once(), |o| vec![o.input(&from)])
}

/// A window over images of at least some size, so that a kernel of a size has a place.
fn window(draw: &mut Draw<'_>, kernel: [usize; 2]) -> (Window, [usize; 2]) {
    let mut two = |most: usize| [draw.size(most), draw.size(most)];
    let (stride, dilation, more) = (two(4), two(4), two(20));
    let [before, after] = [two(5), two(5)].map(|around| around.map(|n| n - 1));
    let least = |axis: usize| (dilation[axis] * (kernel[axis] - 1)).saturating_sub(before[axis] + after[axis]);
    let image = [0, 1].map(|axis| least(axis) + more[axis]);
    (Window { stride, before, after, dilation }, image)
}

pub fn im2col(draw: &mut Draw<'_>) -> Case {
    let (kernel, n, c) = ([draw.size(4), draw.size(4)], draw.size(3), draw.size(5));
    let (window, [h, w]) = window(draw, kernel);
    case(Im2Col { kernel, window }, once(), |o| vec![o.input(&[n, c, h, w])])
}

pub fn conv2d(draw: &mut Draw<'_>) -> Case {
    let ([kh, kw], n, groups) = ([draw.size(4), draw.size(4)], draw.size(3), draw.size(4));
    let (own, each) = (draw.size(4), draw.size(4));
    let (window, [h, w]) = window(draw, [kh, kw]);
    case(Conv2d { window }, once(), |o| {
        vec![o.input(&[n, groups * own, h, w]), o.weight(&[groups * each, own, kh, kw])]
    })
}

pub fn solve_triangular(draw: &mut Draw<'_>) -> Case {
    let (batch, n, k) = ([draw.size(3), draw.size(3)], draw.size(40), draw.size(40));
    let [a, b] = [n, k].map(|cols| [&batch[..], &[n, cols]].concat());
    case(SolveTriangular, once(), |o| vec![o.filled(&a, Fill::Uniform(0.1, 1.0)), o.input(&b)])
}
